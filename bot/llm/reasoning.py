"""Reasoning that a model writes into its answer, between <think> tags, taken out as it streams."""

import re
from collections.abc import Iterator

from bot.llm.chat import Restarted, TextDelta
from bot.llm.tags import TagReader

_TAG = re.compile(r"<(/?)(think|thinking|reasoning|thought|reflection)>", re.IGNORECASE)
_NAMES = ("think", "thinking", "reasoning", "thought", "reflection")
_TAGS = tuple(f"<{slash}{name}>" for name in _NAMES for slash in ("", "/"))


def without_reasoning(text: str) -> str:
    """The part of a whole answer that is meant to be seen."""
    reasoning = ReasoningFilter()
    seen = ""
    for event in (*reasoning.feed(text), *reasoning.finish()):
        seen = "" if isinstance(event, Restarted) else seen + event.text
    return seen


class ReasoningFilter:
    """Lets through what of a streamed answer is meant to be seen.

    Some servers put the opening tag into the prompt: then the answer begins as reasoning, and only
    a closing tag at the start of a line shows it. What was let through before it is taken back
    with `Restarted`. A tag in code is talk about tags, and so is an opening one within an answer
    that is never closed.
    """

    def __init__(self) -> None:
        self._tags = TagReader(_TAG, _is_beginning)
        self._hidden: list[str] = []
        self._closing = ""
        self._after_block = False
        self._last_seen = ""
        self._says_something = False

    def feed(self, piece: str) -> Iterator[TextDelta | Restarted]:
        """The events of one more piece; use up the iterator before the next one."""
        return self._read(self._tags.feed(piece))

    def finish(self) -> Iterator[TextDelta | Restarted]:
        """What was held back until the answer's end was known."""
        yield from self._read(self._tags.finish())
        if self._says_something:
            yield from self._show("".join(self._hidden))

    def _read(self, parts: Iterator[str | re.Match[str]]) -> Iterator[TextDelta | Restarted]:
        for part in parts:
            written = part if isinstance(part, str) else part[0]
            if self._tags.is_hiding:
                self._hidden.append(written)
                if isinstance(part, re.Match) and part[1] and _kind(part) == self._closing:
                    self._hidden.clear()
                    self._tags.is_hiding, self._after_block = False, True
            elif isinstance(part, str):
                yield from self._show(part)
            else:
                yield from self._meet_tag(part)

    def _meet_tag(self, tag: re.Match[str]) -> Iterator[TextDelta | Restarted]:
        if not tag[1]:
            self._hidden.append(tag[0])
            self._closing = _kind(tag)
            self._tags.is_hiding = True
        elif self._last_seen in ("", "\n"):
            if self._last_seen:
                yield Restarted()
            self._after_block, self._last_seen, self._says_something = True, "", False
        else:
            yield from self._show(tag[0])

    def _show(self, text: str) -> Iterator[TextDelta]:
        if self._after_block and not self._says_something:
            text = text.lstrip()
        if text:
            self._last_seen = text[-1]
            self._says_something |= not text.isspace()
            yield TextDelta(text=text)


def _kind(tag: re.Match[str]) -> str:
    """What kind of block a tag opens or closes; <think> and <thinking> are one."""
    return tag[2].lower().removesuffix("ing")


def _is_beginning(text: str) -> bool:
    """Whether the text may turn out to be the beginning of a tag."""
    return any(tag.startswith(text.lower()) for tag in _TAGS)

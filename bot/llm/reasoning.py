"""Reasoning that a model writes into its answer, between <think> tags, taken out as it streams."""

import re
from collections.abc import Iterator

from bot.llm.chat import Restarted, TextDelta

_TAG = re.compile(r"(</?think(?:ing)?>)", re.IGNORECASE)
_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")


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
    with `Restarted`. A tag in a code span (`<think>`) is talk about tags, and so is an opening one
    within an answer that is never closed.
    """

    def __init__(self) -> None:
        self._held = ""
        self._hidden: str | None = None
        self._after_block = False
        self._last_seen = ""
        self._says_something = False

    def feed(self, piece: str) -> Iterator[TextDelta | Restarted]:
        """The events of one more piece; use up the iterator before the next one."""
        text = self._held + piece
        self._held = _beginning_of_a_tag(text)
        for part in _TAG.split(text.removesuffix(self._held)):
            match _TAG.fullmatch(part), self._hidden:
                case None, None:
                    yield from self._show(part)
                case None, str():
                    self._hidden += part
                case _, None:
                    yield from self._meet_tag(part)
                case _, str():
                    self._hidden += part
                    if part.startswith("</"):
                        self._hidden, self._after_block = None, True

    def finish(self) -> Iterator[TextDelta | Restarted]:
        """What was held back until the answer's end was known."""
        rest = (self._hidden or "") + self._held
        if self._hidden is None or self._says_something:
            self._hidden = None
            yield from self._show(rest)

    def _meet_tag(self, tag: str) -> Iterator[TextDelta | Restarted]:
        if not tag.startswith("</") and self._last_seen != "`":
            self._hidden = tag
        elif tag.startswith("</") and self._last_seen in ("", "\n"):
            if self._last_seen:
                yield Restarted()
            self._after_block, self._last_seen, self._says_something = True, "", False
        else:
            yield from self._show(tag)

    def _show(self, text: str) -> Iterator[TextDelta]:
        if self._after_block and not self._says_something:
            text = text.lstrip()
        if text:
            self._last_seen = text[-1]
            self._says_something |= not text.isspace()
            yield TextDelta(text=text)


def _beginning_of_a_tag(text: str) -> str:
    """The end of `text` that may turn out to be the beginning of a tag; mostly empty."""
    end = text[text.rfind("<") :] if "<" in text else ""
    return end if any(tag.startswith(end.lower()) and tag != end.lower() for tag in _TAGS) else ""

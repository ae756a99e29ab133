"""Tags in text that streams in: told apart from ordinary text, and from talk about tags in code."""

import re
from collections.abc import Callable, Iterator

_MARK = re.compile(r"[<\[]")
_CODE_PART = re.compile(r"`+|\n|[^`\n]+")
_FENCE = 3
_LONGEST_TAG = 200
_LONGEST_SPAN = 400
"""How far after a tag its code span may end; until then the tag is held back."""


class CodePlaces:
    """Knows whether the end of a text that streams in stands in code.

    A fence is three backticks or more, wherever they stand; a span (`so`) ends with its line.
    """

    def __init__(self) -> None:
        self._run = 0
        self._fenced = False
        self._span = 0

    def read(self, text: str) -> None:
        """Follow the text."""
        for part in _CODE_PART.findall(text):
            if part[0] == "`":
                self._run += len(part)
            else:
                self._end_run()
                self._span = 0 if part == "\n" else self._span

    @property
    def is_fenced(self) -> bool:
        """Whether a fence is open."""
        self._end_run()
        return self._fenced

    @property
    def span(self) -> str:
        """The backticks that would close the open span; empty where none is open."""
        self._end_run()
        return "`" * self._span

    def end_span(self) -> None:
        """The backticks that seemed to open a span are plain ones."""
        self._span = 0

    def _end_run(self) -> None:
        run, self._run = self._run, 0
        if run >= _FENCE:
            self._fenced, self._span = not self._fenced, 0
        elif run and not self._fenced:
            self._span = 0 if self._span == run else self._span or run


class TagReader:
    """Splits a text that streams in into plain text (str) and the tags that a pattern matches.

    What may still become a tag is held back, never more than a few hundred characters. The
    pattern's matches begin with < or [ and do not depend on what follows them; `may_become` says
    whether a text is the beginning of one. Tags in code are plain text, but not while
    `is_hiding`: what people never see holds no talk about tags.
    """

    def __init__(self, tag: re.Pattern[str], may_become: Callable[[str], bool]) -> None:
        self._tag = tag
        self._may_become = may_become
        self._held = ""
        self._code = CodePlaces()
        self.is_hiding = False

    def feed(self, piece: str) -> Iterator[str | re.Match[str]]:
        """The parts of one more piece; use up the iterator before the next one."""
        return self._read(self._held + piece, at_end=False)

    def finish(self) -> Iterator[str | re.Match[str]]:
        """What was held back until the end was known."""
        return self._read(self._held, at_end=True)

    def _read(self, text: str, *, at_end: bool) -> Iterator[str | re.Match[str]]:
        done = at = 0
        while mark := _MARK.search(text, at):
            at = mark.start()
            tag = self._tag.match(text, at)
            if tag is None:
                if not at_end and self._is_begun(text, at):
                    break
                at += 1
                continue
            if done < at:
                yield self._plain(text[done:at])
                done = at
            in_code = self._is_in_code(text, tag.end(), at_end=at_end)
            if in_code is None:
                break
            at = tag.end()
            if not in_code:
                yield tag
                done = at
        else:
            at = len(text)
        self._held = text[at:]
        if done < at:
            yield self._plain(text[done:at])

    def _is_begun(self, text: str, at: int) -> bool:
        return len(text) - at <= _LONGEST_TAG and self._may_become(text[at:])

    def _plain(self, text: str) -> str:
        if not self.is_hiding:
            self._code.read(text)
        return text

    def _is_in_code(self, text: str, end: int, *, at_end: bool) -> bool | None:
        """Whether a tag that ends at `end` stands in code; None where more has to be read."""
        if self.is_hiding:
            return False
        if self._code.is_fenced:
            return True
        span = self._code.span
        if not span:
            return False
        line, ended, _ = text[end : end + _LONGEST_SPAN].partition("\n")
        if span in line:
            return True
        if not at_end and not ended and len(line) < _LONGEST_SPAN:
            return None
        self._code.end_span()
        return False

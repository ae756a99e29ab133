"""Cuts a reply into messages: code fences closed and reopened, nothing lost, stable while it grows.

Where a message ends depends only on text that stands before the point where it would be full. So
while a reply grows, only its last message changes.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

MESSAGE_LIMIT = 2000
"""Characters in a message, counted as Discord does: Unicode code points."""

SMALLEST_LIMIT = 300
"""Room for the longest fence line and what reopens and closes it, so each piece moves forward."""

FENCE_LINE = re.compile(r"^[ \t]{0,24}(`{3,10})(?!`)([^`\n]{0,200})$", re.MULTILINE)
LONGEST_FENCE_LINE = 24 + 10 + 200
# "$", here and below: the view ends before it is clear.
FENCE_BEGINS = re.compile(r"[ \t]{0,24}(?:```|`{0,2}$)")
LANGUAGE = re.compile(r"\S{1,20}(?!\S)")

# What reads as one thing: mentions, emoji, time stamps, commands; links.
UNBROKEN = re.compile(r"<(?:[@#/:t]|a:)[^\s<>]{0,100}(?:>|$)|<a?$|https?://\S+")

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
LINE = re.compile(r"\n")
SENTENCE = re.compile(r"[.!?…][\"')\]*_]*\s+|[。！？][」』）]*")
WORD = re.compile(rf"\n|[^\S\n]+|(?<=[{CJK}、，])(?=\w)(?!ー)")

REGIONAL = range(0x1F1E6, 0x1F200)
SKIN_TONES = range(0x1F3FB, 0x1F400)
TAGS = range(0xE0020, 0xE0080)
VOWEL_JAMO = range(0x1160, 0x1200)
JOINER = "\u200d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One message: a stretch of the reply, and the fence lines added around it."""

    body: str
    opening: str = ""
    closing: str = ""

    @property
    def content(self) -> str:
        """What is sent."""
        return f"{self.opening}{self.body}{self.closing}"


def split(text: str, limit: int = MESSAGE_LIMIT) -> tuple[str, ...]:
    """The contents of the messages that show `text`; none of them is empty or blank."""
    return tuple(piece.content for piece in cut(text, limit))


def join(pieces: Iterable[Piece]) -> str:
    """The text the pieces show.

    It is the text they were cut from, but for white space that would have made a blank message.
    """
    return "".join(piece.body for piece in pieces)


def cut(text: str, limit: int = MESSAGE_LIMIT) -> tuple[Piece, ...]:
    """The messages that show `text`, each at most `limit` characters (300 or more).

    All but the last stay as they are when `text` grows.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a piece holds at least {SMALLEST_LIMIT} characters")
    return tuple(_pieces(_Fences(text), limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    """An open code fence; its code begins at `begins`."""

    ticks: str
    language: str
    begins: int

    @property
    def opening(self) -> str:
        return f"{self.ticks}{self.language}\n"

    def closing(self, body: str) -> str:
        return self.ticks if body.endswith("\n") else f"\n{self.ticks}"


class _Fences:
    """A text, and which fence is open at each place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: list[int] = []
        self._open: list[_Fence | None] = []
        fence: _Fence | None = None
        for line in FENCE_LINE.finditer(text):
            ticks, info = line[1], line[2].strip()
            end = min(line.end() + 1, len(text))
            if fence is None:
                word = LANGUAGE.match(info)
                fence = _Fence(ticks=ticks, language=word[0] if word else "", begins=end)
            elif len(ticks) >= len(fence.ticks) and not info:
                fence = None
            else:
                continue
            self._ends.append(end)
            self._open.append(fence)

    def at(self, place: int) -> _Fence | None:
        """The fence that the whole lines before `place` leave open."""
        before = bisect_right(self._ends, place)
        return self._open[before - 1] if before else None


def _pieces(fences: _Fences, limit: int) -> Iterator[Piece]:
    text, start = fences.text, 0
    while True:
        fence = fences.at(start)
        opening = fence.opening if fence else ""
        room = limit - len(opening)
        if len(text) - start <= room:
            break
        blank = 0 if fence else _leading_blank(text[start:])
        if blank > room // 2:
            start += blank
            continue
        end = _View(fences, start, start + room).best_end()
        yield _piece(fences, start, end)
        start = end
    if text[start:].strip():
        yield _last_piece(fences, start, limit)


def _leading_blank(text: str) -> int:
    return len(text) - len(text.lstrip())


def _piece(fences: _Fences, start: int, end: int) -> Piece:
    body, before, after = fences.text[start:end], fences.at(start), fences.at(end)
    return Piece(
        body=body,
        opening=before.opening if before else "",
        closing=after.closing(body) if after else "",
    )


def _last_piece(fences: _Fences, start: int, limit: int) -> Piece:
    """The rest; a fence left open is closed where there is code in it, and room to do so."""
    piece = _piece(fences, start, len(fences.text))
    fence = fences.at(len(fences.text))
    has_code = fence is not None and fences.text[fence.begins :].strip()
    if has_code and len(piece.content) <= limit:
        return piece
    return Piece(body=piece.body, opening=piece.opening)


class _View:
    """The stretch of text that would fill one message, and where in it the message may end.

    Nothing here looks beyond the one character at `stop`, which is always there: that is what
    keeps earlier messages as they are.
    """

    def __init__(self, fences: _Fences, start: int, stop: int) -> None:
        self._fences = fences
        self._start = start
        self._stop = stop
        self._text = fences.text[: stop + 1]

    def best_end(self) -> int:
        """Where the message ends: the last good border, else the last place that breaks least."""
        half = (self._start + self._stop) // 2
        for border, lowest in (
            (PARAGRAPH, half),
            (LINE, half),
            (SENTENCE, half),
            (WORD, half),
            (WORD, self._start + _leading_blank(self._text[self._start :])),
        ):
            end = self._last_border(border, lowest)
            if end is not None:
                return self._with_white_space(end)
        return self._end_inside_word()

    def _last_border(self, border: re.Pattern[str], lowest: int) -> int | None:
        ends = [min(match.end(), self._stop) for match in border.finditer(self._text, lowest)]
        return next((end for end in reversed(ends) if end > lowest and self._is_good(end)), None)

    def _is_good(self, end: int) -> bool:
        return (
            self._fits(end)
            and self._is_whole(end)
            and not self._is_in_fence_line(end)
            and not self._harms_code(end)
        )

    def _fits(self, end: int) -> bool:
        fence = self._fences.at(end)
        closing = fence.closing(self._text[end - 1 : end]) if fence else ""
        return end + len(closing) <= self._stop

    def _is_whole(self, end: int) -> bool:
        return (
            not any(low < end < high for low, high in self._unbroken)
            and not _is_inside_grapheme(self._text, end)
            and not self._makes_fence(end)
        )

    @cached_property
    def _unbroken(self) -> list[tuple[int, int]]:
        return [match.span() for match in UNBROKEN.finditer(self._text, self._start)]

    def _line_start(self, place: int) -> int:
        return max(self._start, self._text.rfind("\n", 0, place) + 1)

    def _makes_fence(self, end: int) -> bool:
        """Whether back quotes from inside a line would be a fence at the head of a message."""
        is_inside_line = self._line_start(end) < end
        return is_inside_line and FENCE_BEGINS.match(self._text, end) is not None

    def _is_in_fence_line(self, end: int) -> bool:
        """Whether a line that is a fence, or that would be one if it ended here, is cut."""
        line = self._line_start(end)
        is_near = 0 < end - line <= LONGEST_FENCE_LINE
        return is_near and FENCE_BEGINS.match(self._text, line) is not None

    def _harms_code(self, end: int) -> bool:
        """Whether a code block would lose an indentation, or stand without code on either side."""
        fence = self._fences.at(end)
        if fence is None:
            return False
        after = self._text[end:].lstrip()
        return (
            self._text[self._line_start(end) : end].isspace()
            or not self._text[max(fence.begins, self._start) : end].strip()
            or after.startswith(fence.ticks[: max(len(after), 1)])
        )

    def _with_white_space(self, end: int) -> int:
        """White space at the border stays here: Discord drops it at the head of a message."""
        return end if self._fences.at(end) else end + _leading_blank(self._text[end : self._stop])

    def _end_inside_word(self) -> int:
        """Where nothing better is left, and not inside what is drawn as one character."""
        last = next(end for end in range(self._stop, self._start, -1) if self._fits(end))
        places = range(last, (self._start + last) // 2, -1)
        whole = (end for end in places if self._is_whole(end))
        drawn = (end for end in places if not _is_inside_grapheme(self._text, end))
        return next(whole, next(drawn, last))


def _is_inside_grapheme(text: str, place: int) -> bool:
    """Whether the characters on both sides of `place` are drawn as one."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    code = ord(after)
    return (
        unicodedata.category(after) in {"Mn", "Mc", "Me"}
        or JOINER in {before, after}
        or code in SKIN_TONES
        or code in TAGS
        or code in VOWEL_JAMO
        or (before == "\r" and after == "\n")
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (code in REGIONAL and _regional_run(text, place) % 2 == 1)
    )


def _regional_run(text: str, place: int) -> int:
    """How many letters of flags stand right before `place`."""
    first = place
    while first and ord(text[first - 1]) in REGIONAL:
        first -= 1
    return place - first

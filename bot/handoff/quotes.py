"""Quotes are what was said, to the letter: found in the lines, mended where nearly right."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from bot.handoff.grounding import UNSPACED
from bot.handoff.material import Material, one_line
from bot.memory.content import looks_like_credential
from bot.memory.ledger import Quote
from bot.memory.working import Entry, EntryKind
from bot.prompts import prompt

NEAR_MISS = 90.0
"""Likeness of 100 from which altered words are taken for the true ones, and become them."""
LONGEST_QUOTE = 400
MOST_QUOTES = 3
_MOST_CLAIMS = 6
"""Quotes of one chunk that are looked for, whatever number the model gives."""

_QUOTE_MARKS = re.compile(
    "[\"'`´\u2018-\u201f\u00ab\u00bb\u2039\u203a\u300c-\u300f\u301d-\u301f\uff02\uff07\uff62\uff63]"
)
_SPEAKER = re.compile(r"[^:]{1,40}:\s*")
_SIGN = re.compile("(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A sign with what is set upon it: as one they have another form, as two they have not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What somebody said, on one line; `folded` is what quotes are looked for in."""

    entry: Entry
    text: str
    folded: str


def true_quotes(
    claimed: Sequence[str], sources: Iterable[Entry], material: Material
) -> tuple[Quote, ...]:
    """Those of the claimed quotes that stand in a line of dialogue, with who said them."""
    lines = [_line(e, material) for e in sources if e.kind is EntryKind.DIALOGUE]
    found: dict[str, Quote] = {}
    for claim in claimed[:_MOST_CLAIMS]:
        quote = _true_quote(claim, lines, material)
        if quote is not None:
            found.setdefault(quote.content, quote)
    return tuple(found.values())[:MOST_QUOTES]


def _line(entry: Entry, material: Material) -> _Line:
    text = unicodedata.normalize("NFC", " ".join(material.shown(entry).split()))
    return _Line(entry=entry, text=text, folded=_folded(text))


def _true_quote(claim: str, lines: Sequence[_Line], material: Material) -> Quote | None:
    found = next((one for words in _readings(claim) if (one := _nearest(words, lines))), None)
    if found is None:
        return None
    entry, words = found
    left_out = prompt("blocks.shortened") in words
    if left_out or len(words) > LONGEST_QUOTE or looks_like_credential(words):
        return None
    return Quote(
        content=material.scenery.roster.hide(words),
        said_by=entry.author,
        persona=entry.persona,
        message_id=entry.message_id,
    )


def _readings(claim: str) -> Iterator[str]:
    """A claim's words as they may stand in a line: all, or those after the speaker's name."""
    words = _folded(one_line(claim)).strip("' ")
    for one in dict.fromkeys((words, _SPEAKER.sub("", words, count=1).strip("' "))):
        if one and len(one) <= LONGEST_QUOTE * 1.2:
            yield one


def _nearest(claim: str, lines: Sequence[_Line]) -> tuple[Entry, str] | None:
    """The words of all lines that are most like the claim, where they are like it."""
    best, nearest = 0.0, None
    holding = [line for line in lines if claim in line.folded]
    for line in holding or lines:
        start, end = _whole_words(line.folded, *_place_of(claim, line.folded))
        likeness = fuzz.ratio(claim, line.folded[start:end])
        if likeness > best:
            best, nearest = likeness, (line, start, end)
    if nearest is None or best < NEAR_MISS:
        return None
    line, start, end = nearest
    return line.entry, _as_written(line, start, end)


def _place_of(claim: str, line: str) -> tuple[int, int]:
    """From where to where a folded line is most like the claim; nowhere if it is not."""
    at = line.find(claim)
    if at >= 0:
        whole = re.search(rf"(?<!\w){re.escape(claim)}(?!\w)", line)
        return whole.span() if whole else (at, at + len(claim))
    alignment = fuzz.partial_ratio_alignment(claim, line, score_cutoff=NEAR_MISS)
    return (alignment.dest_start, alignment.dest_end) if alignment else (0, 0)


def _whole_words(line: str, start: int, end: int) -> tuple[int, int]:
    """That place, grown to the borders of the words that it cuts, without space around it."""
    while start < end and line[start].isspace():
        start += 1
    while start < end and line[end - 1].isspace():
        end -= 1
    while start < end and _cuts_a_word(line, start):
        start -= 1
    while start < end and _cuts_a_word(line, end):
        end += 1
    return start, end


def _cuts_a_word(line: str, at: int) -> bool:
    return 0 < at < len(line) and all(
        sign.isalnum() and UNSPACED.match(sign) is None for sign in line[at - 1 : at + 1]
    )


def _as_written(line: _Line, start: int, end: int) -> str:
    """What was said at that place of the folded line."""
    as_it_is = line.text[start:end]
    if _folded(as_it_is) == line.folded[start:end]:
        return as_it_is
    place, first = 0, 0
    for sign in _SIGN.finditer(line.text):
        if place <= start:
            first = sign.start()
        place += _folded_length(sign[0])
        if place >= end:
            return line.text[first : sign.end()]
    return line.text[first:]


@lru_cache(maxsize=4_096)
def _folded_length(sign: str) -> int:
    return len(_folded(sign))


def _folded(text: str) -> str:
    """A text without what its writing may differ in: case, width, and the kind of quote marks."""
    return unicodedata.normalize("NFKC", _QUOTE_MARKS.sub("'", text)).casefold()

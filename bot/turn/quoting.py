"""What a model said, as people read it: handles and references that slipped out are names."""

import re
from collections.abc import Iterable

from bot.memory.roster import HANDLE, Roster

_MARKER = re.compile(r"[MEP](?<![A-Za-z0-9_][MEP])[1-9][0-9]{0,2}(?![A-Za-z0-9_])")
_MARKERS = re.compile(
    r"[ \t]?[(\[（【［]\s?[MEP][0-9]{1,3}(?:\s?[,;、，/&]\s?[MEP][0-9]{1,3}){0,9}\s?"
    r"(?:[)）】］]|\](?!\())([ \t]?)"  # what is followed by an address is a link
)
_ODD_REFERENCE = re.compile(r"\{p:\s?@?([^{}\n]{1,40}?)\s?\}")
_LOOSE_END = re.compile(
    r"(?:[ \t]?[(\[（【［]\s?(?:[MEP][0-9]{0,3}\s?[,;、，/&]?\s?){0,10}"
    r"|\{(?:p(?::[^{}\n]{0,42})?)?|(?<![A-Za-z0-9_])U[0-9]{0,2})\Z"
)
_LONGEST_LOOSE_END = 80


def with_names(text: str, roster: Roster, markers: frozenset[str] = frozenset()) -> str:
    """What a model said as people read it: references and handles that slipped out are names again.

    `markers` are handles of memories: where they stand alone in brackets, "(M1)", they go.
    """
    names = {participant.handle: participant.name for participant in roster.participants}

    def unmarked(found: re.Match[str]) -> str:
        if not markers >= frozenset(_MARKER.findall(found[0])):
            return found[0]
        begins_line = found.start() == 0 or text[found.start() - 1] == "\n"
        return "" if begins_line else found[1]

    text = roster.show(_MARKERS.sub(unmarked, text))
    text = _ODD_REFERENCE.sub(lambda ref: roster.someone if ref[1].isdigit() else ref[1], text)
    return HANDLE.sub(lambda handle: names.get(handle[0], handle[0]), text)


def without_loose_end(text: str) -> str:
    """A growing text without an end that may still become a handle, marker or reference."""
    end = _LOOSE_END.search(text, max(0, len(text) - _LONGEST_LOOSE_END))
    return text[: end.start()] if end else text


def unspoken_markers(shown: Iterable[str], said: Iterable[str]) -> frozenset[str]:
    """The handles of memories that nobody used as a word: a song may be called M1."""
    return frozenset(shown).difference(*map(_MARKER.findall, said))

"""The little language in which packs say how people ask, translated to regular expressions.

plain words     themselves; whole words where the script parts words by spaces
{name}          one entry of the list `name` of the same pack
(a|b|)          one of these; an empty one makes the group optional
...             anything, up to 60 characters (20 in scripts without spaces)
*               one word, whatever it is
#               a number
^  $            the beginning and the end of a clause
!               the end of the sentence
, : ? @         a pause, a colon or quotation, a question mark, a mention or link
"""

import re
from collections.abc import Mapping, Sequence

from bot.memory.intent._reading import WORD_LETTERS, fold

BREAK = "\n"
"""Stands in a sentence where something was ruled out; nothing matches across it."""

_ELEMENT = re.compile(
    r"\{(?P<name>\w+)\}|(?P<gap>\.\.\.)|(?P<mark>[()|^$!*#,:?@])|(?P<space>\s+)|(?P<word>\w+)"
)
_MARKS = {
    "(": "(?:",
    ")": ")",
    "|": "|",
    "^": "(?:^|(?<=[,:@] ))",
    "$": "(?= ?(?:[,:?\n]|$))",
    "!": r"(?= *(?:\n|$))",
    "*": r"(?<![^ ])[^ ,:?\n]+(?![^ ])",
    "#": "(?<![0-9])[0-9]+",
    ",": ",",
    ":": ":",
    "?": r"\?",
    "@": "@",
}
_SPACED = re.compile(f"[{WORD_LETTERS}]")


def is_spaced(word: str) -> bool:
    """Whether the script of `word` parts words by spaces."""
    return _SPACED.match(word) is not None


class PatternCompiler:
    """Compiles patterns that may name the given lists.

    `strict` patterns allow no pause between their words; `spaced` says what the language's script does.
    """

    def __init__(self, lists: Mapping[str, Sequence[str]], *, spaced: bool) -> None:
        self._lists = lists
        self._spaced = spaced

    def compile(self, patterns: Sequence[str], *, strict: bool) -> re.Pattern[str]:
        """One expression that finds any of the patterns; ValueError for one that cannot be read."""
        between = " *" if strict else "[ ,:]*"
        start = f"(?<![{WORD_LETTERS}])" if self._spaced else ""
        branches = "|".join(self._translate(fold(pattern), between) for pattern in patterns)
        try:
            return re.compile(f"{start}(?:{branches})")
        except re.error as error:
            raise ValueError(f"a pattern does not compile: {error}") from error

    def _translate(self, pattern: str, between: str) -> str:
        parts: list[str] = []
        position = 0
        while position < len(pattern):
            element = _ELEMENT.match(pattern, position)
            if element is None:
                raise ValueError(f"cannot read the pattern {pattern!r} at {pattern[position:]!r}")
            parts.append(self._element(element, between))
            position = element.end()
        return "".join(parts)

    def _element(self, element: re.Match[str], between: str) -> str:
        text = element[0]
        match element.lastgroup:
            case "name":
                return self._list(element["name"], between)
            case "gap":
                return ".{0,60}?" if self._spaced else ".{0,20}?"
            case "space":
                return between
            case "mark":
                return _MARKS[text]
            case _:
                return _whole_word(text)

    def _list(self, name: str, between: str) -> str:
        entries = self._lists.get(name)
        if entries is None:
            raise ValueError(f"no list is named {name!r}")
        return "(?:" + "|".join(self._translate(fold(entry), between) for entry in entries) + ")"


def _whole_word(word: str) -> str:
    before = f"(?<![{WORD_LETTERS}])" if is_spaced(word[0]) else ""
    after = f"(?![{WORD_LETTERS}])" if is_spaced(word[-1]) else ""
    return f"{before}{word}{after}"

"""The little language in which packs say how people ask, translated to regular expressions.

plain words     themselves
{name}          one entry of the list `name` of the same pack
(a|b|)          one of these; an empty one makes the group optional
...             up to 12 words, whatever they are (20 characters in scripts without spaces)
*               one word, whatever it is
#               a number
^  $            the beginning and the end of a clause
<  >            the beginning and the end of the sentence
, : ? @         a pause, a colon or quotation, a question mark, a mention or link
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.memory.intent._alphabet import Alphabet
from bot.memory.intent._reading import fold

BREAK = "\n"
"""Stands in a sentence where something was ruled out; nothing matches across it."""

_ELEMENT = re.compile(
    r"\{(?P<name>\w+)\}|(?P<gap>\.\.\.)|(?P<bar>[|()])|(?P<mark>[\^$<>*#,:?@])|(?P<space>\s+)|(?P<word>\w+)"
)
_NAME = re.compile(r"\{\w+\}")
_PLACES = {"^": "(?:^|(?<=[,:@]))", "$": "(?=[,:?\\n]|$)", "<": "^", ">": "(?=\\n|$)"}
_ANY = "[^,:?\\n]"

Elements = Sequence[re.Match[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A translated part of a pattern. `first` are the letters it can begin with; None: any.

    `letters`: it is exactly one of these. `skips`: it can match nothing.
    """

    regex: str
    first: frozenset[str] | None = frozenset()
    letters: str = ""
    skips: bool = False


class PatternCompiler:
    """Compiles the patterns of a pack. `strict`: the words of a pattern stand in one clause."""

    def __init__(
        self, lists: Mapping[str, Sequence[str]], alphabet: Alphabet, *, strict: bool
    ) -> None:
        self._lists = lists
        self._alphabet = alphabet
        self._between = _Piece(regex="" if strict else "[,:]*", skips=True)
        self._gap = _Piece(
            regex=f"{_ANY if strict else '.'}{{0,{alphabet.reach}}}?", first=None, skips=True
        )
        self._named: dict[str, _Piece] = {}
        self._being_read: set[str] = set()

    def compile(self, patterns: Sequence[str]) -> re.Pattern[str]:
        """One expression that finds any of the patterns; ValueError for one that cannot be read.

        Patterns that can only begin with certain letters are tried only there.
        """
        pieces = [self._pattern(pattern) for pattern in _factored(patterns)]
        known = [piece for piece in pieces if piece.first]
        first = frozenset[str]().union(*(piece.first or () for piece in known))
        branches = [piece.regex for piece in pieces if not piece.first]
        if known:
            branches.append(
                f"(?={_one_letter(first)})(?:{'|'.join(piece.regex for piece in known)})"
            )
        return re.compile("|".join(branches))

    def _pattern(self, pattern: str) -> _Piece:
        elements = _elements(fold(pattern))
        piece, end = self._choice(elements, 0)
        if end < len(elements):
            raise ValueError(f"a bracket too many in {pattern!r}")
        return piece

    def _choice(self, elements: Elements, start: int) -> tuple[_Piece, int]:
        """The alternatives from `start` to a closing bracket or the end, and where that is."""
        options: list[_Piece] = []
        sequence: list[_Piece] = []
        position = start
        while position < len(elements) and elements[position][0] != ")":
            if elements[position][0] == "|":
                options.append(_sequence(sequence))
                sequence = []
            elif elements[position][0] == "(":
                piece, position = self._choice(elements, position + 1)
                if position == len(elements):
                    raise ValueError("a bracket is not closed")
                sequence.append(piece)
            else:
                sequence.append(self._element(elements[position]))
            position += 1
        return _one_of([*options, _sequence(sequence)]), position

    def _element(self, element: re.Match[str]) -> _Piece:
        text = element[0]
        match element.lastgroup:
            case "name":
                return self._list(element["name"])
            case "gap":
                return self._gap
            case "space":
                return self._between
            case "word":
                return _letters(self._alphabet.spell(text))
            case _:
                return self._mark(text)

    def _mark(self, mark: str) -> _Piece:
        if mark in _PLACES:
            return _Piece(regex=_PLACES[mark], skips=True)
        if mark == "*":
            return _Piece(regex=_ANY, first=None)
        if mark == "#":
            return _Piece(regex=self._alphabet.number, first=frozenset("#0123456789"))
        return _letters(mark)

    def _list(self, name: str) -> _Piece:
        if name not in self._named:
            if name not in self._lists:
                raise ValueError(f"no list is named {name!r}")
            if name in self._being_read:
                raise ValueError(f"the list {name!r} names itself")
            self._being_read.add(name)
            self._named[name] = _one_of([self._pattern(entry) for entry in self._lists[name]])
            self._being_read.remove(name)
        return self._named[name]


def _elements(pattern: str) -> list[re.Match[str]]:
    elements: list[re.Match[str]] = []
    position = 0
    while position < len(pattern):
        element = _ELEMENT.match(pattern, position)
        if element is None:
            raise ValueError(f"a pattern cannot be read at {pattern[position : position + 20]!r}")
        elements.append(element)
        position = element.end()
    return elements


def _factored(patterns: Iterable[str]) -> Iterator[str]:
    """The patterns, with a list that several begin with written once, so that it is tried once."""
    tails: dict[str, list[str]] = defaultdict(list)
    for pattern in patterns:
        head, _, tail = pattern.partition(" ")
        if _NAME.fullmatch(head):
            tails[head].append(tail)
        else:
            yield pattern
    for head, found in tails.items():
        yield f"{head} ({'|'.join(found)})"


def _letters(letters: str) -> _Piece:
    return _Piece(
        regex=re.escape(letters),
        first=frozenset(letters[0]),
        letters=letters if len(letters) == 1 else "",
    )


def _sequence(pieces: Sequence[_Piece]) -> _Piece:
    if len(pieces) == 1:
        return pieces[0]
    return _Piece(
        regex="".join(piece.regex for piece in pieces),
        first=_first(pieces),
        skips=all(piece.skips for piece in pieces),
    )


def _first(pieces: Iterable[_Piece]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for piece in pieces:
        if piece.first is None:
            return None
        found |= piece.first
        if not piece.skips:
            break
    return found


def _one_of(options: Sequence[_Piece]) -> _Piece:
    if len(options) == 1:
        return options[0]
    letters = "".join(option.letters for option in options)
    branches = [option.regex for option in options if option.regex and not option.letters]
    if letters:
        branches.insert(0, _one_letter(letters))
    firsts = [option.first for option in options]
    return _Piece(
        regex=f"(?:{'|'.join(branches)})"
        + ("?" if any(not option.regex for option in options) else ""),
        first=None
        if None in firsts
        else frozenset[str]().union(*(first or () for first in firsts)),
        letters=letters if not branches[1:] and letters and all(o.letters for o in options) else "",
        skips=any(option.skips for option in options),
    )


def _one_letter(letters: Iterable[str]) -> str:
    return f"[{re.escape(''.join(sorted(letters)))}]"

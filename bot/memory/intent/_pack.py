"""A pack: how people of one locale ask for something; data of their file, checked and compiled.

`[intents.<intent>]` holds `ask` (patterns of a request), `ignore` (patterns of what only looks like
one; they are cut out of a sentence first) and `lookalikes` (words that are no typing errors).
`[intents.<intent>.anchors]` holds lists of plain phrases. Every `ask` pattern names one of these
lists, so a text without any of the phrases needs no further look.
`[intents.<intent>.words]` holds further lists, of patterns, to name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.i18n import Catalogue
from bot.memory.intent._alphabet import Alphabet, Characters, Words, is_spaced
from bot.memory.intent._pattern import BREAK, PatternCompiler
from bot.memory.intent._reading import WORD, fold

Intent = Literal["remember", "forget"]
Lists = Mapping[str, Sequence[str]]

_NAME = re.compile(r"\{(\w+)\}")
_SHORTEST_UNSPACED = 2


class Anchors:
    """The phrases without one of which a text cannot hold the request."""

    def __init__(self, phrases: Sequence[str]) -> None:
        self.spaced = tuple(tuple(phrase.split()) for phrase in phrases if is_spaced(phrase))
        self.unspaced = tuple(phrase for phrase in phrases if not is_spaced(phrase))
        self.words = frozenset(word for words in self.spaced for word in words)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pack:
    """The compiled pack of one locale. `vocabulary` are all words of spaced scripts in it."""

    locale: str
    vocabulary: frozenset[str]
    anchors: Anchors
    alphabet: Alphabet
    ask: re.Pattern[str]
    ignore: re.Pattern[str]

    def asks(self, sentence: Sequence[str]) -> bool:
        """Whether the sentence makes the request."""
        written = self.alphabet.write(sentence)
        return self.ask.search(self.ignore.sub(BREAK, written)) is not None


def load_packs(catalogue: Catalogue, intent: Intent) -> tuple[Pack, ...]:
    """The packs of every locale that has one; ValueError says what is wrong in which."""
    packs: list[Pack] = []
    for locale in catalogue.locales:
        lists = _section(catalogue.lists(locale), f"intents.{intent}.")
        if lists:
            try:
                packs.append(_compile(locale, lists))
            except ValueError as error:
                raise ValueError(f"{locale}, intents.{intent}: {error}") from error
    return tuple(packs)


def _compile(locale: str, lists: Lists) -> Pack:
    anchors = _section(lists, "anchors.")
    _check(lists, anchors)
    phrases = [fold(phrase) for phrase in _entries(anchors)]
    vocabulary = frozenset(WORD.findall(fold("\n".join(_entries(lists)))))
    alphabet = Words(vocabulary) if all(map(is_spaced, phrases)) else Characters()
    named = {**_section(lists, "words."), **anchors}
    return Pack(
        locale=locale,
        vocabulary=vocabulary,
        anchors=Anchors(phrases),
        alphabet=alphabet,
        ask=PatternCompiler(named, alphabet, strict=False).compile(lists["ask"]),
        ignore=PatternCompiler(named, alphabet, strict=True).compile(lists["ignore"]),
    )


def _check(lists: Lists, anchors: Lists) -> None:
    for required in ("ask", "ignore"):
        if not lists.get(required):
            raise ValueError(f"the list {required} is missing")
    if any(not entry.strip() for entry in _entries(lists)):
        raise ValueError("a phrase is empty")
    for name, entries in lists.items():
        _check_unique(name, entries)
    _check_unique("anchors", _entries(anchors))
    for phrase in _entries(anchors):
        if not is_spaced(fold(phrase)) and len(phrase) < _SHORTEST_UNSPACED:
            raise ValueError(f"the phrase {phrase!r} is too short for its script")
    for pattern in lists["ask"]:
        if anchors.keys().isdisjoint(_NAME.findall(pattern)):
            raise ValueError(f"the pattern {pattern!r} names no list of anchors")


def _check_unique(name: str, entries: Iterable[str]) -> None:
    twice = [entry for entry, times in Counter(map(fold, entries)).items() if times > 1]
    if twice:
        raise ValueError(f"{name} holds {twice} twice")


def _section(lists: Lists, prefix: str) -> dict[str, Sequence[str]]:
    return {k.removeprefix(prefix): found for k, found in lists.items() if k.startswith(prefix)}


def _entries(lists: Lists) -> Iterator[str]:
    for entries in lists.values():
        yield from entries

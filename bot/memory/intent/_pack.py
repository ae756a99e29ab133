"""A pack: how people of one locale ask for something, as data of its locale file, checked and compiled.

`[intents.<intent>]` holds `ask` (patterns of a request), `ignore` (patterns of what only looks like
one, ruled out of a sentence before it is read) and `lookalikes` (words that are no typing errors).
`[intents.<intent>.anchors]` holds lists of plain phrases. Every `ask` pattern names one of these lists,
so a text without any of the phrases needs no further look.
`[intents.<intent>.words]` holds further lists, of patterns, to name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.i18n import Catalogue
from bot.memory.intent._pattern import BREAK, PatternCompiler, is_spaced
from bot.memory.intent._reading import WORD, fold

Intent = Literal["remember", "forget"]
Lists = Mapping[str, Sequence[str]]

_NAME = re.compile(r"\{(\w+)\}")
_SHORTEST_UNSPACED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The compiled pack of one locale. `vocabulary` are all words of spaced scripts in it."""

    locale: str
    anchor_words: frozenset[str]
    anchor_phrases: tuple[str, ...]
    vocabulary: frozenset[str]
    ask: re.Pattern[str]
    ignore: re.Pattern[str]

    def concerns(self, text: str, words: set[str]) -> bool:
        """Whether a folded text, `words` being its words, can hold the request at all."""
        return not self.anchor_words.isdisjoint(words) or any(
            phrase in text for phrase in self.anchor_phrases
        )

    def asks(self, sentence: str) -> bool:
        """Whether the sentence makes the request."""
        return self.ask.search(self.ignore.sub(BREAK, sentence)) is not None


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
    named = {**_section(lists, "words."), **anchors}
    _check(lists, anchors)
    phrases = [fold(phrase) for phrases in anchors.values() for phrase in phrases]
    words = frozenset(phrase for phrase in phrases if WORD.fullmatch(phrase))
    compiler = PatternCompiler(named, spaced=all(is_spaced(phrase) for phrase in phrases))
    return Pack(
        locale=locale,
        anchor_words=words,
        anchor_phrases=tuple(phrase for phrase in phrases if phrase not in words),
        vocabulary=frozenset(WORD.findall(fold("\n".join(_entries(lists))))),
        ask=compiler.compile(lists["ask"], strict=False),
        ignore=compiler.compile(lists["ignore"], strict=True),
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

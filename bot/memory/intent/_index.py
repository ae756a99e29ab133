"""Finds which packs a text can speak to at all, before any of its sentences is looked at."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.memory.intent._pack import Pack


@dataclass(frozen=True, slots=True)
class _Unspaced:
    """The anchors of one pack in a script without spaces, and the signs with which they begin."""

    pack: Pack
    first: frozenset[str]
    any_of_them: re.Pattern[str]


class AnchorIndex:
    """The anchors of all packs; those in spaced scripts by their longest word."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._by_word: dict[str, list[tuple[Pack, frozenset[str]]]] = defaultdict(list)
        self._unspaced: list[_Unspaced] = []
        for pack in packs:
            for words in pack.anchors.spaced:
                self._by_word[max(words, key=len)].append((pack, frozenset(words)))
            phrases = pack.anchors.unspaced
            if phrases:
                first = frozenset(phrase[0] for phrase in phrases)
                any_of_them = re.compile("|".join(map(re.escape, phrases)))
                self._unspaced.append(_Unspaced(pack, first, any_of_them))

    def found(self, text: str, words: set[str]) -> Mapping[Pack, set[str]]:
        """What stands of them in a folded text, for each pack; of several words the longest.

        `words` are the words of the text, spelt right.
        """
        found: dict[Pack, set[str]] = defaultdict(set)
        for word in words & self._by_word.keys():
            for pack, phrase in self._by_word[word]:
                if phrase <= words:
                    found[pack].add(word)
        if not text.isascii():
            signs = set(text)
            for one in self._unspaced:
                if not signs.isdisjoint(one.first):
                    phrases = one.any_of_them.findall(text)
                    if phrases:
                        found[one.pack].update(phrases)
        return found

"""Finds which packs a text can speak to at all, before any of its sentences is looked at."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bot.memory.intent._pack import Pack


class AnchorIndex:
    """The anchors of all packs, by their longest word; in scripts without spaces by two signs."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._by_word: dict[str, list[tuple[Pack, frozenset[str]]]] = defaultdict(list)
        self._by_start: dict[tuple[str, str], dict[str, list[Pack]]]
        self._by_start = defaultdict(lambda: defaultdict(list))
        for pack in packs:
            for words in pack.anchors.spaced:
                self._by_word[max(words, key=len)].append((pack, frozenset(words)))
            for phrase in pack.anchors.unspaced:
                self._by_start[phrase[0], phrase[1]][phrase].append(pack)
        firsts, seconds = (re.escape("".join(signs)) for signs in zip(*self._by_start, strict=True))
        self._starts = re.compile(f"([{firsts}])(?=([{seconds}]))")

    def found(self, text: str, words: set[str]) -> Mapping[Pack, set[str]]:
        """What stands of them in a folded text, for each pack; of several words the longest.

        `words` are the words of the text, spelt right.
        """
        found: dict[Pack, set[str]] = defaultdict(set)
        for word in words & self._by_word.keys():
            for pack, phrase in self._by_word[word]:
                if phrase <= words:
                    found[pack].add(word)
        starts = () if text.isascii() else self._by_start.keys() & self._starts.findall(text)
        for start in starts:
            for phrase, packs in self._by_start[start].items():
                if phrase in text:
                    for pack in packs:
                        found[pack].add(phrase)
        return found

"""One typing error in a word that matters is forgiven."""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from rapidfuzz.distance import OSA

SHORTEST_FORGIVEN = 6
_REMEMBERED = 32_768
"""Words of which it is remembered what they may mean: people use the same ones again."""


class Spelling:
    """Finds words one error off a listed one: a letter too many, too few or wrong, or two swapped.

    `known` are words of their own, however near they are.
    """

    def __init__(self, words: Iterable[str], known: Iterable[str]) -> None:
        wanted = sorted({word for word in words if len(word) >= SHORTEST_FORGIVEN})
        self._known = frozenset(wanted).union(known)
        self._longest = max(map(len, wanted), default=0) + 1
        self._meant = lru_cache(_REMEMBERED)(self._look_near)
        self._by_start: dict[str, list[str]] = defaultdict(list)
        self._by_end: dict[str, list[str]] = defaultdict(list)
        self._by_edges: dict[str, list[str]] = defaultdict(list)
        for word in wanted:
            self._by_start[word[:3]].append(word)
            self._by_end[word[-3:]].append(word)
            self._by_edges[word[:2] + word[-2:]].append(word)

    def corrections(self, words: set[str]) -> dict[str, frozenset[str]]:
        """The misspelt ones among `words`, each with what may have been meant."""
        long_enough = range(SHORTEST_FORGIVEN - 1, self._longest + 1)
        unknown = [word for word in words - self._known if len(word) in long_enough]
        return {word: meant for word in unknown if (meant := self._meant(word))}

    def _look_near(self, word: str) -> frozenset[str]:
        """The listed words one error away: it leaves the start, the end or both edges alone."""
        near = (
            *self._by_start.get(word[:3], ()),
            *self._by_end.get(word[-3:], ()),
            *self._by_edges.get(word[:2] + word[-2:], ()),
        )
        return frozenset(o for o in near if OSA.distance(word, o, score_cutoff=1) == 1)

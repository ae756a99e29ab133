"""One typing error in a word that matters is forgiven."""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz.distance import OSA

SHORTEST_FORGIVEN = 6


class Spelling:
    """Finds words one error off a listed one: a letter too many, too few or wrong, or two swapped.

    `known` are words of their own, however near they are.
    """

    def __init__(self, words: Iterable[str], known: Iterable[str]) -> None:
        wanted = sorted({word for word in words if len(word) >= SHORTEST_FORGIVEN})
        self._known = frozenset(wanted).union(known)
        self._longest = max(map(len, wanted), default=0) + 1
        self._by_start: dict[str, list[str]] = defaultdict(list)
        self._by_end: dict[str, list[str]] = defaultdict(list)
        self._by_edges: dict[str, list[str]] = defaultdict(list)
        for word in wanted:
            self._by_start[word[:3]].append(word)
            self._by_end[word[-3:]].append(word)
            self._by_edges[word[:2] + word[-2:]].append(word)

    def corrections(self, words: set[str]) -> dict[str, set[str]]:
        """The misspelt ones among `words`, each with what may have been meant."""
        found = {word: self._meant(word) for word in words - self._known if self._is_suspect(word)}
        return {word: meant for word, meant in found.items() if meant}

    def _is_suspect(self, word: str) -> bool:
        return SHORTEST_FORGIVEN - 1 <= len(word) <= self._longest and (
            word[:3] in self._by_start
            or word[-3:] in self._by_end
            or word[:2] + word[-2:] in self._by_edges
        )

    def _meant(self, word: str) -> set[str]:
        """The listed words one error away: it leaves the start, the end or both edges alone."""
        near = (
            *self._by_start.get(word[:3], ()),
            *self._by_end.get(word[-3:], ()),
            *self._by_edges.get(word[:2] + word[-2:], ()),
        )
        return {other for other in near if OSA.distance(word, other, score_cutoff=1) == 1}

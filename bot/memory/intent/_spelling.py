"""One typing error in a word that matters is forgiven."""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz.distance import OSA

SHORTEST_FORGIVEN = 6


class Spelling:
    """Finds the words that are one error off a listed one: a letter too many, too few, wrong, or two swapped.

    `known` are words of their own, however near they are.
    """

    def __init__(self, words: Iterable[str], known: Iterable[str]) -> None:
        wanted = {word for word in words if len(word) >= SHORTEST_FORGIVEN}
        self._known = wanted.union(known)
        self._by_piece: dict[str, list[str]] = defaultdict(list)
        for word in sorted(wanted):
            for piece in _pieces(word):
                self._by_piece[piece].append(word)

    def corrections(self, words: Iterable[str]) -> dict[str, set[str]]:
        """The misspelt ones among `words`, each with what may have been meant."""
        suspects = [w for w in words if len(w) >= SHORTEST_FORGIVEN - 1 and w not in self._known]
        return {word: meant for word in suspects if (meant := self._meant(word))}

    def _meant(self, word: str) -> set[str]:
        near = [other for piece in _pieces(word) for other in self._by_piece.get(piece, ())]
        return {other for other in near if OSA.distance(word, other, score_cutoff=1) == 1}


def _pieces(word: str) -> tuple[str, str, str]:
    """One error leaves the beginning, the end, or (in the middle of a short word) both edges alone."""
    return f"{word[:3]}-", f"-{word[-3:]}", f"{word[:2]}-{word[-2:]}"

"""One typing error in a word that matters is forgiven."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from rapidfuzz.distance import OSA

SHORTEST_FORGIVEN = 6


class Spelling:
    """Finds words that are one error (a letter too many, too few, wrong, or two swapped) off a listed one.

    `known` are words of their own, however near they are.
    """

    def __init__(self, words: Iterable[str], known: Iterable[str]) -> None:
        wanted = {word for word in words if len(word) >= SHORTEST_FORGIVEN}
        self._known = wanted.union(known)
        self._by_piece: dict[str, list[str]] = defaultdict(list)
        for word in sorted(wanted):
            for piece in _pieces(word):
                self._by_piece[piece].append(word)

    def corrections(self, words: Iterable[str]) -> dict[str, str]:
        """The misspelt ones among `words`, each with what was meant."""
        found: dict[str, str] = {}
        for word in words:
            if len(word) >= SHORTEST_FORGIVEN - 1 and word not in self._known:
                meant = next(
                    (
                        near
                        for near in self._near(word)
                        if OSA.distance(word, near, score_cutoff=1) == 1
                    ),
                    None,
                )
                if meant is not None:
                    found[word] = meant
        return found

    def _near(self, word: str) -> Iterator[str]:
        for piece in _pieces(word):
            yield from self._by_piece.get(piece, ())


def _pieces(word: str) -> tuple[str, str, str]:
    """One error leaves the beginning, the end, or (in the middle of six letters) both edges as they are."""
    return f"{word[:3]}-", f"-{word[-3:]}", f"{word[:2]}-{word[-2:]}"

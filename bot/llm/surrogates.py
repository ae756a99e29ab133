"""Lone surrogates, which models write and UTF-8 cannot hold, taken out of texts."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """`text` with pairs of surrogates joined to the character they mean, and lone ones gone."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


class SurrogateFilter:
    """The same for a text that comes in pieces: a pair may be split over two of them."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What is certain of the text so far and was not given yet."""
        text = self._held + piece
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return without_surrogates(text.removesuffix(self._held))

"""Which lines speak of some words: whole ones, in other forms, or with a typing error."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from rapidfuzz import fuzz

from bot.memory.content import content_words, normalised

T = TypeVar("T")

_NEAR = 80
"""From here on two words are taken for one, out of 100."""


def matching(words: str, items: Iterable[T], text_of: Callable[[T], str]) -> list[T]:
    """The items whose text speaks of the words, the best first; equal ones stay in their order."""
    ranked = [
        (score, place, item)
        for place, item in enumerate(items)
        if (score := _score(words, text_of(item)))
    ]
    ranked.sort(key=lambda one: (-one[0], one[1]))
    return [item for _, _, item in ranked]


def _score(words: str, text: str) -> float:
    """The share of the wanted words that the text has; 0 where it has none."""
    wanted, there = normalised(words), normalised(text)
    if wanted and wanted in there:
        return 2.0
    asked = content_words(words)
    if not asked:
        return 0.0
    known = content_words(text)
    found = sum(
        max((fuzz.ratio(word, other) for other in known), default=0.0) >= _NEAR for word in asked
    )
    return found / len(asked)

"""Whether two texts say the same in other words, or two things in nearly the same words.

Words that carry meaning must be the same, but for a typing error; so must numbers, names and what
is denied. What is told apart wrongly is kept twice; what is taken for the same is lost.
"""

import re
import unicodedata
from collections import Counter
from functools import cache

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from bot.i18n import catalogue, terms
from bot.memory.content import normalised
from bot.memory.everyday import empty_words

_WORD = re.compile(r"\{p:\d+\}|\w+(?:['’]\w+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_NUMBER, _REFERENCE = re.compile(r"\d+"), re.compile(r"\{p:\d+\}")
_SHORTEST_MISSPELT, _SHORTEST_INFLECTED = 7, 3


def likeness(text: str, other: str) -> float:
    """How alike two texts are, from 0 to 100."""
    return fuzz.ratio(normalised(text), normalised(other))


def says_nearly_the_same(text: str, other: str, threshold: int) -> bool:
    """Whether two texts differ in wording only."""
    if likeness(text, other) < threshold or _in_order(text) != _in_order(other):
        return False
    ours, theirs = (Counter(_WORD.findall(normalised(one))) for one in (text, other))
    right = list((theirs - ours).elements())
    for word in (ours - theirs).elements():
        meant = next((one for one in right if _is_misspelt(word, one)), None)
        if meant is not None:
            right.remove(meant)
        elif not _is_filling(word):
            return False
    return all(map(_is_filling, right))


def _is_filling(word: str) -> bool:
    """Whether a word says nothing by itself, nor denies anything."""
    return word in empty_words() and word not in _negations()


def _in_order(text: str) -> tuple[list[str], list[str], list[str]]:
    """Numbers, people and names: who lent whom is another matter the other way round."""
    text = unicodedata.normalize("NFKC", text)
    capitalised = [word for word in _WORD.findall(text) if word[0].isupper()]
    return _NUMBER.findall(text), _REFERENCE.findall(text), capitalised


def _is_misspelt(word: str, other: str) -> bool:
    """Whether two words are one: long ones mistyped, or one with a letter more at its end.

    Every sign of a script without spaces counts.
    """
    if _UNSPACED.search(word + other):
        return False
    short, long = sorted((word, other), key=len)
    is_inflected = len(short) >= _SHORTEST_INFLECTED and long[:-1] == short
    is_long = len(short) >= _SHORTEST_MISSPELT
    return is_inflected or (is_long and OSA.distance(word, other) == 1)


@cache
def _negations() -> frozenset[str]:
    """Words that deny, in every language there is."""
    locales = catalogue().locales
    return frozenset(
        normalised(word) for locale in locales for word in terms(locale, "words.negations")
    )

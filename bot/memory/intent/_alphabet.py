"""What a pack takes for the letters of a sentence: words where spaces part them, else characters.

With one letter for a word, matching costs the same for a list of one word and of a hundred.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from bot.memory.intent._reading import MARKS, PAUSE, WORD

_FIRST_LETTER = 0xE000
_OTHER_WORD = "_"
_NUMBER = "#"
_PUNCTUATION = re.compile(r"[^\w:?@]+")


class Alphabet(Protocol):
    """Writes the words of patterns and the sentences of messages in the same letters."""

    reach: int
    """How many letters the gap of a pattern may be long."""

    number: str
    """The expression for a number."""

    def spell(self, word: str) -> str:
        """The letters of a word of a pattern."""
        ...

    def write(self, sentence: Sequence[str]) -> str:
        """The sentence in these letters."""
        ...


class Words:
    """One letter a word, from the private use area; the words that no pattern knows share one."""

    reach = 12
    number = _NUMBER

    def __init__(self, vocabulary: Iterable[str]) -> None:
        words = sorted(set(vocabulary))
        self._letters = {word: chr(_FIRST_LETTER + place) for place, word in enumerate(words)}
        self._letters |= {mark: mark for mark in MARKS}

    def spell(self, word: str) -> str:
        return self._letters[word]

    def write(self, sentence: Sequence[str]) -> str:
        letters = self._letters
        return "".join([letters.get(word) or _unknown(word) for word in sentence]).strip(PAUSE)


class Characters:
    """The characters themselves; spaces carry no meaning."""

    reach = 20
    number = "[0-9]+"

    def spell(self, word: str) -> str:
        return word

    def write(self, sentence: Sequence[str]) -> str:
        return _PUNCTUATION.sub(PAUSE, "".join(sentence)).strip(PAUSE)


def _unknown(word: str) -> str:
    if word.isdigit():
        return _NUMBER
    return _OTHER_WORD if word[0].isalnum() else PAUSE


def is_spaced(phrase: str) -> bool:
    """Whether the script of a folded phrase parts words by spaces."""
    return WORD.match(phrase) is not None

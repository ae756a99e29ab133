"""Names that are ordinary words: the word alone does not yet mean the person.

Whoever calls themselves "the" must not keep everybody from remembering, and whoever calls
themselves "rain" is not meant wherever it rains. But "bob" is a name, however people write it. A
talk cannot tell the two apart (people write of bob as of rain), so that lists of frequent words do:
a name does harm only by being frequent, and of frequent words there are few.
"""

import re
import unicodedata
from functools import cache, lru_cache

from bot.i18n import catalogue, terms
from bot.memory.content import content_words

_WORD = re.compile(r"\w+")
_LETTERS_ONLY = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
_OPENING = " \t\"'“‘«»([{*_~>#-"
_ENDING = ".!?…:\n。！？：「『"
"""What stands before the first word of a sentence, apart from what may open it."""


@cache
def empty_words() -> frozenset[str]:
    """Words that any two texts share, in every language there is; of phrases each word."""
    return _listed("words.empty")


@lru_cache(maxsize=8_192)
def is_empty(name: str) -> bool:
    """Whether a name says nothing by itself: "the", "is", "of the"."""
    return _is_made_of(name, empty_words())


@lru_cache(maxsize=8_192)
def is_everyday(name: str) -> bool:
    """Whether a name is made of frequent words: "tea", "the", "of the night"."""
    return _is_made_of(name, empty_words() | _everyday_words())


@lru_cache(maxsize=8_192)
def is_written_as_word(name: str) -> bool:
    """Whether a name looks like any word in the middle of a text: "rain", but also "bob".

    One in capitals, with a digit or a sign is told from words by its spelling; so are several words
    together, unless all of them are frequent.
    """
    name = unicodedata.normalize("NFC", name)
    looks_plain = name.islower() and _LETTERS_ONLY.fullmatch(name) is not None
    return looks_plain and (" " not in name or is_everyday(name))


def begins_sentence(text: str, at: int) -> bool:
    """Whether a capital letter proves nothing here, as every sentence begins with one."""
    before = text[:at].rstrip(_OPENING)
    return not before or before[-1] in _ENDING


def _is_made_of(name: str, listed: frozenset[str]) -> bool:
    name = unicodedata.normalize("NFKC", name).casefold()
    if _LETTERS_ONLY.fullmatch(name) is None:
        return False
    return all(
        len(word) == 1
        or (word not in _given_names() and (word in listed or _pairs_of(word) <= listed))
        for word in _WORD.findall(name)
    )


def _pairs_of(word: str) -> frozenset[str]:
    """The pairs of signs of a word without spaces; of any other the word itself."""
    return frozenset(part for part in content_words(word) if part != word) or frozenset((word,))


@cache
def _given_names() -> frozenset[str]:
    """Frequent words of one language that people of another, or of this one, are called: "Dan"."""
    return _listed("words.names")


@cache
def _everyday_words() -> frozenset[str]:
    return _listed("words.everyday")


def _listed(key: str) -> frozenset[str]:
    """Every word of a list in every language; of phrases each word, or each pair of signs."""
    phrases = [phrase for locale in catalogue().locales for phrase in terms(locale, key)]
    whole = {word for phrase in phrases for word in _WORD.findall(phrase)}
    return frozenset(whole.union(*map(content_words, phrases)))

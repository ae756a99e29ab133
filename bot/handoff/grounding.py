"""Does a summary tell what its lines say? What can be judged without a model."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Set
from functools import lru_cache

from bot.memory.content import content_words, normalised
from bot.memory.everyday import empty_words

_PAIR = 2
_STEM = 4
"""Words that share so many first letters are taken for forms of one word."""
_FOREIGN_BELOW = 0.1
"""A script that makes up less of the letters than this is not one that the lines are written in."""
_LETTERS_TO_JUDGE = 4
_A_LINE, _SEVERAL, _MOSTLY = 12, 3, 0.6
"""Lines so long, so many of them, and that much of a text, are no summary but a copy."""
_SIGNS_TO_JUDGE = 400
"""The beginning of a text shows its script: all of 60 long ones took 20 ms to count."""

UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
"""A sign of a script in which words do not end with a space: kana, Han, Hangul, Thai."""
_LINK = re.compile(r"https?://\S+")
_LONE_HAN = re.compile("(?<![\u4e00-\u9fff])[\u4e00-\u9fff](?![\u4e00-\u9fff])")
"""A word of one Han sign between kana; Chinese has hardly any, where each sign would be a word."""
_WRITTEN_TOGETHER = frozenset(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "CJK"))
"""Japanese uses them side by side: a line may hold one alone, and its summary another."""


def shares_a_word(content: str, said: Iterable[str], *, but: Iterable[str] = ()) -> bool:
    """Whether a summary has a word of meaning in common with what was said.

    `but`: names, which are on every line.
    """
    told = _stems(content) | (frozenset(_LONE_HAN.findall(content)) - empty_words())
    told -= _stems(" ".join(but))
    unspaced = {word for word in told if UNSPACED.match(word)}
    return any(_holds(text, told - unspaced, unspaced) for text in said)


def _holds(text: str, stems: Set[str], signs: Set[str]) -> bool:
    """Whether one of the words or signs stands in the text."""
    folded = normalised(text) if signs else ""
    if any(sign in folded for sign in signs):
        return True
    return bool(stems) and not stems.isdisjoint(_stems(text))


def repeats_lines(content: str, said: Iterable[str]) -> bool:
    """Whether a summary is a copy of its lines: several of them, word for word, and little else."""
    copied = {line for line in said if len(line) >= _A_LINE and line in content}
    return len(copied) >= _SEVERAL and sum(map(len, copied)) >= len(content) * _MOSTLY


def is_in_another_script(content: str, said: Iterable[str], *, but: Iterable[str] = ()) -> bool:
    """Whether a summary is mainly written in a script that is not used in what was said."""
    names = tuple(but)
    written = _scripts(content, names)
    heard = _scripts(" ".join(text[:_SIGNS_TO_JUDGE] for text in said), names)
    if min(written.total(), heard.total()) < _LETTERS_TO_JUDGE:
        return False
    script, _ = written.most_common(1)[0]
    return heard[script] < heard.total() * _FOREIGN_BELOW


def _stems(text: str) -> frozenset[str]:
    """Beginnings of the words that mean something; in scripts without spaces, pairs of signs."""
    words = content_words(_LINK.sub(" ", text)) - empty_words()
    return frozenset(
        word[:_STEM] for word in words if len(word) <= _PAIR or not UNSPACED.match(word)
    )


def _scripts(text: str, names: Iterable[str]) -> Counter[str]:
    """How many letters of each script a text has, apart from names and links."""
    text = _LINK.sub(" ", text)
    for name in names:
        text = text.replace(name, " ")
    scripts: Counter[str] = Counter()
    for sign, number in Counter(unicodedata.normalize("NFKC", text)).items():
        if sign.isalpha():
            scripts[_script(sign)] += number
    return scripts


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str:
    """The first word of a letter's name in Unicode names its script, near enough."""
    name = unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
    return "JAPANESE" if name in _WRITTEN_TOGETHER else name

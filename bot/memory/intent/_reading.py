"""A chat message as the packs read it: the author's own words, folded, sentence by sentence.

A sentence is a list of words and marks: `:` says that the matter follows (a quotation becomes one),
`?` ends a question, `@` is a mention or a link, any other punctuation is a pause.
"""

import re
import unicodedata
from functools import lru_cache
from string import ascii_lowercase

_LETTERS = "0-9a-z\u00df-\u024f\u0370-\u03ff\u0400-\u04ff"
WORD = re.compile(f"[{_LETTERS}]+")
"""A word in a script that parts words by spaces, as it is after folding."""

PAUSE = ","
MARKS = ",:?@"

_APOSTROPHES = re.compile("['’‘ʼ´]")
_ACCENTED = re.compile("[\u00e0-\u024f\u0300-\u036f\u0451\u1e00-\u1eff]+")
_MAY_CHANGE = re.compile(
    "[^\0-\x7f\u0430-\u044f\u3041-\u3096\u30a1-\u30fe\u4e00-\u9fff\uac00-\ud7a3]"
)
_STRESSED_END = re.compile(r"(?<=[^\W\d_]{3})[éó]\b")
"""The past of Spanish and French verbs: "anoté", "oublié" ask for nothing, as "anote" does."""
_KEPT = {"é": "ε", "ó": "ο"}  # letters that folding leaves alone
_HALF_WIDTH_VOICED = re.compile("[ﾞﾟ]")
_LETTER_RUN = re.compile(r"([a-z])\1{2,}")

_RUNS = tuple(letter * 3 for letter in ascii_lowercase)

_CODE = re.compile(r"```.*?(?:```|\Z)|``.+?``|`[^`\n]*`", re.DOTALL)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>>>[ \t].*\Z|^[ \t]*>[ \t][^\n]*", re.DOTALL | re.MULTILINE)
_STRUCK = re.compile(r"~~.+?~~", re.DOTALL)
_LINK = re.compile(r"\]\([^)\s]*\)|<?https?://[^\s>]+>?")
_EMOJI = re.compile(r"<a?:\w+:\d+>")
_MENTION = re.compile(r"<(?:@[!&]?|#|t:|/[\w -]+:)[\w:]+>|@(?:everyone|here)\b")
_QUOTED = re.compile(
    r'"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’(?!\w)'
)
_QUOTE_MARKS = '"“„«「『《‘'
_SINGLE_QUOTED = re.compile(r"'(?<![\w']')(?:[^'\n]|(?<=\w)'(?=\w))+'(?!\w)")

_HYPHEN = re.compile(r"-(?<=\w-)(?=\w)")
_LATE_QUESTION = re.compile(r"[.!]+\?")
_TOKEN = re.compile(r"[:?@]|[^\W_]+|[^\w\s:?@]+")


def fold(text: str) -> str:
    """Letters as they compare: NFKC, case, accents and long-drawn letters folded."""
    text = text.lower()
    if not text.isascii():
        if not unicodedata.is_normalized("NFC", text) or _HALF_WIDTH_VOICED.search(text):
            text = unicodedata.normalize("NFKC", text)
        # One pass for each distinct letter that changes: half the time of folding the text itself.
        if "é" in text or "ó" in text:
            text = _STRESSED_END.sub(lambda end: _KEPT[end[0]], text)
        for letter in set(_MAY_CHANGE.findall(text)):
            text = text.replace(letter, _plain(letter))
    return _LETTER_RUN.sub(r"\1", text) if any(run in text for run in _RUNS) else text


def join_elisions(folded: str) -> str:
    """The text without apostrophes: "don't" as people also write it."""
    return _APOSTROPHES.sub("", folded)


@lru_cache(maxsize=8_192)
def _plain(letter: str) -> str:
    folded = unicodedata.normalize("NFKC", letter).casefold()
    if not _ACCENTED.search(folded):
        return folded
    apart = unicodedata.normalize("NFD", folded).replace("đ", "d")
    return "".join(part for part in apart if not unicodedata.combining(part))


def own_words(text: str) -> str:
    """What the author says themselves: of code, quotations, links and mentions a mark is left."""
    if "`" in text:
        text = _CODE.sub(" : ", text)
    if ">" in text:
        text = _EMOJI.sub(" , ", _BLOCK_QUOTE.sub("\n", text))
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    if "://" in text:
        text = _LINK.sub(" @ ", text)
    if "@" in text or "<" in text:
        text = _MENTION.sub(" @ ", text)
    if "'" in text:
        text = _SINGLE_QUOTED.sub(" : ", text)
    return _QUOTED.sub(" : ", text) if any(mark in text for mark in _QUOTE_MARKS) else text


def sentences(folded: str) -> list[str]:
    """The sentences of a folded text."""
    for markup in "*_~〜|\u200b\ufe0f":
        folded = folded.replace(markup, " ")
    if "-" in folded:
        folded = _HYPHEN.sub(" ", folded)
    if "?" in folded:
        folded = _LATE_QUESTION.sub("?", folded).replace("?", "?.")
    for end in "!;\n。":
        folded = folded.replace(end, ".")
    return folded.split(".")


def tokens(sentence: str) -> list[str]:
    """The words and marks of a sentence; any other punctuation is a pause."""
    return _TOKEN.findall(sentence)

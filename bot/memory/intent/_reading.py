"""A chat message as the packs read it: the author's own words, folded, sentence by sentence.

In a sentence one space parts all words and marks. The marks that are left: `,` is any pause, `:` says
that the matter follows (a quotation becomes one), `?` ends a question, `@` is a mention or a link.
"""

import re
import unicodedata

WORD_LETTERS = "0-9a-z\u00df-\u024f\u0370-\u03ff\u0400-\u04ff"
"""Letters of the scripts that part words by spaces, as they are after folding."""

WORD = re.compile(f"[{WORD_LETTERS}]+")

_APOSTROPHES = re.compile("['’‘ʼ´]")
_LATIN_MARKS = re.compile("[\u0300-\u036f]+")

_CODE = re.compile(r"```.*?(?:```|\Z)|``.+?``|`[^`\n]*`", re.DOTALL)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>>>[ \t].*\Z|^[ \t]*>[ \t][^\n]*", re.DOTALL | re.MULTILINE)
_STRUCK = re.compile(r"~~.+?~~", re.DOTALL)
_QUOTED = re.compile(
    r'"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’(?!\w)'
)
_SINGLE_QUOTED = re.compile(r"(?<![\w'])'(?:[^'\n]|(?<=\w)'(?=\w))+'(?!\w)")
_LINK = re.compile(r"\]\([^)\s]*\)|<?https?://[^\s>]+>?")
_TAG = re.compile(r"<(?:a?:\w+:\d+|(?:@[!&]?|#|t:|/[\w -]+:)[\w:]+)>|@(?:everyone|here)\b")

_LETTER_RUN = re.compile(r"([a-z])\1{2,}")
_WITHIN_WORDS = re.compile(r"[*_~〜|\u200b-\u200f\ufe0f]+|(?<=\w)-(?=\w)")
_SENTENCE_END = re.compile(r"[.!;\n。｡]+(?!\d)|(?<=\?)")
_QUESTION = re.compile(r"[!.]*\?[?!.]*")
_PAUSE = re.compile(r"[^\w\s:@?]+|\s-+\s")
_MARK = re.compile(r"[,:@?]")


def fold(text: str) -> str:
    """Letters as they compare: NFKC, case, accents and apostrophes folded."""
    text = _APOSTROPHES.sub("", text)
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _LATIN_MARKS.sub("", folded)).replace("đ", "d")


def sentences(text: str) -> list[str]:
    """The sentences of what the author says themselves: code, quotations, links and mentions are out."""
    plain = _LETTER_RUN.sub(r"\1", fold(_own_words(text)))
    plain = _QUESTION.sub("?", _WITHIN_WORDS.sub(" ", plain))
    return [read for part in _SENTENCE_END.split(plain) if (read := _spaced(part))]


def _own_words(text: str) -> str:
    text = _BLOCK_QUOTE.sub("\n", _CODE.sub(" : ", text))
    text = _TAG.sub(_tag_mark, _LINK.sub(" @ ", _STRUCK.sub(" ", text)))
    text = _QUOTED.sub(" : ", text)
    return _SINGLE_QUOTED.sub(" : ", text) if "'" in text else text


def _tag_mark(tag: re.Match[str]) -> str:
    return " , " if tag[0].startswith(("<:", "<a:")) else " @ "


def _spaced(part: str) -> str:
    return " ".join(_MARK.sub(r" \g<0> ", _PAUSE.sub(" , ", part)).split()).strip(", ")

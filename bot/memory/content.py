"""What can be said of a memory's text alone: is it a secret, is it the same as another."""

import hashlib
import re
import unicodedata

from bot.memory.quoting import without_hidden_signs

_CREDENTIALS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?<![\w-])(?:sk|pk|rk|whsec)[-_](?=[\w-]*[0-9])(?:[a-z]+[-_])?[A-Za-z0-9_-]{20,}"
    r"|\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w-]{20,}"
    r"|\bhooks\.slack\.com/services/[\w/]{20,}"
    r"|\bglpat-[\w-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bya29\.[\w-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{30,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|\b[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}"
)
_WORDS = re.compile(r"\w+")
_REFERENCES = re.compile(r"\{p:\d+\}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")
_SHORTEST_WORD = 3


def tidy(text: str) -> str:
    """A text as it is kept: without space around it, and without NUL, where SQLite ends a text."""
    return text.replace("\0", "").strip()


def is_blank(text: str) -> bool:
    """Whether a text shows nothing."""
    return not any(sign.isprintable() and not sign.isspace() for sign in text)


def looks_like_credential(text: str) -> bool:
    """Whether a key or token of a known shape stands in the text."""
    folded = without_hidden_signs(unicodedata.normalize("NFKC", text))
    return _CREDENTIALS.search(folded) is not None


def normalised(text: str) -> str:
    """The text without what does not change its meaning: case, width, spacing, a final stop."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(".!。！ ")


def content_hash(text: str) -> bytes:
    """16 bytes that texts share which are equal to the letter, spacing aside."""
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return hashlib.blake2b(plain.encode(), digest_size=16).digest()


def content_words(text: str) -> frozenset[str]:
    """The words that carry meaning: three letters or more, or pairs of unspaced signs."""
    folded = normalised(_REFERENCES.sub(" ", text))
    words = {word for word in _WORDS.findall(folded) if len(word) >= _SHORTEST_WORD}
    for run in _UNSPACED.findall(folded):
        words.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return frozenset(words)

"""Stored text in a prompt: quoted on one line, so that it cannot command or leave its frame."""

import json
import re
import unicodedata

_MASS_MENTION = re.compile(r"@(?=everyone|here)", re.IGNORECASE)
_DISCORD_MENTION = re.compile(r"<(?=[@#])")


def without_hidden_signs(text: str) -> str:
    """The text without signs that nobody sees: zero-width and direction marks, controls."""
    return "".join(
        sign
        for sign in text
        if sign in "\n\t\u200d" or unicodedata.category(sign) not in ("Cf", "Cc", "Cs", "Co")
    )


def quoted(text: str) -> str:
    """The text as one quoted line in which nothing mentions anybody."""
    disarmed = _DISCORD_MENTION.sub("< ", _MASS_MENTION.sub("@ ", without_hidden_signs(text)))
    return json.dumps(" ".join(disarmed.split()), ensure_ascii=False)


def spoken(text: str) -> str:
    """A line of talk: further lines are indented, so that nobody can speak in another's name."""
    return without_hidden_signs(text).strip().replace("\n", "\n  ")


def shortened(text: str, most: int, mark: str) -> str:
    """The text with its middle left out, of at most `most` characters."""
    if len(text) <= most:
        return text
    kept = max(0, most - len(mark))
    head = (kept + 1) // 2
    tail = kept - head
    return f"{text[:head]}{mark}{text[len(text) - tail :]}"

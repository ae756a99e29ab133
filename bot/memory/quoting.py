"""Stored text in a prompt: quoted on one line, so that it cannot command or leave its frame."""

import json
import re

_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f"
    "\ud800-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]+"  # surrogates, private use
)
FEWEST_CHARACTERS = 40
"""What is left of a shortened text, where there is any choice."""

_MASS_MENTION = re.compile(r"@(?=everyone|here)", re.IGNORECASE)
_DISCORD_MENTION = re.compile(r"<(?=[@#])")


def without_hidden_signs(text: str) -> str:
    """The text without signs that nobody sees: zero-width and direction marks, controls.

    The joiner within emoji stays. A pattern: sign by sign, a full prompt took a tenth of a second.
    """
    return _HIDDEN.sub("", text)


def quoted(text: str) -> str:
    """The text as one quoted line in which nothing mentions anybody."""
    disarmed = _DISCORD_MENTION.sub("< ", _MASS_MENTION.sub("@ ", without_hidden_signs(text)))
    return json.dumps(" ".join(disarmed.split()), ensure_ascii=False)


def spoken(text: str) -> str:
    """A line of talk: further lines are indented, so that nobody can speak in another's name."""
    return "\n  ".join(map(without_hidden_signs, text.strip().splitlines()))


def shortened(text: str, most: int, mark: str) -> str:
    """The text with its middle left out, of at most `most` characters."""
    if len(text) <= most:
        return text
    kept = max(0, most - len(mark))
    head = (kept + 1) // 2
    tail = kept - head
    return f"{text[:head]}{mark}{text[len(text) - tail :]}"

"""Person references: `{p:ID}` in stored text, a name where it is shown.

Handles (U1, M4) live only between a prompt and its answer; a stored text never holds one.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from bot.identifiers import UserId

_REFERENCE = re.compile(r"\{p:(\d{1,20})\}")
_MENTION = re.compile(r"<@!?(\d{1,20})>")
# Scripts that set no space between words: there a name counts wherever it stands.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_SHORTEST_NAME = 2
_AS_PICTURE = "\ufe0f"


def reference_to(user: UserId) -> str:
    """The reference to a person."""
    return f"{{p:{user}}}"


def with_references(text: str) -> str:
    """The text with Discord's mentions of persons as references."""
    return _MENTION.sub(r"{p:\1}", text)


def typed_text(text: str) -> str:
    """What a person typed, as it is stored: mentions are references, what looks like one is not."""
    return with_references(text.replace("{p:", "{p :"))


def referenced_people(text: str) -> frozenset[UserId]:
    """Everybody whom a stored text refers to."""
    return frozenset(UserId(int(found)) for found in _REFERENCE.findall(text))


def show_names(text: str, name_of: Callable[[UserId], str]) -> str:
    """The text as people read it, every reference replaced by a name."""
    return _REFERENCE.sub(lambda match: name_of(UserId(int(match[1]))), text)


def hide_names(text: str, people: Mapping[str, UserId]) -> str:
    """The text as it is stored: mentions, and names and handles as whole words, are references."""
    text = with_references(text)
    pattern = _names_pattern(frozenset(people))
    if pattern is None:
        return text
    return pattern.sub(lambda match: reference_to(people[match[0]]), text)


def named_people(text: str, names: Iterable[tuple[str, UserId]]) -> frozenset[UserId]:
    """Those of `names` that the text speaks of by name: in whatever case, plain or adorned."""
    folded = _folded(text)
    found: set[UserId] = set()
    for name, user in names:
        plain = _unadorned(_folded(name))
        if plain in folded:  # a pattern costs milliseconds: only for the likely few
            pattern = _names_pattern(frozenset((plain,)))
            if pattern is not None and pattern.search(folded):
                found.add(user)
    return frozenset(found)


def _folded(text: str) -> str:
    """The text in one case, width and lettering, without signs that nobody sees."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    return " ".join(text.casefold().split())


def _unadorned(name: str) -> str:
    """A name without the stars and flowers around it; nothing where it is only those."""
    first, last = 0, len(name)
    while first < last and _adorns(name[first]):
        first += 1
    while first < last and _adorns(name[last - 1]):
        last -= 1
    plain = name[first:last]
    return name if 0 < len(plain) < _SHORTEST_NAME else plain


def _adorns(sign: str) -> bool:
    return sign == _AS_PICTURE or unicodedata.category(sign)[0] in "PSZ"


@lru_cache(maxsize=512)
def _names_pattern(names: frozenset[str]) -> re.Pattern[str] | None:
    words = sorted((n for n in names if len(n) >= _SHORTEST_NAME), key=len, reverse=True)
    if not words:
        return None
    return re.compile(rf"(?<!\{{p:)(?:{'|'.join(map(_as_word, words))})")


def _as_word(name: str) -> str:
    before = "" if re.match(rf"[{_UNSPACED}\W]", name) else r"(?<!\w)"
    after = "" if re.search(rf"[{_UNSPACED}\W]$", name) else rf"(?![^\W{_UNSPACED}])"
    if before:
        before = rf"(?<![^\W{_UNSPACED}])"
    return f"{before}{re.escape(name)}{after}"

"""Person references: `{p:ID}` in stored text, a name where it is shown.

Handles (U1, M4) live only between a prompt and its answer; a stored text never holds one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from bot.identifiers import UserId

_REFERENCE = re.compile(r"\{p:(\d{1,20})\}")
# Scripts that set no space between words: there a name counts wherever it stands.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_SHORTEST_NAME = 2


def reference_to(user: UserId) -> str:
    """The reference to a person."""
    return f"{{p:{user}}}"


def referenced_people(text: str) -> frozenset[UserId]:
    """Everybody whom a stored text refers to."""
    return frozenset(UserId(int(found)) for found in _REFERENCE.findall(text))


def show_names(text: str, name_of: Callable[[UserId], str]) -> str:
    """The text as people read it, every reference replaced by a name."""
    return _REFERENCE.sub(lambda match: name_of(UserId(int(match[1]))), text)


def hide_names(text: str, people: Mapping[str, UserId]) -> str:
    """The text as it is stored: names and handles, as whole words, replaced by references."""
    pattern = _names_pattern(frozenset(people))
    if pattern is None:
        return text
    return pattern.sub(lambda match: reference_to(people[match[0]]), text)


def named_people(text: str, names: Iterable[tuple[str, UserId]]) -> frozenset[UserId]:
    """Those of `names` that the text speaks of by name, in whatever case."""
    folded = text.casefold()
    found: set[UserId] = set()
    for name, user in names:
        pattern = _names_pattern(frozenset((name.casefold(),)))
        if pattern is not None and pattern.search(folded):
            found.add(user)
    return frozenset(found)


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

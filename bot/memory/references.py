"""Person references: `{p:ID}` in stored text, a name where it is shown.

Handles (U1, M4) live only between a prompt and its answer; a stored text never holds one.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from bot.identifiers import UserId
from bot.memory.everyday import begins_sentence, is_empty, is_everyday

_REFERENCE = re.compile(r"\{p:(\d{1,20})\}")
_MENTION = re.compile(r"<@!?(\d{1,20})>")
# Scripts that set no space between words: there a name counts wherever it stands.
_UNSPACED_SIGN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
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
    """The text as it is stored: mentions, and names and handles as whole words, are references.

    A name must stand in its own spelling; one such as "Will" not where a sentence begins.
    """
    text = with_references(text)
    hidden, done = "", 0
    for start, name in _found(text, frozenset(people)):
        if is_empty(name) and begins_sentence(text, start):
            continue
        hidden += text[done:start] + reference_to(people[name])
        done = start + len(name)
    return hidden + text[done:]


def holds_word(text: str, word: str) -> bool:
    """Whether a text holds a word, whole and in that spelling."""
    return word in text and any(_found(text, frozenset((word,))))


def named_people(text: str, names: Iterable[tuple[str, UserId]]) -> frozenset[UserId]:
    """Those of `names` that the text speaks of by name: in whatever case, plain or adorned.

    A name that is an everyday word counts with an @, or where it is written with a capital.
    """
    text = _plain(text)
    folded = " ".join(text.casefold().split())
    return frozenset(
        user
        for name, user in names
        if (wanted := _wanted(name)) in folded and _is_named(wanted, text, folded)
    )


@lru_cache(maxsize=32_768)
def _wanted(name: str) -> str:
    """What to look for in a folded text; kept, as thousands of people may be private."""
    return _unadorned(" ".join(_plain(name).casefold().split()))


def _is_named(name: str, text: str, folded: str) -> bool:
    """Whether a folded name stands in a text and means a person there."""
    if not is_everyday(name):
        return any(_found(folded, frozenset((name,))))
    if any(_found(folded, frozenset((f"@{name}",)))):
        return True
    capitalised = " ".join(word.capitalize() for word in name.split())
    return capitalised != name and any(
        not (is_empty(name) and begins_sentence(text, start))
        for start, _ in _found(text, frozenset((capitalised,)))
    )


def _plain(text: str) -> str:
    """The text in one width and lettering, without signs that nobody sees."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf")


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


def _found(text: str, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where names stand as whole words, from left to right; of two at one place the longer."""
    words = sorted((n for n in names if len(n) >= _SHORTEST_NAME), key=len, reverse=True)
    finder, position = _finder(tuple(words)), 0
    while finder is not None and (match := finder.search(text, position)):
        start = match.start()
        name = next((word for word in words if _stands_at(word, text, start)), None)
        if name is not None:
            yield start, name
        position = start + len(name or " ")


@lru_cache(maxsize=512)
def _finder(words: tuple[str, ...]) -> re.Pattern[str] | None:
    """Finds where a name may begin. Literals only: word borders in it took 8 ms to compile."""
    return re.compile("|".join(map(re.escape, words))) if words else None


def _stands_at(word: str, text: str, start: int) -> bool:
    """Whether a whole word stands there; an @ in front of it is none of its letters."""
    end = start + len(word)
    return (
        text.startswith(word, start)
        and not text.endswith("{p:", 0, start)
        and not _are_one_word(text[max(0, start - 1) : start] + word.lstrip("@")[:1])
        and not _are_one_word(text[end - 1 : end + 1])
    )


def _are_one_word(signs: str) -> bool:
    """Whether two neighbouring signs belong to one word of a script that sets spaces."""
    return len(signs) == 2 and all(
        (sign.isalnum() or sign == "_") and _UNSPACED_SIGN.match(sign) is None for sign in signs
    )

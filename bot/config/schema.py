"""What the models say about one key: that it exists, what may stand there, what it is near to."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from rapidfuzz import fuzz, process

from bot.config.sections import Config
from bot.config.values import Section

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The type of a value, without None and Annotated, and the limits that hold for it."""

    form: object
    limits: tuple[object, ...] = ()
    description: str | None = None

    def limit(self, name: str) -> int | float | None:
        """The number of a limit such as `ge` or `max_length`."""
        found = (getattr(limit, name, None) for limit in self.limits)
        return next((number for number in found if isinstance(number, int | float)), None)

    @property
    def section(self) -> type[Section] | None:
        """The model, where the value is a table."""
        return self.form if isinstance(self.form, type) and issubclass(self.form, Section) else None

    @property
    def element(self) -> "Kind | None":
        """What one item is, where the value is a list."""
        return _kind(get_args(self.form)[0]) if get_origin(self.form) is tuple else None


def _kind(annotation: object, limits: tuple[object, ...] = (), text: str | None = None) -> Kind:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        fields = [extra for extra in arguments[1:] if isinstance(extra, FieldInfo)]
        inner = tuple(limit for field in fields for limit in field.metadata)
        described = next((field.description for field in fields if field.description), text)
        return _kind(arguments[0], (*limits, *inner), described)
    if origin is Union or origin is UnionType:
        return _kind(next(kind for kind in arguments if kind is not NoneType), limits, text)
    return Kind(form=annotation, limits=limits, description=text)


def kind_at(loc: Loc) -> Kind | None:
    """What may stand at this place of the config; None where no such key exists."""
    kind = _kind(Config)
    for part in loc:
        if isinstance(part, int):
            inner = kind.element
        else:
            field = kind.section.model_fields.get(part) if kind.section else None
            inner = field and _kind(field.annotation, tuple(field.metadata), field.description)
        if inner is None:
            return None
        kind = inner
    return kind


def dotted(loc: Loc) -> str:
    """A place as the operator writes it: `llm.chat.fallbacks[0].model`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".")


def known_keys(loc: Loc = ()) -> Iterator[Loc]:
    """Every table and key, in the order of the models; what is inside lists is left out."""
    kind = kind_at(loc)
    if kind is None or kind.section is None:
        return
    for name in kind.section.model_fields:
        yield (*loc, name)
        yield from known_keys((*loc, name))


def nearest_key(loc: Loc) -> str:
    """The known key that is spelt most like this one; its own neighbours count too."""
    parent = kind_at(loc[:-1])
    siblings = parent.section.model_fields if parent and parent.section else ()
    choices = [dotted((*loc[:-1], name)) for name in siblings]
    choices += [dotted(key) for key in known_keys()]
    asked = dotted(loc)[:200].casefold()
    return process.extractOne(asked, choices, scorer=fuzz.ratio)[0]


def allowed(kind: Kind) -> str:
    """What may stand at a key, in words that follow "must be"."""
    low, high = kind.limit("ge"), kind.limit("le")
    if kind.description:
        return kind.description
    if get_origin(kind.form) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(kind.form))
    if kind.element is not None:
        least, most = kind.limit("min_length") or 0, kind.limit("max_length")
        return f"a list of {least} to {most} items, each {allowed(kind.element)}"
    if kind.form is bool:
        return "true or false"
    if kind.form is int:
        return f"a whole number from {low:,} to {high:,}"
    if kind.form is float:
        return f"a number from {low:,} to {high:,}"
    if kind.form is str and kind.limit("max_length"):
        return f"a text of 1 to {kind.limit('max_length')} characters in quotes"
    if kind.form is Path:
        return "the path of a file in quotes"
    return "a text in quotes" if kind.form is str else "a table"

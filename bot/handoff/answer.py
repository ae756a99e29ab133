"""The answer of a handoff run as models write it: forgiving where nothing has to be guessed."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, Field

from bot.llm.chat import JsonSchema

LONGEST_CONTENT = 2_000

_IDS = re.compile(
    r"(?<![A-Z0-9])([EP])0*([1-9][0-9]{0,5})(?![A-Z0-9])"
    r"(?:\s*(?:[-\u2013\u2014]|\.{2,3}|TO)\s*\1?0*([1-9][0-9]{0,5})(?![A-Z0-9]))?"
)
"""An id, or a whole range of them."""
_LONGEST_RANGE = 1_000
_NUMBERS_ALONE = re.compile(r"[\s0-9,;()\[\]\u2013-]*")


def _listed(value: object) -> object:
    """A list of texts: of nothing, of one text, or of whatever else holds them."""
    match value:
        case None:
            return []
        case list():
            texts = (_text(one) for one in cast("list[object]", value))
            return [text for text in texts if text is not None]
        case _:
            return [text for text in (_text(value),) if text is not None]


def _text(value: object) -> str | None:
    """A text, a number as text, or the longest text of an object: `{"id": "E1"}`."""
    match value:
        case bool():
            return None
        case str() | int():
            return str(value)
        case dict():
            held = cast("dict[object, object]", value).values()
            return max((one for one in held if isinstance(one, str)), key=len, default=None)
        case _:
            return None


def _chunks(value: object) -> object:
    """One chunk that stands alone, or chunks by number, as a list."""
    if not isinstance(value, dict):
        return value
    held = cast("dict[object, object]", value)
    return [held] if "content" in held else list(held.values())


def _said_so(value: object) -> object:
    return False if value is None else value


_Texts = Annotated[list[str], BeforeValidator(_listed)]
_Flag = Annotated[bool, BeforeValidator(_said_so)]


class HandoffChunk(BaseModel):
    """An event as the model tells it, with the handles of what it was made of."""

    source_entry_ids: _Texts
    content: str = Field(max_length=LONGEST_CONTENT)
    quotes: _Texts = Field(default_factory=list)
    importance: int = Field(ge=1, le=10)
    involved_entity_ids: _Texts = Field(default_factory=list)
    retain_in_buffer: _Flag = False


class HandoffResult(BaseModel):
    """The whole answer; `resolved` names open matters that are settled."""

    chunks: Annotated[list[HandoffChunk], BeforeValidator(_chunks)]
    resolved: _Texts = Field(default_factory=list)


def answer_schema(
    entries: Iterable[str], matters: Iterable[str], people: Iterable[str]
) -> JsonSchema:
    """The schema of an answer about these handles: a server that holds to it gives no others."""
    lines, open_matters = list(entries), list(matters)
    return {
        "type": "object",
        "properties": {
            "chunks": {
                "type": "array",
                "maxItems": max(1, len(lines)),
                "items": {
                    "type": "object",
                    "properties": {
                        "source_entry_ids": {**_some_of([*lines, *open_matters]), "minItems": 1},
                        "content": {"type": "string"},
                        "quotes": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
                        "importance": {"type": "integer", "minimum": 1, "maximum": 10},
                        "involved_entity_ids": _some_of(list(people)),
                        "retain_in_buffer": {"type": "boolean"},
                    },
                    "required": list(HandoffChunk.model_fields),
                    "additionalProperties": False,
                },
            },
            "resolved": _some_of(open_matters),
        },
        "required": list(HandoffResult.model_fields),
        "additionalProperties": False,
    }


def _some_of(handles: list[str]) -> dict[str, object]:
    """A list of these handles; where there are none, an empty one."""
    if not handles:
        return {"type": "array", "maxItems": 0, "items": {"type": "string"}}
    return {
        "type": "array",
        "maxItems": len(handles),
        "items": {"type": "string", "enum": handles},
    }


def handles_in(written: Iterable[str], bare: Literal["E", "P"]) -> frozenset[str]:
    """The handles that a model wrote: "E1", "[e1]", "E1, E2", "E1-E3"; a `bare` number is one too.

    Whether there are such handles is another question.
    """
    return frozenset(handle for text in written for handle in _handles_in(text, bare))


def _handles_in(text: str, bare: str) -> Iterator[str]:
    text = unicodedata.normalize("NFKC", text).upper()
    if _NUMBERS_ALONE.fullmatch(text):
        text = re.sub(r"[0-9]+", rf"{bare}\g<0>", text)
    for letter, first, last in _IDS.findall(text):
        ends = sorted((int(first), int(last or first)))
        for number in range(ends[0], min(ends[1], ends[0] + _LONGEST_RANGE) + 1):
            yield f"{letter}{number}"

"""Tool calls that a model wrote as text, read in all the forms that models were trained on."""

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import cast

_VALUE = re.compile(r"""\{\s*["'}]|\[\s*\{""")
_WORD = re.compile(r"[\w-]+")
_CALL_END = re.compile(r"</[^<>/]{0,12}(?:invoke|function|tool_call)>")
_PARAMETER = re.compile(
    r"""<[^<>/]{0,8}parameter[=\s](?:name=)?["']?([\w-]{1,64})[^<>]{0,60}>"""
    r"|<arg_key>\s{0,8}([\w-]{1,64})\s{0,8}</arg_key>\s{0,8}<arg_value>"
)
_PARAMETER_END = re.compile(r"</[^<>/]{0,8}(?:parameter|arg_value)>")
_DECODER = json.JSONDecoder(strict=False)
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_NAMES = ("name", "tool", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call of an offered tool; `arguments` is JSON text, maybe broken."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The calls in a text, and where the last of what looks like one ends (0: nothing does)."""

    calls: tuple[WrittenCall, ...] = ()
    end: int = 0


def read_calls(text: str, offered: Set[str]) -> Reading:
    """The calls of offered tools that the inside of a block holds; what else it holds is none."""
    if _PARAMETER.search(text):
        read = (_with_parameters(part, offered) for part in _CALL_END.split(text))
        return Reading(calls=tuple(filter(None, read)), end=len(text))
    calls: list[WrittenCall] = []
    end = 0
    while opening := _VALUE.search(text, end):
        start = opening.start()
        try:
            value, stop = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            name = _last_named(text[end:], offered)
            broken = [WrittenCall(name=name, arguments=text[start:])] if name else []
            return Reading(calls=(*calls, *broken), end=len(text))
        name = _last_named(text[end:start], offered)
        known = [call for call in calls_in(value) if call.name in offered]
        if name and not known and isinstance(value, dict):
            known = [WrittenCall(name=name, arguments=_as_json(value))]  # pyright: ignore[reportUnknownArgumentType] - any JSON
        calls += known
        end = stop
    return Reading(calls=tuple(calls), end=end)


def calls_in(value: object) -> Iterator[WrittenCall]:
    """The calls that a JSON value states, of whatever tools."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        value = fields.get("tool_calls", fields)
    for one in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            call = _call(cast("dict[str, object]", one))
            if call is not None:
                yield call


def _call(fields: dict[str, object]) -> WrittenCall | None:
    for wrapper in ("function", "function_call"):
        inside = fields.get(wrapper)
        if isinstance(inside, dict):
            fields = cast("dict[str, object]", inside)
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str)), None)
    arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    if name is None or arguments is None:
        name = fields.get("action")
        rest = {key: value for key, value in fields.items() if key != "action"}
        arguments = rest if arguments is None else arguments
    if not isinstance(name, str):
        return None
    written = arguments if isinstance(arguments, str) else _as_json(arguments)
    return WrittenCall(name=name, arguments=written)


def _with_parameters(text: str, offered: Set[str]) -> WrittenCall | None:
    """The call whose arguments stand in tags of their own."""
    first = opening = _PARAMETER.search(text)
    arguments: dict[str, object] = {}
    while opening and (closing := _PARAMETER_END.search(text, opening.end())):
        arguments[opening[1] or opening[2]] = _argument(text[opening.end() : closing.start()])
        opening = _PARAMETER.search(text, closing.end())
    name = _last_named(text[: first.start()] if first else text, offered)
    return WrittenCall(name=name, arguments=_as_json(arguments)) if name else None


def _argument(written: str) -> object:
    written = written.strip()
    if written[:1] in ("{", "["):
        try:
            return json.loads(written)
        except (ValueError, RecursionError):
            pass
    return written


def _last_named(text: str, offered: Set[str]) -> str | None:
    return next((word for word in reversed(_WORD.findall(text)) if word in offered), None)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)

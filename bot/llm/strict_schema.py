"""JSON schemas in the form that servers with strict structured output accept."""

from typing import cast

from pydantic import BaseModel

# Refused by OpenAI's strict mode, or too much for llama.cpp's grammars; pydantic holds the answer
# to them when it is read. `required` is made anew.
_DROPPED = frozenset(
    (
        *("title", "default", "required", "examples", "discriminator", "format", "pattern"),
        *("minLength", "maxLength", "uniqueItems"),
    )
)
_PREFIX = "#/$defs/"


def strict_schema(model: type[BaseModel]) -> dict[str, object]:
    """The schema of `model`: every property required and in its order, nothing besides them.

    Definitions stand where they are used; only one that holds itself stays a `$ref`.
    """
    schema = cast("dict[str, object]", model.model_json_schema())
    return _Rewriter(cast("dict[str, object]", schema.pop("$defs", {}))).root(schema)


class _Rewriter:
    def __init__(self, definitions: dict[str, object]) -> None:
        self._definitions = definitions
        self._open: list[str] = []
        self._recursive: set[str] = set()

    def root(self, schema: dict[str, object]) -> dict[str, object]:
        strict = self._object(schema)
        if self._recursive:
            strict["$defs"] = {name: self._inside(name) for name in sorted(self._recursive)}
        return strict

    def _any(self, node: object) -> object:
        if isinstance(node, list):
            return [self._any(item) for item in cast("list[object]", node)]
        return self._object(cast("dict[str, object]", node)) if isinstance(node, dict) else node

    def _object(self, node: dict[str, object]) -> dict[str, object]:
        reference = node.get("$ref")
        if isinstance(reference, str):
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return self._inlined(reference.removeprefix(_PREFIX), rest)
        strict: dict[str, object] = {}
        for key, value in node.items():
            if key == "properties":
                fields = cast("dict[str, object]", value)
                strict[key] = {name: self._any(field) for name, field in fields.items()}
                strict["required"] = list(fields)
                strict["additionalProperties"] = False
            elif key not in _DROPPED:
                strict["anyOf" if key == "oneOf" else key] = self._any(value)
        return strict

    def _inlined(self, name: str, rest: dict[str, object]) -> dict[str, object]:
        if name in self._open:
            self._recursive.add(name)
            return {"$ref": _PREFIX + name}
        return self._inside(name) | self._object(rest)

    def _inside(self, name: str) -> dict[str, object]:
        self._open.append(name)
        strict = self._object(cast("dict[str, object]", self._definitions[name]))
        self._open.pop()
        return strict

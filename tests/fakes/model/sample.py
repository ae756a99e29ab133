"""A smallest value that satisfies a strict JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.model.replies import JsonObject


def sample(schema: JsonObject, root: JsonObject | None = None) -> object:
    """The first choice everywhere: first of an enum, first of `anyOf`, the lowest number."""
    root = root or schema
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0], root)
    return _of_type(schema, root)


def _of_type(schema: JsonObject, root: JsonObject) -> object:
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            fields = schema.get("properties", {})
            return {name: sample(inner, root) for name, inner in fields.items()}
        case "array":
            return [sample(schema["items"], root)] * schema.get("minItems", 0)
        case "integer":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "number":
            return float(schema.get("minimum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "x" * max(1, schema.get("minLength", 1))

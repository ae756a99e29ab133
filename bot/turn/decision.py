"""Tools for a model without tool calls: one JSON decision a pass, held to a schema."""

import json
from dataclasses import dataclass
from typing import cast

from bot.llm.chat import JsonSchema, ToolCall, ToolSpec
from bot.llm.structured import extract_object

REPLY = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the model chose: to reply with `text`, or to call a tool first.

    `problem` says what was wrong with an answer that was neither.
    """

    text: str = ""
    call: ToolCall | None = None
    problem: str = ""


def decision_schema(tools: tuple[ToolSpec, ...], *, may_reply: bool = True) -> JsonSchema:
    """`action` first: `reply`, or exactly the tools offered now, each with its own arguments."""
    choices = [_choice(tool.name, tool.parameters) for tool in tools]
    if may_reply:
        text: JsonSchema = {"properties": {REPLY: {"type": "string"}}, "required": [REPLY]}
        choices.insert(0, _choice(REPLY, text))
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def read_decision(text: str, tools: tuple[ToolSpec, ...], number: int) -> Decision:
    """The decision that an answer holds. Raises ValueError with a plain reason."""
    try:
        fields: object = json.loads(extract_object(text))
    except json.JSONDecodeError as error:
        raise ValueError(str(error)) from error
    if not isinstance(fields, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - the reader's one error is ValueError
    decided = cast("dict[str, object]", fields)
    action = decided.pop("action", REPLY if REPLY in decided else None)
    if action == REPLY:
        reply = decided.get(REPLY)
        return Decision(text=reply if isinstance(reply, str) else "")
    if not isinstance(action, str) or action not in {tool.name for tool in tools}:
        raise ValueError(f"there is no action {action}")
    return Decision(
        call=ToolCall(id=f"decision_{number}", name=action, arguments=json.dumps(decided))
    )


def _choice(action: str, parameters: JsonSchema) -> JsonSchema:
    properties = cast("dict[str, object]", parameters["properties"])
    required = cast("list[str]", parameters["required"])
    return {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": [action]}, **properties},
        "required": ["action", *required],
        "additionalProperties": False,
    }

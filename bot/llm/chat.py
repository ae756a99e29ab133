"""What goes to a chat model and what comes back, apart from any provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]
JsonSchema = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is raw JSON text, maybe broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a prompt. `tool_call_id` answers a call that an assistant message made."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as it is offered: `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: JsonSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request. `schema` asks for strict structured output; then `tools` is empty."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: JsonSchema | None = None
    max_tokens: int
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more requests, as the provider counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More of the answer's text, reasoning blocks already taken out."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The answer begins anew (a retry, or another provider): forget this request's text so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The answer is whole. `usage` is None where the provider does not report it."""

    reason: Literal["stop", "length", "tool_calls"]
    tool_calls: tuple[ToolCall, ...]
    usage: Usage | None
    provider: str
    model: str


ChatEvent = TextDelta | Restarted | Finished

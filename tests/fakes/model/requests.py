"""A request as the model server received it, with what tests look at."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from multidict import CIMultiDict

if TYPE_CHECKING:
    from tests.fakes.model.replies import JsonObject, Reply

RequestKind = Literal["chat", "embeddings", "models", "other"]
KINDS: dict[str, RequestKind] = {
    "chat/completions": "chat",
    "embeddings": "embeddings",
    "models": "models",
}


@dataclass(slots=True, eq=False, kw_only=True)
class ModelRequest:
    """One request. `aborted` is set when the client went away before the answer was complete."""

    path: str
    body: JsonObject = field(default_factory=dict)
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    received_at: float = field(default_factory=time.monotonic)
    reply: Reply | None = None
    finished: bool = False
    aborted: bool = False

    @property
    def kind(self) -> RequestKind:
        return KINDS.get(self.path, "other")

    @property
    def model(self) -> str:
        return self.body.get("model", "")

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[JsonObject]:
        return self.body.get("messages", [])

    def texts_of(self, role: str) -> list[str]:
        """The text of every message of a role, in order."""
        return [_text(message) for message in self.messages if message["role"] == role]

    @property
    def system(self) -> str:
        return "\n".join(self.texts_of("system"))

    @property
    def last_user(self) -> str:
        """The text of the last message of the user; empty where there is none."""
        return (self.texts_of("user") or [""])[-1]

    @property
    def tool_results(self) -> list[str]:
        return self.texts_of("tool")

    @property
    def text(self) -> str:
        """The text of all messages, joined by line ends."""
        return "\n".join(_text(message) for message in self.messages)

    @property
    def tools(self) -> list[JsonObject]:
        return [tool["function"] for tool in self.body.get("tools") or []]

    @property
    def tool_names(self) -> list[str]:
        return [tool["name"] for tool in self.tools]

    @property
    def schema(self) -> JsonObject | None:
        """The JSON schema that the answer was asked to follow."""
        asked = (self.body.get("response_format") or {}).get("json_schema") or {}
        return asked.get("schema")

    @property
    def inputs(self) -> list[str]:
        """The texts to embed."""
        given = self.body.get("input", [])
        return [given] if isinstance(given, str) else given


def _text(message: JsonObject) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"[{part['type']}]") for part in content)

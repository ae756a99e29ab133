"""Answers in the shape of OpenAI's chat completions: whole, or as the events of a stream."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes.model.replies import Text, ToolCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.model.replies import JsonObject
    from tests.fakes.model.requests import ModelRequest

ARGUMENTS_PIECE = 7


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer bound to its request: number and model go into what is sent."""

    reply: Text | ToolCalls
    request: ModelRequest
    number: int

    @property
    def whole(self) -> JsonObject:
        """The answer to a request that does not stream."""
        message: JsonObject = {"role": "assistant", "content": self._content or None}
        if calls := self._tool_calls:
            message["tool_calls"] = calls
        if self._reasoning_field:
            message["reasoning_content"] = self._reasoning_field
        choice = {"index": 0, "message": message, "finish_reason": self.reply.finish_reason}
        return self._envelope("chat.completion", [choice]) | {"usage": self.usage}

    @property
    def deltas(self) -> list[JsonObject]:
        """The pieces of a stream, after the one that opens it."""
        size = self.reply.chunk_size
        deltas = [{"reasoning_content": one} for one in pieces(self._reasoning_field, size)]
        deltas += [{"content": one} for one in pieces(self._content, size)]
        for index, call in enumerate(self._tool_calls):
            deltas += _call_deltas(index, call)
        return deltas

    @property
    def finish(self) -> JsonObject:
        return self.chunk({}, self.reply.finish_reason)

    def chunk(self, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        """One event of the stream."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._envelope("chat.completion.chunk", [choice])

    @property
    def usage_chunk(self) -> JsonObject:
        """The last event, for requests with `stream_options.include_usage`."""
        return self._envelope("chat.completion.chunk", []) | {"usage": self.usage}

    @property
    def usage(self) -> JsonObject:
        prompt, completion = self.reply.prompt_tokens, self.reply.completion_tokens
        prompt = len(self.request.text) // 4 + 1 if prompt is None else prompt
        completion = len(self._content) // 4 + 1 if completion is None else completion
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    @property
    def _content(self) -> str:
        reply = self.reply
        if isinstance(reply, Text) and reply.reasoning and reply.reasoning_style == "tags":
            return f"<think>{reply.reasoning}</think>{reply.text}"
        return reply.text

    @property
    def _reasoning_field(self) -> str:
        in_tags = isinstance(self.reply, Text) and self.reply.reasoning_style == "tags"
        return "" if in_tags else self.reply.reasoning

    @property
    def _tool_calls(self) -> list[JsonObject]:
        if isinstance(self.reply, Text):
            return []
        return [
            {
                "id": f"call_{self.number}_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(dict(given)),
                },
            }
            for index, (name, given) in enumerate(self.reply.calls)
        ]

    def _envelope(self, kind: str, choices: list[JsonObject]) -> JsonObject:
        return {
            "id": f"chatcmpl-{self.number}",
            "object": kind,
            "created": 1_700_000_000,
            "model": self.request.model,
            "choices": choices,
        }


def pieces(text: str, size: int | None) -> list[str]:
    """A text in pieces of a size, or word by word."""
    if size is None:
        return re.findall(r"\s*\S+\s*|\s+", text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _call_deltas(index: int, call: JsonObject) -> Iterator[JsonObject]:
    """A tool call as it is streamed: its name first, its arguments in pieces."""
    function = call["function"]
    opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
    yield {"tool_calls": [opening]}
    for piece in pieces(function["arguments"], ARGUMENTS_PIECE):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

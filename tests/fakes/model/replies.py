"""What the model is told to answer, and the ways in which it may misbehave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

JsonObject = dict[str, Any]


# --- faults of a whole answer


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error status; `retry_after` in seconds, or as the HTTP date of a moment."""

    status: int
    message: str = "an ordered fault"
    retry_after: float | datetime | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ContextTooLong:
    """400, in the words of OpenAI or of llama.cpp's server."""

    style: Literal["openai", "llama.cpp"] = "openai"
    prompt_tokens: int = 9000
    context: int = 8192


@dataclass(frozen=True, slots=True)
class Hang:
    """Accept the request and say nothing for so long."""

    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection instead of answering."""


@dataclass(frozen=True, slots=True)
class Html:
    """200 with a web page, as a proxy in front of a model server says it."""

    text: str = "<html><body>502 Bad Gateway</body></html>"


@dataclass(frozen=True, slots=True)
class BadJson:
    """200 with JSON that ends in the middle."""


# --- faults within a stream, after so many pieces of it


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream ends properly, but without a finish reason and without [DONE]."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The connection ends in the middle of the stream; the pieces before it arrive."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class CorruptEvent:
    """One event of the stream is no JSON; the others follow."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class Stall:
    """The stream stops for so long, and then goes on."""

    after: int = 1
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error is sent as an event of the stream, which ends there."""

    after: int = 1
    message: str = "the server is overloaded"


WholeFault = HttpError | ContextTooLong | Hang | Reset | Html | BadJson
StreamFault = Cut | Disconnect | CorruptEvent | Stall | ErrorEvent


# --- proper answers


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `reasoning` before it comes in a field of its own or in `<think>` tags.

    It comes word by word, or in pieces of `chunk_size` characters; delays are in seconds. The
    token numbers replace the usage that would be counted. `Text("")` is an empty answer.
    """

    text: str
    finish_reason: Literal["stop", "length", "content_filter"] = "stop"
    delay: float = 0.0
    chunk_delay: float = 0.0
    chunk_size: int | None = None
    reasoning: str = ""
    reasoning_style: Literal["field", "tags"] = "field"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    breaks: StreamFault | None = None


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Calls of tools, each a name with arguments: an object, or raw text that may be broken.

    `text` is said before the calls.
    """

    calls: Sequence[tuple[str, Mapping[str, Any] | str]]
    text: str = ""
    finish_reason: str = "tool_calls"
    delay: float = 0.0
    chunk_delay: float = 0.0
    chunk_size: int | None = None
    reasoning: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    breaks: StreamFault | None = None


@dataclass(frozen=True, slots=True)
class Json:
    """A text that is the JSON of an object."""

    value: object
    delay: float = 0.0
    chunk_delay: float = 0.0
    chunk_size: int | None = None
    breaks: StreamFault | None = None

    @property
    def as_text(self) -> Text:
        return Text(
            json.dumps(self.value, ensure_ascii=False),
            delay=self.delay,
            chunk_delay=self.chunk_delay,
            chunk_size=self.chunk_size,
            breaks=self.breaks,
        )


@dataclass(frozen=True, slots=True)
class Vectors:
    """The embeddings to give, one for each input."""

    values: Sequence[Sequence[float]]


Reply = str | Text | ToolCalls | Json | Vectors | WholeFault | StreamFault

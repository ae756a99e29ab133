"""The OpenAI protocol: requests as they are sent, answers as servers really write them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, Field, FiniteFloat

from bot.errors import ModelFault
from bot.llm.chat import ChatMessage, ChatRequest, ToolCall, Usage
from bot.llm.surrogates import without_surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server was found to accept; each is given up once it was refused."""

    stream_options: bool = True
    temperature: bool = True
    max_tokens_field: str = "max_tokens"


def request_body(request: ChatRequest, model: str, dialect: Dialect) -> dict[str, object]:
    """The body of a streamed chat completion."""
    body: dict[str, object] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        dialect.max_tokens_field: request.max_tokens,
        "stream": True,
    }
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    if dialect.temperature and request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [
            _function({"name": t.name, "description": t.description, "parameters": t.parameters})
            for t in request.tools
        ]
    if request.schema is not None:
        schema = {"name": "answer", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def embedding_body(texts: Sequence[str], model: str) -> dict[str, object]:
    """The body of a request for embeddings, as plain numbers: not all servers pack them."""
    clean = [without_surrogates(text) for text in texts]
    return {"model": model, "input": clean, "encoding_format": "float"}


def _message(message: ChatMessage) -> dict[str, object]:
    sent: dict[str, object] = {"role": message.role, "content": without_surrogates(message.content)}
    if message.tool_calls:
        sent["content"] = sent["content"] or None
        sent["tool_calls"] = [_sent_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _sent_call(call: ToolCall) -> dict[str, object]:
    # Servers read the arguments again to render the prompt, and fail on what is no object.
    arguments = call.arguments if _is_object(call.arguments) else "{}"
    return {"id": call.id} | _function({"name": call.name, "arguments": arguments})


def _function(function: dict[str, object]) -> dict[str, object]:
    return {"type": "function", "function": function}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class Part(BaseModel):
    """A piece of content where a server sends a list of them, reasoning among them."""

    type: str | None = None
    text: str | None = None


class FunctionDelta(BaseModel):
    name: str | None = None
    arguments: str | dict[str, object] | None = None

    @property
    def written(self) -> str:
        """The arguments as JSON text; some servers send the object itself."""
        if isinstance(self.arguments, dict):
            return json.dumps(self.arguments, ensure_ascii=False)
        return self.arguments or ""


class CallDelta(BaseModel):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(BaseModel):
    content: str | list[Part] | None = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: list[CallDelta] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content if part.type == "text")
        return self.content or ""


class Choice(BaseModel):
    """`message` is the delta of a server that was asked to stream and does not."""

    index: int | None = None
    delta: Delta | None = Field(default=None, validation_alias=AliasChoices("delta", "message"))
    finish_reason: str | None = None


class UsageCount(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def counted(self) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens or 0, completion_tokens=self.completion_tokens or 0
        )


class Chunk(BaseModel):
    """One event of a stream, or a whole answer. `error` is in an answer that failed with 200."""

    choices: list[Choice] | None = None
    usage: UsageCount | None = None
    error: object = None

    @property
    def says_something(self) -> bool:
        """Whether the model is at work: text, reasoning or a call."""
        delta = self.choice.delta
        return delta is not None and any(
            (delta.content, delta.reasoning_content, delta.reasoning, delta.tool_calls)
        )

    @property
    def choice(self) -> Choice:
        """The one answer we asked for; an empty one where the event tells nothing of it."""
        return next((one for one in self.choices or () if not one.index), Choice())


class Vector(BaseModel):
    index: int | None = None
    embedding: list[FiniteFloat]


class Vectors(BaseModel):
    """Embeddings. `error` is in an answer that failed with 200."""

    data: list[Vector] = []
    error: object = None

    def in_order(self, count: int) -> list[list[float]]:
        """The vectors by index. Raises ModelFault unless they are `count` of one dimension."""
        vectors = self.data
        if any(vector.index is not None for vector in vectors):
            vectors = sorted(vectors, key=lambda vector: vector.index or 0)
            if [vector.index for vector in vectors] != list(range(len(vectors))):
                raise ModelFault("malformed", "the embeddings are not numbered in order")
        if len(vectors) != count:
            raise ModelFault("malformed", f"{len(vectors)} embeddings for {count} texts")
        dimensions = {len(vector.embedding) for vector in vectors}
        if len(dimensions) != 1 or 0 in dimensions:
            raise ModelFault("malformed", "the embeddings are not of one dimension")
        return [vector.embedding for vector in vectors]

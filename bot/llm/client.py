"""One model on one server that speaks the OpenAI protocol."""

import asyncio
import ipaddress
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

import httpx2
import openai

from bot.clock import Clock
from bot.errors import ContextTooLong, ModelFault
from bot.llm.answer import Answer
from bot.llm.chat import ChatEvent, ChatRequest
from bot.llm.faults import REQUEST_ERRORS, fault_of, told_fault
from bot.llm.wire import Chunk, Dialect, Vectors, embedding_body, request_body

ToolsMode = Literal["native", "structured", "none"]

CONNECT_TIMEOUT_S = 10.0
# How long an answer that is whole waits for its usage and for the end of the stream.
USAGE_WAIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """Where a model is served and how to ask it. Prices: micro-units for a million tokens.

    `timeout_s` is how long an answer may take to begin, `stall_s` how long a begun one may pause.
    """

    name: str
    base_url: str
    model: str
    max_context: int
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120
    stall_s: float = 120
    tools: ToolsMode = "native"
    slots: int = 4
    short_term_memory_tool: bool = True
    input_price: int = 0
    output_price: int = 0


class ModelClient:
    """Asks one provider once; whatever goes wrong is raised as a ModelFault.

    What a server refuses although it is optional (`stream_options`, `temperature`, the name
    `max_tokens`) is left out, at once and from then on.
    """

    def __init__(self, settings: ProviderSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._dialect = Dialect()
        self._openai = openai.AsyncOpenAI(
            base_url=settings.base_url,
            # Local servers want no key, and the library wants one.
            api_key=settings.api_key or "none",
            max_retries=0,
            http_client=_http_client(settings.base_url),
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """The answer as it comes, `Finished` last.

        Close the generator (`contextlib.aclosing`) where it is not used up: that aborts the
        request.
        """
        answer = Answer(request)
        async with (
            await self._open(request) as stream,
            aclosing(self._chunks(stream, answer)) as chunks,
        ):
            async for chunk in chunks:
                for event in answer.take(chunk):
                    yield event
        finished = answer.finished(self.settings.name, self.settings.model)
        for event in answer.end():
            yield event
        yield finished

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order, all of one dimension."""
        if not texts:
            return []
        body = embedding_body(texts, self.settings.model)
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                answer = await self._openai.post("/embeddings", cast_to=object, body=body)
            vectors = Vectors.model_validate(answer)
        except TimeoutError:
            raise self._timeout() from None
        except REQUEST_ERRORS as error:
            raise fault_of(error, self._clock.now()) from error
        if vectors.error:
            raise told_fault(vectors.error)
        return vectors.in_order(len(texts))

    async def close(self) -> None:
        await self._openai.close()

    async def _open(self, request: ChatRequest) -> openai.AsyncStream[object]:
        dialect = self._dialect
        while True:
            try:
                async with asyncio.timeout(self.settings.timeout_s):
                    return await self._openai.post(
                        "/chat/completions",
                        cast_to=object,
                        body=request_body(request, self.settings.model, dialect),
                        stream=True,
                        stream_cls=openai.AsyncStream[object],
                    )
            except TimeoutError:
                raise self._timeout() from None
            except REQUEST_ERRORS as error:
                fault = fault_of(error, self._clock.now())
                simpler = _simpler(dialect, fault)
                if simpler == dialect:
                    raise fault from error
                dialect = self._dialect = simpler

    async def _chunks(
        self, stream: openai.AsyncStream[object], answer: Answer
    ) -> AsyncGenerator[Chunk, None]:
        """The events of the stream; `answer`, which takes them, tells when it is whole."""
        now = asyncio.get_running_loop().time
        deadline = now() + self.settings.stall_s
        async with aclosing(_events(stream)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        chunk = Chunk.model_validate(await anext(events))
                except StopAsyncIteration:
                    return
                except REQUEST_ERRORS as error:
                    if answer.is_whole:
                        return
                    raise self._broken_off(error) from error
                if chunk.error:
                    raise told_fault(chunk.error)
                yield chunk
                if answer.is_whole:
                    deadline = now() + USAGE_WAIT_S
                elif chunk.says_something:
                    deadline = now() + self.settings.stall_s

    def _broken_off(self, error: BaseException) -> ModelFault:
        if isinstance(error, TimeoutError):
            return ModelFault("stalled", f"no token for {self.settings.stall_s:g} s")
        return fault_of(error, self._clock.now())

    def _timeout(self) -> ModelFault:
        return ModelFault("timeout", f"no answer within {self.settings.timeout_s:g} s")


async def _events(stream: openai.AsyncStream[object]) -> AsyncGenerator[object, None]:
    """The events as plain JSON values; one, where the server did not stream its answer."""
    kind = stream.response.headers.get("content-type", "")
    if "html" in kind:
        raise ModelFault("malformed", "a web page instead of an answer")
    if "application/json" in kind:
        yield json.loads(await stream.response.aread())
        return
    async for event in stream:
        yield event


def _simpler(dialect: Dialect, fault: ModelFault) -> Dialect:
    """The dialect without what the fault complains of."""
    if fault.kind != "rejected" or isinstance(fault, ContextTooLong):
        return dialect
    if "stream_options" in fault.detail:
        dialect = replace(dialect, stream_options=False)
    if "max_completion_tokens" in fault.detail:
        dialect = replace(dialect, max_tokens_field="max_completion_tokens")
    if "temperature" in fault.detail:
        dialect = replace(dialect, temperature=False)
    return dialect


def _http_client(base_url: str) -> httpx2.AsyncClient:
    """The connections to one server. Time limits are the client's own, apart from connecting."""
    timeout = openai.Timeout(None, connect=CONNECT_TIMEOUT_S)
    if _is_on_this_machine(base_url):
        # A proxy named by the environment is not for these, and a TLS context costs 0.1 s. A new
        # connection costs nothing, and llama.cpp closes old ones unannounced: 8 of 300 requests
        # were lost.
        return openai.DefaultAsyncHttpx2Client(
            timeout=timeout, trust_env=False, verify=False, headers={"Connection": "close"}
        )
    return openai.DefaultAsyncHttpx2Client(timeout=timeout)


def _is_on_this_machine(base_url: str) -> bool:
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
    return loopback and parts.scheme == "http"

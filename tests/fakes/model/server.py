"""The loopback model server: OpenAI's HTTP API, answering what the test says.

    async with LoopbackModel() as model:
        client = AsyncOpenAI(base_url=model.base_url, api_key="key")
        model.queue("hello", ToolCalls([("search_memory", {"query": "tea"})]), HttpError(500))
        model.on(lambda request: Text("pong") if "ping" in request.last_user else None)

A rule that gives an answer comes before the queue. With neither, a request for a JSON schema gets a
sample of that schema, and every other one its last message back: "echo: ...".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from aiohttp import web
from multidict import CIMultiDict

from tests.fakes.model.answering import send_fault, send_stream, send_whole
from tests.fakes.model.completions import Completion
from tests.fakes.model.embedding import DEFAULT_DIMENSIONS, as_base64, embed
from tests.fakes.model.replies import (
    CorruptEvent,
    Cut,
    Disconnect,
    ErrorEvent,
    HttpError,
    Json,
    Reply,
    Stall,
    Text,
    ToolCalls,
    Vectors,
    WholeFault,
)
from tests.fakes.model.requests import ModelRequest, RequestKind
from tests.fakes.model.sample import sample
from tests.fakes.waiting import Changes, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BODY_LIMIT = 64 * 1024 * 1024
SIX_WORDS = "one two three four five six"


class LoopbackModel:
    """See the module's docstring. `models` are the names that `/v1/models` lists."""

    def __init__(self, *, models: Iterable[str] = ("loopback-model",), port: int = 0) -> None:
        self.models = list(models)
        self.requests: list[ModelRequest] = []
        self.most_at_once = 0
        self.base_url = ""
        self._port = port
        self._open = 0
        self._queues: dict[RequestKind, list[Reply]] = {}
        self._rules: dict[RequestKind, list[Callable[[ModelRequest], Reply | None]]] = {}
        self._changes = Changes()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/v1/{path:.*}", self._serve)
        # Cancelled handlers tell which requests the client gave up.
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    # --- the script

    def queue(self, *replies: Reply, to: RequestKind = "chat") -> Self:
        """Answer the next requests of a kind with these, in order."""
        self._queues.setdefault(to, []).extend(replies)
        return self

    def on(self, rule: Callable[[ModelRequest], Reply | None], *, to: RequestKind = "chat") -> Self:
        """Ask a rule about every request of a kind; None leaves it to later rules and the queue."""
        self._rules.setdefault(to, []).append(rule)
        return self

    def clear(self) -> None:
        """Forget rules and queues; the requests stay."""
        self._rules.clear()
        self._queues.clear()

    @property
    def queued(self) -> int:
        """How many answers nobody has asked for yet."""
        return sum(len(queue) for queue in self._queues.values())

    # --- watching

    @property
    def chats(self) -> list[ModelRequest]:
        return [one for one in self.requests if one.kind == "chat"]

    @property
    def embeddings(self) -> list[ModelRequest]:
        return [one for one in self.requests if one.kind == "embeddings"]

    @property
    def last(self) -> ModelRequest:
        """The newest chat request."""
        return self.chats[-1]

    async def wait_for_requests(
        self,
        count: int,
        *,
        kind: RequestKind = "chat",
        timeout: float = 20.0,  # noqa: ASYNC109
    ) -> list[ModelRequest]:
        """All requests of a kind, as soon as there are so many (received, not yet answered)."""

        def received() -> list[ModelRequest] | None:
            found = [one for one in self.requests if one.kind == kind]
            return found if len(found) >= count else None

        return await self.wait_for(
            received, timeout=timeout, what=f"for {count} {kind} requests of {len(self.requests)}"
        )

    async def wait_for(
        self,
        predicate: Callable[[], T | None],
        *,
        timeout: float = 20.0,  # noqa: ASYNC109
        what: str = "",
    ) -> T:
        """The first truthy value of a predicate, asked after every change and every 20 ms."""
        return await self._changes.wait_for(predicate, timeout=timeout, what=what)

    # --- serving

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        request = ModelRequest(path=http.match_info["path"], headers=CIMultiDict(http.headers))
        if http.can_read_body:
            request.body = await http.json()
        self.requests.append(request)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        self._changes.ring()
        try:
            response = await self._answer(http, request)
        except (ConnectionError, asyncio.CancelledError):
            request.aborted = True
            raise
        finally:
            self._open -= 1
            request.finished = not request.aborted
            self._changes.ring()
        return response

    async def _answer(self, http: web.Request, request: ModelRequest) -> web.StreamResponse:
        reply = request.reply = self._reply_to(request)
        if isinstance(reply, WholeFault):
            return await send_fault(http, reply)
        match request.kind:
            case "models":
                return web.json_response(self._model_list())
            case "embeddings":
                return web.json_response(_embeddings(request, reply))
            case "chat":
                return await self._complete(http, request, _completed(reply))
            case "other":
                error = HttpError(404, f"/v1/{request.path} is not served here")
                return await send_fault(http, error)

    def _reply_to(self, request: ModelRequest) -> Reply | None:
        for rule in self._rules.get(request.kind, ()):
            if (reply := rule(request)) is not None:
                return reply
        if queue := self._queues.get(request.kind):
            return queue.pop(0)
        return _default_reply(request) if request.kind == "chat" else None

    async def _complete(
        self, http: web.Request, request: ModelRequest, reply: Text | ToolCalls
    ) -> web.StreamResponse:
        await asyncio.sleep(reply.delay)
        completion = Completion(reply, request, number=len(self.requests))
        send = send_stream if request.streams else send_whole
        return await send(http, completion)

    def _model_list(self) -> dict[str, object]:
        return {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "loopback"}
                for name in self.models
            ],
        }


def _default_reply(request: ModelRequest) -> Reply:
    if request.schema:
        return Json(sample(request.schema))
    return Text(f"echo: {request.last_user}")


def _completed(reply: Reply | None) -> Text | ToolCalls:
    """The answer in one of its two forms; the fault of a stream alone breaks six words."""
    match reply:
        case Text() | ToolCalls():
            return reply
        case Json():
            return reply.as_text
        case str():
            return Text(reply)
        case Cut() | Disconnect() | CorruptEvent() | Stall() | ErrorEvent():
            return Text(SIX_WORDS, breaks=reply)
        case _:
            raise TypeError(f"{reply!r} is no answer to a chat")


def _embeddings(request: ModelRequest, reply: Reply | None) -> dict[str, object]:
    dimensions = request.body.get("dimensions") or DEFAULT_DIMENSIONS
    given = reply.values if isinstance(reply, Vectors) else None
    vectors = given or [embed(text, dimensions) for text in request.inputs]
    packed = request.body.get("encoding_format") == "base64"
    tokens = sum(len(text) // 4 + 1 for text in request.inputs)
    return {
        "object": "list",
        "model": request.model,
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": as_base64(vector) if packed else list(vector),
            }
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }

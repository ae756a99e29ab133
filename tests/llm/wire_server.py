"""A model server that answers with the very bytes a test gives: for what only some servers do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

EVENTS = "text/event-stream"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One answer as it goes over the wire; after it the connection may stay open or be reset."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    stays_open: bool = False
    resets: bool = False


def error(status: int, body: object, **headers: str) -> Wire:
    """An answer that refuses."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Wire(status=status, body=json.dumps(body).encode(), headers=told)


def events(*payloads: object, done: bool = True) -> Wire:
    """A stream of these events; a text is sent as it is."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in payloads]
    lines += ["[DONE]"] if done else []
    return Wire(body="".join(f"data: {one}\n\n" for one in lines).encode(), content_type=EVENTS)


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, Any]:
    """One event: `content="..."`, `tool_calls=[...]`."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


class WireServer:
    """Answers the requests in order; `bodies` is what was asked."""

    def __init__(self, *answers: Wire) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.base_url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/{path:.*}", self._answer)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        answer = self._answers.pop(0)
        headers = {"Content-Type": answer.content_type, **answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        await response.write(answer.body)
        if answer.stays_open:
            await asyncio.Event().wait()
        if answer.resets and request.transport is not None:
            request.transport.abort()
        return response

"""The loopback Discord: one object that serves the wire, plays the people and orders the faults.

    async with LoopbackDiscord() as discord:
        with discord.patched():
            task = asyncio.create_task(client.start(discord.token))
            await discord.wait_until_connected()
            question = await discord.say(discord.alice, discord.general, "hi", mention_bot=True)
            reply = await discord.wait_for_reply(discord.general, after=question)

The world starts with the guild `home`, its channel `general`, `owner` and the member `alice`; more
is built with `guild()`, `role()`, `channel()`, `thread()`, `member()`, `overwrite()`, `direct()`.
What the bot did is read from `calls`, `bot_messages(channel)` and `visible_to(user, channel)`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Literal, Self

from aiohttp import web

from tests.fakes.connections import reset
from tests.fakes.discord import (
    refusals,
    rest_channels,
    rest_commands,
    rest_interactions,
    rest_messages,
    rest_webhooks,
)
from tests.fakes.discord.calls import API_PREFIX, Call, read_call
from tests.fakes.discord.events import Event
from tests.fakes.discord.faults import Bucket, Fault, edit_bucket
from tests.fakes.discord.gateway import Gateway, Intent
from tests.fakes.discord.pointing import discord_py_pointed_at
from tests.fakes.discord.routing import RestRequest
from tests.fakes.discord.watching import WatchedWorld

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.fakes.discord.records import Channel, Guild, JsonObject

ROUTES = (
    *rest_messages.ROUTES,
    *rest_channels.ROUTES,
    *rest_webhooks.ROUTES,
    *rest_interactions.ROUTES,
    *rest_commands.ROUTES,
)
# discord.py takes a 429 without this header for a ban by Cloudflare.
VIA = {"Via": "1.1 loopback"}
BODY_LIMIT = 64 * 1024 * 1024


class LoopbackDiscord(WatchedWorld):
    """See the module's docstring.

    A handler that crashes, which is a fault of this server, raises again when the server ends.
    `privileged_intents` are those that the application was given; identifying with another one
    closes the gateway with 4014. `recommended_shards` is what `/gateway/bot` says.
    """

    def __init__(
        self,
        *,
        token: str = "loopback.token",  # noqa: S107
        privileged_intents: Intent = Intent.MESSAGE_CONTENT,
        heartbeat_ms: int = 41_250,
        recommended_shards: int = 1,
    ) -> None:
        super().__init__()
        self.token = token
        self.recommended_shards = recommended_shards
        self.faults: list[Fault] = []
        self.buckets: list[Bucket] = [edit_bucket()]
        self.crash: Exception | None = None
        self.gateway = Gateway(
            self,
            token=token,
            privileged_intents=privileged_intents,
            heartbeat_ms=heartbeat_ms,
            on_change=self.changes.ring,
        )
        self.publish = self.gateway.dispatch

    # --- running

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.gateway.url = f"ws://{host}:{port}/gateway"
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.gateway.drop(1001)
        await self._runner.cleanup()
        if self.crash and error is None:
            raise self.crash

    @property
    def api_url(self) -> str:
        return self.url + API_PREFIX

    def patched(self, *, ready_timeout: float = 0.05) -> AbstractContextManager[None]:
        """Within, the discord.py clients of this process connect here.

        `ready_timeout`: the seconds (2 by default) they wait for further guilds before `on_ready`.
        """
        return discord_py_pointed_at(self.api_url, self.gateway.url, ready_timeout=ready_timeout)

    def child_command(self, *bot_arguments: str) -> list[str]:
        """The command line of the bot as a second process that connects here."""
        module = "tests.fakes.discord.child"
        return [
            *(sys.executable, "-m", module),
            *(self.api_url, self.gateway.url, "--"),
            *bot_arguments,
        ]

    def environment(self, **more: str) -> dict[str, str]:
        """This process's environment with the bot's token, for a second process."""
        return {**os.environ, "DISCORD_TOKEN": self.token, **more}

    async def wait_until_connected(self, *, timeout: float = 20.0) -> None:  # noqa: ASYNC109
        await self.wait_for(
            lambda: self.gateway.is_connected, timeout=timeout, what="for a gateway session"
        )

    # --- faults

    def fault(
        self,
        method: str,
        pattern: str,
        *,
        times: int = 1,
        status: int | None = None,
        code: int = 0,
        message: str = "an ordered fault",
        retry_after: float = 0.2,
        is_global: bool = False,
        cloudflare: bool = False,
        delay: float = 0.0,
        drop: Literal["before", "after"] | None = None,
    ) -> Fault:
        """Order a fault for the next requests whose path matches; see `Fault`."""
        fault = Fault(
            method=method,
            pattern=re.compile(pattern),
            times=times,
            status=status,
            code=code,
            message=message,
            retry_after=retry_after,
            is_global=is_global,
            cloudflare=cloudflare,
            delay=delay,
            drop=drop,
        )
        self.faults.append(fault)
        return fault

    def limit(self, method: str, pattern: str, *, limit: int, window: float) -> Bucket:
        """Add a rate limit of `limit` requests in `window` seconds for each channel or guild."""
        bucket = Bucket(
            name=f"bucket-{len(self.buckets)}",
            method=method,
            pattern=re.compile(pattern),
            limit=limit,
            window=window,
        )
        self.buckets.append(bucket)
        return bucket

    def emit(
        self,
        name: str,
        data: JsonObject,
        *,
        guild: Guild | None = None,
        channel: Channel | None = None,
        duplicate: int = 1,
    ) -> None:
        """Dispatch a raw gateway event, `duplicate` times."""
        for _ in range(duplicate):
            self.publish(Event(name=name, data=data, guild=guild, channel=channel))

    # --- serving

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if file := self.files.get(request.path):
            return web.Response(body=file.content, headers={"Content-Type": file.content_type})
        call = await read_call(request)
        self.calls.append(call)
        try:
            return await self._answer(request, call)
        except Exception as crash:
            self.crash = crash
            raise
        finally:
            self.changes.ring()

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        fault = next((one for one in self.faults if one.matches(call.method, call.path)), None)
        if fault:
            fault.hits += 1
            await asyncio.sleep(fault.delay)
            if fault.drop == "before":
                return _reset(request, call)
            if fault.status is not None:
                return _ordered(fault, call)
        headers = dict(VIA)
        for bucket in self.buckets:
            if bucket.matches(call.method, call.path):
                state = bucket.take(call.path)
                headers |= state.headers
                if not state.granted:
                    return _too_many(call, state.reset_after, headers)
        status, payload = await self._handle(call)
        if fault and fault.drop == "after":
            return _reset(request, call)
        return _response(call, status, payload, headers)

    async def _handle(self, call: Call) -> tuple[int, object]:
        try:
            for route in ROUTES:
                if route.method == call.method and (found := route.pattern.match(call.path)):
                    if not route.token_in_path:
                        self._authorize(call)
                    return await route.handler(
                        RestRequest(world=self, call=call, path=found.groupdict())
                    )
        except refusals.Refusal as refusal:
            return refusal.status, refusal.payload
        return 404, {"message": f"404: {call.method} {call.path} is not served here", "code": 0}

    def _authorize(self, call: Call) -> None:
        if call.headers.get("Authorization") != f"Bot {self.token}":
            raise refusals.unauthorized()


def _reset(request: web.Request, call: Call) -> web.Response:
    call.status = -1
    reset(request.transport)
    return web.Response()


def _ordered(fault: Fault, call: Call) -> web.Response:
    if fault.status != 429:
        return _response(
            call, fault.status or 500, {"message": fault.message, "code": fault.code}, VIA
        )
    headers = {"Retry-After": str(fault.retry_after), "X-RateLimit-Scope": "user"}
    if fault.cloudflare:
        call.status = 429
        return web.Response(
            status=429, text="<html>error 1015</html>", content_type="text/html", headers=headers
        )
    return _too_many(call, fault.retry_after, {**VIA, **headers}, is_global=fault.is_global)


def _too_many(
    call: Call, retry_after: float, headers: dict[str, str], *, is_global: bool = False
) -> web.Response:
    payload = {
        "message": "You are being rate limited.",
        "retry_after": round(retry_after, 3),
        "global": is_global,
    }
    return _response(call, 429, payload, {"Retry-After": f"{retry_after:.3f}", **headers})


def _response(call: Call, status: int, payload: object, headers: dict[str, str]) -> web.Response:
    call.status, call.answer = status, payload
    if payload is None:
        return web.Response(status=status, headers=headers)
    # discord.py reads the body only if the type is exactly this one, without a charset.
    return web.Response(
        status=status,
        body=json.dumps(payload).encode(),
        headers={**headers, "Content-Type": "application/json"},
    )

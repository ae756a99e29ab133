"""Pointing discord.py at the loopback server instead of Discord."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
from discord.state import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def discord_py_pointed_at(
    api_url: str, gateway_url: str, *, ready_timeout: float = 0.05
) -> Iterator[None]:
    """Within, every discord.py client of this process talks to the given addresses.

    `ready_timeout` replaces the 2 s that a client waits for further guilds before it is ready.
    """
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY, ConnectionState.__init__

    def init(self: ConnectionState[Any], /, **options: Any) -> None:
        options.setdefault("guild_ready_timeout", ready_timeout)
        before[2](self, **options)

    Route.BASE = api_url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    ConnectionState.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before[:2]
        ConnectionState.__init__ = before[2]  # type: ignore[method-assign]

"""A real discord.py client that is connected to the loopback Discord, and a room to reply in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.discord_io.room import Listener, Room
from tests.fakes import LoopbackDiscord


@pytest.fixture
async def server() -> AsyncIterator[LoopbackDiscord]:
    async with LoopbackDiscord() as server:
        with server.patched(ready_timeout=0.01):
            yield server


@pytest.fixture
async def client(server: LoopbackDiscord) -> AsyncIterator[Listener]:
    client = Listener()
    running = asyncio.create_task(client.start(server.token))
    await server.wait_for(lambda: client.is_ready() or running.done(), timeout=10)
    yield client
    await client.close()
    await running


@pytest.fixture
async def room(server: LoopbackDiscord, client: Listener) -> AsyncIterator[Room]:
    """Without Discord's limit on edits, which would slow the tests down; nothing may be left."""
    server.buckets.clear()
    before = asyncio.all_tasks()
    yield Room(server, client)
    left = [task for task in asyncio.all_tasks() - before if "delivery.py" in repr(task)]
    assert not left

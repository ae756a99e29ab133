"""A loopback Discord, real discord.py clients that connect to it, and a loopback model server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import discord
import openai
import pytest

from tests.fakes import LoopbackDiscord, LoopbackModel


class ListeningClient(discord.Client):
    """A discord.py client that keeps what it hears."""

    def __init__(self, intents: discord.Intents) -> None:
        super().__init__(intents=intents)
        self.tree = discord.app_commands.CommandTree(self)
        self.heard: list[discord.Message] = []
        self.events: list[str] = []

    def dispatch(self, event: str, /, *args: object, **kwargs: object) -> None:
        self.events.append(event)
        super().dispatch(event, *args, **kwargs)

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    def channel(self, channel_id: int) -> discord.TextChannel:
        found = self.get_channel(channel_id)
        assert isinstance(found, discord.TextChannel)
        return found


def usual_intents() -> discord.Intents:
    intents = discord.Intents.none()
    intents.guilds = intents.messages = intents.reactions = intents.message_content = True
    return intents


@asynccontextmanager
async def running(client: discord.Client, server: LoopbackDiscord) -> AsyncIterator[discord.Client]:
    """A client that is connected and ready, and closed at the end."""
    task = asyncio.create_task(client.start(server.token))
    try:
        await server.wait_for(lambda: task.done() or client.is_ready(), timeout=10)
        if task.done():
            await task
        yield client
    finally:
        await client.close()
        await asyncio.gather(task, return_exceptions=True)


Connect = Callable[..., Awaitable[ListeningClient]]


@pytest.fixture
async def server() -> AsyncIterator[LoopbackDiscord]:
    async with LoopbackDiscord() as server:
        with server.patched(ready_timeout=0.01):
            yield server


@pytest.fixture
async def connect(server: LoopbackDiscord) -> AsyncIterator[Connect]:
    """Connect a client, with the usual intents or others."""
    async with AsyncExitStack() as stack:

        async def connected(intents: discord.Intents | None = None) -> ListeningClient:
            client = ListeningClient(intents or usual_intents())
            await stack.enter_async_context(running(client, server))
            return client

        yield connected


@pytest.fixture
async def client(connect: Connect) -> ListeningClient:
    return await connect()


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as model:
        yield model


@pytest.fixture
async def ai(model: LoopbackModel) -> AsyncIterator[openai.AsyncOpenAI]:
    """The real openai client, without retries of its own."""
    async with openai.AsyncOpenAI(base_url=model.base_url, api_key="key", max_retries=0) as client:
        yield client

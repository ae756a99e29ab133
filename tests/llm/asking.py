"""Asking a client in tests, and looking at what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.errors import ModelFault
from bot.llm.chat import ChatEvent, ChatMessage, ChatRequest, Finished, TextDelta
from bot.llm.client import ModelClient, ProviderSettings
from tests.llm.wire_server import Wire, WireServer

HELLO = ChatRequest(messages=(ChatMessage(role="user", content="hello"),), max_tokens=50)


@asynccontextmanager
async def client_of(base_url: str, **settings: Any) -> AsyncIterator[ModelClient]:
    provider = ProviderSettings(
        name="loopback", base_url=base_url, model="tiny", max_context=8192, **settings
    )
    client = ModelClient(provider, SystemClock())
    try:
        yield client
    finally:
        await client.close()


async def answer_of(client: ModelClient, request: ChatRequest = HELLO) -> list[ChatEvent]:
    async with aclosing(client.stream(request)) as stream:
        return [event async for event in stream]


async def answer_to(*answers: Wire) -> list[ChatEvent]:
    """The events of the client for an answer in these bytes."""
    async with WireServer(*answers) as server, client_of(server.base_url) as client:
        return await answer_of(client)


def text_of(answer: list[ChatEvent]) -> str:
    return "".join(event.text for event in answer if isinstance(event, TextDelta))


def end_of(answer: list[ChatEvent]) -> Finished:
    end = answer[-1]
    assert isinstance(end, Finished)
    return end


async def fault_of(client: ModelClient) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        await answer_of(client)
    return caught.value

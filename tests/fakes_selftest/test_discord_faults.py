"""Faults on order: what discord.py makes of them, and what is left behind."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import discord
import pytest

from tests.fakes import LoopbackDiscord
from tests.fakes_selftest.conftest import ListeningClient

MESSAGES = r"/channels/\d+/messages$"


async def test_a_429_is_tried_again_after_its_time(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.fault("POST", MESSAGES, status=429, retry_after=0.1)
    began = time.monotonic()
    await client.channel(server.general.id).send("patience")
    assert time.monotonic() - began >= 0.1
    assert [call.status for call in server.calls_to("POST", MESSAGES)] == [429, 200]
    assert len(server.bot_messages(server.general)) == 1


async def test_a_429_of_cloudflare_is_an_error(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.fault("POST", MESSAGES, status=429, cloudflare=True)
    with pytest.raises(discord.HTTPException, match="429"):
        await client.channel(server.general.id).send("banned")
    assert server.rate_limited


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_an_error_has_no_effect(
    server: LoopbackDiscord, client: ListeningClient, status: int
) -> None:
    fault = server.fault("POST", MESSAGES, status=status, code=50001, message="no")
    with pytest.raises(discord.HTTPException) as refused:
        await client.channel(server.general.id).send("hello")
    assert refused.value.status == status
    assert server.bot_messages(server.general) == []
    assert fault.hits == 1


async def test_a_500_is_tried_again(server: LoopbackDiscord, client: ListeningClient) -> None:
    """discord.py waits a second before it does."""
    server.fault("POST", MESSAGES, status=500)
    await client.channel(server.general.id).send("again")
    assert [call.status for call in server.calls_to("POST", MESSAGES)] == [500, 200]


async def test_a_connection_reset_before_the_effect_leaves_nothing(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.fault("POST", MESSAGES, drop="before")
    with pytest.raises((aiohttp.ClientError, OSError)):
        await client.channel(server.general.id).send("lost")
    assert server.bot_messages(server.general) == []


async def test_a_connection_reset_after_the_effect_leaves_a_message_that_the_nonce_finds(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.fault("POST", MESSAGES, drop="after")
    channel = client.channel(server.general.id)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await channel.send("once", nonce="turn-1")
    again = await channel.send("once", nonce="turn-1")
    assert [one.id for one in server.bot_messages(server.general)] == [again.id]


async def test_an_answer_can_be_late(server: LoopbackDiscord, client: ListeningClient) -> None:
    server.fault("POST", MESSAGES, delay=0.1)
    sending = asyncio.create_task(client.channel(server.general.id).send("late"))
    await server.wait_for(lambda: server.calls_to("POST", MESSAGES))
    assert server.bot_messages(server.general) == []
    await sending
    assert len(server.bot_messages(server.general)) == 1


async def test_a_fault_happens_as_often_as_it_was_ordered(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.fault("*", r"/channels/", status=403, times=2)
    channel = client.channel(server.general.id)
    for _ in range(2):
        with pytest.raises(discord.Forbidden):
            await channel.send("no")
    await channel.send("yes")


async def test_five_edits_in_five_seconds_then_429(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    """discord.py reads the headers and waits; a client that does not is told to."""
    message = await client.channel(server.general.id).send("0")
    route = f"{server.api_url}/channels/{server.general.id}/messages/{message.id}"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {server.token}"}) as http:
        for number in range(1, 6):
            async with http.patch(route, json={"content": str(number)}) as answer:
                assert answer.status == 200
                assert answer.headers["X-RateLimit-Remaining"] == str(5 - number)
        async with http.patch(route, json={"content": "6"}) as answer:
            assert answer.status == 429
            assert "Via" in answer.headers
            assert 0 < (await answer.json())["retry_after"] <= 5
    assert server.bot_messages(server.general)[0].content == "5"
    assert len(server.rate_limited) == 1


async def test_limits_can_be_added(server: LoopbackDiscord, client: ListeningClient) -> None:
    server.limit("POST", MESSAGES, limit=2, window=0.2)
    other = server.channel("other")
    began = time.monotonic()
    for _ in range(3):
        await client.channel(server.general.id).send("quick")
    assert time.monotonic() - began >= 0.2
    await server.wait_for(lambda: client.get_channel(other.id))
    await client.channel(other.id).send("counted apart")
    assert server.rate_limited == []


async def test_calls_are_given_one_after_the_other(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    await channel.send("first")
    await channel.send("second")
    texts = [(await server.next_call("POST", MESSAGES)).body["content"] for _ in range(2)]
    assert texts == ["first", "second"]
    with pytest.raises(TimeoutError, match=r"POST .*messages"):
        await server.next_call("POST", MESSAGES, timeout=0.05)


async def test_waiting_in_vain_says_what_was_seen(server: LoopbackDiscord) -> None:
    with pytest.raises(TimeoutError, match="for a reply with 'hello'; the last calls: none"):
        await server.wait_for_reply(server.general, containing="hello", timeout=0.05)


async def test_what_is_not_served_is_said(server: LoopbackDiscord, client: ListeningClient) -> None:
    with pytest.raises(discord.NotFound, match="is not served here"):
        await client.http.request(discord.http.Route("GET", "/stage-instances/1"))

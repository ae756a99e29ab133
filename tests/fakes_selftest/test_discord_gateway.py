"""The gateway: who may connect, what is dispatched to whom, and what happens when it fails."""

from __future__ import annotations

import aiohttp
import discord
import pytest

from tests.fakes import Intent, LoopbackDiscord, Permission
from tests.fakes_selftest.conftest import Connect, ListeningClient, running, usual_intents


async def test_the_client_learns_the_whole_guild(server: LoopbackDiscord, connect: Connect) -> None:
    hidden = server.channel("hidden")
    server.hide(hidden)
    second = server.guild("second")
    server.guild("elsewhere", with_bot=False)
    client = await connect()

    assert {guild.id for guild in client.guilds} == {server.home.id, second.id}
    home = client.get_guild(server.home.id)
    assert {channel.id for channel in home.channels} == {server.general.id, hidden.id}
    assert home.owner_id == server.owner.id


async def test_members_are_not_listed_without_their_intent(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    home = client.get_guild(server.home.id)
    assert list(home.members) == [home.me]
    assert home.member_count == 3


async def test_members_are_listed_with_their_intent(
    server: LoopbackDiscord, connect: Connect
) -> None:
    server.gateway.privileged_intents |= Intent.GUILD_MEMBERS
    intents = usual_intents()
    intents.members = True
    client = await connect(intents)
    await server.wait_for(lambda: len(client.get_guild(server.home.id).members) == 3)

    bob = server.member("bob", nick="Bobby")
    await server.wait_for(lambda: client.get_guild(server.home.id).get_member(bob.id))
    assert client.get_guild(server.home.id).get_member(bob.id).display_name == "Bobby"


async def test_a_privileged_intent_that_was_not_given_closes_with_4014(
    server: LoopbackDiscord, connect: Connect
) -> None:
    intents = usual_intents()
    intents.members = True
    with pytest.raises(discord.PrivilegedIntentsRequired):
        await connect(intents)


async def test_a_bad_token_is_refused_by_rest(server: LoopbackDiscord) -> None:
    client = ListeningClient(usual_intents())
    with pytest.raises(discord.LoginFailure):
        await client.start("wrong")
    await client.close()


async def test_a_bad_token_closes_the_gateway_with_4004(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    client.http.token = "revoked"
    with pytest.raises(discord.ConnectionClosed) as closed:
        await client.connect(reconnect=False)
    assert closed.value.code == 4004


async def test_an_unreadable_channel_is_silent(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    closed = server.channel("closed")
    server.hide(closed, server.alice)
    await server.say(server.alice, closed, "a secret")
    await server.say(server.alice, server.general, "for all")

    await server.wait_for(lambda: client.heard)
    assert [message.content for message in client.heard] == ["for all"]


async def test_messages_need_their_intents(server: LoopbackDiscord, connect: Connect) -> None:
    intents = usual_intents()
    intents.dm_messages = False
    client = await connect(intents)
    await server.say(server.alice, server.direct(server.alice), "unheard")
    await server.say(server.alice, server.general, "heard")

    await server.wait_for(lambda: client.heard)
    assert [message.content for message in client.heard] == ["heard"]


async def test_changes_of_the_world_reach_a_connected_client(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    home = client.get_guild(server.home.id)
    role = server.role("quiet", Permission.VIEW_CHANNEL)
    channel = server.channel("new")
    server.overwrite(channel, role, deny=Permission.SEND_MESSAGES)
    await server.wait_for(
        lambda: home.get_channel(channel.id) and home.get_channel(channel.id).overwrites
    )
    assert home.get_channel(channel.id).overwrites_for(home.get_role(role.id)).pair() == (
        discord.Permissions.none(),
        discord.Permissions(send_messages=True),
    )
    server.delete_channel(channel)
    server.delete_role(role)
    await server.wait_for(lambda: home.get_role(role.id) is None)
    assert home.get_channel(channel.id) is None


async def test_the_bot_joins_and_leaves_guilds(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    second = server.guild("second")
    await server.wait_for(lambda: client.get_guild(second.id))
    server.remove_bot(second)
    await server.wait_for(lambda: client.get_guild(second.id) is None)


async def test_what_was_missed_during_a_drop_is_replayed_once(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await server.gateway.drop()
    await server.say(server.alice, server.general, "missed")
    await server.wait_for(lambda: server.gateway.resumes == 1)
    await server.say(server.alice, server.general, "afterwards")

    await server.wait_for(lambda: len(client.heard) >= 2)
    assert [message.content for message in client.heard] == ["missed", "afterwards"]
    assert server.gateway.identifies == 1


@pytest.mark.parametrize("fault", ["abort", "op7"])
async def test_a_lost_connection_is_resumed(
    server: LoopbackDiscord, client: ListeningClient, fault: str
) -> None:
    getattr(server.gateway, fault)()
    await server.wait_for(lambda: server.gateway.resumes == 1)
    await server.say(server.alice, server.general, "still there?")
    await server.wait_for(lambda: client.heard)
    assert server.gateway.identifies == 1


async def test_a_resumable_op9_is_resumed(server: LoopbackDiscord, client: ListeningClient) -> None:
    server.gateway.op9(resumable=True)
    await server.wait_for(lambda: server.gateway.resumes == 1)


async def test_after_a_final_op9_the_client_identifies_anew_and_what_it_missed_is_lost(
    server: LoopbackDiscord, client: ListeningClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(*_: object, **__: object) -> None:
        """discord.py waits 5 s before it identifies again."""

    monkeypatch.setattr(client, "before_identify_hook", at_once)
    server.gateway.op9(resumable=False)
    await server.say(server.alice, server.general, "lost")
    await server.wait_for(lambda: server.gateway.identifies == 2, timeout=10)
    await server.say(server.alice, server.general, "found")

    await server.wait_for(lambda: client.heard)
    assert [message.content for message in client.heard] == ["found"]


async def test_heartbeats_are_answered() -> None:
    async with LoopbackDiscord(heartbeat_ms=50) as server:
        with server.patched(ready_timeout=0.01):
            async with running(discord.Client(intents=usual_intents()), server) as client:
                await server.wait_for(lambda: server.gateway.heartbeats >= 3)
                assert client.latency < 1
                assert server.gateway.resumes == 0


async def test_a_client_resumes_when_its_heartbeats_are_not_answered() -> None:
    async with LoopbackDiscord(heartbeat_ms=50) as server:
        server.gateway.acknowledges_heartbeats = False
        with server.patched(ready_timeout=0.01):
            client = discord.Client(intents=usual_intents(), heartbeat_timeout=0.2)
            async with running(client, server):
                await server.wait_for(lambda: server.gateway.resumes == 1)


async def test_a_shard_is_told_of_its_own_guilds_only(server: LoopbackDiscord) -> None:
    guilds = [server.home, *(server.guild(f"guild {n}") for n in range(20))]
    client = discord.Client(intents=usual_intents(), shard_id=1, shard_count=2)
    async with running(client, server):
        told = {guild.id for guild in client.guilds}
    assert told == {guild.id for guild in guilds if (guild.id >> 22) % 2 == 1}


async def test_permissions_that_change_reach_the_client(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    home = client.get_guild(server.home.id)
    channel = client.channel(server.general.id)
    server.hide(server.general, server.bot_role())
    await server.wait_for(lambda: channel.overwrites_for(home.default_role).view_channel is False)
    assert channel.permissions_for(home.me).view_channel

    server.remove_overwrite(server.general, server.home)
    server.change_role(server.home.everyone, Permission.VIEW_CHANNEL)
    await server.wait_for(lambda: home.default_role.permissions.value == Permission.VIEW_CHANNEL)
    assert channel.overwrites_for(home.default_role).is_empty()


async def test_people_are_seen_typing(server: LoopbackDiscord, connect: Connect) -> None:
    intents = usual_intents()
    intents.typing = True
    client = await connect(intents)
    await server.type_in(server.alice, server.general)
    await server.wait_for(lambda: "raw_typing" in client.events)


async def test_a_crash_of_the_server_itself_is_raised_at_its_end() -> None:
    async def ask_for_nonsense() -> None:
        async with LoopbackDiscord() as server:
            headers = {"Authorization": f"Bot {server.token}"}
            url = f"{server.api_url}/channels/{server.general.id}/messages?limit=many"
            async with aiohttp.request("GET", url, headers=headers) as answer:
                assert answer.status == 500

    with pytest.raises(ValueError, match="many"):
        await ask_for_nonsense()


async def test_any_event_can_be_emitted(server: LoopbackDiscord, client: ListeningClient) -> None:
    data = {"guild_id": str(server.home.id), "channel_id": str(server.general.id)}
    server.emit("WEBHOOKS_UPDATE", data, duplicate=2)
    await server.wait_for(lambda: client.events.count("webhooks_update") == 2)

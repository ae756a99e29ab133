"""Webhooks: how the bot speaks under other names."""

from __future__ import annotations

import discord
import pytest

from tests.fakes import LoopbackDiscord, NotPossible, Permission
from tests.fakes_selftest.conftest import ListeningClient


async def test_a_persona_speaks_edits_and_deletes(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    sent = await webhook.send(
        "good evening", username="Vera", avatar_url="http://127.0.0.1/v.png", wait=True
    )
    message = server.bot_messages(server.general)[0]
    assert (message.author.name, message.webhook_id) == ("Vera", webhook.id)
    assert message.author_avatar == "http://127.0.0.1/v.png"

    await sent.edit(content="good night")
    assert message.content == "good night"
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].author.display_name == "Vera"
    assert client.heard[0].application_id == client.application_id

    await sent.delete()
    assert message.deleted


async def test_a_reply_to_a_persona_mentions_nobody(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    await webhook.send("hello", username="Vera")
    original = server.bot_messages(server.general)[0]
    await server.say(server.alice, server.general, "hi Vera", reply_to=original)

    await server.wait_for(lambda: len(client.heard) == 2)
    assert client.heard[1].mentions == []
    assert client.heard[1].reference.resolved.webhook_id == webhook.id


async def test_webhooks_speak_in_threads_of_their_channel(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    thread = server.thread(server.general, "inside")
    other = server.thread(server.channel("other"), "outside")
    await webhook.send("here", thread=discord.Object(thread.id))
    assert server.bot_messages(thread)[0].content == "here"
    with pytest.raises(discord.NotFound, match="10003"):
        await webhook.send("there", thread=discord.Object(other.id))


async def test_webhooks_need_a_permission(server: LoopbackDiscord, client: ListeningClient) -> None:
    server.overwrite(server.general, server.bot, deny=Permission.MANAGE_WEBHOOKS)
    channel = client.channel(server.general.id)
    with pytest.raises(discord.Forbidden, match="50013"):
        await channel.create_webhook(name="personas")
    with pytest.raises(discord.Forbidden, match="50013"):
        await channel.webhooks()


async def test_webhooks_are_listed_and_those_of_others_keep_their_token(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    mine = await channel.create_webhook(name="personas")
    foreign = server.webhook(server.general, "weather")
    listed = {one.id: one for one in await channel.webhooks()}
    assert listed[mine.id].token == mine.token
    assert listed[foreign.id].token is None
    assert {one.id for one in await channel.guild.webhooks()} == set(listed)


async def test_another_program_speaks_through_its_own(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await server.say_through(server.webhook(server.general, "weather"), "it rains")
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].author.bot
    assert client.heard[0].webhook_id is not None
    assert server.bot_messages(server.general) == []


@pytest.mark.parametrize(
    "name", ["Clyde", "My Discord friend", "everyone", "x" * 81], ids=lambda name: name[:12]
)
async def test_names_may_not_pass_for_discord_itself(
    server: LoopbackDiscord, client: ListeningClient, name: str
) -> None:
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    with pytest.raises(discord.HTTPException, match="50035"):
        await webhook.send("hello", username=name)


async def test_a_channel_has_at_most_fifteen(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    for number in range(14):
        server.webhook(server.general, f"hook {number}")
    await client.channel(server.general.id).create_webhook(name="the fifteenth")
    with pytest.raises(discord.HTTPException, match="30007"):
        await client.channel(server.general.id).create_webhook(name="the sixteenth")


async def test_a_deleted_webhook_is_unknown(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    server.delete_webhook(server.webhooks[webhook.id])
    with pytest.raises(discord.NotFound, match="10015"):
        await webhook.send("is anybody there?")


async def test_buttons_of_a_persona_can_be_pressed(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Undo", custom_id="undo"))
    webhook = await client.channel(server.general.id).create_webhook(name="personas")
    await webhook.send("noted", view=view, wait=True)
    clicked = await server.click(server.alice, server.bot_messages(server.general)[0], "Undo")
    await server.wait_for(lambda: "interaction" in client.events)
    assert not clicked.acknowledged
    with pytest.raises(NotPossible):
        await server.click(server.alice, server.bot_messages(server.general)[0], "Redo")

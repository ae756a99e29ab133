"""Messages on the loopback Discord: sending, reading, refusing."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import discord
import pytest

from tests.fakes import LoopbackDiscord, MessageFlag, MessageKind, Permission
from tests.fakes_selftest.conftest import Connect, ListeningClient


async def test_a_client_hears_a_mention_and_replies_to_it(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    question = await server.say(server.alice, server.general, "hello", mention_bot=True)
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].content == f"{server.bot.mention} hello"
    assert client.user in client.heard[0].mentions

    await client.heard[0].reply("good day")

    reply = await server.wait_for_reply(server.general, after=question)
    assert reply.content == "good day"
    assert reply.reference is not None
    assert reply.reference.message is question
    assert reply.pings.user_ids == {server.alice.id}


async def test_a_reply_of_a_person_mentions_the_author_unless_it_is_silent(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    first = await client.channel(server.general.id).send("first")
    original = server.general.messages[first.id]
    await server.say(server.alice, server.general, "loud", reply_to=original)
    await server.say(server.alice, server.general, "silent", reply_to=original, ping=False)

    _, loud, silent = await server.wait_for(lambda: client.heard[2:] and client.heard)
    assert loud.mentions == [client.user]
    assert silent.mentions == []
    assert silent.reference.resolved.content == "first"


async def test_direct_messages_have_one_channel_for_a_person(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    room = server.direct(server.alice)
    await server.say(server.alice, room, "psst")
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].guild is None

    await client.heard[0].channel.send("yes?")

    assert [one.content for one in server.visible_to(server.alice, room)] == ["psst", "yes?"]
    assert server.visible_to(server.owner, room) == []


async def test_the_bot_cannot_write_to_somebody_who_closed_direct_messages(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.alice.accepts_direct_messages = False
    user = await client.fetch_user(server.alice.id)
    with pytest.raises(discord.Forbidden, match="50007"):
        await user.send("hello")


async def test_edits_and_deletions_reach_the_client(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    first, second, third = [
        await server.say(server.alice, server.general, text) for text in ("one", "two", "three")
    ]
    await server.edit(first, "one, better")
    await server.delete(first)
    await server.bulk_delete([second, third])

    await server.wait_for(lambda: "raw_bulk_message_delete" in client.events)
    assert "raw_message_edit" in client.events
    assert "raw_message_delete" in client.events
    assert first.revisions == ["one", "one, better"]
    assert server.general.history == []


async def test_an_event_can_be_sent_twice(server: LoopbackDiscord, client: ListeningClient) -> None:
    await server.say(server.alice, server.general, "again", duplicate=2)
    await server.wait_for(lambda: len(client.heard) == 2)
    assert client.heard[0].id == client.heard[1].id


@pytest.mark.parametrize(("length", "accepted"), [(2000, True), (2001, False)])
async def test_content_holds_two_thousand_characters(
    server: LoopbackDiscord, client: ListeningClient, length: int, *, accepted: bool
) -> None:
    channel = client.channel(server.general.id)
    if accepted:
        await channel.send("x" * length)
        return
    with pytest.raises(discord.HTTPException, match="50035") as refused:
        await channel.send("x" * length)
    assert "2000 or fewer" in str(refused.value)


async def test_an_empty_message_is_refused(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    with pytest.raises(discord.HTTPException, match="50006"):
        await channel.send("")
    message = await channel.send("full")
    with pytest.raises(discord.HTTPException, match="50006"):
        await message.edit(content="")


@pytest.mark.parametrize(
    "embed",
    [
        discord.Embed(title="t" * 257),
        discord.Embed(description="d" * 4097),
        discord.Embed().add_field(name="n", value="v" * 1025),
        discord.Embed().set_footer(text="f" * 2049),
    ],
    ids=["title", "description", "field", "footer"],
)
async def test_embeds_have_limits(
    server: LoopbackDiscord, client: ListeningClient, embed: discord.Embed
) -> None:
    with pytest.raises(discord.HTTPException, match="50035"):
        await client.channel(server.general.id).send(embed=embed)


@pytest.mark.parametrize(("total", "accepted"), [(6000, True), (6001, False)])
async def test_all_embeds_together_hold_six_thousand_characters(
    server: LoopbackDiscord, client: ListeningClient, total: int, *, accepted: bool
) -> None:
    embeds = [
        discord.Embed(description="d" * 3000),
        discord.Embed(description="d" * (total - 3000)),
    ]
    channel = client.channel(server.general.id)
    if accepted:
        await channel.send(embeds=embeds)
        return
    with pytest.raises(discord.HTTPException, match="6000"):
        await channel.send(embeds=embeds)


async def test_a_repeated_nonce_returns_the_first_message(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    first = await channel.send("once", nonce="turn-1")
    again = await channel.send("twice", nonce="turn-1")
    other = await channel.send("thrice", nonce="turn-2")

    assert again.id == first.id
    assert [one.id for one in server.bot_messages(server.general)] == [first.id, other.id]


async def test_a_nonce_has_at_most_25_characters(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    await channel.send("fits", nonce="n" * 25)
    with pytest.raises(discord.HTTPException, match="50035"):
        await channel.send("does not", nonce="n" * 26)


async def test_history_gives_the_messages_nearest_to_the_id(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    said = [await server.say(server.alice, server.general, str(n)) for n in range(10)]
    channel = client.channel(server.general.id)

    async def texts(**query: object) -> list[str]:
        return [message.content async for message in channel.history(**query)]

    middle = discord.Object(said[5].id)
    assert await texts(limit=3) == ["9", "8", "7"]
    assert await texts(limit=3, before=middle) == ["4", "3", "2"]
    assert await texts(limit=3, after=middle) == ["6", "7", "8"]
    assert sorted(await texts(limit=4, around=middle)) == ["3", "4", "5", "6"]


async def test_messages_can_be_older_than_the_test(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=3)
    await server.say(server.alice, server.general, "now")
    old = await server.say(server.alice, server.general, "then", at=long_ago)

    assert abs((old.created_at - long_ago).total_seconds()) < 1
    channel = client.channel(server.general.id)
    assert [one.content async for one in channel.history()] == ["now", "then"]


async def test_files_go_up_and_come_down(server: LoopbackDiscord, client: ListeningClient) -> None:
    await client.channel(server.general.id).send(file=discord.File(io.BytesIO(b"up"), "up.txt"))
    assert server.bot_messages(server.general)[0].attachments[0].content == b"up"

    await server.say(server.alice, server.general, files={"down.png": b"down"})
    await server.wait_for(lambda: len(client.heard) == 2)
    attachment = client.heard[1].attachments[0]
    assert (attachment.filename, attachment.content_type) == ("down.png", "image/png")
    assert await attachment.read() == b"down"


async def test_a_file_above_ten_mebibytes_is_refused(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    large = discord.File(io.BytesIO(b"x" * (10 * 1024 * 1024 + 1)), "large.bin")
    with pytest.raises(discord.HTTPException, match="40005"):
        await client.channel(server.general.id).send(file=large)


async def test_reactions_are_kept_and_announced(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "nice?")
    await server.wait_for(lambda: client.heard)
    await client.heard[0].add_reaction("👍")
    await server.react(server.alice, message, "👍")
    assert message.reactions == {"👍": [server.bot.id, server.alice.id]}

    await client.heard[0].remove_reaction("👍", client.user)
    await server.unreact(server.alice, message, "👍")
    assert message.reactions == {}
    await server.wait_for(lambda: client.events.count("raw_reaction_remove") == 2)
    assert client.events.count("raw_reaction_add") == 2


async def test_typing_is_seen(server: LoopbackDiscord, client: ListeningClient) -> None:
    async with client.channel(server.general.id).typing():
        pass
    assert server.bot_typed_in == [server.general]


@pytest.mark.parametrize(
    ("allowed", "pinged"),
    [
        (None, True),
        (discord.AllowedMentions.all(), True),
        (discord.AllowedMentions.none(), False),
    ],
    ids=["unset", "all", "none"],
)
async def test_allowed_mentions_decide_who_is_notified(
    server: LoopbackDiscord,
    client: ListeningClient,
    allowed: discord.AllowedMentions | None,
    *,
    pinged: bool,
) -> None:
    role = server.role("helpers", mentionable=True)
    server.allow_bot(server.bot_permissions | Permission.MENTION_EVERYONE)
    text = f"@everyone {server.alice.mention} {role.mention}"
    await client.channel(server.general.id).send(text, allowed_mentions=allowed)

    message = server.bot_messages(server.general)[0]
    assert bool(message.pings) == pinged
    assert message.pings.everyone == pinged
    assert message.pings.user_ids == ({server.alice.id} if pinged else set())
    assert message.pings.role_ids == ({role.id} if pinged else set())


async def test_everyone_needs_a_permission(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await client.channel(server.general.id).send("@everyone")
    assert not server.bot_messages(server.general)[0].pings


async def test_the_bot_changes_only_its_own_messages(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "mine")
    handle = client.channel(server.general.id).get_partial_message(message.id)
    with pytest.raises(discord.Forbidden, match="50005"):
        await handle.edit(content="yours")
    with pytest.raises(discord.Forbidden, match="50013"):
        await handle.delete()

    server.allow_bot(server.bot_permissions | Permission.MANAGE_MESSAGES)
    await handle.delete()
    assert message.deleted


async def test_a_reply_to_a_deleted_message_is_refused_unless_it_may_fail(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "gone soon")
    await server.wait_for(lambda: client.heard)
    await server.delete(message)
    with pytest.raises(discord.HTTPException, match="Unknown message"):
        await client.heard[0].reply("where are you?")
    reference = client.heard[0].to_reference(fail_if_not_exists=False)
    await client.channel(server.general.id).send("well then", reference=reference)


async def test_system_messages_and_flags_can_be_said(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await server.say(server.alice, server.general, kind=MessageKind.PIN_ADDED)
    await server.say(server.alice, server.general, "hush", flags=MessageFlag.SUPPRESS_NOTIFICATIONS)
    pin, quiet = await server.wait_for(lambda: client.heard[1:] and client.heard)
    assert pin.is_system()
    assert quiet.flags.silent


async def test_without_the_content_intent_only_what_concerns_the_bot_is_readable(
    server: LoopbackDiscord, connect: Connect
) -> None:
    intents = discord.Intents.none()
    intents.guilds = intents.messages = True
    client = await connect(intents)
    mine = await client.channel(server.general.id).send("mine")
    own = server.general.messages[mine.id]
    await server.say(server.alice, server.general, "for all", files={"a.txt": b"a"})
    await server.say(server.alice, server.general, "for the bot", mention_bot=True)
    await server.say(server.alice, server.general, "an answer", reply_to=own)
    await server.say(server.alice, server.direct(server.alice), "in private")

    heard = await server.wait_for(lambda: client.heard[4:] and client.heard)
    assert [message.content for message in heard] == [
        "mine",
        "",
        f"{server.bot.mention} for the bot",
        "an answer",
        "in private",
    ]
    assert heard[1].attachments == []

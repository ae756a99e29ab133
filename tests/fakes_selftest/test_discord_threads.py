"""Threads, forums, announcement channels, and the people in a guild."""

from __future__ import annotations

import discord
import pytest

from tests.fakes import ChannelKind, LoopbackDiscord, NotPossible, Permission
from tests.fakes_selftest.conftest import Connect, ListeningClient


async def test_a_public_thread_is_heard_and_answered(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    thread = server.thread(server.general, "tea")
    await server.say(server.alice, thread, "green or black?")
    await server.wait_for(lambda: client.heard)
    assert isinstance(client.heard[0].channel, discord.Thread)
    assert client.heard[0].channel.parent_id == server.general.id

    await client.heard[0].channel.send("green")
    assert server.bot_messages(thread)[0].content == "green"


async def test_a_private_thread_is_heard_by_its_members_only(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    without_bot = server.thread(server.general, "among us", private=True)
    with_bot = server.thread(server.general, "with you", private=True, members=[server.bot])
    await server.say(server.alice, without_bot, "unheard")
    await server.say(server.alice, with_bot, "heard")

    await server.wait_for(lambda: client.heard)
    assert [message.content for message in client.heard] == ["heard"]
    assert server.visible_to(server.owner, without_bot) != []
    bob = server.member("bob")
    assert server.visible_to(bob, without_bot) == []


async def test_threads_that_exist_are_known_after_connecting(
    server: LoopbackDiscord, connect: Connect
) -> None:
    known = server.thread(server.general, "known")
    server.thread(server.general, "private", private=True)
    client = await connect()
    assert [thread.id for thread in client.get_guild(server.home.id).threads] == [known.id]


async def test_a_thread_from_a_message_has_its_id(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "more about this?")
    await server.wait_for(lambda: client.heard)
    thread = await client.heard[0].create_thread(name="this")
    assert thread.id == message.id
    assert server.channels[thread.id].name == "this"
    with pytest.raises(discord.HTTPException, match="160004"):
        await client.heard[0].create_thread(name="this again")


async def test_a_person_can_open_a_thread_from_a_message(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "a topic")
    thread = await server.start_thread(server.alice, message, "topic")
    await server.wait_for(lambda: client.get_channel(thread.id))
    assert thread.id == message.id


async def test_opening_a_thread_needs_a_permission(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    server.overwrite(server.general, server.bot, deny=Permission.CREATE_PUBLIC_THREADS)
    with pytest.raises(discord.Forbidden, match="50013"):
        await client.channel(server.general.id).create_thread(
            name="no", type=discord.ChannelType.public_thread
        )


async def test_a_forum_post_begins_with_a_message_of_its_own_id(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    forum = server.channel("questions", kind=ChannelKind.FORUM)
    post = await server.forum_post(server.alice, forum, "why?", "tell me", mention_bot=True)
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].id == post.id
    assert client.heard[0].channel.parent_id == forum.id
    assert post.messages[post.id].content.endswith("tell me")


async def test_the_bot_can_open_a_forum_post(server: LoopbackDiscord, connect: Connect) -> None:
    forum = server.channel("questions", kind=ChannelKind.FORUM)
    client = await connect()
    created = await client.get_channel(forum.id).create_thread(name="mine", content="first")
    assert server.bot_messages(server.channels[created.thread.id])[0].content == "first"


async def test_nobody_writes_in_a_forum_itself(server: LoopbackDiscord) -> None:
    forum = server.channel("questions", kind=ChannelKind.FORUM)
    with pytest.raises(NotPossible):
        await server.say(server.alice, forum, "not in a post")


async def test_an_announcement_channel_has_threads_of_its_kind(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    news = server.channel("news", kind=ChannelKind.ANNOUNCEMENT)
    thread = server.thread(news, "about the news")
    await server.say(server.alice, thread, "oh!")
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].channel.type is discord.ChannelType.news_thread


async def test_writing_opens_an_archived_thread_but_not_a_locked_one(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    thread, locked = server.thread(server.general, "old"), server.thread(server.general, "over")
    message = await server.say(server.alice, thread, "once")
    await server.wait_for(lambda: client.heard)
    server.archive(thread)
    server.archive(locked, locked=True)

    await client.heard[0].channel.send("again")
    assert thread.thread.archived is False
    assert message in thread.history
    with pytest.raises(discord.Forbidden, match="50013"):
        await client.get_partial_messageable(locked.id).send("too late")


async def test_editing_in_an_archived_thread_is_refused(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    thread = server.thread(server.general, "old")
    await server.wait_for(lambda: client.get_channel(thread.id))
    message = await client.get_channel(thread.id).send("mine")
    server.archive(thread)
    with pytest.raises(discord.HTTPException, match="50083"):
        await message.edit(content="late")


async def test_the_bot_joins_and_leaves_threads(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    thread = server.thread(server.general, "open")
    await server.wait_for(lambda: client.get_channel(thread.id))
    handle = client.get_channel(thread.id)
    await handle.join()
    assert server.bot.id in thread.thread.member_ids
    await handle.leave()
    assert server.bot.id not in thread.thread.member_ids


async def test_a_mention_calls_the_bot_into_a_private_thread(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    thread = server.thread(server.general, "among us", private=True)
    await server.say(server.alice, thread, "not yet")
    await server.say(server.alice, thread, "come in", mention_bot=True)
    await server.wait_for(lambda: client.heard)
    assert [message.content for message in client.heard] == [f"{server.bot.mention} come in"]
    assert client.get_channel(thread.id).me is not None


async def test_a_deleted_channel_takes_its_threads_along(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    room = server.channel("room")
    thread = server.thread(room, "inside")
    message = await server.say(server.alice, thread, "hello")
    server.delete_channel(room)
    await server.wait_for(lambda: "guild_channel_delete" in client.events)
    assert thread.id not in server.channels
    assert message.deleted


async def test_people_change(server: LoopbackDiscord, client: ListeningClient) -> None:
    second = server.guild("second")
    server.member(server.alice, guild=second, nick="Al")
    server.rename(server.alice, "Ally")
    await server.wait_for(lambda: client.get_guild(second.id))
    there = await client.get_guild(second.id).fetch_member(server.alice.id)
    here = await client.get_guild(server.home.id).fetch_member(server.alice.id)
    assert (there.display_name, here.display_name) == ("Al", "Ally")

    server.leave(server.alice, second)
    with pytest.raises(discord.NotFound):
        await client.get_guild(second.id).fetch_member(server.alice.id)


async def test_ids_increase_strictly(server: LoopbackDiscord) -> None:
    ids = [server.snowflakes.next() for _ in range(5000)]
    assert ids == sorted(set(ids))

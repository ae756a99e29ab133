from __future__ import annotations

import pytest

from bot.audience import OriginKind, Place
from bot.discord_io.audience import place_of
from bot.discord_io.intake import DiscordHistory
from bot.errors import Unavailable
from bot.identifiers import ChannelId, GuildId
from tests.discord_io.room import Listener
from tests.fakes import Channel, ChannelKind, LoopbackDiscord, Permission

HISTORY = r"/channels/\d+/messages$"


class Past:
    """What the history gives of a channel."""

    def __init__(self, server: LoopbackDiscord, client: Listener) -> None:
        self.server = server
        self.client = client
        self.history = DiscordHistory(client, default_locale="en-US")

    async def texts(self, channel: Channel, limit: int = 12) -> list[str]:
        await self.server.wait_for(lambda: self.client.get_channel(channel.id))
        newest = await self.history.newest(self.place(channel), limit)
        return [message.text for message in newest]

    def place(self, channel: Channel) -> Place:
        return place_of(self.client.place(channel))

    async def say(self, channel: Channel, *texts: str) -> None:
        for text in texts:
            await self.server.say(self.server.alice, channel, text)


@pytest.fixture
def past(server: LoopbackDiscord, client: Listener) -> Past:
    return Past(server, client)


async def test_the_newest_messages_come_oldest_first(past: Past) -> None:
    await past.say(past.server.general, "one", "two", "three", "four")
    assert await past.texts(past.server.general, limit=3) == ["two", "three", "four"]


async def test_the_past_takes_one_call(past: Past) -> None:
    await past.say(past.server.general, "one", "two")
    await past.texts(past.server.general)
    assert [call.method for call in past.server.calls_to("GET", "/messages")] == ["GET"]


async def test_our_own_and_other_bots_messages_are_there_too(past: Past) -> None:
    robot = past.server.member("robot", is_bot=True)
    await past.client.place(past.server.general).send("ours")
    await past.server.say(robot, past.server.general, "beep")
    newest = await past.history.newest(past.place(past.server.general), 12)
    assert [(one.text, one.is_own, one.author.is_bot) for one in newest] == [
        ("ours", True, True),
        ("beep", False, True),
    ]


async def test_a_thread_begins_with_the_message_it_was_opened_from(past: Past) -> None:
    question = await past.server.say(past.server.alice, past.server.general, "Who cooks?")
    thread = await past.server.start_thread(past.server.alice, question)
    await past.say(thread, "Me.", "And me.")
    assert await past.texts(thread, limit=2) == ["Who cooks?", "Me.", "And me."]
    newest = await past.history.newest(past.place(thread), 12)
    assert {message.place.channel_id for message in newest} == {thread.id}
    assert {message.place.kind for message in newest} == {OriginKind.THREAD}


async def test_the_beginning_of_a_thread_is_fetched_where_it_is_not_in_the_cache(
    past: Past,
) -> None:
    question = await past.server.say(past.server.alice, past.server.general, "Who cooks?")
    thread = await past.server.start_thread(past.server.alice, question)
    await past.say(thread, "Me.")
    await past.server.wait_for(lambda: past.client.get_channel(thread.id))
    past.client._connection._messages.clear()  # type: ignore[union-attr]
    assert await past.texts(thread) == ["Who cooks?", "Me."]


async def test_a_thread_that_was_opened_from_nothing_begins_with_its_first_message(
    past: Past,
) -> None:
    thread = past.server.thread(past.server.general, "talk")
    await past.say(thread, "Hello?")
    assert await past.texts(thread) == ["Hello?"]


async def test_a_forum_post_begins_with_its_text_once(past: Past) -> None:
    forum = past.server.channel("questions", kind=ChannelKind.FORUM)
    await past.server.wait_for(lambda: past.client.get_channel(forum.id))
    post = await past.server.forum_post(past.server.alice, forum, "Soup", "How long?")
    await past.say(post, "An hour.", "Two.")
    assert await past.texts(post) == ["How long?", "An hour.", "Two."]
    assert await past.texts(post, limit=1) == ["How long?", "Two."]


async def test_a_private_thread_has_no_message_it_was_opened_from(past: Past) -> None:
    thread = past.server.thread(
        past.server.general, "secret", private=True, members=[past.server.bot]
    )
    await past.say(thread, "Psst.")
    assert await past.texts(thread) == ["Psst."]
    assert past.server.calls_to("GET", r"/messages/\d+$") == []


async def test_a_direct_message_that_is_not_in_the_cache_is_read(past: Past) -> None:
    direct = past.server.direct(past.server.alice)
    await past.server.say(past.server.alice, direct, "hi")
    past.client._connection._private_channels.clear()
    place = Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=ChannelId(direct.id))
    assert [message.text for message in await past.history.newest(place, 12)] == ["hi"]


async def test_a_channel_that_may_not_be_read_has_no_past(past: Past) -> None:
    await past.say(past.server.general, "one")
    place = past.place(past.server.general)
    past.server.hide(past.server.general)
    assert await past.history.newest(place, 12) == ()


async def test_without_the_right_to_the_past_there_is_none(past: Past) -> None:
    await past.say(past.server.general, "one")
    past.server.overwrite(
        past.server.general, past.server.bot_role(), deny=Permission.READ_MESSAGE_HISTORY
    )
    assert await past.texts(past.server.general) == []


async def test_a_channel_that_is_gone_has_no_past(past: Past) -> None:
    place = Place(
        kind=OriginKind.CHANNEL, guild_id=GuildId(past.server.home.id), channel_id=ChannelId(1)
    )
    assert await past.history.newest(place, 12) == ()


async def test_a_503_is_tried_again(past: Past) -> None:
    await past.say(past.server.general, "one")
    past.server.fault("GET", HISTORY, status=503)
    assert await past.texts(past.server.general) == ["one"]


async def test_a_lost_connection_is_tried_again(past: Past) -> None:
    await past.say(past.server.general, "one")
    past.server.fault("GET", HISTORY, drop="before")
    assert await past.texts(past.server.general) == ["one"]


async def test_where_discord_does_not_answer_the_past_is_unavailable(past: Past) -> None:
    past.server.fault("GET", HISTORY, status=400)
    with pytest.raises(Unavailable):
        await past.texts(past.server.general)

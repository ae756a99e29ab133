from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import discord
import pytest

from bot.audience import OriginKind
from bot.discord_io.intake import SeenMessages, to_incoming
from bot.identifiers import MessageId
from bot.turn.messages import IncomingMessage, Person
from tests.discord_io.room import Listener, heard
from tests.fakes import DEFAULT_BOT, LoopbackDiscord, Message, MessageKind, Permission, User
from tests.fakes.discord import wire
from tests.fakes.discord.events import Event


class Intake:
    """What people write, as the turn takes it."""

    def __init__(self, server: LoopbackDiscord, client: Listener) -> None:
        self.server = server
        self.client = client

    async def take(self, message: Message) -> IncomingMessage:
        return self.as_incoming(await heard(self.server, self.client, message))

    def as_incoming(self, message: discord.Message) -> IncomingMessage:
        return to_incoming(message, us=self.client.us, default_locale="en-US")

    async def say(self, text: str = "", *, by: User | None = None, **more: Any) -> IncomingMessage:
        author = by or self.server.alice
        return await self.take(await self.server.say(author, self.server.general, text, **more))

    async def raw(self, **fields: Any) -> IncomingMessage:
        """A message with fields that the loopback Discord has no word for."""
        message = await self.server.say(self.server.alice, self.server.general, "shown elsewhere")
        payload = wire.message_payload(message, self.server.bot, reads_content=True)
        payload |= {"id": str(message.id + 1), "guild_id": str(self.server.home.id), **fields}
        channel = self.server.general
        self.server.emit("MESSAGE_CREATE", payload, guild=self.server.home, channel=channel)
        found = await self.server.wait_for(lambda: self.client.heard.get(message.id + 1))
        return self.as_incoming(found)


@pytest.fixture
def intake(server: LoopbackDiscord, client: Listener) -> Intake:
    return Intake(server, client)


# --- who, where, when ---------------------------------------------------------------------------


async def test_a_message_says_who_wrote_it_where_and_when(
    intake: Intake, server: LoopbackDiscord
) -> None:
    before = datetime.now(UTC)
    message = await intake.say("Hello.")
    assert message.text == "Hello."
    assert message.author == Person(id=server.alice.id, name="Alice", other_names=("alice",))
    assert (message.place.kind, message.place.channel_id) == (
        OriginKind.CHANNEL,
        server.general.id,
    )
    assert message.sent_at.tzinfo is UTC
    assert abs((message.sent_at - before).total_seconds()) < 5
    assert message.locale == "en-US"
    assert (message.is_own, message.is_system, message.mentions_us) == (False, False, False)
    assert (message.people, message.replies_to) == ((), None)


async def test_a_person_is_called_by_their_name_on_the_server(
    intake: Intake, server: LoopbackDiscord
) -> None:
    server.rename(server.alice, "Al of the North")
    assert (await intake.say("hi")).author.name == "Al of the North"


@pytest.mark.parametrize(
    ("permission", "is_manager"),
    [
        (Permission.MANAGE_GUILD, True),
        (Permission.ADMINISTRATOR, True),
        (Permission.MANAGE_MESSAGES, False),
    ],
)
async def test_a_manager_is_who_may_manage_the_server(
    intake: Intake, server: LoopbackDiscord, permission: Permission, *, is_manager: bool
) -> None:
    server.assign_roles(server.alice, server.role("staff", permission))
    assert (await intake.say("hi")).author.is_manager is is_manager


async def test_the_owner_of_a_server_is_a_manager_there_and_not_in_direct_messages(
    intake: Intake, server: LoopbackDiscord
) -> None:
    assert (await intake.say("hi", by=server.owner)).author.is_manager
    direct = await server.say(server.owner, server.direct(server.owner), "hi")
    assert not (await intake.take(direct)).author.is_manager


async def test_the_locale_is_the_servers_and_the_default_in_direct_messages(
    intake: Intake, server: LoopbackDiscord
) -> None:
    guild = server.guild("lá", locale="pt-BR")
    channel = server.channel("geral", guild=guild)
    message = await intake.take(await server.say(server.owner, channel, "oi"))
    assert message.locale == "pt-BR"
    direct = await server.say(server.owner, server.direct(server.owner), "hi")
    assert (await intake.take(direct)).locale == "en-US"


async def test_another_bot_and_a_webhook_are_bots(intake: Intake, server: LoopbackDiscord) -> None:
    other = server.member("robot", is_bot=True)
    assert (await intake.say("beep", by=other)).author.is_bot
    assert (await intake.raw(webhook_id="4711")).author.is_bot


async def test_our_own_message_is_our_own(
    intake: Intake, server: LoopbackDiscord, client: Listener
) -> None:
    sent = await client.place(server.general).send("It is me.")
    assert intake.as_incoming(sent).is_own


@pytest.mark.parametrize(
    "kind", [MessageKind.PIN_ADDED, MessageKind.MEMBER_JOINED, MessageKind.BOOST]
)
async def test_what_discord_writes_itself_is_a_system_message(
    intake: Intake, kind: MessageKind
) -> None:
    assert (await intake.say("", kind=kind)).is_system


# --- whether we may answer ----------------------------------------------------------------------


async def test_a_message_may_be_answered_where_we_may_write(
    intake: Intake, server: LoopbackDiscord
) -> None:
    direct = await server.say(server.alice, server.direct(server.alice), "hi")
    assert (await intake.say("hi")).may_answer
    assert (await intake.take(direct)).may_answer


@pytest.mark.parametrize(
    ("denied", "in_channel", "in_thread"),
    [
        (Permission.SEND_MESSAGES, False, True),
        (Permission.SEND_MESSAGES_IN_THREADS, True, False),
        (Permission.ADD_REACTIONS, True, True),
    ],
)
async def test_what_we_may_not_write_in_may_not_be_answered(
    intake: Intake,
    server: LoopbackDiscord,
    denied: Permission,
    *,
    in_channel: bool,
    in_thread: bool,
) -> None:
    thread = server.thread(server.general)
    server.overwrite(server.general, server.bot, deny=denied)
    there = await intake.take(await server.say(server.alice, thread, "hi"))
    assert ((await intake.say("hi")).may_answer, there.may_answer) == (in_channel, in_thread)


@pytest.mark.parametrize(
    ("locked", "more", "may_answer"),
    [
        (False, Permission.NONE, True),
        (True, Permission.NONE, False),
        (True, Permission.MANAGE_THREADS, True),
    ],
)
async def test_a_locked_thread_is_for_those_who_manage_threads(
    intake: Intake,
    server: LoopbackDiscord,
    *,
    locked: bool,
    more: Permission,
    may_answer: bool,
) -> None:
    server.allow_bot(DEFAULT_BOT | more)
    thread = server.thread(server.general)
    server.archive(thread, locked=locked)
    message = await intake.take(await server.say(server.alice, thread, "hi"))
    assert message.may_answer == may_answer


async def test_in_a_time_out_nothing_may_be_answered(
    intake: Intake, server: LoopbackDiscord, client: Listener
) -> None:
    guild = client.get_guild(server.home.id)
    assert guild is not None
    for hours, may_answer in ((1, False), (-1, True)):
        until = datetime.now(UTC) + timedelta(hours=hours)
        data = wire.member_payload(server.membership(server.bot))
        data |= {
            "guild_id": str(server.home.id),
            "communication_disabled_until": until.isoformat(),
        }
        bot_id = server.bot.id
        server.publish(
            Event(name="GUILD_MEMBER_UPDATE", data=data, guild=server.home, user_id=bot_id)
        )
        assert (await intake.say("hi")).may_answer is may_answer


async def test_where_our_own_rights_are_not_known_they_are_not_denied(
    intake: Intake, server: LoopbackDiscord, client: Listener
) -> None:
    guild = client.get_guild(server.home.id)
    assert guild is not None
    server.overwrite(server.general, server.bot, deny=Permission.SEND_MESSAGES)
    guild._remove_member(guild.me)
    assert (await intake.say("hi")).may_answer


# --- mentions -----------------------------------------------------------------------------------


async def test_a_mentioned_person_becomes_a_reference(
    intake: Intake, server: LoopbackDiscord
) -> None:
    bob = server.member("bob", nick="Bobby")
    message = await intake.say(f"Ask {bob.mention} or <@!{bob.id}>.")
    assert message.text == f"Ask {{p:{bob.id}}} or {{p:{bob.id}}}."
    assert message.people == (Person(id=bob.id, name="Bobby", other_names=("bob",)),)
    assert not message.mentions_us


async def test_our_mention_within_a_text_is_a_reference_like_any_other(
    intake: Intake, server: LoopbackDiscord
) -> None:
    message = await intake.say(f"hello {server.bot.mention}")
    assert message.mentions_us
    assert message.text == f"hello {{p:{server.bot.id}}}"
    assert message.people == (Person(id=server.bot.id, name="Madeleine", is_bot=True),)


@pytest.mark.parametrize(
    ("after_the_mention", "text"),
    [(" hello", "hello"), (", hello", "hello"), (":\nhello", "hello"), (" 8:30?", "8:30?")],
)
async def test_the_mention_that_only_calls_us_is_left_out(
    intake: Intake, server: LoopbackDiscord, after_the_mention: str, text: str
) -> None:
    message = await intake.say(server.bot.mention + after_the_mention)
    assert message.mentions_us
    assert message.text == text


async def test_a_mention_alone_stays(intake: Intake, server: LoopbackDiscord) -> None:
    assert (await intake.say(server.bot.mention)).text == f"{{p:{server.bot.id}}}"


@pytest.mark.parametrize("text", [":) hello", ", she said", " indented", "<:cat:123> hello"])
async def test_without_a_mention_of_us_the_beginning_stays_as_it_is(
    intake: Intake, text: str
) -> None:
    assert (await intake.say(text)).text == text.replace("<:cat:123>", ":cat:")


@pytest.mark.parametrize("typed", ["{p:1}", "{p:999}", "{{p:1}}"])
async def test_a_reference_that_was_typed_is_none(intake: Intake, typed: str) -> None:
    message = await intake.say(f"I am {typed}")
    assert "{p:" not in message.text
    assert message.text == f"I am {typed}".replace("{p:", "{p :")


async def test_a_role_whose_name_looks_like_a_reference_makes_none(
    intake: Intake, server: LoopbackDiscord
) -> None:
    role = server.role("{p:1}")
    assert (await intake.say(f"hi {role.mention}")).text == "hi @{p :1}"


async def test_roles_channels_emoji_and_commands_are_plain_names(
    intake: Intake, server: LoopbackDiscord
) -> None:
    role = server.role("readers")
    text = f"{role.mention} in {server.general.mention} <:cat:123> <a:dance:456> </memory show:7>"
    message = await intake.say(text)
    assert message.text == "@readers in #general :cat: :dance: /memory show"


async def test_unknown_roles_and_channels_stay_as_they_were_typed(intake: Intake) -> None:
    assert (await intake.say("<@&1> <#2>")).text == "<@&1> <#2>"


async def test_everyone_is_nobody_in_particular(intake: Intake, server: LoopbackDiscord) -> None:
    message = await intake.say("@everyone hello", by=server.owner)
    assert (message.mentions_us, message.text) == (False, "@everyone hello")


async def test_our_own_role_mentioned_is_a_mention_of_us(
    intake: Intake, server: LoopbackDiscord, client: Listener
) -> None:
    role = server.bot_role()
    payload = wire.role_payload(role) | {"tags": {"bot_id": str(server.bot.id)}}
    server.emit(
        "GUILD_ROLE_UPDATE",
        {"guild_id": str(server.home.id), "role": payload},
        guild=server.home,
    )
    guild = client.get_guild(server.home.id)
    assert guild is not None
    await server.wait_for(lambda: guild.self_role)
    own = await intake.raw(content=f"<@&{role.id}> hi", mention_roles=[str(role.id)])
    other = server.role("others")
    others = await intake.raw(content=f"<@&{other.id}> hi", mention_roles=[str(other.id)])
    assert (own.mentions_us, others.mentions_us) == (True, False)


async def test_a_mention_that_discord_does_not_count_is_none(
    intake: Intake, server: LoopbackDiscord
) -> None:
    """In a code block, for example."""
    message = await intake.raw(content=f"`{server.bot.mention}`", mentions=[])
    assert not message.mentions_us


# --- replies ------------------------------------------------------------------------------------


async def test_a_reply_to_us_is_known_and_its_ping_is_no_mention(
    intake: Intake, server: LoopbackDiscord, client: Listener
) -> None:
    ours = await client.place(server.general).send("Ask me.")
    message = await intake.say("Why?", reply_to=server.general.messages[ours.id])
    assert (message.replies_to, message.replies_to_us) == (ours.id, True)
    assert not message.mentions_us


async def test_a_reply_to_somebody_else_is_none_to_us(
    intake: Intake, server: LoopbackDiscord
) -> None:
    question = await server.say(server.owner, server.general, "Anyone?")
    message = await intake.say("Me.", reply_to=question)
    assert (message.replies_to, message.replies_to_us) == (question.id, False)


async def test_of_a_reply_to_a_deleted_message_only_the_id_is_known(intake: Intake) -> None:
    message = await intake.raw(
        type=19,
        message_reference={"message_id": "815", "channel_id": "1"},
        referenced_message=None,
    )
    assert (message.replies_to, message.replies_to_us) == (815, False)


# --- what is not text ---------------------------------------------------------------------------


async def test_files_are_named_after_the_text(intake: Intake) -> None:
    message = await intake.say("Look", files={"cat.png": b"", "notes.txt": b""})
    assert message.text == "Look\n[image: cat.png]\n[file: notes.txt]"


async def test_a_message_that_is_only_a_picture_says_so(intake: Intake) -> None:
    assert (await intake.say(files={"cat.png": b""})).text == "[image: cat.png]"


async def test_marks_are_in_the_language_of_the_server(
    intake: Intake, server: LoopbackDiscord
) -> None:
    guild = server.guild("日本", locale="ja")
    channel = server.channel("雑談", guild=guild)
    message = await server.say(server.owner, channel, files={"cat.png": b""})
    assert (await intake.take(message)).text == "[画像: cat.png]"


async def test_a_sticker_is_named(intake: Intake) -> None:
    sticker = {"id": "1", "name": "Wave", "format_type": 1}
    assert (await intake.raw(content="", sticker_items=[sticker])).text == "[sticker: Wave]"


async def test_a_forwarded_message_is_not_the_words_of_who_forwards_it(intake: Intake) -> None:
    snapshot = {
        "type": 0,
        "content": "I hate nuts",
        "embeds": [],
        "attachments": [],
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
        "flags": 0,
        "mentions": [],
        "mention_roles": [],
        "components": [],
    }
    message = await intake.raw(
        content="",
        message_reference={"type": 1, "message_id": "815", "channel_id": "1"},
        message_snapshots=[{"message": snapshot}],
    )
    assert message.text == "[a forwarded message]"
    assert message.replies_to is None


@pytest.mark.parametrize(
    ("content", "title", "text"),
    [
        ("", "News", "[link preview: News]"),
        ("", None, "[link preview]"),
        ("https://example.org", "News", "https://example.org"),
    ],
)
async def test_previews_are_named_only_where_nothing_else_is_said(
    intake: Intake, content: str, title: str | None, text: str
) -> None:
    embed = {"type": "rich"} | ({"title": title} if title else {})
    assert (await intake.raw(content=content, embeds=[embed])).text == text


@pytest.mark.parametrize(("length", "shown"), [(100, 100), (101, 100)])
async def test_a_long_name_is_shortened(intake: Intake, length: int, shown: int) -> None:
    embed = {"type": "rich", "title": "t" * length}
    message = await intake.raw(content="", embeds=[embed])
    assert message.text == f"[link preview: {'t' * shown}]"


# --- duplicates ---------------------------------------------------------------------------------


async def test_an_event_that_comes_twice_is_new_once(server: LoopbackDiscord) -> None:
    seen = SeenMessages()
    news: list[bool] = []

    class Counting(Listener):
        async def on_message(self, message: discord.Message) -> None:
            news.append(seen.is_new(MessageId(message.id)))

    async with Counting() as client:
        await client.login(server.token)
        await server.say(server.alice, server.general, "before the connection")
        connected = client.loop.create_task(client.connect())
        await server.wait_for(client.is_ready)
        await server.say(server.alice, server.general, "hi", duplicate=3)
        await server.wait_for(lambda: len(news) == 3)
        await client.close()
        await connected
    assert news == [True, False, False]


def test_of_ids_only_the_newest_are_remembered() -> None:
    seen = SeenMessages(size=2)
    assert [seen.is_new(MessageId(n)) for n in (1, 2, 3)] == [True, True, True]
    assert not seen.is_new(MessageId(2))
    assert not seen.is_new(MessageId(3))
    assert seen.is_new(MessageId(1))


def test_an_id_that_is_seen_again_is_remembered_longer() -> None:
    seen = SeenMessages(size=2)
    assert [seen.is_new(MessageId(n)) for n in (1, 2, 1, 3)] == [True, True, False, True]
    assert not seen.is_new(MessageId(1))

"""When Madeleine answers in Discord, and how the answer comes."""

import logging
from pathlib import Path

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import (
    HttpError,
    Intent,
    LoopbackDiscord,
    LoopbackModel,
    MessageKind,
    Permission,
    Text,
)


async def test_a_mention_is_answered_by_a_reply_that_grows(stage: Stage) -> None:
    stage.model.queue(Text("Good morning to you too", chunk_delay=0.05))
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "good morning", mention_bot=True
    )
    reply = await stage.reply_to(question)
    assert reply.content == "Good morning to you too"
    assert len(reply.revisions) > 2
    assert all(reply.content.startswith(shorter) for shorter in reply.revisions)
    assert reply.reference is not None
    assert reply.reference.message_id == question.id
    assert stage.discord.bot_typed_in == [stage.discord.general]


async def test_with_streaming_off_the_reply_comes_whole(empty_stage: Stage) -> None:
    empty_stage.settings["FEATURES__STREAMING_ENABLED"] = "false"
    empty_stage.model.queue(Text("all of it at once", chunk_delay=0.03))
    async with empty_stage.madeleine():
        reply = await empty_stage.ask("hello")
    assert reply.revisions == ["all of it at once"]


async def test_the_mention_that_calls_her_is_not_part_of_what_was_said(stage: Stage) -> None:
    await stage.ask("do you like tea?")
    assert stage.prompt.last_user == "Alice: do you like tea?"


async def test_a_reply_to_her_message_is_answered_without_a_mention(stage: Stage) -> None:
    first = await stage.ask("hello")
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "and you?", reply_to=first, ping=False
    )
    assert "and you?" in (await stage.reply_to(question)).content


async def test_a_direct_message_is_answered_without_a_mention(stage: Stage) -> None:
    reply = await stage.ask("psst", channel=stage.discord.direct(stage.discord.alice))
    assert "psst" in reply.content


async def test_a_message_in_a_thread_is_answered_in_the_thread(stage: Stage) -> None:
    thread = stage.discord.thread(stage.discord.general, "about tea")
    assert "green or black?" in (await stage.ask("green or black?", channel=thread)).content
    assert stage.discord.bot_messages(stage.discord.general) == []


async def test_a_long_answer_is_several_messages_that_say_it_all(stage: Stage) -> None:
    long = " ".join(f"word{number}" for number in range(600))
    stage.model.queue(Text(long, chunk_size=500))
    await stage.ask("tell me everything")
    said = stage.discord.bot_messages(stage.discord.general)
    assert len(said) > 1
    assert all(len(message.content) <= 2_000 for message in said)
    assert " ".join(" ".join(message.content for message in said).split()) == long


async def test_nobody_is_pinged_by_what_the_model_says(stage: Stage) -> None:
    stage.model.queue(f"hello @everyone and {stage.discord.owner.mention}")
    assert not (await stage.ask("who is here?")).pings


async def test_what_is_said_between_people_is_heard_and_not_answered(stage: Stage) -> None:
    await stage.ask("hello")
    await stage.chatter("the tea is ready", by=stage.discord.owner)
    await stage.ask("what did Olga say?")
    assert len(stage.model.chats) == 2
    assert "Olga: the tea is ready" in stage.prompt.text


async def test_what_was_said_before_she_was_called_is_in_the_first_prompt(stage: Stage) -> None:
    await stage.chatter("the tea is ready", by=stage.discord.owner)
    await stage.ask("what did Olga say?")
    assert "Olga: the tea is ready" in stage.prompt.text


async def test_a_message_that_arrives_twice_is_answered_once(stage: Stage) -> None:
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "once", mention_bot=True, duplicate=2
    )
    await stage.reply_to(question)
    await stage.ask("something else")
    assert [chat.last_user for chat in stage.model.chats] == [
        "Alice: once",
        "Alice: something else",
    ]


async def test_a_message_that_arrives_twice_does_not_swallow_the_next_one(stage: Stage) -> None:
    stage.model.on(lambda _: Text("I see", delay=0.1))
    alice, general = stage.discord.alice, stage.discord.general
    first = await stage.discord.say(alice, general, "once", mention_bot=True)
    await stage.model.wait_for_requests(1)
    stage.discord.message_event("MESSAGE_CREATE", first)
    question = await stage.discord.say(alice, general, "something else", mention_bot=True)
    assert (await stage.reply_to(question)).content == "I see"


async def test_other_bots_and_webhooks_are_not_answered(stage: Stage) -> None:
    beeper = stage.discord.member("beeper", is_bot=True)
    hook = stage.discord.webhook(stage.discord.general, "news")
    await stage.discord.say(beeper, stage.discord.general, "beep", mention_bot=True)
    await stage.discord.say_through(hook, f"{stage.discord.bot.mention} news!")
    await stage.ask("hello")
    assert len(stage.model.chats) == 1


async def test_her_own_messages_are_not_answered(stage: Stage) -> None:
    stage.model.queue(f"I am {stage.discord.bot.mention}")
    await stage.ask("who are you?")
    await stage.ask("hello")
    assert len(stage.model.chats) == 2


async def test_where_she_may_not_write_she_is_silent_and_asks_no_model(stage: Stage) -> None:
    closed = stage.discord.channel("closed")
    stage.discord.overwrite(closed, stage.discord.bot, deny=Permission.SEND_MESSAGES)
    await stage.discord.say(stage.discord.alice, closed, "hello", mention_bot=True)
    await stage.ask("hello")
    assert (len(stage.model.chats), stage.count("turns")) == (1, 1)
    stage.discord.remove_overwrite(closed, stage.discord.bot)
    assert "and now?" in (await stage.ask("and now?", channel=closed)).content


async def test_in_a_thread_where_she_may_not_write_she_asks_no_model(stage: Stage) -> None:
    thread = stage.discord.thread(stage.discord.general, "about tea")
    stage.discord.overwrite(
        stage.discord.general, stage.discord.bot, deny=Permission.SEND_MESSAGES_IN_THREADS
    )
    await stage.discord.say(stage.discord.alice, thread, "hello", mention_bot=True)
    await stage.ask("hello")
    assert len(stage.model.chats) == 1


async def test_what_was_said_where_she_may_not_write_is_heard_once_she_may(stage: Stage) -> None:
    stage.discord.overwrite(stage.discord.general, stage.discord.bot, deny=Permission.SEND_MESSAGES)
    await stage.chatter("the tea is ready", by=stage.discord.owner)
    stage.discord.remove_overwrite(stage.discord.general, stage.discord.bot)
    await stage.ask("what did Olga say?")
    assert "Olga: the tea is ready" in stage.prompt.text


@pytest.mark.parametrize(
    "kind", [MessageKind.PIN_ADDED, MessageKind.BOOST, MessageKind.MEMBER_JOINED]
)
async def test_system_messages_are_not_answered(stage: Stage, kind: MessageKind) -> None:
    await stage.discord.say(
        stage.discord.alice, stage.discord.general, "look", mention_bot=True, kind=kind
    )
    await stage.ask("hello")
    assert len(stage.model.chats) == 1


async def test_without_the_message_content_intent_mentions_are_answered(tmp_path: Path) -> None:
    async with LoopbackDiscord(privileged_intents=Intent(0)) as discord, LoopbackModel() as model:
        stage = Stage(discord=discord, model=model, folder=tmp_path)
        stage.settings["DISCORD__MESSAGE_CONTENT_INTENT"] = "false"
        async with stage.madeleine():
            await stage.chatter("a secret", by=discord.owner)
            assert "hello" in (await stage.ask("hello")).content
        assert "a secret" not in stage.prompt.text


async def test_every_server_has_its_own_talk(stage: Stage) -> None:
    second = stage.discord.guild("second")
    stage.discord.member(stage.discord.alice, guild=second)
    await stage.ask("the first server's talk")
    await stage.ask("hello", channel=stage.discord.channel("lounge", guild=second))
    assert "the first server's talk" not in stage.prompt.text


async def test_what_people_say_is_not_logged(
    empty_stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with empty_stage.madeleine():
            question = await empty_stage.discord.say(
                *(empty_stage.discord.alice, empty_stage.discord.general, "my number is 4711"),
                mention_bot=True,
            )
            await empty_stage.reply_to(question)
            await empty_stage.discord.edit(question, "my number is 4711!")
            empty_stage.model.queue(HttpError(400, "4711?"))
            await empty_stage.ask("my number is 4711 I said")
    told = [record for record in caplog.records if record.name.startswith("bot.")]
    assert {record.getMessage() for record in told} >= {"connected", "turn_failed"}
    assert [record for record in told if "4711" in str(vars(record))] == []

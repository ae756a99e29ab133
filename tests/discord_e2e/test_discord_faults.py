"""What happens when Discord or the database does not do what it should."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import DEFAULT_EVERYONE, Message, Permission, Text, ToolCalls

SEND = ("POST", r"/channels/\d+/messages$")
EDIT = ("PATCH", r"/channels/\d+/messages/\d+$")
PLEASE = "please remember that I like green tea"


async def call(stage: Stage, text: str) -> Message:
    return await stage.discord.say(
        stage.discord.alice, stage.discord.general, text, mention_bot=True
    )


# --- Discord


async def test_where_her_words_are_refused_she_does_not_insist(stage: Stage) -> None:
    """Her rights were taken away a moment ago, or there is a rule that she knows nothing of."""
    stage.discord.fault(*SEND, status=403, code=50013, times=2)
    question = await call(stage, "hello")
    assert await stage.end_of_turn(question) == "failed"
    assert len(stage.discord.calls_to(*SEND)) <= 2  # once while it grows, once at the end
    stage.discord.faults.clear()
    assert "and now?" in (await stage.ask("and now?")).content


async def test_where_she_may_not_read_the_past_she_answers_all_the_same(stage: Stage) -> None:
    stage.discord.allow_bot(Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES)
    stage.discord.change_role(
        stage.discord.home.everyone, DEFAULT_EVERYONE & ~Permission.READ_MESSAGE_HISTORY
    )
    await stage.chatter("not for her", by=stage.discord.owner)
    assert "hello" in (await stage.ask("hello")).content


async def test_a_fault_in_reading_the_past_is_made_up_for_by_the_next_turn(stage: Stage) -> None:
    await stage.chatter("the tea is ready", by=stage.discord.owner)
    stage.discord.fault("GET", r"/messages$", status=400)
    await stage.ask("hello")
    assert "the tea is ready" not in stage.prompt.text
    await stage.ask("and now?")
    assert "Olga: the tea is ready" in stage.prompt.text


async def test_an_edit_that_fails_loses_nothing(stage: Stage) -> None:
    stage.discord.fault(*EDIT, status=503, times=2)
    stage.model.queue("all of this has to stand there in the end")
    assert (await stage.ask("hello")).content == "all of this has to stand there in the end"


async def test_a_message_whose_answer_is_lost_is_not_sent_twice(stage: Stage) -> None:
    stage.discord.fault(*SEND, drop="after")
    await stage.ask("hello")
    assert len(stage.discord.bot_messages(stage.discord.general)) == 1


async def test_a_deleted_question_is_not_answered_to_nobody(stage: Stage) -> None:
    """Discord refuses a reference to a message that is gone; the turn ended with it."""
    question = await call(stage, "hello")
    await stage.discord.delete(question)
    await stage.ask("and me?", by=stage.discord.owner)
    assert [
        message
        for message in stage.discord.bot_messages(stage.discord.general)
        if message.reference and message.reference.message_id == question.id
    ] == []


async def test_a_channel_that_is_deleted_during_a_turn_ends_it(stage: Stage) -> None:
    room = stage.discord.channel("room")
    question = await stage.discord.say(stage.discord.alice, room, "hello", mention_bot=True)
    stage.discord.delete_channel(room)
    assert await stage.end_of_turn(question) in {"done", "failed"}
    assert "hello" in (await stage.ask("hello")).content


# --- the database


@contextmanager
def locked(stage: Stage) -> Iterator[None]:
    """Another program holds the database."""
    with closing(sqlite3.connect(stage.database)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
async def hurried(empty_stage: Stage) -> AsyncIterator[Stage]:
    """A stage where the database is waited for only shortly."""
    empty_stage.settings["STORAGE__BUSY_TIMEOUT_MS"] = "50"
    async with empty_stage.madeleine():
        yield empty_stage


async def test_while_the_database_is_busy_she_answers_and_captures_later(hurried: Stage) -> None:
    await hurried.ask("hello")
    hurried.model.queue("noted")
    with locked(hurried):
        question = await call(hurried, "my number is 4711")
        await hurried.discord.wait_for_reply(
            hurried.discord.general, after=question, containing="noted"
        )
    await hurried.ask("what is my number?")
    assert "Alice: my number is 4711" in hurried.prompt.text
    assert hurried.prompt.texts_of("assistant")[-1].endswith("noted")


async def test_while_the_database_is_busy_nothing_is_said_to_be_saved(hurried: Stage) -> None:
    fact = {"content": "Alice likes green tea", "scope": "target_user", "target": ""}
    await hurried.ask("hello")
    hurried.model.queue(ToolCalls([("create_long_term_memory", fact)]), "I could not.")
    with locked(hurried):
        question = await call(hurried, PLEASE)
        reply = await hurried.discord.wait_for_reply(
            hurried.discord.general, after=question, containing="I could not."
        )
        await hurried.discord.wait_for(lambda: "not saved" in reply.content)
    assert hurried.count("personal_memories") == 0


async def test_a_message_that_is_deleted_while_the_database_is_busy_is_gone_all_the_same(
    hurried: Stage,
) -> None:
    hurried.model.on(lambda _: Text("I see"))
    [gone] = await hurried.chatter("my number is 4711", by=hurried.discord.owner)
    await hurried.ask("hello")
    with locked(hurried):
        await hurried.discord.delete(gone)
        question = await call(hurried, "still there?")
        await hurried.discord.wait_for_reply(
            hurried.discord.general, after=question, containing="I see"
        )
    await hurried.ask("and now?")
    assert "4711" not in hurried.prompt.text
    assert hurried.rows("SELECT 1 FROM buffer_entries WHERE content LIKE '%4711%'") == []

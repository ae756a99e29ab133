"""Ending, starting again on the same database, and connections that are lost in between."""

import asyncio
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.discord_e2e.stage import Stage
from tests.fakes import Message, Stall, Text, ToolCalls
from tests.fakes.discord.wire import message_event

FACT = {"content": "Alice likes green tea", "scope": "target_user", "target": ""}
KEEP = ToolCalls([("create_long_term_memory", FACT)])
HISTORY = ("GET", r"/channels/\d+/messages$")
IDENTIFY_ANEW = 4009
"""A close code after which a session cannot be resumed."""


def replies_to(stage: Stage, question: Message) -> list[Message]:
    return [
        message
        for message in stage.discord.bot_messages(question.channel)
        if message.reference and message.reference.message_id == question.id
    ]


async def call(stage: Stage, text: str) -> Message:
    return await stage.discord.say(
        stage.discord.alice, stage.discord.general, text, mention_bot=True
    )


# --- in a process of her own


async def test_after_a_restart_she_remembers_and_answers_nothing_twice(
    empty_stage: Stage,
) -> None:
    stage = empty_stage
    stage.model.queue(KEEP, "I will remember that.", "thank you")
    async with stage.process() as child:
        question = await call(stage, "please remember that I like green tea")
        await stage.reply_to(question)
        begun = time.monotonic()
        assert await stage.told_to_stop(child) == 0
        assert time.monotonic() - begun < 5
    await stage.chatter("she is away", by=stage.discord.owner)
    async with stage.process():
        stage.discord.message_event("MESSAGE_CREATE", question)
        await stage.ask("welcome back", by=stage.discord.owner)
        await stage.ask("what do I like?")
    assert len(replies_to(stage, question)) == 1
    assert len(stage.model.chats) == 4
    assert 'M1 "Alice likes green tea"' in stage.prompt.system
    talk = [line for text in stage.prompt.texts_of("user") for line in text.splitlines()]
    assert talk == [
        "Alice: please remember that I like green tea",
        "Olga: she is away",
        "Olga: welcome back",
        "Alice: what do I like?",
    ]
    assert stage.prompt.texts_of("assistant") == ["I will remember that.", "thank you"]
    assert stage.discord.commands.puts == 1


async def test_a_turn_that_ends_soon_is_waited_for(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.settings["DISCORD__SHUTDOWN_TURNS_MS"] = "2500"
    stage.model.queue(Text("one two three four", chunk_delay=0.2))
    async with stage.process() as child:
        question = await call(stage, "count")
        await stage.model.wait_for_requests(1)
        assert await stage.told_to_stop(child, signal.SIGINT) == 0
    assert [reply.content for reply in replies_to(stage, question)] == ["one two three four"]
    assert await stage.end_of_turn(question) == "done"


async def test_a_turn_that_does_not_end_is_cut_off_within_five_seconds(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.settings["DISCORD__SHUTDOWN_TURNS_MS"] = "2500"
    stage.model.queue(Text("one two three four", breaks=Stall(after=2, seconds=60)))
    async with stage.process() as child:
        question = await call(stage, "count")
        await stage.discord.wait_for_reply(stage.discord.general, containing="one two")
        begun = time.monotonic()
        assert await stage.told_to_stop(child) == 0
        assert time.monotonic() - begun < 5
    assert stage.rows("SELECT state, failure FROM turns") == [
        {"state": "failed", "failure": "cancelled"}
    ]
    stage.discord.message_event("MESSAGE_CREATE", question)
    async with stage.madeleine():
        await stage.ask("and then?")
    assert stage.prompt.texts_of("assistant") == ["one two"]
    assert len(replies_to(stage, question)) == 1


async def test_what_was_said_is_kept_when_she_is_killed(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.model.queue(Text("one two three four", breaks=Stall(after=2, seconds=60)))
    async with stage.process() as child:
        question = await call(stage, "my number is 4711")
        await stage.model.wait_for_requests(1)
        child.kill()
        await child.wait()
    async with stage.madeleine():
        stage.discord.message_event("MESSAGE_CREATE", question)
        await stage.ask("what is her number?", by=stage.discord.owner)
    assert "Alice: my number is 4711" in stage.prompt.text
    assert len(stage.model.chats) == 2
    assert stage.rows("SELECT failure FROM turns WHERE message_id = ?", question.id) == [
        {"failure": "interrupted"}
    ]


# --- while another program holds the database locked


@contextmanager
def locked(stage: Stage) -> Iterator[None]:
    """A process beside hers holds the lock for writing until the end."""
    with closing(sqlite3.connect(stage.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def ended_in_time(stage: Stage, child: asyncio.subprocess.Process) -> str:
    """What she logged, once she ended as she should: within five seconds, with code 0."""
    begun = time.monotonic()
    assert await stage.told_to_stop(child) == 0
    assert time.monotonic() - begun < 5
    log = (stage.folder / "stderr.txt").read_text("utf-8")
    assert "Traceback" not in log
    return log


async def test_a_locked_database_holds_up_no_end(empty_stage: Stage) -> None:
    """With a turn that has to be cut off, and with the waits of the defaults."""
    stage = empty_stage
    stage.settings["DISCORD__SHUTDOWN_TURNS_MS"] = "2500"
    stage.model.queue(Text("one two three four", breaks=Stall(after=2, seconds=60)))
    async with stage.process() as child:
        await call(stage, "count")
        await stage.discord.wait_for_reply(stage.discord.general, containing="one two")
        with locked(stage):
            assert "late_writes_lost writes=1" in await ended_in_time(stage, child)


async def test_what_a_locked_database_kept_from_being_written_is_counted(
    empty_stage: Stage,
) -> None:
    stage = empty_stage
    stage.settings["STORAGE__BUSY_TIMEOUT_MS"] = "20"
    async with stage.process() as child:
        await stage.ask("hello")
        with locked(stage):
            question = await call(stage, "and you?")
            await stage.discord.wait_for_reply(stage.discord.general, after=question)
            assert "late_writes_lost writes=2" in await ended_in_time(stage, child)
    async with stage.madeleine():
        await stage.ask("do you know what I asked?")
    assert "Alice: and you?" in stage.prompt.text


async def test_what_could_be_written_at_last_is_written(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.settings["STORAGE__BUSY_TIMEOUT_MS"] = "20"
    async with stage.process() as child:
        await stage.ask("hello")
        with locked(stage):
            question = await call(stage, "and you?")
            await stage.discord.wait_for_reply(stage.discord.general, after=question)
        assert "late_writes_lost" not in await ended_in_time(stage, child)
    assert stage.count("buffer_entries") == 4


# --- started again in this process


async def test_a_reply_to_a_message_from_before_the_restart_is_answered(
    empty_stage: Stage,
) -> None:
    """Discord does not always send the message along to which somebody replies."""
    stage = empty_stage
    async with stage.madeleine():
        first = await stage.ask("hello")
    async with stage.madeleine():
        question = stage.discord.post(
            *(stage.discord.general, stage.discord.alice, "and you?"), reply_to=first, duplicate=0
        )
        data = message_event(question, stage.discord.bot, reads_content=True)
        del data["referenced_message"]
        stage.discord.emit(
            "MESSAGE_CREATE", data, guild=stage.discord.home, channel=stage.discord.general
        )
        assert "and you?" in (await stage.reply_to(question)).content


async def test_a_privacy_level_outlives_a_restart(empty_stage: Stage) -> None:
    stage = empty_stage
    async with stage.madeleine():
        used = await stage.discord.slash(
            stage.discord.alice, stage.discord.general, "privacy level", level="FULL"
        )
        await used.reply()
    async with stage.madeleine():
        await call(stage, "hello")
        await stage.ask("hello", by=stage.discord.owner)
    assert len(stage.model.chats) == 1


async def test_a_note_outlives_a_restart(empty_stage: Stage) -> None:
    stage = empty_stage
    note = {"summary": "They plan a tea party."}
    stage.model.queue(ToolCalls([("update_short_term_memory", note)]), "nice")
    async with stage.madeleine():
        await stage.ask("let us plan a tea party")
    async with stage.madeleine():
        await stage.ask("and cake")
    assert "They plan a tea party." in stage.prompt.system


# --- lost connections


async def test_the_past_is_read_once_and_not_at_every_turn(stage: Stage) -> None:
    for _ in range(3):
        await stage.ask("hello")
    assert len(stage.discord.calls_to(*HISTORY)) == 1


async def test_what_was_said_while_a_connection_was_lost_is_replayed(stage: Stage) -> None:
    await stage.ask("hello")
    await stage.discord.gateway.drop()
    await stage.chatter("I was not heard at once", by=stage.discord.owner)
    question = await call(stage, "and I?")
    await stage.reply_to(question)
    assert stage.discord.gateway.resumes == 1
    assert "Olga: I was not heard at once" in stage.prompt.text
    assert len(stage.discord.calls_to(*HISTORY)) == 1


async def test_what_was_said_between_two_sessions_is_read_from_the_past(stage: Stage) -> None:
    await stage.ask("hello")
    gateway = stage.discord.gateway
    gateway.sessions.clear()  # nothing is kept for this session any more
    await gateway.drop(IDENTIFY_ANEW)
    await stage.chatter("nobody told her", by=stage.discord.owner)
    await stage.discord.wait_for(
        lambda: gateway.identifies == 2 and gateway.is_connected, timeout=15
    )
    await stage.ask("what did Olga say?")
    assert stage.prompt.text.count("Olga: nobody told her") == 1
    assert len(stage.discord.calls_to(*HISTORY)) == 2


async def test_events_that_come_again_after_a_resume_are_answered_once(stage: Stage) -> None:
    question = await call(stage, "once")
    await stage.reply_to(question)
    stage.discord.gateway.op7()
    await stage.discord.wait_for(lambda: stage.discord.gateway.resumes)
    stage.discord.message_event("MESSAGE_CREATE", question)
    await asyncio.wait_for(stage.ask("hello"), timeout=10)
    assert len(replies_to(stage, question)) == 1
    assert len(stage.model.chats) == 2

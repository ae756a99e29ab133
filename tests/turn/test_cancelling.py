"""Turns that are ended early: the row says so, and the talk keeps what people can read."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from bot.memory.references import reference_to
from bot.storage.writer import Job
from bot.turn.messages import IncomingMessage, Person
from tests.fakes import Stall, Text, ToolCalls
from tests.talk import RecordingDelivery, Talk, open_talk, settled

CREATE = "create_long_term_memory"
FACT = {"content": "Ann sings", "target": ""}
SLOW = Text("Dear Ann, it all began when I was young", breaks=Stall(after=3, seconds=30))
SILENT = Text("never", breaks=Stall(after=0, seconds=30))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "madeleine.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def under_way(
    talk: Talk, text: str = "tell me a story"
) -> tuple[IncomingMessage, RecordingDelivery]:
    """A turn that the model has been asked for."""
    asked = len(talk.model.chats)
    message = talk.message("Ann", text)
    _, delivery = talk.send(message)
    await talk.model.wait_for_requests(asked + 1)
    return message, delivery


async def ended(talk: Talk) -> list[tuple[object, object]]:
    """How the turns ended, once none runs any more."""
    for line in list(talk.app.receiver.queue._lines.values()):
        while line.turn is not None:
            await asyncio.wait({line.turn})
            await asyncio.sleep(0)
    rows = await talk.rows("SELECT state, failure FROM turns ORDER BY id")
    return [(row["state"], row["failure"]) for row in rows]


async def entries(talk: Talk) -> list[object]:
    return [
        row["content"] for row in await talk.rows("SELECT content FROM buffer_entries ORDER BY id")
    ]


def captures(talk: Talk) -> int:
    return len(talk.app.services.short_term._entries)


async def test_a_turn_cancelled_before_anything_was_said_leaves_no_reply(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SILENT)
        message, delivery = await under_way(talk)
        await talk.app.receiver.forget_messages([message.id])
        assert await ended(talk) == [("failed", "cancelled")]
        assert delivery.shown == []
        assert await entries(talk) == []
        assert captures(talk) == 0
        assert await talk.model.wait_for(lambda: talk.model.chats[0].aborted)


async def test_what_stands_of_a_cancelled_reply_is_kept_with_references(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW)
        _, delivery = await under_way(talk)
        await talk.model.wait_for(lambda: len(delivery.shown) == 3)
        assert talk.app.receiver.queue.cancel_channel(talk.place().channel_id)
        assert await ended(talk) == [("failed", "cancelled")]
        ann = talk.person("Ann").id
        assert await entries(talk) == ["tell me a story", f"Dear {reference_to(ann)}, it "]
        [reply] = await talk.rows("SELECT message_id FROM turn_replies")
        assert reply["message_id"] == delivery.message_id
        assert captures(talk) == 0
        await talk.say("Ann", "go on", author=Person(id=ann, name="Annabel"))
        assert talk.lines[:2] == ["Annabel: tell me a story", "> Dear Annabel, it"]


async def test_a_cancelled_turn_between_commit_and_reply_leaves_no_stale_cache(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        talk.model.queue(ToolCalls([(CREATE, FACT)]), SILENT)
        await under_way(talk, "please remember that I sing")
        await talk.model.wait_for_requests(3)
        assert talk.app.receiver.queue.cancel_channel(talk.place().channel_id)
        assert (await ended(talk))[-1] == ("failed", "cancelled")
        await talk.say("Ann", "what do you know of me?")
        assert '"Ann sings"' in talk.prompt.system


async def test_a_turn_cancelled_during_a_tool_leaves_nothing_half_done(tmp_path: Path) -> None:
    patient = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "3000"}
    async with open_talk(tmp_path, environ=patient) as talk:
        await talk.say("Ann", "hello")
        lock = locked(tmp_path)
        saving: list[asyncio.Event] = []

        def saves_in_vain(_: object) -> ToolCalls:
            lock.__enter__()
            saving.append(next_write(talk))
            return ToolCalls([(CREATE, FACT)])

        talk.model.on(saves_in_vain)
        talk.send(talk.message("Ann", "please remember that I sing"))
        await talk.model.wait_for_requests(2)
        await saving[0].wait()
        await settled()  # the memory waits for the lock
        talk.app.receiver.queue.cancel_channel(talk.place().channel_id)
        lock.__exit__(None, None, None)
        assert (await ended(talk))[-1] == ("failed", "cancelled")
        # A write under way is not cancelled with its caller: it is kept, and the cache knows.
        assert len(await talk.rows("SELECT content FROM personal_memories")) == 1
        talk.model.clear()
        await talk.say("Ann", "what do you know of me?")
        assert '"Ann sings"' in talk.prompt.system


def next_write(talk: Talk) -> asyncio.Event:
    """Set when something is given to the database to write."""
    given = asyncio.Event()
    database = talk.app.services.database
    write = database.write

    async def writes(job: Job[object]) -> object:
        given.set()
        return await write(job)

    object.__setattr__(database, "write", writes)
    return given


async def test_a_turn_cancelled_while_its_row_was_written_is_closed_too(tmp_path: Path) -> None:
    patient = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "3000"}
    async with open_talk(tmp_path, environ=patient) as talk:
        await talk.say("Ann", "hello")
        with locked(tmp_path):
            message = talk.message("Ann", "never mind")
            talk.send(message)
            await settled()  # the row waits for the lock
            talk.app.receiver.queue.cancel_message(message.id)
        assert await ended(talk) == [("done", None), ("failed", "cancelled")]


async def test_the_next_turn_comes_after_a_cancelled_one(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SILENT, Text("here"))
        message, _ = await under_way(talk)
        _, delivery = talk.send(talk.message("Ben", "and me?"))
        await talk.app.receiver.forget_messages([message.id])
        await talk.model.wait_for(lambda: delivery.text)
        assert delivery.text == "here"


@pytest.mark.parametrize("text_was_shown", [False, True])
async def test_closing_ends_what_runs_and_writes_it_down(
    tmp_path: Path, text_was_shown: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW if text_was_shown else SILENT)
        _, delivery = await under_way(talk)
        await talk.model.wait_for(lambda: bool(delivery.shown) == text_was_shown)
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)
        assert await ended(talk) == [("failed", "cancelled")]
        assert talk.send(talk.message("Ann", "hello?"))[0] == "closed"


async def test_closing_waits_for_what_is_almost_done(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("here I am", delay=0.05))
        _, delivery = await under_way(talk)
        _, waiting = talk.send(talk.message("Ben", "and me?"))
        await talk.app.receiver.queue.close(grace_s=5, cancel_s=1)
        assert delivery.text == "here I am"
        assert waiting.text == ""
        assert await ended(talk) == [("done", None)]


async def test_a_direct_cancellation_passes_through(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SILENT)
        turn = asyncio.ensure_future(talk.say("Ann", "hello"))
        await talk.model.wait_for_requests(1)
        turn.cancel()
        with suppress(asyncio.CancelledError):
            await turn
        assert turn.cancelled()

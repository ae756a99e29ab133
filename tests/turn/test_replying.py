"""The row of a turn says that a reply has begun, and nobody waits for that."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.features import Flag
from bot.identifiers import TurnId
from bot.storage.statements import Transaction
from bot.turn.messages import NO_FOOTER, Delivered, Footer
from bot.turn.turn_rows import Ending, end_turn, mark_replying
from tests.fakes import HttpError, Stall, Text
from tests.talk import START, RecordingDelivery, Talk, open_talk, settled

IMPATIENT = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "20"}
PATIENT = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "60000"}


def stalls(text: str, after: int) -> Text:
    return Text(text, breaks=Stall(after=after, seconds=30))


async def written(talk: Talk) -> list[tuple[object, object]]:
    """How the turns stand, once what was handed over is written."""
    await settled()
    await talk.app.services.database.write(nothing)
    rows = await talk.rows("SELECT state, failure FROM turns ORDER BY id")
    return [(row["state"], row["failure"]) for row in rows]


async def nothing(tx: Transaction) -> None:
    del tx


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "madeleine.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@dataclass
class SlowDelivery(RecordingDelivery):
    """Finishes when it is told to."""

    finishing: asyncio.Event = field(default_factory=asyncio.Event)
    may_finish: asyncio.Event = field(default_factory=asyncio.Event)

    async def finish(self, text: str, *, footer: Footer = NO_FOOTER) -> Delivered:
        self.finishing.set()
        await self.may_finish.wait()
        return await super().finish(text, footer=footer)


async def test_until_there_is_text_the_turn_is_taken(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(stalls("never", 0))
        talk.send(talk.message("Ann", "hello"))
        await talk.model.wait_for_requests(1)
        assert await written(talk) == [("taken", None)]
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)


async def test_white_space_is_no_text(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        blank = Text(" \n \nhello", chunk_size=1, breaks=Stall(after=3, seconds=30))
        talk.model.queue(blank)
        _, delivery = talk.send(talk.message("Ann", "hello"))
        await talk.model.wait_for(lambda: len(delivery.shown) == 3)
        assert await written(talk) == [("taken", None)]
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)


async def test_from_its_first_text_on_the_turn_is_replying(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(stalls("a slow answer that goes on", 1))
        _, delivery = talk.send(talk.message("Ann", "hello"))
        await talk.model.wait_for(lambda: delivery.shown)
        assert await written(talk) == [("replying", None)]
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)
        assert await written(talk) == [("failed", "cancelled")]


async def test_a_reply_that_is_not_streamed_begins_where_it_is_sent(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.STREAMING, on=False)
        delivery = SlowDelivery(talk.clock, talk.next_id())
        message = talk.message("Ann", "hello")
        talk.app.receiver.receive(message, lambda: delivery, talk.history)
        await asyncio.wait_for(delivery.finishing.wait(), 5)
        assert delivery.shown == []
        assert await written(talk) == [("replying", None)]
        delivery.may_finish.set()
        await talk.app.receiver.queue.close(grace_s=5, cancel_s=1)
        assert await written(talk) == [("done", None)]


async def test_a_reply_that_stands_at_once_is_done(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for _ in range(3):
            await talk.say("Ann", "hello")
        assert await written(talk) == [("done", None)] * 3


async def test_an_apology_is_no_reply(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={"MADELEINE__LLM__RETRIES": "0"}) as talk:
        talk.model.queue(HttpError(500))
        delivery = SlowDelivery(talk.clock, talk.next_id())
        message = talk.message("Ann", "hello")
        talk.app.receiver.receive(message, lambda: delivery, talk.history)
        await asyncio.wait_for(delivery.finishing.wait(), 5)
        assert await written(talk) == [("taken", None)]
        delivery.may_finish.set()
        await talk.app.receiver.queue.close(grace_s=5, cancel_s=1)


@pytest.mark.parametrize("ending", ["done", "failed"])
async def test_a_turn_that_has_ended_is_not_replying_again(tmp_path: Path, ending: Ending) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        [row] = await talk.rows("SELECT id FROM turns")
        turn = TurnId(int(str(row["id"])))
        database = talk.app.services.database
        await database.write(lambda tx: tx.execute("UPDATE turns SET state = ?", (ending,)))
        await mark_replying(database, turn)
        assert await written(talk) == [(ending, None)]


async def test_a_turn_that_has_ended_does_not_end_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        [row] = await talk.rows("SELECT id FROM turns")
        turn = TurnId(int(str(row["id"])))
        again = await talk.app.services.database.write(
            lambda tx: end_turn(tx, turn, "failed", (), START, failure="cancelled")
        )
        assert not again
        assert await written(talk) == [("done", None)]


async def test_the_reply_streams_on_while_the_file_is_locked(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=PATIENT) as talk:
        lock = locked(tmp_path)

        def answers_behind_a_lock(_: object) -> Text:
            lock.__enter__()
            return Text("all of it is shown")

        talk.model.on(answers_behind_a_lock)
        _, delivery = talk.send(talk.message("Ann", "hello"))
        await talk.model.wait_for(lambda: delivery.text)
        assert delivery.shown[-1] == delivery.text == "all of it is shown"
        lock.__exit__(None, None, None)
        await talk.app.receiver.queue.close(grace_s=5, cancel_s=1)
        assert await written(talk) == [("done", None)]


async def test_what_cannot_be_marked_hurts_no_reply_and_waits_for_nothing(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        lock = locked(tmp_path)

        def answers_behind_a_lock(_: object) -> Text:
            lock.__enter__()
            return Text("I see")

        talk.model.on(answers_behind_a_lock)
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "I see"
        assert len(talk.app.services.late_writes) == 1  # how the turn ended
        lock.__exit__(None, None, None)
        assert await talk.app.services.late_writes.retry()
        assert await written(talk) == [("done", None)]


@pytest.mark.parametrize("state", ["taken", "replying"])
async def test_a_restart_closes_what_was_left_open(tmp_path: Path, state: str) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        await talk.app.services.database.write(
            lambda tx: tx.execute("UPDATE turns SET state = ?, ended_at = NULL", (state,))
        )
    async with open_talk(tmp_path) as talk:
        assert await written(talk) == [("failed", "interrupted")]

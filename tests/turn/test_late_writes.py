"""Writes that wait for the database are written once each, in order, and not without bound."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from bot.storage.database import Database
from bot.storage.statements import Transaction
from bot.storage.writer import Job
from bot.turn.late_writes import LateWrites
from tests.fakes import Text
from tests.talk import open_talk


def note(key: str) -> Job[None]:
    async def job(tx: Transaction) -> None:
        await tx.execute(
            "INSERT INTO audit (at, guild_id, actor_id, action, subject) VALUES (0, 0, 0, ?, '')",
            (key,),
        )

    return job


async def noted(database: Database) -> list[str]:
    return [row["action"] for row in await database.fetch_all("SELECT action FROM audit")]


async def test_writes_of_many_rooms_at_once_are_each_made_once(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "madeleine.db")
    late = LateWrites(database, limit=1000)
    await asyncio.gather(*(late.write(note(f"k{number}")) for number in range(50)))
    assert sorted(await noted(database)) == sorted(f"k{number}" for number in range(50))
    await database.close()


async def test_turns_of_many_rooms_at_once_book_their_usage_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("pong"))
        await asyncio.gather(*(talk.say("Ann", "ping", f"room-{n}") for n in range(12)))
        [usage] = await talk.rows("SELECT requests FROM usage")
        assert usage["requests"] == 12


async def test_what_waits_is_written_in_order_once_the_database_can(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    database = await Database.open(path, busy_timeout_ms=20)
    late = LateWrites(database, limit=2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for key in ("lost", "first", "second"):
            assert not await late.write(note(key))
    assert len(late) == 2
    assert await late.retry()
    assert await noted(database) == ["first", "second"]
    await database.close()

"""Ending while another program holds the database locked: soon, and what is lost is said."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from bot.storage.database import Database
from bot.storage.statements import Transaction
from bot.storage.writer import LOCK_SLICE_MS, Job
from bot.turn.late_writes import LateWrites
from tests.storage.jobs import keep, keys, opened

SOON_S = 2.0
"""Far below the five seconds that a write waits as a rule."""


@contextmanager
def locked(database: Database) -> Iterator[sqlite3.Connection]:
    """Another program writes."""
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@contextmanager
def soon() -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < SOON_S


def late(key: str) -> Job[None]:
    async def job(tx: Transaction) -> None:
        await keep(key)(tx)

    return job


# --- the patience of a write


async def test_a_write_waits_until_the_other_program_is_done(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        with locked(database) as other:
            loop = asyncio.get_running_loop()
            loop.call_later(3.5 * LOCK_SLICE_MS / 1000, other.execute, "ROLLBACK")
            assert await database.write(keep("a")) == "a"


@pytest.mark.parametrize("slices", [0.5, 2.5])
async def test_a_write_waits_as_long_as_it_was_told_to(tmp_path: Path, slices: float) -> None:
    patience_ms = int(slices * LOCK_SLICE_MS)
    async with opened(tmp_path / "madeleine.db", busy_timeout_ms=patience_ms) as database:
        with locked(database), soon():
            begun = time.monotonic()
            with pytest.raises(StorageUnavailable, match="BUSY"):
                await database.write(keep("a"))
            assert time.monotonic() - begun >= patience_ms / 1000


async def test_in_a_hurry_no_write_waits_any_more(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        with locked(database), soon():
            waiting = asyncio.create_task(database.write(keep("a")))
            await asyncio.sleep(0)
            database.hurry(after_s=0)
            with pytest.raises(StorageUnavailable, match="BUSY"):
                await waiting
            with pytest.raises(StorageUnavailable, match="BUSY"):
                await database.write(keep("b"))
        assert await database.write(keep("c")) == "c"


async def test_a_locked_database_is_closed_soon(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "madeleine.db", batch_size=1)
    with locked(database), soon():
        waiting = [asyncio.create_task(database.write(keep(key))) for key in "abc"]
        await asyncio.sleep(0)
        await database.close(grace_s=0.2)
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [StorageUnavailable] * 3


async def test_a_database_that_was_told_to_hurry_is_not_closed_more_patiently(
    tmp_path: Path,
) -> None:
    database = await Database.open(tmp_path / "madeleine.db")
    with locked(database), soon():
        waiting = asyncio.create_task(database.write(keep("a")))
        await asyncio.sleep(0)
        database.hurry(after_s=0)
        await database.close(grace_s=60)
        with pytest.raises(StorageUnavailable):
            await waiting


async def test_what_waits_is_written_where_the_lock_goes_in_time(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    database = await Database.open(path)
    with locked(database) as other:
        waiting = asyncio.create_task(database.write(keep("a")))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.1, other.execute, "ROLLBACK")
        await database.close(grace_s=5)
    assert await waiting == "a"
    async with opened(path) as again:
        assert await keys(again) == {"a"}


# --- late writes


async def test_a_flush_writes_what_waits(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        writes = LateWrites(database, limit=10)
        for key in "abc":
            writes.keep(late(key))
        await writes.flush(within_s=5)
        assert await keys(database) == set("abc")


async def test_what_a_flush_cannot_write_is_counted_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        writes = LateWrites(database, limit=10)
        for key in "abc":
            writes.keep(late(key))
        with locked(database), soon():
            await writes.flush(within_s=0.2)
        writes.keep(late("afterwards"))
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert [(r.getMessage(), vars(r).get("writes")) for r in errors] == [
        ("late_writes_lost", 3),
        ("late_write_lost", None),
    ]


async def test_everybody_who_waits_for_late_writes_waits_for_one_try(tmp_path: Path) -> None:
    """One patience, not one for each: ten rooms that end their turns must not queue up for it."""
    async with opened(tmp_path / "madeleine.db", busy_timeout_ms=300) as database:
        writes = LateWrites(database, limit=100)
        writes.keep(late("first"))
        with locked(database), soon():
            written = await asyncio.gather(*(writes.write(late(f"k{n}")) for n in range(20)))
        assert not any(written)
        assert len(writes) == 21
        assert await writes.retry()
        assert len(await keys(database)) == 21


async def test_a_try_whose_caller_goes_away_writes_nothing_twice(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        writes, runs = LateWrites(database, limit=10), []

        async def job(tx: Transaction) -> None:
            await tx.fetch_int("SELECT 1")
            runs.append(tx)

        writes.keep(job)
        with locked(database):
            asked = asyncio.create_task(writes.retry())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait({asked})
        assert await writes.retry()
        assert len(runs) == 1

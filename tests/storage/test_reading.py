"""Reads: one state of the file, never a stale one, never a connection left in a bad way."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from bot.storage.database import Database
from bot.storage.statements import Snapshot
from tests.storage.jobs import keep, keys


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db", readers=1)
    yield database
    await database.close()


async def count(snapshot: Snapshot) -> int:
    return await snapshot.fetch_int("SELECT count(*) FROM application_state")


async def test_a_read_sees_one_state_while_many_writes_go_on(database: Database) -> None:
    go_on, counted = threading.Semaphore(0), threading.Semaphore(0)

    async def reading(snapshot: Snapshot) -> list[int]:
        counts: list[int] = []
        for _ in range(10):
            counts.append(await count(snapshot))
            counted.release()
            go_on.acquire(timeout=5)
        return counts

    counts = asyncio.create_task(database.read(reading))
    for number in range(10):
        assert await asyncio.to_thread(counted.acquire, timeout=5)
        await database.write(keep(f"k{number}"))
        go_on.release()
    assert await counts == [0] * 10
    assert await database.read(count) == 10


@pytest.mark.parametrize("steps", range(8))
async def test_a_read_that_is_cancelled_leaves_no_state_behind(
    database: Database, steps: int
) -> None:
    reading = asyncio.create_task(database.read(count))
    for _ in range(steps):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await database.write(keep("new"))
    assert await database.fetch_all("SELECT key FROM application_state") != []
    assert await database.read(count) == 1


async def test_a_read_that_raises_gives_its_connection_back(database: Database) -> None:
    async def fails(snapshot: Snapshot) -> None:
        await count(snapshot)
        raise ValueError("on purpose")

    for _ in range(3):
        with pytest.raises(ValueError, match="on purpose"):
            await database.read(fails)
    await database.write(keep("new"))
    assert await keys(database) == {"new"}


async def test_closing_lets_reads_under_way_come_to_their_end(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def slow(snapshot: Snapshot) -> int:
        before = await count(snapshot)
        begun.set()
        go_on.wait(5)
        return before + await count(snapshot)

    reading = asyncio.create_task(database.read(slow))
    assert await asyncio.to_thread(begun.wait, 5)
    waiting = asyncio.create_task(database.read(count))
    await asyncio.sleep(0)
    end = asyncio.create_task(database.close())
    for _ in range(3):
        await asyncio.sleep(0)
    with pytest.raises(StorageUnavailable):
        await database.read(count)
    go_on.set()
    await end
    assert (await reading, await waiting) == (0, 0)


async def test_more_reads_than_connections_wait_for_each_other(database: Database) -> None:
    await database.write(keep("one"))
    assert await asyncio.gather(*(database.read(count) for _ in range(20))) == [1] * 20


async def test_a_reading_that_awaits_anything_else_is_told_so(database: Database) -> None:
    async def waits(snapshot: Snapshot) -> None:
        await count(snapshot)
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="await nothing but"):
        await database.read(waits)
    await database.write(keep("new"))
    assert await database.read(count) == 1

"""The writer under faults: a lost transaction, a busy or full file, an end in the middle."""

import asyncio
import resource
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from bot.storage.database import Database
from bot.storage.statements import Transaction
from tests.storage.jobs import keep, keys, opened


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db", busy_timeout_ms=50)
    yield database
    await database.close()


async def traced(database: Database) -> list[str]:
    """What the writer's connection runs from now on."""
    statements: list[str] = []
    await database._writing.set_trace_callback(statements.append)
    return statements


def log_size(database: Database) -> int:
    return Path(f"{database.path}-wal").stat().st_size


@contextmanager
def disk_full_beyond(size: int) -> Iterator[None]:
    """The system refuses to let any file of this process grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- a lost transaction


async def test_a_job_that_rolls_back_and_returns_is_told_and_the_others_are_run_again(
    database: Database,
) -> None:
    async def ruins(tx: Transaction) -> None:
        await keep("lost")(tx)
        await tx.execute("ROLLBACK")

    results = await asyncio.gather(
        database.write(keep("a")),
        database.write(ruins),
        database.write(keep("b")),
        return_exceptions=True,
    )
    assert (results[0], results[2]) == ("a", "b")
    assert isinstance(results[1], sqlite3.Error)
    assert await keys(database) == {"a", "b"}


async def test_after_a_lost_transaction_every_other_job_has_one_of_its_own(
    database: Database,
) -> None:
    async def ruins(tx: Transaction) -> None:
        await tx.execute("ROLLBACK")
        raise OSError("as a full disk does")

    statements = await traced(database)
    await asyncio.gather(
        *(database.write(keep(f"k{number}")) for number in range(3)),
        database.write(ruins),
        return_exceptions=True,
    )
    assert statements.count("BEGIN IMMEDIATE") == 1 + 3
    assert statements.count("COMMIT") == 3


async def test_callbacks_of_a_job_that_was_run_again_are_called_once(database: Database) -> None:
    called: list[str] = []

    async def job(tx: Transaction) -> None:
        await keep("a")(tx)
        tx.after_commit(lambda: called.append("a"))

    async def ruins(tx: Transaction) -> None:
        tx.after_commit(lambda: called.append("never"))
        await tx.execute("ROLLBACK")
        raise OSError("as a full disk does")

    await asyncio.gather(database.write(job), database.write(ruins), return_exceptions=True)
    assert called == ["a"]


async def test_two_jobs_that_ruin_the_transaction_do_not_harm_the_third(database: Database) -> None:
    async def ruins(tx: Transaction) -> None:
        await tx.execute("ROLLBACK")
        raise OSError("as a full disk does")

    results = await asyncio.gather(
        *(database.write(job) for job in (ruins, keep("kept"), ruins)), return_exceptions=True
    )
    assert [isinstance(result, OSError) for result in results] == [True, False, True]
    assert await keys(database) == {"kept"}


# --- a file that cannot be written


async def test_where_the_file_is_busy_all_that_wait_are_refused_at_once(
    database: Database,
) -> None:
    statements = await traced(database)
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(
            *(database.write(keep(f"k{number}")) for number in range(20)), return_exceptions=True
        )
    assert all(isinstance(result, StorageUnavailable) for result in results)
    assert len([sql for sql in statements if sql.startswith("BEGIN")]) <= 1
    assert await database.write(keep("after")) == "after"


async def test_a_disk_that_is_full_refuses_and_is_used_again_when_it_is_not(
    database: Database,
) -> None:
    written = await database.write(keep("before"))
    with disk_full_beyond(log_size(database) + 4_096):
        results = await asyncio.gather(
            *(database.write(keep(f"k{number}", "v" * 9_000)) for number in range(4)),
            return_exceptions=True,
        )
    assert all(isinstance(result, StorageUnavailable) for result in results)
    assert await keys(database) == {written}
    assert await database.write(keep("after")) == "after"
    assert [row[0] for row in await database.fetch_all("PRAGMA integrity_check")] == ["ok"]


async def test_a_disk_that_is_full_at_the_end_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as database:
        await database.write(keep("kept", "v" * 100_000))
        with disk_full_beyond(path.stat().st_size):
            await database.close()
    async with opened(path) as reopened:
        assert await keys(reopened) == {"kept"}


# --- the end


async def test_an_end_that_is_broken_off_leaves_nobody_waiting(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "madeleine.db")
    begun, go_on = threading.Event(), threading.Event()

    async def slow(tx: Transaction) -> str:
        begun.set()
        go_on.wait(5)
        return await keep("slow")(tx)

    running = asyncio.create_task(database.write(slow))
    assert await asyncio.to_thread(begun.wait, 5)
    waiting = asyncio.create_task(database.write(keep("waits")))
    end = asyncio.create_task(database.close())
    for _ in range(3):
        await asyncio.sleep(0)
    end.cancel()
    go_on.set()
    results = await asyncio.wait_for(
        asyncio.gather(end, running, waiting, return_exceptions=True), timeout=5
    )
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == ["slow", "waits"]
    with closing(sqlite3.connect(tmp_path / "madeleine.db")) as plain:
        kept = {key for (key,) in plain.execute("SELECT key FROM application_state")}
    assert kept == {"slow", "waits"}


async def test_a_job_that_awaits_anything_else_is_told_so_and_undone(tmp_path: Path) -> None:
    async def waits(tx: Transaction) -> None:
        await keep("half")(tx)
        await asyncio.sleep(0)

    async with opened(tmp_path / "madeleine.db") as database:
        results = await asyncio.gather(
            database.write(waits), database.write(keep("kept")), return_exceptions=True
        )
        assert (type(results[0]), results[1]) == (RuntimeError, "kept")
        assert await keys(database) == {"kept"}

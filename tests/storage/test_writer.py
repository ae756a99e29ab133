"""Group commit: jobs share a transaction, and none of them suffers for another."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from bot.storage.database import Database
from bot.storage.statements import Transaction
from tests.storage.jobs import keep, keys, opened


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield database
    await database.close()


async def test_jobs_that_wait_together_share_one_transaction(database: Database) -> None:
    statements: list[str] = []
    await database._writing.set_trace_callback(statements.append)
    await asyncio.gather(*(database.write(keep(f"k{number}")) for number in range(100)))
    await database._writing.set_trace_callback(None)
    assert sum(sql.startswith("COMMIT") for sql in statements) <= 2
    assert len(await keys(database)) == 100


async def test_a_job_that_raises_is_undone_alone(database: Database) -> None:
    async def fails(tx: Transaction) -> None:
        await keep("half")(tx)
        raise ValueError("on purpose")

    first, failed, last = await asyncio.gather(
        database.write(keep("a")),
        database.write(fails),
        database.write(keep("b")),
        return_exceptions=True,
    )
    assert (first, last) == ("a", "b")
    assert isinstance(failed, ValueError)
    assert await keys(database) == {"a", "b"}


async def test_a_broken_constraint_is_the_callers_own(database: Database) -> None:
    results = await asyncio.gather(
        database.write(keep("same")),
        database.write(keep("same")),
        database.write(keep("other")),
        return_exceptions=True,
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    assert await keys(database) == {"same", "other"}


async def test_when_a_job_ends_the_transaction_the_others_are_run_again(database: Database) -> None:
    async def ruins(tx: Transaction) -> None:
        await tx.execute("ROLLBACK")
        raise OSError("as a full disk does")

    results = await asyncio.gather(
        *(database.write(keep(f"k{number}")) for number in range(5)),
        database.write(ruins),
        *(database.write(keep(f"l{number}")) for number in range(5)),
        return_exceptions=True,
    )
    assert [r for r in results if isinstance(r, Exception)] == [results[5]]
    assert len(await keys(database)) == 10


async def test_a_full_file_refuses_what_does_not_fit_and_keeps_what_does(
    database: Database,
) -> None:
    pages = await database.fetch_one("PRAGMA page_count")
    assert pages is not None
    await database._writing.execute(f"PRAGMA max_page_count = {pages[0] + 8}")
    results = await asyncio.gather(
        *(database.write(keep(f"k{number}", "v" * 8_000)) for number in range(20)),
        database.write(keep("small")),
        return_exceptions=True,
    )
    kept = {result for result in results if isinstance(result, str)}
    refused = [result for result in results if isinstance(result, Exception)]
    assert refused
    assert all(isinstance(error, StorageUnavailable) for error in refused)
    assert await keys(database) == kept
    await database._writing.execute("PRAGMA max_page_count = 1000000")
    assert await database.write(keep("after")) == "after"


async def test_a_cancelled_caller_parts_neither_commit_nor_invalidation(database: Database) -> None:
    invalidated: list[str] = []

    async def job(tx: Transaction) -> None:
        await keep("kept")(tx)
        tx.after_commit(lambda: invalidated.append("kept"))

    caller = asyncio.create_task(database.write(job))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await database.write(keep("next"))
    assert "kept" in await keys(database)
    assert invalidated == ["kept"]


async def test_callbacks_run_before_the_caller_hears_of_the_commit(database: Database) -> None:
    order: list[str] = []

    async def job(tx: Transaction) -> None:
        tx.after_commit(lambda: order.append("callback"))

    await database.write(job)
    order.append("caller")
    assert order == ["callback", "caller"]


async def test_a_callback_that_raises_keeps_no_other_from_running(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def raises() -> None:
        raise ValueError("on purpose")

    async def job(tx: Transaction) -> str:
        tx.after_commit(raises)
        tx.after_commit(lambda: done.append("second"))
        return "result"

    assert await database.write(job) == "result"
    assert done == ["second"]
    assert "callback_failed" in caplog.text


async def test_a_job_that_failed_calls_nothing_back(database: Database) -> None:
    called: list[str] = []

    async def job(tx: Transaction) -> None:
        tx.after_commit(lambda: called.append("no"))
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await database.write(job)
    assert called == []


async def test_a_full_queue_refuses_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "small.db", queue_size=3) as database:
        results = await asyncio.gather(
            *(database.write(keep(f"k{number}")) for number in range(10)), return_exceptions=True
        )
        assert sum(isinstance(r, StorageUnavailable) for r in results) == 7
        assert len(await keys(database)) == 3


async def test_closing_writes_what_is_queued_and_takes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as database:
        writes = [asyncio.create_task(database.write(keep(f"k{number}"))) for number in range(50)]
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    with pytest.raises(StorageUnavailable):
        await database.write(keep("late"))
    with pytest.raises(StorageUnavailable):
        await database.fetch_all("SELECT 1")
    async with opened(path) as reopened:
        assert len(await keys(reopened)) == 50

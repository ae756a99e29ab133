"""Jobs that the tests of storage write with, and what is then there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.storage.database import Database
from bot.storage.migrations import Migration
from bot.storage.statements import Transaction
from bot.storage.writer import Job


@asynccontextmanager
async def opened(
    path: Path,
    *,
    migrations: tuple[Migration, ...] | None = None,
    queue_size: int = 5_000,
    busy_timeout_ms: int = 5_000,
) -> AsyncIterator[Database]:
    """A database that is closed however the test ends: its threads would keep Python alive."""
    database = await Database.open(
        path, migrations=migrations, queue_size=queue_size, busy_timeout_ms=busy_timeout_ms
    )
    try:
        yield database
    finally:
        await database.close()


def keep(key: str, value: str = "v") -> Job[str]:
    async def job(tx: Transaction) -> str:
        await tx.execute("INSERT INTO application_state (key, value) VALUES (?, ?)", (key, value))
        return key

    return job


async def keys(database: Database) -> set[str]:
    return {row["key"] for row in await database.fetch_all("SELECT key FROM application_state")}

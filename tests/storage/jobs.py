"""Jobs that the tests of storage write with, and what is then there."""

from bot.storage.database import Database
from bot.storage.statements import Transaction
from bot.storage.writer import Job


def keep(key: str, value: str = "v") -> Job[str]:
    async def job(tx: Transaction) -> str:
        await tx.execute("INSERT INTO application_state (key, value) VALUES (?, ?)", (key, value))
        return key

    return job


async def keys(database: Database) -> set[str]:
    return {row["key"] for row in await database.fetch_all("SELECT key FROM application_state")}

"""Small facts about this installation, by key."""

from bot.storage.database import Database
from bot.storage.statements import Transaction


class ApplicationState:
    """Reads and writes `application_state`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, key: str) -> str | None:
        """The value under a key, or None."""
        row = await self._database.fetch_one(
            "SELECT value FROM application_state WHERE key = ?", (key,)
        )
        return None if row is None else str(row["value"])

    async def write(self, key: str, value: str) -> None:
        """Keep a value under a key."""

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO application_state (key, value) VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, value),
            )

        await self._database.write(job)

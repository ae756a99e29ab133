"""What a unit of work may do: run statements, read rows, name what follows the commit.

A unit of work runs in the thread of its connection, in one go: it awaits nothing but these methods,
and of what others change meanwhile it takes single looks only.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence

Row = sqlite3.Row
Value = str | int | float | bytes | None
Params = Sequence[Value]


class Snapshot:
    """Reads. Every statement is read to its end: an open cursor would hold back a checkpoint."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch_all(self, sql: str, params: Params = ()) -> list[Row]:
        """All rows of a query."""
        return self._connection.execute(sql, params).fetchall()

    async def fetch_one(self, sql: str, params: Params = ()) -> Row | None:
        """The first row of a query, or None."""
        rows = await self.fetch_all(sql, params)
        return rows[0] if rows else None

    async def fetch_int(self, sql: str, params: Params = ()) -> int:
        """The first column of the first row, as a count; 0 where there is none."""
        row = await self.fetch_one(sql, params)
        return int(row[0] or 0) if row else 0


class Transaction(Snapshot):
    """Reads and writes of one job: committed whole or not at all, and maybe run a second time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.callbacks: list[Callable[[], None]] = []

    async def execute(self, sql: str, params: Params = ()) -> int:
        """Run one statement; returns how many rows it changed."""
        return self._connection.execute(sql, params).rowcount

    async def execute_many(self, sql: str, rows: Iterable[Params]) -> None:
        """Run one statement for each row of parameters."""
        self._connection.executemany(sql, rows)

    async def insert(self, sql: str, params: Params = ()) -> int:
        """Run one INSERT; returns the new row's id."""
        cursor = self._connection.execute(sql, params)
        if cursor.lastrowid is None:
            raise RuntimeError("the statement inserted no row")
        return cursor.lastrowid

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` (it must not block) after the commit, before the caller hears of it."""
        self.callbacks.append(callback)

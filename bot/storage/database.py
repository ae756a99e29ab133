"""The database file: one connection writes, a few only read, a lock keeps others out."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from bot.errors import StartupError, StorageUnavailable
from bot.storage.connection import Connection, finish
from bot.storage.fitness import refuse_unfit
from bot.storage.migrations import Migration, load_migrations, migrate
from bot.storage.statements import Params, Row, Snapshot
from bot.storage.writer import LOCK_SLICE_MS, Job, Writer, as_unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")
Reading = Callable[[Snapshot], Coroutine[Any, Any, T]]

_MEGABYTE = 1024 * 1024


async def _connect(resources: AsyncExitStack, path: Path, pragmas: tuple[str, ...]) -> Connection:
    def connect() -> sqlite3.Connection:
        opened = sqlite3.connect(path, isolation_level=None)
        opened.row_factory = sqlite3.Row
        return opened

    connection = Connection(connect, iter_chunk_size=1)
    await connection
    resources.push_async_callback(connection.close)
    for pragma in pragmas:
        await connection.execute_fetchall(f"PRAGMA {pragma}")
    return connection


def _locked(path: Path) -> FileLock:
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StartupError("errors.storage.locked", path=str(path)) from None
    return lock


class Database:
    """Opened with `Database.open`, closed with `close`.

    Writes are jobs (see writer.py); reads never wait for writes.
    """

    def __init__(
        self,
        path: Path,
        resources: AsyncExitStack,
        writing: Connection,
        readers: list[Connection],
        writer: Writer,
    ) -> None:
        self.path = path
        self._resources = resources
        self._writing = writing
        self._readers = readers
        self._writer = writer
        self._closed = False
        self._idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        for reader in readers:
            self._idle.put_nowait(reader)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        readers: int = 2,
        queue_size: int = 5_000,
        batch_size: int = 256,
        busy_timeout_ms: int = 5_000,
        migrations: tuple[Migration, ...] | None = None,
    ) -> "Database":
        """Open or create the file and bring its schema up to date.

        Raises StartupError where another process holds it, it is no database, a newer or another
        program made it, or it cannot be opened and written; in all these cases it is as it was.
        """
        steps = load_migrations() if migrations is None else migrations
        busy = f"busy_timeout = {busy_timeout_ms}"
        try:
            async with AsyncExitStack() as resources:
                path.parent.mkdir(parents=True, exist_ok=True)
                resources.callback(_locked(path).release)
                refuse_unfit(path, len(steps))
                writing = await _connect(resources, path, (busy, *_WRITER_PRAGMAS))
                await migrate(writing, steps)
                reading = [
                    await _connect(resources, path, (busy, *_READER_PRAGMAS))
                    for _ in range(readers)
                ]
                slice_ms = min(busy_timeout_ms, LOCK_SLICE_MS)
                await writing.execute_fetchall(f"PRAGMA busy_timeout = {slice_ms}")
                writer = Writer(
                    writing,
                    queue_size=queue_size,
                    batch_size=batch_size,
                    patience_s=busy_timeout_ms / 1000,
                )
                return cls(path, resources.pop_all(), writing, reading, writer)
        except (OSError, sqlite3.Error) as error:
            raise StartupError(
                "errors.storage.cannot_open", path=str(path), reason=str(error)
            ) from error

    async def write(self, job: Job[T]) -> T:
        """Run a job; returns once it is on disk. See Writer.write for errors."""
        return await self._writer.write(job)

    async def read(self, reading: Reading[T]) -> T:
        """Run several reads over one state of the database."""
        async with self._reader() as connection:
            return await connection.run(lambda raw: _read_at_once(raw, reading))

    async def fetch_all(self, sql: str, params: Params = ()) -> list[Row]:
        """All rows of one query."""
        async with self._reader() as connection:
            return await connection.run(lambda raw: raw.execute(sql, params).fetchall())

    async def fetch_one(self, sql: str, params: Params = ()) -> Row | None:
        """The first row of one query, or None."""
        rows = await self.fetch_all(sql, params)
        return rows[0] if rows else None

    @asynccontextmanager
    async def _reader(self) -> AsyncGenerator[Connection]:
        if self._closed:
            raise StorageUnavailable("the database is closed")
        connection = await self._idle.get()
        try:
            yield connection
        except sqlite3.Error as error:
            raise as_unavailable(error) from error
        finally:
            self._idle.put_nowait(connection)

    async def fold_log(self) -> bool:
        """Fold the write-ahead log into the file and empty it; False while somebody reads it."""
        rows = list(await self._writing.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)"))
        return not rows[0][0]

    def hurry(self, *, after_s: float) -> None:
        """After that time a write that finds the file locked by another program fails at once."""
        self._writer.hurry(after_s=after_s)

    async def close(self, *, grace_s: float = 0.5) -> None:
        """Finish queued writes and reads, fold the log into the file, let go of the lock.

        Waits at most `grace_s` for another program that holds the file locked. Goes on to its end
        if the caller is cancelled.
        """
        if not self._closed:
            self._closed = True
            await asyncio.shield(asyncio.ensure_future(self._close(grace_s)))

    async def _close(self, grace_s: float) -> None:
        async with self._resources:
            await self._writer.close(grace_s)
            for _ in self._readers:
                await (await self._idle.get()).close()
            try:
                await self._writing.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:  # the log stays, and is read at the next start
                log.warning("checkpoint_failed", extra={"reason": str(error)})


def _read_at_once(connection: sqlite3.Connection, reading: Reading[T]) -> T:
    connection.execute("BEGIN")
    try:
        return finish(reading(Snapshot(connection)))
    finally:
        connection.rollback()


# FULL is affordable because commits are shared; NORMAL loses the last commits when the power goes.
_WRITER_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
    f"journal_size_limit = {64 * _MEGABYTE}",
    f"mmap_size = {256 * _MEGABYTE}",
)
_READER_PRAGMAS = ("query_only = ON", f"mmap_size = {256 * _MEGABYTE}")

"""Group commit: jobs that wait together share one transaction, each inside a savepoint of its own.

A job is `async def job(tx: Transaction)` that awaits nothing but `tx`: a whole batch runs in one
trip to the connection's thread. Its caller may be cancelled at any moment: the job still runs
whole, and its after-commit callbacks run in the writer, so that a commit and its invalidations
never part.
"""

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bot.background import Done, Raised, run_all, settle
from bot.errors import StorageUnavailable
from bot.storage.connection import Connection, finish
from bot.storage.statements import Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[Transaction], Awaitable[T]]
# Jobs of many result types wait in one queue; `Writer.write` gives each caller its own type back.
AnyJob = Callable[[Transaction], Awaitable[Any]]

_STORAGE_FAULTS = tuple(
    f"SQLITE_{name}"
    for name in (
        *("BUSY", "LOCKED", "FULL", "READONLY", "IOERR"),
        *("CANTOPEN", "CORRUPT", "NOTADB", "NOMEM"),
    )
)


LOCK_SLICE_MS = 100
"""SQLite cannot be called off while it waits for a lock, so it waits in slices of this length."""


def as_unavailable(error: Exception) -> Exception:
    """The error as callers know it: a fault of file or disk is StorageUnavailable, a bug a bug."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if isinstance(error, sqlite3.Error) and name.startswith(_STORAGE_FAULTS):
        return StorageUnavailable(f"{name}: {error}")
    return error


@dataclass(frozen=True, slots=True)
class _Pending:
    job: AnyJob
    future: asyncio.Future[Any]

    def resolve(self, outcome: Done[Any] | Raised) -> None:
        if self.future.done():
            return
        match outcome:
            case Done(value):
                self.future.set_result(value)
            case Raised(error):
                self.future.set_exception(as_unavailable(error))


_Settled = tuple[_Pending, Done[Any] | Raised, list[Callable[[], None]]]


class _TransactionLostError(Exception):
    """SQLite ended the whole transaction (a full disk does); nothing of the batch is kept."""

    def __init__(self, culprit: _Pending | None, error: Exception) -> None:
        super().__init__(str(error))
        self.culprit = culprit
        self.error = error


class Writer:
    """Owns the one connection that writes; its `busy_timeout` is LOCK_SLICE_MS at most.

    `patience_s`: how long a batch waits while another program writes.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        queue_size: int,
        batch_size: int,
        patience_s: float,
    ) -> None:
        self._connection = connection
        self._batch_size = batch_size
        self._patience_s = patience_s
        self._patient_until = math.inf
        self._queue: asyncio.Queue[_Pending | None] = asyncio.Queue(queue_size)
        self._closed = False
        self._task = asyncio.create_task(self._run(), name="storage-writer")

    async def write(self, job: Job[T]) -> T:
        """Run `job` in a transaction; returns its result once that is on disk.

        Raises StorageUnavailable (queue or disk full, busy, read-only, closed) with nothing kept,
        or what the job raised.
        """
        if self._closed:
            raise StorageUnavailable("the database is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait(_Pending(job, future))
        except asyncio.QueueFull:
            raise StorageUnavailable("too many writes are waiting") from None
        return await asyncio.shield(future)

    def hurry(self, *, after_s: float) -> None:
        """After that time a batch that finds the file locked fails at once."""
        self._patient_until = time.monotonic() + after_s

    async def close(self, grace_s: float) -> None:
        """Finish what is queued, then stop; waits no longer than this for another program."""
        self._patient_until = min(self._patient_until, time.monotonic() + grace_s)
        if not self._closed:
            self._closed = True
            await self._queue.put(None)
        await self._task

    async def _run(self) -> None:
        batch: list[_Pending] = []
        try:
            while await self._fill(batch):
                await self._commit(batch)
                batch.clear()
            if batch:
                await self._commit(batch)
        finally:  # however it ends, nobody waits for ever
            self._closed = True
            queued = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
            for pending in filter(None, (*batch, *queued)):
                pending.resolve(Raised(StorageUnavailable("the database is closed")))

    async def _fill(self, batch: list[_Pending]) -> bool:
        """Take what waits, at least one job; False where these are the last ones."""
        while not batch or (len(batch) < self._batch_size and not self._queue.empty()):
            pending = await self._queue.get()
            if pending is None:
                return False
            batch.append(pending)
        return True

    async def _commit(self, batch: list[_Pending]) -> None:
        try:
            settled = await self._connection.run(lambda db: self._run_together(db, batch))
        except sqlite3.Error as error:  # busy or read-only: trying job by job would wait each time
            for pending in batch:
                pending.resolve(Raised(error))
        except _TransactionLostError as lost:
            log.warning("transaction_lost", extra={"jobs": len(batch), "reason": str(lost.error)})
            for pending in batch:
                if pending is lost.culprit or len(batch) == 1:
                    pending.resolve(Raised(lost.error))
                else:
                    await self._commit([pending])
        else:
            for pending, outcome, callbacks in settled:
                run_all(callbacks)
                pending.resolve(outcome)

    def _run_together(self, db: sqlite3.Connection, batch: list[_Pending]) -> list[_Settled]:
        """One transaction from its beginning to its commit, in the connection's thread."""
        self._begin(db)
        settled = [_run_in_savepoint(db, pending) for pending in batch]
        _statement(db, "COMMIT", culprit=None)
        return settled

    def _begin(self, db: sqlite3.Connection) -> None:
        begun = time.monotonic()
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                until = min(begun + self._patience_s, self._patient_until)
                is_busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
                if not is_busy or time.monotonic() >= until:
                    raise
            else:
                return


def _run_in_savepoint(db: sqlite3.Connection, pending: _Pending) -> _Settled:
    _statement(db, "SAVEPOINT job", culprit=pending)
    tx = Transaction(db)
    try:
        outcome = finish(settle(pending.job(tx)))
    except RuntimeError as awaits_else:
        outcome = Raised(awaits_else)
    if isinstance(outcome, Raised):
        if not db.in_transaction:
            raise _TransactionLostError(pending, outcome.error)
        _statement(db, "ROLLBACK TO job", culprit=pending)
        tx.callbacks.clear()
    _statement(db, "RELEASE job", culprit=pending)
    return pending, outcome, tx.callbacks


def _statement(db: sqlite3.Connection, sql: str, *, culprit: _Pending | None) -> None:
    """Run a statement that frames jobs; if it fails, no transaction is left open."""
    try:
        db.execute(sql)
    except sqlite3.Error as error:
        if db.in_transaction:
            db.rollback()
        raise _TransactionLostError(culprit, error) from error

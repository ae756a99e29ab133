"""What could not be written while the database was busy or full waits here, bounded."""

import asyncio
import logging
from collections import deque
from contextlib import suppress

from bot.background import Done, Raised, report_bug, settle
from bot.errors import StorageUnavailable
from bot.storage.database import Database
from bot.storage.writer import Job

log = logging.getLogger(__name__)


class LateWrites:
    """Jobs that wait for the database, oldest first; of too many the oldest are lost."""

    def __init__(self, database: Database, *, limit: int) -> None:
        self._database = database
        self._limit = limit
        self._waiting: deque[Job[None]] = deque()
        self._retry: asyncio.Task[bool] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def write(self, job: Job[None]) -> bool:
        """Write now, after what already waits; False where it has to wait."""
        if await self.retry() and await self._written(job):
            return True
        self.keep(job)
        return False

    def keep(self, job: Job[None]) -> None:
        """Let a job wait for a later retry."""
        self._waiting.append(job)
        if len(self._waiting) > self._limit:
            self._waiting.popleft()
            log.error("late_write_lost")

    async def retry(self) -> bool:
        """Write what waits, each job once; False where the database still cannot.

        All who ask meanwhile wait for the same try; a caller that is cancelled does not end it.
        """
        if not self._waiting:
            return True
        if self._retry is None or self._retry.done():
            self._retry = asyncio.create_task(self._write_waiting(), name="late-writes")
        return await asyncio.shield(self._retry)

    async def flush(self, *, within_s: float) -> None:
        """Write what waits for the last time; what could not be written is counted in the log."""
        self._database.hurry(after_s=within_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.retry()
        if self._waiting:
            log.error("late_writes_lost", extra={"writes": len(self._waiting)})
        self._waiting.clear()
        self._limit = 0

    async def _write_waiting(self) -> bool:
        while self._waiting:
            job = self._waiting[0]
            if not await self._written(job):
                return False
            if self._waiting and self._waiting[0] is job:  # else too many came meanwhile
                self._waiting.popleft()
        return True

    async def _written(self, job: Job[None]) -> bool:
        """Whether a job is done with: written, or broken, so that it never can be."""
        match await settle(self._database.write(job)):
            case Done():
                return True
            case Raised(StorageUnavailable(reason=reason)):
                waiting = len(self._waiting)
                log.warning("write_waits", extra={"waiting": waiting, "reason": reason})
                return False
            case Raised(error):
                report_bug("late_write_broken", error)
                return True

"""What could not be written while the database was busy or full waits here, bounded."""

import logging
from collections import deque

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

    def __len__(self) -> int:
        return len(self._waiting)

    async def write(self, job: Job[None]) -> bool:
        """Write now, after what already waits; False where it has to wait."""
        self._waiting.append(job)
        if len(self._waiting) > self._limit:
            self._waiting.popleft()
            log.warning("late_write_lost")
        return await self.retry()

    async def retry(self) -> bool:
        """Write what waits; False where the database still cannot."""
        while self._waiting:
            job = self._waiting[0]
            try:
                await self._database.write(job)
            except StorageUnavailable as unavailable:
                log.warning(
                    "write_waits",
                    extra={"waiting": len(self._waiting), "reason": unavailable.reason},
                )
                return False
            if self._waiting and self._waiting[0] is job:
                self._waiting.popleft()
        return True

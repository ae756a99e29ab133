"""Discord's ids: a time in milliseconds, then a counter, so that they sort by age."""

from __future__ import annotations

import time
from datetime import UTC, datetime

DISCORD_EPOCH_MS = 1_420_070_400_000
TIME_SHIFT = 22


class Snowflakes:
    """Gives ids that increase strictly, also within a millisecond and when the clock goes back."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        now = (int(time.time() * 1000) - DISCORD_EPOCH_MS) << TIME_SHIFT
        self._last = max(now, self._last + 1)
        return self._last


def created_at(snowflake: int) -> datetime:
    """The moment an id was given, in UTC."""
    milliseconds = (snowflake >> TIME_SHIFT) + DISCORD_EPOCH_MS
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def snowflake_at(moment: datetime) -> int:
    """The smallest id of a moment: for messages of long ago."""
    return (int(moment.timestamp() * 1000) - DISCORD_EPOCH_MS) << TIME_SHIFT

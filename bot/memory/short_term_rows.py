"""The rows of short-term memory: summary and category text, and nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.audience import Origin
from bot.clock import Clock, from_ms, to_ms
from bot.identifiers import LineageId, OriginId, UserId
from bot.storage.database import Database
from bot.storage.statements import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermText:
    """What was noted about a conversation. `written_by` is None where the model wrote it."""

    summary: str = ""
    categories: Mapping[str, str] = field(default_factory=dict[str, str])
    written_by: UserId | None = None
    written_at: datetime

    def __bool__(self) -> bool:
        return bool(self.summary or self.categories)


class ShortTermRows:
    """Reads and writes `short_term_memories`. A row exists only while it has text."""

    def __init__(self, database: Database, clock: Clock, *, retention: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._retention = retention

    async def read(self, origin: OriginId, lineage: LineageId) -> ShortTermText | None:
        """The text of a conversation, unless it is older than the retention."""
        row = await self._database.fetch_one(
            "SELECT * FROM short_term_memories"
            " WHERE origin_id = ? AND lineage_id = ? AND written_at > ?",
            (origin, lineage, to_ms(self._clock.now() - self._retention)),
        )
        if row is None:
            return None
        return ShortTermText(
            summary=row["summary"],
            categories=json.loads(row["categories"]),
            written_by=None if row["written_by"] is None else UserId(row["written_by"]),
            written_at=from_ms(row["written_at"]),
        )

    async def write(self, origin: Origin, lineage: LineageId, text: ShortTermText) -> None:
        """Keep the text of a conversation; empty text removes its row."""

        async def job(tx: Transaction) -> None:
            if not text:
                await tx.execute(
                    "DELETE FROM short_term_memories WHERE origin_id = ? AND lineage_id = ?",
                    (origin.id, lineage),
                )
                return
            await tx.execute(
                "INSERT INTO short_term_memories (origin_id, lineage_id, parent_id, summary,"
                " categories, written_by, written_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (origin_id, lineage_id) DO UPDATE SET"
                " parent_id = excluded.parent_id, summary = excluded.summary,"
                " categories = excluded.categories, written_by = excluded.written_by,"
                " written_at = excluded.written_at",
                (
                    *(origin.id, lineage, origin.parent_id, text.summary),
                    json.dumps(dict(text.categories), ensure_ascii=False),
                    *(text.written_by, to_ms(text.written_at)),
                ),
            )

        await self._database.write(job)

    async def drop_expired(self) -> int:
        """Delete rows whose text is older than the retention; returns how many went."""
        limit = to_ms(self._clock.now() - self._retention)

        async def job(tx: Transaction) -> int:
            return await tx.execute(
                "DELETE FROM short_term_memories WHERE written_at <= ?", (limit,)
            )

        return await self._database.write(job)

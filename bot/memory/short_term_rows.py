"""The rows of short-term memory: summary and category text, and nothing else."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.audience import Origin
from bot.clock import Clock, from_ms, to_ms
from bot.identifiers import GuildId, LineageId, OriginId, UserId
from bot.memory.working import Entry, newest_entries
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermText:
    """What was noted about a conversation. `written_by` is None where the model wrote it."""

    summary: str = ""
    categories: Mapping[str, str] = field(default_factory=dict[str, str])
    written_by: UserId | None = None
    written_at: datetime

    def __bool__(self) -> bool:
        return bool(self.summary or self.categories)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermChange:
    """What is written into a note: no summary leaves the old one, an empty text clears a field.

    `labels`: the categories that there are; what stands under others goes. None: it stays.
    """

    summary: str | None
    categories: Mapping[str, str]
    written_by: UserId | None
    written_at: datetime
    labels: frozenset[str] | None = None

    def of(self, old: ShortTermText) -> ShortTermText:
        """The note as it is after the change."""
        merged = {**old.categories, **self.categories}
        return ShortTermText(
            summary=old.summary if self.summary is None else self.summary,
            categories={
                label: text
                for label, text in merged.items()
                if text and (self.labels is None or label in self.labels)
            },
            written_by=self.written_by,
            written_at=self.written_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is on disk of one conversation."""

    guild: GuildId
    text: ShortTermText | None = None
    turns: tuple[Entry, ...] = ()


class ShortTermRows:
    """Reads and writes `short_term_memories`. A row exists only while it has text."""

    def __init__(self, database: Database, clock: Clock, *, retention: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._retention = retention

    async def read(
        self, origins: Iterable[OriginId], lineage: LineageId, *, since: datetime, most: int
    ) -> Mapping[OriginId, Conversation]:
        """What is on disk of some conversations: texts within the retention, and the last messages
        that were said `since` then, at most so many each.
        """
        limit = to_ms(self._clock.now() - self._retention)
        places = json.dumps(sorted(origins))

        async def reading(db: Snapshot) -> Mapping[OriginId, Conversation]:
            texts = await db.fetch_all(
                "SELECT s.*, o.guild_id FROM short_term_memories AS s"
                " JOIN origins AS o ON o.id = s.origin_id WHERE s.lineage_id = ?"
                " AND s.origin_id IN (SELECT value FROM json_each(?)) AND s.written_at > ?",
                (lineage, places, limit),
            )
            said = await newest_entries(db, places, lineage, since=since, most=most)
            return _conversations(texts, said)

        return await self._database.read(reading)

    async def write(self, origin: Origin, lineage: LineageId, change: ShortTermChange) -> None:
        """Change the text of a conversation; a row without text is removed."""
        limit = to_ms(self._clock.now() - self._retention)

        async def job(tx: Transaction) -> None:
            nothing = ShortTermText(written_at=change.written_at)
            text = change.of(await _read(tx, origin.id, lineage, limit) or nothing)
            await tx.execute(
                "DELETE FROM short_term_memories WHERE origin_id = ? AND lineage_id = ?",
                (origin.id, lineage),
            )
            if text:
                await tx.execute(
                    "INSERT INTO short_term_memories (origin_id, lineage_id, parent_id, summary,"
                    " categories, written_by, written_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
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


def _conversations(
    texts: Iterable[Row], said: Mapping[OriginId, tuple[GuildId, tuple[Entry, ...]]]
) -> Mapping[OriginId, Conversation]:
    found = {
        origin: Conversation(guild=guild, turns=turns) for origin, (guild, turns) in said.items()
    }
    for row in texts:
        origin = OriginId(row["origin_id"])
        before = found.get(origin) or Conversation(guild=GuildId(row["guild_id"]))
        found[origin] = replace(before, text=_text(row))
    return found


async def _read(
    db: Snapshot, origin: OriginId, lineage: LineageId, written_after: int
) -> ShortTermText | None:
    row = await db.fetch_one(
        "SELECT * FROM short_term_memories"
        " WHERE origin_id = ? AND lineage_id = ? AND written_at > ?",
        (origin, lineage, written_after),
    )
    return _text(row) if row else None


def _text(row: Row) -> ShortTermText:
    return ShortTermText(
        summary=row["summary"],
        categories=json.loads(row["categories"]),
        written_by=None if row["written_by"] is None else UserId(row["written_by"]),
        written_at=from_ms(row["written_at"]),
    )

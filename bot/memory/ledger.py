"""The ledger: episodes that were made of working memory, and the matters that are still open."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.audience import Audience
from bot.clock import from_ms
from bot.identifiers import (
    GLOBAL_LINEAGE,
    EntryId,
    GuildId,
    LedgerId,
    LineageId,
    MessageId,
    OriginId,
    PersonaId,
    UserId,
)
from bot.storage.database import Database
from bot.storage.statements import Params, Row, Snapshot, Transaction

MOST_READ = 400
"""Episodes that are looked at for one prompt: the newest, and those that mattered most."""
MOST_QUOTES = 6
"""Quotes of one episode that are told, the newest: each time a matter goes on, some are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Something that was said, word for word; by a person, or by a persona."""

    content: str
    said_by: UserId | None
    persona: PersonaId | None = None
    message_id: MessageId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One entry of the ledger, told in the third person. Times are those of the event."""

    id: LedgerId
    origin: OriginId
    content: str
    importance: int
    happened_from: datetime
    happened_until: datetime
    quotes: tuple[Quote, ...] = ()
    people: frozenset[UserId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """What is unresolved: an episode, and the entries that it keeps in working memory."""

    id: LedgerId
    content: str
    happened_from: datetime
    entries: tuple[EntryId, ...]


class Ledger:
    """Reads the ledger; the handoff engine writes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def episodes(
        self, audience: Audience, lineage: LineageId, *, limit: int = MOST_READ
    ) -> tuple[Episode, ...]:
        """The episodes that the audience may hear, in order of time; of too many, the newest and
        the most important.
        """
        places = json.dumps(audience.ids)

        async def reading(db: Snapshot) -> tuple[Episode, ...]:
            rows = await db.fetch_all(
                "WITH heard AS (SELECT * FROM ledger_entries WHERE lineage_id IN (?1, ?2)"
                " AND origin_id IN (SELECT value FROM json_each(?3)))"
                " SELECT * FROM (SELECT * FROM heard ORDER BY happened_until DESC LIMIT ?4)"
                " UNION SELECT * FROM"
                " (SELECT * FROM heard ORDER BY importance DESC, happened_until DESC LIMIT ?4)"
                " ORDER BY happened_until, id",
                (lineage, GLOBAL_LINEAGE, places, limit // 2),
            )
            return await _episodes(db, rows)

        return await self._database.read(reading)

    async def open_matters(self, audience: Audience, lineage: LineageId) -> tuple[Matter, ...]:
        """What is unresolved in the room where the audience stands, oldest first."""
        return await self._database.read(lambda db: open_matters(db, audience.here, lineage))


async def open_matters(db: Snapshot, origin: OriginId, lineage: LineageId) -> tuple[Matter, ...]:
    """The matters of one buffer, oldest first: episodes that still hold pinned entries."""
    rows = await db.fetch_all(
        "SELECT l.id, l.content, l.happened_from, s.entry_id"
        " FROM buffer_entries AS e JOIN ledger_sources AS s ON s.entry_id = e.id"
        " JOIN ledger_entries AS l ON l.id = s.ledger_id"
        " WHERE e.origin_id = ? AND e.lineage_id = ? AND e.pinned = 1"
        " ORDER BY l.happened_from, l.id, s.said_at, s.entry_id",
        (origin, lineage),
    )
    held: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        held[row["id"]].append(row)
    return tuple(
        Matter(
            id=LedgerId(ledger),
            content=entries[0]["content"],
            happened_from=from_ms(entries[0]["happened_from"]),
            entries=tuple(EntryId(row["entry_id"]) for row in entries),
        )
        for ledger, entries in held.items()
    )


async def forget_messages(tx: Transaction, messages: Iterable[MessageId]) -> None:
    """What was made of deleted messages is dropped: it may tell what they said."""
    wanted = json.dumps(list(messages))
    await drop_episodes(
        tx,
        "SELECT ledger_id FROM ledger_sources WHERE message_id IN (SELECT value FROM json_each(?1))"
        " UNION SELECT ledger_id FROM ledger_quotes"
        " WHERE message_id IN (SELECT value FROM json_each(?1))",
        (wanted,),
    )


async def forget_person(tx: Transaction, person: UserId, guild: GuildId) -> None:
    """A person is quoted no more in a server, or anywhere (guild 0).

    Episodes that were made of what they alone said are dropped.
    """
    here = "(?2 = 0 OR l.origin_id IN (SELECT id FROM origins WHERE guild_id = ?2))"
    await tx.execute(
        "DELETE FROM ledger_quotes WHERE said_by = ?1 AND ledger_id IN"
        f" (SELECT l.id FROM ledger_entries AS l WHERE {here})",
        (person, guild),
    )
    await drop_episodes(
        tx,
        f"SELECT l.id FROM ledger_entries AS l WHERE {here} AND EXISTS (SELECT 1 FROM"
        " ledger_sources AS s WHERE s.ledger_id = l.id AND s.said_by = ?1) AND NOT EXISTS"
        " (SELECT 1 FROM ledger_sources AS s WHERE s.ledger_id = l.id AND s.said_by != ?1)",
        (person, guild),
    )


async def drop_episodes(tx: Transaction, which: str, params: Params) -> None:
    """Delete the episodes that a query names, their vectors too; what they kept open is not."""
    rows = await tx.fetch_all(which, params)
    ids = json.dumps([row[0] for row in rows])
    await tx.execute(
        "UPDATE buffer_entries SET pinned = 0, version = version + 1 WHERE pinned = 1 AND id IN"
        " (SELECT entry_id FROM ledger_sources"
        " WHERE ledger_id IN (SELECT value FROM json_each(?)))",
        (ids,),
    )
    await tx.execute(
        "DELETE FROM embeddings WHERE (partition, item) IN (SELECT 'ledger:' || lineage_id || ':'"
        " || origin_id, CAST(id AS TEXT) FROM ledger_entries"
        " WHERE id IN (SELECT value FROM json_each(?)))",
        (ids,),
    )
    await tx.execute(
        "DELETE FROM ledger_entries WHERE id IN (SELECT value FROM json_each(?))", (ids,)
    )


async def _episodes(db: Snapshot, rows: Iterable[Row]) -> tuple[Episode, ...]:
    rows = list(rows)
    ids = json.dumps([row["id"] for row in rows])
    quotes = _by_episode(
        await db.fetch_all(
            "SELECT * FROM ledger_quotes WHERE ledger_id IN (SELECT value FROM json_each(?))"
            " ORDER BY ledger_id, position",
            (ids,),
        )
    )
    people = _by_episode(
        await db.fetch_all(
            "SELECT * FROM ledger_people WHERE ledger_id IN (SELECT value FROM json_each(?))",
            (ids,),
        )
    )
    return tuple(
        Episode(
            id=LedgerId(row["id"]),
            origin=OriginId(row["origin_id"]),
            content=row["content"],
            importance=row["importance"],
            happened_from=from_ms(row["happened_from"]),
            happened_until=from_ms(row["happened_until"]),
            quotes=tuple(map(_quote, quotes.get(row["id"], [])[-MOST_QUOTES:])),
            people=frozenset(UserId(one["user_id"]) for one in people.get(row["id"], ())),
        )
        for row in rows
    )


def _by_episode(rows: Iterable[Row]) -> Mapping[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["ledger_id"]].append(row)
    return found


def _quote(row: Row) -> Quote:
    return Quote(
        content=row["content"],
        said_by=None if row["said_by"] is None else UserId(row["said_by"]),
        persona=None if row["persona_id"] is None else PersonaId(row["persona_id"]),
        message_id=None if row["message_id"] is None else MessageId(row["message_id"]),
    )

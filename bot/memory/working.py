"""Working memory: what was said in one room, entry by entry, as one lineage perceived it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.audience import Audience
from bot.clock import from_ms, to_ms
from bot.config import HandoffConfig
from bot.identifiers import (
    EntryId,
    GuildId,
    LineageId,
    MessageId,
    OriginId,
    PersonaId,
    TurnId,
    UserId,
)
from bot.llm.tokens import estimate_tokens
from bot.memory.buffers import BufferKey, note_entries, read_buffer
from bot.memory.ledger import forget_messages, forget_person
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction
from bot.storage.writer import Job

_PLAIN_RATIO = 1.0
"""Stored token counts are plain; a model's learned ratio is applied where a prompt is made."""


MOST_READ = 600
"""Entries of one buffer that are read at once; more fit no prompt."""


class EntryKind(StrEnum):
    """What an entry is."""

    DIALOGUE = "dialogue"
    ACTION = "action"
    THOUGHT = "thought"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Something said, before it is an entry: by a person (`author`) or by a persona."""

    content: str
    said_at: datetime
    author: UserId | None = None
    persona: PersonaId | None = None
    message_id: MessageId | None = None
    turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What silences mean: from when on one begins a scene, and from when on a room is quiet."""

    scene_silence: timedelta
    goes_quiet: timedelta

    @classmethod
    def of(cls, config: HandoffConfig) -> "Pace":
        """The pace that the config sets."""
        return cls(
            scene_silence=timedelta(minutes=config.scene_silence_min),
            goes_quiet=timedelta(minutes=config.idle_turns * config.idle_turn_min),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of working memory. `scene` numbers the stretches of talk in a room."""

    id: EntryId
    kind: EntryKind
    author: UserId | None
    persona: PersonaId | None
    content: str
    message_id: MessageId | None
    said_at: datetime
    scene: int
    pinned: bool
    version: int
    tokens: int


class WorkingMemory:
    """Reads and mends working memory; entries are written within a turn's own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def entries(self, audience: Audience, lineage: LineageId) -> tuple[Entry, ...]:
        """The buffer of the room where the audience stands, oldest first.

        Of a buffer that grew very long, because its handoffs failed, the newest entries.
        """
        rows = await self._database.fetch_all(
            "SELECT * FROM buffer_entries WHERE origin_id = ? AND lineage_id = ?"
            " ORDER BY said_at DESC, id DESC LIMIT ?",
            (audience.here, lineage, MOST_READ),
        )
        return tuple(map(_entry, reversed(rows)))

    async def forget_author(self, author: UserId, guild: GuildId) -> None:
        """Take everything a person said out of the buffers of one server, or of all (guild 0).

        What handoffs made of it goes too, where nobody else said it.
        """

        async def job(tx: Transaction) -> None:
            for table in ("buffer_entries", "entry_archive"):
                await tx.execute(
                    f"DELETE FROM {table} WHERE author_id = ?1 AND (?2 = 0 OR origin_id IN"
                    " (SELECT id FROM origins WHERE guild_id = ?2))",
                    (author, guild),
                )
            await forget_person(tx, author, guild)

        await self._database.write(job)


async def newest_entries(
    db: Snapshot, origins: str, lineage: LineageId, *, since: datetime, most: int
) -> Mapping[OriginId, tuple[GuildId, tuple[Entry, ...]]]:
    """The last entries of several rooms (a JSON list) since a time, oldest first; with the server.

    Each room's are at most so many.
    """
    rows = await db.fetch_all(
        "SELECT * FROM (SELECT e.*, o.guild_id, row_number() OVER (PARTITION BY e.origin_id"
        " ORDER BY e.said_at DESC, e.id DESC) AS place FROM buffer_entries AS e"
        " JOIN origins AS o ON o.id = e.origin_id WHERE e.lineage_id = ? AND e.said_at > ?"
        " AND e.origin_id IN (SELECT value FROM json_each(?))) WHERE place <= ?"
        " ORDER BY said_at, id",
        (lineage, to_ms(since), origins, most),
    )
    found: dict[OriginId, tuple[GuildId, tuple[Entry, ...]]] = {}
    for row in rows:
        guild, origin = GuildId(row["guild_id"]), OriginId(row["origin_id"])
        found[origin] = guild, (*found.get(origin, (guild, ()))[1], _entry(row))
    return found


async def oldest_entries(
    db: Snapshot, origin: OriginId, lineage: LineageId, *, most: int
) -> tuple[Entry, ...]:
    """The oldest entries of a buffer, oldest first; what is pinned besides."""
    rows = await db.fetch_all(
        "SELECT * FROM (SELECT * FROM buffer_entries WHERE origin_id = ?1 AND lineage_id = ?2"
        " AND pinned = 0 ORDER BY said_at, id LIMIT ?3) UNION ALL SELECT * FROM buffer_entries"
        " WHERE origin_id = ?1 AND lineage_id = ?2 AND pinned = 1 ORDER BY said_at, id",
        (origin, lineage, most),
    )
    return tuple(map(_entry, rows))


async def handed_over(
    db: Snapshot, lineage: LineageId, messages: Iterable[MessageId]
) -> frozenset[MessageId]:
    """Those of some messages that a handoff took out of a lineage's working memory lately."""
    rows = await db.fetch_all(
        "SELECT message_id FROM entry_archive WHERE lineage_id = ?"
        " AND message_id IN (SELECT value FROM json_each(?))",
        (lineage, json.dumps(sorted(messages))),
    )
    return frozenset(MessageId(row["message_id"]) for row in rows)


def editing(message: MessageId, content: str) -> Job[None]:
    """The job that brings what was captured of a message up to its new text."""
    tokens = estimate_tokens(content, _PLAIN_RATIO)

    async def job(tx: Transaction) -> None:
        await tx.execute(
            "UPDATE buffer_entries SET content = ?, tokens = ?, version = version + 1"
            " WHERE message_id = ? AND content != ?",
            (content, tokens, message, content),
        )
        await tx.execute(
            "UPDATE entry_archive SET content = ?, tokens = ? WHERE message_id = ?",
            (content, tokens, message),
        )
        await tx.execute(
            "DELETE FROM ledger_quotes WHERE message_id = ? AND instr(?, content) = 0",
            (message, content),
        )

    return job


def forgetting(messages: Sequence[MessageId]) -> Job[None]:
    """The job that takes deleted messages out of all buffers.

    A reply of several messages goes whole where one of them is deleted. What was archived of them,
    and the episodes that were made of them, go too.
    """

    async def job(tx: Transaction) -> None:
        await forget_messages(tx, [*messages, *await _replies_with(tx, messages)])
        for message in messages:
            for table in ("buffer_entries", "entry_archive"):
                await tx.execute(f"DELETE FROM {table} WHERE message_id = ?", (message,))
                await tx.execute(
                    f"DELETE FROM {table} WHERE persona_id IS NOT NULL AND turn_id ="
                    " (SELECT turn_id FROM turn_replies WHERE message_id = ?)",
                    (message,),
                )

    return job


async def _replies_with(tx: Transaction, messages: Sequence[MessageId]) -> list[MessageId]:
    """The first messages of the replies that some messages belong to: entries are known by them."""
    rows = await tx.fetch_all(
        "SELECT first.message_id FROM turn_replies AS part JOIN turn_replies AS first"
        " ON first.turn_id = part.turn_id AND first.position = 0"
        " WHERE part.message_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(messages)),),
    )
    return [MessageId(row["message_id"]) for row in rows]


async def add_entries(
    tx: Transaction,
    origin: OriginId,
    lineage: LineageId,
    utterances: Iterable[Utterance],
    pace: Pace,
) -> None:
    """Append what was said; a message that is captured already stays as it is.

    A silence begins a scene, and so does what a person or an event began one with.
    """
    key = BufferKey(origin=origin, lineage=lineage)
    buffer = await read_buffer(tx, key)
    last = await tx.fetch_one(
        "SELECT said_at, scene FROM buffer_entries WHERE origin_id = ? AND lineage_id = ?"
        " ORDER BY said_at DESC, id DESC LIMIT 1",
        (origin, lineage),
    )
    last_at = from_ms(last["said_at"]) if last else None
    scene = max(last["scene"] if last else 0, buffer.scene if buffer else 0)
    for utterance in utterances:
        if last_at is not None and utterance.said_at - last_at >= pace.scene_silence:
            scene += 1
        last_at = max(last_at or utterance.said_at, utterance.said_at)
        await tx.execute(
            "INSERT INTO buffer_entries (origin_id, lineage_id, kind, author_id, persona_id,"
            " content, message_id, turn_id, said_at, scene, tokens)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (origin_id, lineage_id, message_id) DO NOTHING",
            (
                *(origin, lineage, EntryKind.DIALOGUE, utterance.author, utterance.persona),
                *(utterance.content, utterance.message_id, utterance.turn),
                *(to_ms(utterance.said_at), scene),
                estimate_tokens(utterance.content, _PLAIN_RATIO),
            ),
        )
    if last_at is not None:
        await note_entries(tx, key, scene=scene, due_at=last_at + pace.goes_quiet)


async def drop_entries(tx: Transaction, entries: Iterable[EntryId]) -> int:
    """Delete entries that nothing takes over; returns how many there were."""
    return await tx.execute(
        "DELETE FROM buffer_entries WHERE pinned = 0 AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(entries)),),
    )


async def advance_cursor(
    tx: Transaction, origin: OriginId, lineage: LineageId, message: MessageId
) -> None:
    """Move the capture cursor of a buffer; it never goes back."""
    await tx.execute(
        "INSERT INTO capture_cursors (origin_id, lineage_id, message_id) VALUES (?, ?, ?)"
        " ON CONFLICT (origin_id, lineage_id) DO UPDATE SET"
        " message_id = max(message_id, excluded.message_id)",
        (origin, lineage, message),
    )


async def cursor_of(db: Snapshot, origin: OriginId, lineage: LineageId) -> MessageId:
    """The newest message that was captured for a buffer; 0 where none was."""
    return MessageId(
        await db.fetch_int(
            "SELECT message_id FROM capture_cursors WHERE origin_id = ? AND lineage_id = ?",
            (origin, lineage),
        )
    )


def _entry(row: Row) -> Entry:
    return Entry(
        id=EntryId(row["id"]),
        kind=EntryKind(row["kind"]),
        author=None if row["author_id"] is None else UserId(row["author_id"]),
        persona=None if row["persona_id"] is None else PersonaId(row["persona_id"]),
        content=row["content"],
        message_id=None if row["message_id"] is None else MessageId(row["message_id"]),
        said_at=from_ms(row["said_at"]),
        scene=row["scene"],
        pinned=bool(row["pinned"]),
        version=row["version"],
        tokens=row["tokens"],
    )

"""Working memory: what was said in one room, entry by entry, as one lineage perceived it."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.audience import Audience
from bot.clock import from_ms, to_ms
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
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction
from bot.storage.writer import Job

log = logging.getLogger(__name__)

_PLAIN_RATIO = 1.0
"""Stored token counts are plain; a model's learned ratio is applied where a prompt is made."""


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
        """The buffer of the room where the audience stands, oldest first."""
        rows = await self._database.fetch_all(
            "SELECT * FROM buffer_entries WHERE origin_id = ? AND lineage_id = ?"
            " ORDER BY said_at, id",
            (audience.here, lineage),
        )
        return tuple(map(_entry, rows))

    async def forget_author(self, author: UserId, guild: GuildId) -> None:
        """Take everything a person said out of the buffers of one server, or of all (guild 0)."""

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "DELETE FROM buffer_entries WHERE author_id = ?1 AND (?2 = 0 OR origin_id IN"
                " (SELECT id FROM origins WHERE guild_id = ?2))",
                (author, guild),
            )

        await self._database.write(job)


def editing(message: MessageId, content: str) -> Job[None]:
    """The job that brings what was captured of a message up to its new text."""
    tokens = estimate_tokens(content, _PLAIN_RATIO)

    async def job(tx: Transaction) -> None:
        await tx.execute(
            "UPDATE buffer_entries SET content = ?, tokens = ?, version = version + 1"
            " WHERE message_id = ? AND content != ?",
            (content, tokens, message, content),
        )

    return job


def forgetting(messages: Sequence[MessageId]) -> Job[None]:
    """The job that takes deleted messages out of all buffers.

    A reply of several messages goes whole where one of them is deleted.
    """

    async def job(tx: Transaction) -> None:
        for message in messages:
            await tx.execute("DELETE FROM buffer_entries WHERE message_id = ?", (message,))
            await tx.execute(
                "DELETE FROM buffer_entries WHERE persona_id IS NOT NULL AND turn_id ="
                " (SELECT turn_id FROM turn_replies WHERE message_id = ?)",
                (message,),
            )

    return job


async def add_entries(
    tx: Transaction,
    origin: OriginId,
    lineage: LineageId,
    utterances: Iterable[Utterance],
    *,
    scene_silence: timedelta,
    limit: int,
) -> None:
    """Append what was said; a message that is captured already stays as it is.

    A silence of `scene_silence` begins a scene; of more than `limit` entries the oldest go.
    """
    silence_ms = round(scene_silence.total_seconds() * 1000)
    last = await tx.fetch_one(
        "SELECT said_at, scene FROM buffer_entries WHERE origin_id = ? AND lineage_id = ?"
        " ORDER BY said_at DESC, id DESC LIMIT 1",
        (origin, lineage),
    )
    last_at, scene = (last["said_at"], last["scene"]) if last else (None, 0)
    for utterance in utterances:
        said_at = to_ms(utterance.said_at)
        if last_at is not None and said_at - last_at >= silence_ms:
            scene += 1
        last_at = said_at if last_at is None else max(last_at, said_at)
        await tx.execute(
            "INSERT INTO buffer_entries (origin_id, lineage_id, kind, author_id, persona_id,"
            " content, message_id, turn_id, said_at, scene, tokens)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (origin_id, lineage_id, message_id) DO NOTHING",
            (
                *(origin, lineage, EntryKind.DIALOGUE, utterance.author, utterance.persona),
                *(utterance.content, utterance.message_id, utterance.turn, said_at, scene),
                estimate_tokens(utterance.content, _PLAIN_RATIO),
            ),
        )
    await _keep_bounded(tx, origin, lineage, limit)


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


async def _keep_bounded(tx: Transaction, origin: OriginId, lineage: LineageId, limit: int) -> None:
    surplus = await tx.execute(
        "DELETE FROM buffer_entries WHERE id IN (SELECT id FROM buffer_entries"
        " WHERE origin_id = ? AND lineage_id = ? AND pinned = 0"
        " ORDER BY said_at DESC, id DESC LIMIT -1 OFFSET ?)",
        (origin, lineage, limit),
    )
    if surplus > 0:
        tx.after_commit(
            lambda: log.info(
                "buffer_full", extra={"origin": origin, "lineage": lineage, "deleted": surplus}
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

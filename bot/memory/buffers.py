"""What is known of a buffer beside its entries: its scene, and what came of looking at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.clock import from_ms, to_ms
from bot.identifiers import ChannelId, GuildId, LineageId, OriginId
from bot.storage.statements import Row, Snapshot, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferKey:
    """Whose working memory: one lineage's in one room."""

    origin: OriginId
    lineage: LineageId


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """The row of a buffer. `hidden`: entries that its last prompt had no room for.

    `scene_fired` and `state_fired`: for what a handoff was looked for already. `has_ended`: its
    room was closed, and nothing was said since.
    """

    key: BufferKey
    guild: GuildId
    scene: int = 0
    has_ended: bool = False
    scene_fired: int | None = None
    state_fired: str | None = None
    failures: int = 0
    failed_at: datetime | None = None
    hidden: int = 0


_COLUMNS = "SELECT b.*, o.guild_id FROM buffers AS b JOIN origins AS o ON o.id = b.origin_id"


async def read_buffer(db: Snapshot, key: BufferKey) -> Buffer | None:
    """The row of a buffer; None where nothing was ever said in it."""
    row = await db.fetch_one(
        f"{_COLUMNS} WHERE b.origin_id = ? AND b.lineage_id = ?", (key.origin, key.lineage)
    )
    return _buffer(row) if row else None


async def buffers_in(db: Snapshot, origin: OriginId) -> tuple[Buffer, ...]:
    """The buffers of one room, one for each lineage that listens there."""
    rows = await db.fetch_all(f"{_COLUMNS} WHERE b.origin_id = ?", (origin,))
    return tuple(map(_buffer, rows))


async def buffers_in_channel(db: Snapshot, *, channel: ChannelId) -> tuple[Buffer, ...]:
    """The buffers of a room that is known by Discord's id alone."""
    rows = await db.fetch_all(f"{_COLUMNS} WHERE o.channel_id = ?", (channel,))
    return tuple(map(_buffer, rows))


async def buffers_of(db: Snapshot, guild: GuildId, lineage: LineageId) -> tuple[Buffer, ...]:
    """The buffers of one lineage in one server."""
    rows = await db.fetch_all(
        f"{_COLUMNS} WHERE b.lineage_id = ? AND o.guild_id = ?", (lineage, guild)
    )
    return tuple(map(_buffer, rows))


async def due_buffers(
    db: Snapshot, now: datetime, *, more_than: int, most: int
) -> tuple[BufferKey, ...]:
    """Buffers to look at though no turn runs, the longest due first.

    Only those with more than so many unpinned entries: the others have nothing to hand over.
    """
    rows = await db.fetch_all(
        "SELECT b.origin_id, b.lineage_id FROM buffers AS b WHERE b.due_at <= ?"
        " AND EXISTS (SELECT 1 FROM buffer_entries AS e WHERE e.origin_id = b.origin_id"
        " AND e.lineage_id = b.lineage_id AND e.pinned = 0 LIMIT 1 OFFSET ?)"
        " ORDER BY b.due_at LIMIT ?",
        (to_ms(now), more_than, most),
    )
    return tuple(map(_key, rows))


async def note_entries(tx: Transaction, key: BufferKey, *, scene: int, due_at: datetime) -> None:
    """Something was said: the room is open, in this scene, and worth a look when it goes quiet."""
    await tx.execute(
        "INSERT INTO buffers (origin_id, lineage_id, scene, due_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (origin_id, lineage_id) DO UPDATE SET"
        " scene = max(scene, excluded.scene), due_at = excluded.due_at, ended_at = NULL",
        (key.origin, key.lineage, scene, to_ms(due_at)),
    )


async def begin_scene(
    tx: Transaction, keys: Sequence[BufferKey], now: datetime, *, ends: bool = False
) -> None:
    """What follows is another scene; `ends`: nothing follows, the room was closed."""
    for key in keys:
        await tx.execute(
            "UPDATE buffers SET scene = scene + 1, due_at = ?1,"
            " ended_at = CASE WHEN ?2 THEN ?1 ELSE ended_at END"
            " WHERE origin_id = ?3 AND lineage_id = ?4 AND NOT (?2 AND ended_at IS NOT NULL)",
            (to_ms(now), ends, key.origin, key.lineage),
        )


async def note_fired(
    tx: Transaction, key: BufferKey, *, scene_fired: int | None, state_fired: str | None
) -> None:
    """For which scene and state a handoff was looked for; it is not looked for again."""
    await tx.execute(
        "UPDATE buffers SET scene_fired = ?, state_fired = ?"
        " WHERE origin_id = ? AND lineage_id = ?",
        (scene_fired, state_fired, key.origin, key.lineage),
    )


async def note_due(
    tx: Transaction, key: BufferKey, due_at: datetime | None, *, seen: datetime
) -> None:
    """When to look again without a turn; None: not before something is said.

    What was said after the buffer was `seen` has its own time to look.
    """
    await tx.execute(
        "UPDATE buffers SET due_at = ?1 WHERE origin_id = ?2 AND lineage_id = ?3"
        " AND (?1 IS NOT NULL OR due_at <= ?4)",
        (None if due_at is None else to_ms(due_at), key.origin, key.lineage, to_ms(seen)),
    )


async def drop_due(tx: Transaction, now: datetime, *, up_to: int) -> None:
    """Buffers with so few unpinned entries have nothing to hand over: no look at them is due."""
    await tx.execute(
        "UPDATE buffers SET due_at = NULL WHERE due_at <= ? AND NOT EXISTS"
        " (SELECT 1 FROM buffer_entries AS e WHERE e.origin_id = buffers.origin_id"
        " AND e.lineage_id = buffers.lineage_id AND e.pinned = 0 LIMIT 1 OFFSET ?)",
        (to_ms(now), up_to),
    )


async def note_outcome(tx: Transaction, key: BufferKey, *, failed_at: datetime | None) -> None:
    """A run worked, or failed once more."""
    failed = None if failed_at is None else to_ms(failed_at)
    await tx.execute(
        "UPDATE buffers SET failed_at = ?1,"
        " failures = CASE WHEN ?1 IS NULL THEN 0 ELSE failures + 1 END"
        " WHERE origin_id = ?2 AND lineage_id = ?3",
        (failed, key.origin, key.lineage),
    )


async def note_hidden(tx: Transaction, key: BufferKey, hidden: int) -> None:
    """How many entries the prompt had no room for."""
    await tx.execute(
        "UPDATE buffers SET hidden = ?1 WHERE origin_id = ?2 AND lineage_id = ?3 AND hidden != ?1",
        (hidden, key.origin, key.lineage),
    )


def _key(row: Row) -> BufferKey:
    return BufferKey(origin=OriginId(row["origin_id"]), lineage=LineageId(row["lineage_id"]))


def _buffer(row: Row) -> Buffer:
    return Buffer(
        key=_key(row),
        guild=GuildId(row["guild_id"]),
        scene=row["scene"],
        has_ended=row["ended_at"] is not None,
        scene_fired=row["scene_fired"],
        state_fired=row["state_fired"],
        failures=row["failures"],
        failed_at=None if row["failed_at"] is None else from_ms(row["failed_at"]),
        hidden=row["hidden"],
    )

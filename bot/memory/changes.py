"""What the model changed in a turn, kept so that it can be undone."""

from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from bot.identifiers import LineageId, MemoryId, MessageId, UserId
from bot.memory.long_term_rows import Memory
from bot.storage.statements import Snapshot, Transaction

ChangeKind = Literal["saved", "updated", "forgotten"]

_MEMORY = TypeAdapter(Memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKey:
    """A turn by the message that started it."""

    message: MessageId
    lineage: LineageId


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a turn. `former`: the memory as it was, where it was forgotten."""

    kind: ChangeKind
    memory: MemoryId
    user: UserId
    former: Memory | None = None


async def record_change(tx: Transaction, turn: TurnKey, change: Change, now_ms: int) -> None:
    """Keep a change, within the transaction that makes it."""
    former = None if change.former is None else _MEMORY.dump_json(change.former).decode()
    await tx.execute(
        "INSERT INTO memory_changes (message_id, lineage_id, kind, memory_id, user_id, changed_at,"
        " former) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            *(turn.message, turn.lineage, change.kind, change.memory),
            *(change.user, now_ms, former),
        ),
    )


async def changes_of(db: Snapshot, turn: TurnKey) -> tuple[Change, ...]:
    """What a turn changed and was not undone yet, the latest first."""
    rows = await db.fetch_all(
        "SELECT * FROM memory_changes WHERE message_id = ? AND lineage_id = ? ORDER BY id DESC",
        (turn.message, turn.lineage),
    )
    return tuple(
        Change(
            kind=row["kind"],
            memory=MemoryId(row["memory_id"]),
            user=UserId(row["user_id"]),
            former=None if row["former"] is None else _MEMORY.validate_json(row["former"]),
        )
        for row in rows
    )


async def drop_changes(tx: Transaction, turn: TurnKey) -> None:
    """A turn was undone: there is nothing left to undo."""
    await tx.execute(
        "DELETE FROM memory_changes WHERE message_id = ? AND lineage_id = ?",
        (turn.message, turn.lineage),
    )


async def drop_old_changes(tx: Transaction, *, before_ms: int, forgotten_before_ms: int) -> int:
    """Drop what is too old to be undone; returns how many changes that were."""
    return await tx.execute(
        "DELETE FROM memory_changes WHERE changed_at <= ? OR (former IS NOT NULL AND"
        " changed_at <= ?)",
        (before_ms, forgotten_before_ms),
    )

"""The tables of long-term memory: `memories` numbers both kinds, each has its own table."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bot.clock import from_ms, to_ms
from bot.identifiers import GuildId, LineageId, MemoryId, MessageId, OriginId, UserId
from bot.memory.content import content_hash
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction, Value


class Scope(StrEnum):
    """What a memory is about."""

    SERVER = "server"
    PERSONAL = "personal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where and by whom something was said. A command has no message."""

    origin: OriginId
    message_id: MessageId | None
    said_by: UserId
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory before it is kept. `subject` is set where it is about a person."""

    scope: Scope
    server: GuildId
    subject: UserId | None
    lineage: LineageId
    content: str
    source: Source
    by_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerText:
    """What a memory said until it was changed; heard where one of its own sources is."""

    content: str
    ended_at: datetime
    changed_by: UserId
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory with all its sources; `former`: what it said before, the latest first."""

    id: MemoryId
    scope: Scope
    server: GuildId
    subject: UserId | None
    lineage: LineageId
    content: str
    author: UserId
    created_at: datetime
    updated_at: datetime
    sources: tuple[Source, ...]
    former: tuple[FormerText, ...] = ()

    def restated(self, content: str, source: Source) -> NewMemory:
        """The same memory in other words, as if it were new."""
        return NewMemory(
            scope=self.scope,
            server=self.server,
            subject=self.subject,
            lineage=self.lineage,
            content=content,
            source=source,
        )


_SERVER = "SELECT *, 'server' AS scope, NULL AS user_id FROM server_memories"
_PERSONAL = "SELECT *, 'personal' AS scope FROM personal_memories"
_NEWEST_FIRST = "ORDER BY updated_at DESC, id DESC"


async def read_server(database: Database, server: GuildId) -> tuple[Memory, ...]:
    """Everything about a server, of every lineage."""
    return await database.read(
        lambda db: _read(db, f"{_SERVER} WHERE server_id = ? {_NEWEST_FIRST}", (server,))
    )


async def read_personal(database: Database, user: UserId) -> tuple[Memory, ...]:
    """Everything about a person, of every server and lineage."""
    return await database.read(
        lambda db: _read(db, f"{_PERSONAL} WHERE user_id = ? {_NEWEST_FIRST}", (user,))
    )


async def read_one(db: Snapshot, memory: MemoryId) -> Memory | None:
    """One memory by its number."""
    found = await _read(db, f"{_SERVER} WHERE id = ?", (memory,)) or await _read(
        db, f"{_PERSONAL} WHERE id = ?", (memory,)
    )
    return found[0] if found else None


async def read_partition(db: Snapshot, new: NewMemory) -> tuple[Memory, ...]:
    """All memories that share a new one's partition: server, person and lineage."""
    sql, params = _partition(new)
    return await _read(db, f"{sql} {_NEWEST_FIRST}", params)


async def insert(tx: Transaction, new: NewMemory, now_ms: int) -> MemoryId:
    """Write a memory and its first source."""
    memory = MemoryId(await tx.insert("INSERT INTO memories (scope) VALUES (?)", (new.scope,)))
    await _insert_text(tx, memory, new, new.source.said_by, now_ms, now_ms)
    await add_source(tx, memory, new.source)
    return memory


async def bring_back(tx: Transaction, memory: Memory) -> None:
    """Write a memory that was deleted as it was, under its own number."""
    await tx.execute("INSERT INTO memories (id, scope) VALUES (?, ?)", (memory.id, memory.scope))
    text = memory.restated(memory.content, memory.sources[0])
    created, updated = to_ms(memory.created_at), to_ms(memory.updated_at)
    await _insert_text(tx, memory.id, text, memory.author, created, updated)
    for source in memory.sources:
        await add_source(tx, memory.id, source)
    for former in memory.former:
        await tx.execute(
            "INSERT INTO memory_versions (memory_id, ended_at, content, changed_by)"
            " VALUES (?, ?, ?, ?)",
            (memory.id, to_ms(former.ended_at), former.content, former.changed_by),
        )
        await tx.execute_many(
            "INSERT INTO version_sources (memory_id, ended_at, origin_id, message_id, said_by,"
            " said_at) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    *(memory.id, to_ms(former.ended_at), source.origin),
                    *(source.message_id or 0, source.said_by, to_ms(source.said_at)),
                )
                for source in former.sources
            ],
        )


async def _insert_text(
    tx: Transaction,
    memory: MemoryId,
    new: NewMemory,
    author: UserId,
    created_ms: int,
    updated_ms: int,
) -> None:
    text = (new.content, content_hash(new.content), author, created_ms, updated_ms)
    if new.scope is Scope.SERVER:
        await tx.execute(
            "INSERT INTO server_memories (id, server_id, persona_lineage_id, content,"
            " content_hash, author_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (memory, new.server, new.lineage, *text),
        )
    else:
        await tx.execute(
            "INSERT INTO personal_memories (id, user_id, server_id, persona_lineage_id, content,"
            " content_hash, author_id, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (memory, new.subject, new.server, new.lineage, *text),
        )


async def add_source(tx: Transaction, memory: MemoryId, source: Source) -> None:
    """Add a source; the same one twice is one."""
    await tx.execute(
        "INSERT INTO memory_sources (memory_id, origin_id, message_id, said_by, said_at)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (memory, source.origin, source.message_id or 0, source.said_by, to_ms(source.said_at)),
    )


async def change(tx: Transaction, old: Memory, content: str, source: Source, now_ms: int) -> None:
    """Give a memory a new text, whose only source is the one that said it; keep the former text
    with its own sources.
    """
    ended_at = max(now_ms, *(to_ms(former.ended_at) + 1 for former in old.former), 0)
    await tx.execute(
        "INSERT INTO memory_versions (memory_id, ended_at, content, changed_by)"
        " VALUES (?, ?, ?, ?)",
        (old.id, ended_at, old.content, source.said_by),
    )
    await tx.execute(
        "INSERT INTO version_sources (memory_id, ended_at, origin_id, message_id, said_by, said_at)"
        " SELECT memory_id, ?, origin_id, message_id, said_by, said_at FROM memory_sources"
        " WHERE memory_id = ?",
        (ended_at, old.id),
    )
    await tx.execute(
        f"UPDATE {_table(old.scope)} SET content = ?, content_hash = ?, author_id = ?,"
        " updated_at = ? WHERE id = ?",
        (content, content_hash(content), source.said_by, now_ms, old.id),
    )
    await tx.execute("DELETE FROM memory_sources WHERE memory_id = ?", (old.id,))
    await add_source(tx, old.id, source)


async def respell(tx: Transaction, memory: Memory, content: str) -> None:
    """Give a memory other letters for the same text; whose word it is stays."""
    await tx.execute(
        f"UPDATE OR IGNORE {_table(memory.scope)} SET content = ?, content_hash = ? WHERE id = ?",
        (content, content_hash(content), memory.id),
    )


async def revert(tx: Transaction, memory: Memory, former: FormerText) -> None:
    """Give a memory its latest former text back, with the sources of that."""
    said = former.sources[-1]
    await tx.execute(
        f"UPDATE {_table(memory.scope)} SET content = ?, content_hash = ?, author_id = ?,"
        " updated_at = ? WHERE id = ?",
        (
            *(former.content, content_hash(former.content), former.sources[0].said_by),
            *(to_ms(said.said_at), memory.id),
        ),
    )
    await tx.execute("DELETE FROM memory_sources WHERE memory_id = ?", (memory.id,))
    for source in former.sources:
        await add_source(tx, memory.id, source)
    await tx.execute(
        "DELETE FROM memory_versions WHERE memory_id = ? AND ended_at = ?",
        (memory.id, to_ms(former.ended_at)),
    )


async def remove_sources(tx: Transaction, memory: Memory, *, said_by: UserId | None) -> None:
    """Remove one person's sources of a memory and of what it said before, or all.

    With its last source the memory goes; what is left is the word of whoever else said it.
    """
    for table in ("memory_sources", "version_sources"):
        await tx.execute(
            f"DELETE FROM {table} WHERE memory_id = ?1 AND (?2 IS NULL OR said_by = ?2)",
            (memory.id, said_by),
        )
    await tx.execute(
        "DELETE FROM memory_versions WHERE memory_id = ?1 AND ended_at NOT IN"
        " (SELECT ended_at FROM version_sources WHERE memory_id = ?1)",
        (memory.id,),
    )
    await _settle_sources(tx, memory)


async def remove_message(tx: Transaction, memory: Memory, message: MessageId) -> None:
    """Remove what one message said of a memory; with its last source the memory goes."""
    await tx.execute(
        "DELETE FROM memory_sources WHERE memory_id = ? AND message_id = ?", (memory.id, message)
    )
    await _settle_sources(tx, memory)


async def _settle_sources(tx: Transaction, memory: Memory) -> None:
    """A memory without a source goes; its author is one who said it."""
    await tx.execute(
        "DELETE FROM memories WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE memory_id = ?1)",
        (memory.id,),
    )
    await tx.execute(
        f"UPDATE {_table(memory.scope)} SET author_id = (SELECT said_by FROM memory_sources"
        " WHERE memory_id = ?1 ORDER BY said_at, origin_id LIMIT 1) WHERE id = ?1 AND author_id"
        " NOT IN (SELECT said_by FROM memory_sources WHERE memory_id = ?1)",
        (memory.id,),
    )


def _table(scope: Scope) -> str:
    return "server_memories" if scope is Scope.SERVER else "personal_memories"


def _partition(new: NewMemory) -> tuple[str, tuple[Value, ...]]:
    if new.scope is Scope.SERVER:
        return (
            f"{_SERVER} WHERE server_id = ? AND persona_lineage_id = ?",
            (new.server, new.lineage),
        )
    return (
        f"{_PERSONAL} WHERE user_id = ? AND server_id = ? AND persona_lineage_id = ?",
        (new.subject, new.server, new.lineage),
    )


async def _read(db: Snapshot, sql: str, params: tuple[Value, ...]) -> tuple[Memory, ...]:
    found = await db.fetch_all(sql, params)
    if not found:
        return ()
    ids = json.dumps([row["id"] for row in found])
    sources = await _sources(db, "memory_sources", ("memory_id",), ids)
    former = await _former(db, ids)
    return tuple(
        replace(_memory(row, sources[(row["id"],)]), former=former[row["id"]]) for row in found
    )


async def _former(db: Snapshot, ids: str) -> dict[int, tuple[FormerText, ...]]:
    """What memories said before, the latest first."""
    versions = await db.fetch_all(
        "SELECT * FROM memory_versions WHERE memory_id IN (SELECT value FROM json_each(?))"
        " ORDER BY ended_at DESC",
        (ids,),
    )
    found: dict[int, tuple[FormerText, ...]] = defaultdict(tuple)
    if not versions:
        return found
    sources = await _sources(db, "version_sources", ("memory_id", "ended_at"), ids)
    for row in versions:
        text = FormerText(
            content=row["content"],
            ended_at=from_ms(row["ended_at"]),
            changed_by=UserId(row["changed_by"]),
            sources=sources[(row["memory_id"], row["ended_at"])],
        )
        found[row["memory_id"]] += (text,)
    return found


async def _sources(
    db: Snapshot, table: str, key: Sequence[str], ids: str
) -> dict[tuple[int, ...], tuple[Source, ...]]:
    """The sources in a table by its key, oldest first."""
    rows = await db.fetch_all(
        f"SELECT * FROM {table} WHERE memory_id IN (SELECT value FROM json_each(?))"
        " ORDER BY said_at, origin_id",
        (ids,),
    )
    found: dict[tuple[int, ...], tuple[Source, ...]] = defaultdict(tuple)
    for row in rows:
        found[tuple(row[column] for column in key)] += (_source(row),)
    return found


def _source(row: Row) -> Source:
    return Source(
        origin=OriginId(row["origin_id"]),
        message_id=MessageId(row["message_id"]) if row["message_id"] else None,
        said_by=UserId(row["said_by"]),
        said_at=from_ms(row["said_at"]),
    )


def _memory(row: Row, sources: tuple[Source, ...]) -> Memory:
    return Memory(
        id=MemoryId(row["id"]),
        scope=Scope(row["scope"]),
        server=GuildId(row["server_id"]),
        subject=None if row["user_id"] is None else UserId(row["user_id"]),
        lineage=LineageId(row["persona_lineage_id"]),
        content=row["content"],
        author=UserId(row["author_id"]),
        created_at=from_ms(row["created_at"]),
        updated_at=from_ms(row["updated_at"]),
        sources=sources,
    )

"""The tables of long-term memory: `memories` numbers both kinds, each has its own table."""

from dataclasses import dataclass
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
class Memory:
    """A memory with all its sources."""

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
    text = (new.content, content_hash(new.content), new.source.said_by, now_ms, now_ms)
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
    await add_source(tx, memory, new.source)
    return memory


async def add_source(tx: Transaction, memory: MemoryId, source: Source) -> None:
    """Add a source; the same one twice is one."""
    await tx.execute(
        "INSERT INTO memory_sources (memory_id, origin_id, message_id, said_by, said_at)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (memory, source.origin, source.message_id or 0, source.said_by, to_ms(source.said_at)),
    )


async def change(tx: Transaction, old: Memory, content: str, source: Source, now_ms: int) -> None:
    """Give a memory a new text, whose only source is the one that said it; keep the former text."""
    await tx.execute(
        "INSERT INTO memory_versions (memory_id, ended_at, content, changed_by)"
        " SELECT ?1, max(?2, ifnull(max(ended_at) + 1, 0)), ?3, ?4 FROM memory_versions"
        " WHERE memory_id = ?1",
        (old.id, now_ms, old.content, source.said_by),
    )
    await tx.execute(
        f"UPDATE {_table(old.scope)} SET content = ?, content_hash = ?, author_id = ?,"
        " updated_at = ? WHERE id = ?",
        (content, content_hash(content), source.said_by, now_ms, old.id),
    )
    await tx.execute("DELETE FROM memory_sources WHERE memory_id = ?", (old.id,))
    await add_source(tx, old.id, source)


async def remove_sources(tx: Transaction, memory: Memory, *, said_by: UserId | None) -> None:
    """Remove one person's sources of a memory, or all; with its last source the memory goes.

    What is left is the word of whoever else said it.
    """
    await tx.execute(
        "DELETE FROM memory_sources WHERE memory_id = ?1 AND (?2 IS NULL OR said_by = ?2)",
        (memory.id, said_by),
    )
    await tx.execute(
        "DELETE FROM memories WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE memory_id = ?1)",
        (memory.id,),
    )
    await tx.execute(
        f"UPDATE {_table(memory.scope)} SET author_id = (SELECT said_by FROM memory_sources"
        " WHERE memory_id = ?1 ORDER BY said_at, origin_id LIMIT 1)"
        " WHERE id = ?1 AND author_id = ?2",
        (memory.id, said_by),
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
    ids = [row["id"] for row in found]
    sources: dict[int, list[Source]] = {memory: [] for memory in ids}
    for row in await db.fetch_all(
        f"SELECT * FROM memory_sources WHERE memory_id IN ({','.join('?' * len(ids))})"
        " ORDER BY said_at, origin_id",
        ids,
    ):
        sources[row["memory_id"]].append(_source(row))
    return tuple(_memory(row, tuple(sources[row["id"]])) for row in found)


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

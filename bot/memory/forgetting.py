"""Forgetting by words: every trace of a value in a server, as far as whoever asks has a right to.

A manager forgets everybody's, and the value is kept out from then on; a member forgets what they
said themselves and what is about them. It goes in one transaction.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.identifiers import GuildId
from bot.memory.erasure import Erasures
from bot.memory.ledger import drop_episodes
from bot.memory.listening import Actor
from bot.memory.references import reference_to
from bot.privacy.forgotten import ForgottenValues, says
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction

_HERE = "origin_id IN (SELECT id FROM origins WHERE guild_id = ?1)"
_MEMORIES = (
    "SELECT id, content, NULL AS subject FROM server_memories WHERE server_id = ?1"
    " UNION ALL SELECT id, content, user_id FROM personal_memories WHERE server_id = ?1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Where a value stands: ids of rows, by what they are."""

    memories: frozenset[int] = field(default_factory=frozenset[int])
    entries: frozenset[int] = field(default_factory=frozenset[int])
    archived: frozenset[int] = field(default_factory=frozenset[int])
    episodes: frozenset[int] = field(default_factory=frozenset[int])
    notes: frozenset[tuple[int, int]] = field(default_factory=frozenset[tuple[int, int]])

    @property
    def are_none(self) -> bool:
        """Whether it stands nowhere."""
        return not (self.memories or self.entries or self.archived or self.episodes or self.notes)


class Forgetting:
    """Finds and forgets what holds a value."""

    def __init__(self, database: Database, forgotten: ForgottenValues, erasures: Erasures) -> None:
        self._database = database
        self._forgotten = forgotten
        self._erasures = erasures

    async def traces(self, value: str, guild: GuildId, actor: Actor) -> Traces:
        """What `forget` would take away now."""
        return await self._database.read(lambda db: _traces(db, value, guild, actor))

    async def forget(self, value: str, guild: GuildId, actor: Actor) -> Traces:
        """Forget a value in a server; returns what that took, once it is gone from the file."""

        async def job(tx: Transaction) -> Traces:
            found = await _traces(tx, value, guild, actor)
            await _take_away(tx, found, actor)
            await _take_versions(tx, value, guild, actor)
            if actor.is_manager:
                await self._forgotten.keep_out(tx, value, guild, actor.user)
            return found

        found = await self._database.write(job)
        await self._erasures.fold()
        return found


async def _traces(db: Snapshot, value: str, guild: GuildId, actor: Actor) -> Traces:
    async def ids(sql: str, *params: object) -> frozenset[int]:
        rows = await db.fetch_all(sql, params)  # pyright: ignore[reportArgumentType]
        return frozenset(row["id"] for row in rows if _row_says(row, value))

    theirs = "" if actor.is_manager else f" AND author_id = {actor.user}"
    entries = await ids(f"SELECT id, content FROM buffer_entries WHERE {_HERE}{theirs}", guild)
    archived = await ids(
        f"SELECT entry_id AS id, content FROM entry_archive WHERE {_HERE}{theirs}", guild
    )
    episodes = await ids(
        f"SELECT l.id, l.content || ' ' || coalesce((SELECT group_concat(q.content, ' ')"
        " FROM ledger_quotes AS q WHERE q.ledger_id = l.id), '') || ' ' ||"
        " coalesce((SELECT group_concat(v.content, ' ') FROM ledger_versions AS v"
        f" WHERE v.ledger_id = l.id), '') AS content FROM ledger_entries AS l WHERE l.{_HERE}"
        + ("" if actor.is_manager else f" AND {_has_part(actor)}"),
        guild,
    )
    sources = await db.fetch_all(
        "SELECT DISTINCT ledger_id FROM ledger_sources"
        " WHERE entry_id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(entries | archived)),),
    )
    notes = await db.fetch_all(
        "SELECT origin_id, lineage_id, summary || ' ' || categories AS content"
        f" FROM short_term_memories WHERE {_HERE}",
        (guild,),
    )
    return Traces(
        memories=await _memories(db, value, guild, actor),
        entries=entries,
        archived=archived,
        episodes=episodes | {row["ledger_id"] for row in sources},
        notes=frozenset(
            (row["origin_id"], row["lineage_id"]) for row in notes if _row_says(row, value)
        ),
    )


def _has_part(actor: Actor) -> str:
    user = int(actor.user)
    return (
        f"l.id IN (SELECT ledger_id FROM ledger_sources WHERE said_by = {user}"
        f" UNION SELECT ledger_id FROM ledger_people WHERE user_id = {user})"
    )


async def _memories(db: Snapshot, value: str, guild: GuildId, actor: Actor) -> frozenset[int]:
    """The memories of a server that hold the value: for a member, theirs and those about them."""
    rows = [row for row in await db.fetch_all(_MEMORIES, (guild,)) if _row_says(row, value)]
    return frozenset(
        [row["id"] for row in rows if actor.is_manager or await _is_theirs(db, row, actor)]
    )


async def _is_theirs(db: Snapshot, row: Row, actor: Actor) -> bool:
    return _is_about(row, actor) or bool(
        await db.fetch_int(
            "SELECT count(*) FROM memory_sources WHERE memory_id = ? AND said_by = ?",
            (row["id"], actor.user),
        )
    )


def _is_about(row: Row, actor: Actor) -> bool:
    return row["subject"] == actor.user or reference_to(actor.user) in row["content"]


async def _take_away(tx: Transaction, found: Traces, actor: Actor) -> None:
    await drop_episodes(tx, "SELECT value FROM json_each(?)", (_json(found.episodes),))
    for table, column, ids in (
        ("buffer_entries", "id", found.entries),
        ("entry_archive", "entry_id", found.archived),
        ("memory_changes", "memory_id", found.memories),
    ):
        await tx.execute(
            f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
            (_json(ids),),
        )
    for origin, lineage in found.notes:
        await tx.execute(
            "DELETE FROM short_term_memories WHERE origin_id = ? AND lineage_id = ?",
            (origin, lineage),
        )
    for memory in found.memories:
        await _take_memory(tx, memory, actor)


async def _take_memory(tx: Transaction, memory: int, actor: Actor) -> None:
    """All of a memory, or a member's own sources of it: another's copy stays."""
    row = await tx.fetch_one(
        "SELECT content, NULL AS subject FROM server_memories WHERE id = ?1"
        " UNION ALL SELECT content, user_id FROM personal_memories WHERE id = ?1",
        (memory,),
    )
    if row is None:
        return
    if not (actor.is_manager or _is_about(row, actor)):
        await tx.execute(
            "DELETE FROM memory_sources WHERE memory_id = ? AND said_by = ?", (memory, actor.user)
        )
        if await tx.fetch_int("SELECT count(*) FROM memory_sources WHERE memory_id = ?", (memory,)):
            return
    await tx.execute("DELETE FROM memories WHERE id = ?", (memory,))


async def _take_versions(tx: Transaction, value: str, guild: GuildId, actor: Actor) -> None:
    """What memories said before they were changed, and what could be undone: a member's own."""
    for row in await tx.fetch_all(
        "SELECT v.memory_id, v.ended_at, v.content FROM memory_versions AS v WHERE v.memory_id IN"
        " (SELECT id FROM server_memories WHERE server_id = ?1"
        " UNION SELECT id FROM personal_memories WHERE server_id = ?1)",
        (guild,),
    ):
        if _row_says(row, value) and (actor.is_manager or await _said_it(tx, row, actor)):
            await tx.execute(
                "DELETE FROM memory_versions WHERE memory_id = ? AND ended_at = ?",
                (row["memory_id"], row["ended_at"]),
            )
    for row in await tx.fetch_all(
        "SELECT id, user_id, former FROM memory_changes WHERE former IS NOT NULL"
    ):
        former = json.loads(row["former"])
        theirs = actor.is_manager or row["user_id"] == actor.user
        if former["server"] == guild and theirs and says(_texts(former), value):
            await tx.execute("DELETE FROM memory_changes WHERE id = ?", (row["id"],))


async def _said_it(db: Snapshot, version: Row, actor: Actor) -> bool:
    return bool(
        await db.fetch_int(
            "SELECT count(*) FROM version_sources"
            " WHERE memory_id = ? AND ended_at = ? AND said_by = ?",
            (version["memory_id"], version["ended_at"], actor.user),
        )
    )


def _texts(former: dict[str, object]) -> str:
    """What a forgotten memory said, and had said before."""
    return json.dumps([former["content"], former.get("former")], ensure_ascii=False)


def _row_says(row: Row, value: str) -> bool:
    return says(row["content"], value)


def _json(ids: Iterable[int]) -> str:
    return json.dumps(sorted(ids))

"""Erasing a person: what they said, what is about them, and every trace of their id.

All of it goes in one transaction, so that no read ever sees half of it. What others told stays
theirs; a reference in it to the person becomes one to nobody.
"""

import asyncio
import hashlib
import hmac
import json
import logging
from dataclasses import dataclass, fields

from bot.clock import Clock, to_ms
from bot.identifiers import GuildId, MemoryId, UserId
from bot.memory.content import content_hash
from bot.memory.ledger import drop_episodes
from bot.memory.references import reference_to
from bot.storage.database import Database
from bot.storage.secret import secret_of
from bot.storage.statements import Snapshot, Transaction

log = logging.getLogger(__name__)

NOBODY = UserId(0)
_HERE = "IN (SELECT id FROM origins WHERE ?2 = 0 OR guild_id = ?2)"
_FOLDS = 40
_BETWEEN_FOLDS_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How much is held of a person, in what they call it: what an erasure takes away."""

    about_them: int
    told_by_them: int
    entries: int
    episodes: int
    notes: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(getattr(self, field.name) for field in fields(self))


class Erasures:
    """Counts and erases what is held of a person, in one server or everywhere (guild 0)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def preview(self, person: UserId, guild: GuildId) -> Held:
        """What `erase` would take away now."""
        return await self._database.read(lambda db: _held(db, person, guild))

    async def erase(self, person: UserId, guild: GuildId, *, by: UserId) -> Held:
        """Erase a person; returns what was taken away, once it is gone from the file.

        A level other than OPEN stays: it is what keeps them from being remembered again.
        """
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> Held:
            held = await _held(tx, person, guild)
            await _forget_talk(tx, person, guild)
            await _forget_memories(tx, person, guild)
            await _forget_references(tx, person, guild)
            await _forget_id(tx, person, guild)
            subject = hmac.digest(await secret_of(tx), f"{person}".encode(), hashlib.blake2b).hex()
            requested_by = NOBODY if by == person else by
            await tx.execute(
                "INSERT INTO erasures (kind, subject, guild_id, requested_by, requested_at)"
                " VALUES ('person', ?, ?, ?, ?)",
                (subject, guild, requested_by, now),
            )
            return held

        held = await self._database.write(job)
        await self.fold()
        return held

    async def finish_unfinished(self) -> None:
        """Fold the log of erasures after which the program ended too early."""
        if await self._database.fetch_all("SELECT id FROM erasures WHERE finished_at IS NULL"):
            await self.fold()

    async def fold(self) -> None:
        """Take what was erased out of the write-ahead log, as soon as nobody reads it."""
        rows = await self._database.fetch_all("SELECT id FROM erasures WHERE finished_at IS NULL")
        erasures = [row["id"] for row in rows]
        for _ in range(_FOLDS):
            if await self._database.fold_log():
                break
            await asyncio.sleep(_BETWEEN_FOLDS_S)
        else:
            log.warning("erasure_unfinished")
            return
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "UPDATE erasures SET finished_at = ? WHERE id IN (SELECT value FROM json_each(?))",
                (now, json.dumps(erasures)),
            )

        await self._database.write(job)


# What was said ------------------------------------------------------------------------------------

_ENTRIES = (
    f"origin_id {_HERE} AND (author_id = ?1"
    " OR turn_id IN (SELECT id FROM turns WHERE user_id = ?1))"
)
_EPISODES = (
    f"SELECT l.id FROM ledger_entries AS l WHERE l.origin_id {_HERE} AND (l.id IN"
    " (SELECT ledger_id FROM ledger_sources WHERE said_by = ?1"
    " UNION SELECT ledger_id FROM ledger_quotes WHERE said_by = ?1"
    " UNION SELECT ledger_id FROM ledger_people WHERE user_id = ?1"
    " UNION SELECT v.ledger_id FROM ledger_versions AS v, json_each(v.people) AS p"
    " WHERE p.value = ?1) OR instr(l.content, '{p:' || ?1 || '}'))"
)
# What a model wrote of a room may tell what was said there, and names nobody as its source.
_NOTES = (
    f"origin_id {_HERE} AND (written_by = ?1 OR instr(summary || categories, '{{p:' || ?1 || '}}')"
    f" OR origin_id IN (SELECT origin_id FROM buffer_entries WHERE {_ENTRIES}"
    f" UNION SELECT origin_id FROM entry_archive WHERE {_ENTRIES}"
    " UNION SELECT origin_id FROM turns WHERE user_id = ?1))"
)


async def _forget_talk(tx: Transaction, person: UserId, guild: GuildId) -> None:
    """The words of a person, what was answered to them, and what was made of either."""
    await tx.execute(f"DELETE FROM short_term_memories WHERE {_NOTES}", (person, guild))
    await drop_episodes(tx, _EPISODES, (person, guild))
    for table in ("buffer_entries", "entry_archive"):
        await tx.execute(f"DELETE FROM {table} WHERE {_ENTRIES}", (person, guild))


# What was remembered ------------------------------------------------------------------------------

_ABOUT = "SELECT id FROM personal_memories WHERE user_id = ?1 AND (?2 = 0 OR server_id = ?2)"
_OF_SCOPE = (
    "(SELECT id FROM server_memories WHERE ?2 = 0 OR server_id = ?2"
    " UNION SELECT id FROM personal_memories WHERE ?2 = 0 OR server_id = ?2)"
)


async def _forget_memories(tx: Transaction, person: UserId, guild: GuildId) -> None:
    """What is about a person, and what only they told."""
    scope = (person, guild)
    await tx.execute(
        "DELETE FROM memory_changes WHERE user_id = ?1 OR instr(former, ?1)"
        f" OR memory_id IN ({_ABOUT})",
        scope,
    )
    await tx.execute(f"DELETE FROM memories WHERE id IN ({_ABOUT})", scope)
    for sources, of in (
        ("version_sources", "memory_versions"),
        ("memory_sources", "memories"),
    ):
        key = "memory_id, ended_at" if of == "memory_versions" else "memory_id"
        own = "memory_id, ended_at" if of == "memory_versions" else "id"
        touched = await tx.fetch_all(
            f"SELECT DISTINCT {key} FROM {sources} WHERE said_by = ?1 AND memory_id IN {_OF_SCOPE}",
            scope,
        )
        await tx.execute(
            f"DELETE FROM {sources} WHERE said_by = ?1 AND memory_id IN {_OF_SCOPE}", scope
        )
        for row in touched:
            marks = ", ".join("?" * len(row))
            await tx.execute(
                f"DELETE FROM {of} WHERE ({own}) = ({marks})"
                f" AND NOT EXISTS (SELECT 1 FROM {sources} WHERE ({key}) = ({marks}))",
                (*row, *row),
            )
    for table in ("server_memories", "personal_memories"):
        await tx.execute(
            f"UPDATE {table} SET author_id = (SELECT said_by FROM memory_sources"
            f" WHERE memory_id = {table}.id ORDER BY said_at LIMIT 1)"
            " WHERE author_id = ?1 AND (?2 = 0 OR server_id = ?2)",
            scope,
        )


# References in what others said -------------------------------------------------------------------

_OF_EPISODES = f"ledger_id IN (SELECT id FROM ledger_entries WHERE origin_id {_HERE})"
_REFERRING = (
    ("buffer_entries", f"origin_id {_HERE}"),
    ("entry_archive", f"origin_id {_HERE}"),
    ("memory_versions", f"memory_id IN {_OF_SCOPE}"),
    ("ledger_versions", _OF_EPISODES),
    ("ledger_quotes", _OF_EPISODES),
)


async def _forget_references(tx: Transaction, person: UserId, guild: GuildId) -> None:
    """What others said of the person names nobody any more."""
    old, new = reference_to(person), reference_to(NOBODY)
    for table, where in _REFERRING:
        await tx.execute(
            f"UPDATE {table} SET content = replace(content, ?3, ?4)"
            f" WHERE instr(content, ?3) AND {where} AND ?1 = ?1",
            (person, guild, old, new),
        )
    for table in ("server_memories", "personal_memories"):
        for row in await tx.fetch_all(
            f"SELECT * FROM {table} WHERE instr(content, ?1) AND (?2 = 0 OR server_id = ?2)",
            (old, guild),
        ):
            content = row["content"].replace(old, new)
            changed = await tx.execute(
                f"UPDATE OR IGNORE {table} SET content = ?, content_hash = ? WHERE id = ?",
                (content, content_hash(content), row["id"]),
            )
            if not changed:  # the same is told of another person who was erased
                await _merge(tx, table, MemoryId(row["id"]), content)


async def _merge(tx: Transaction, table: str, memory: MemoryId, content: str) -> None:
    """Give the sources of a memory to the one that says the same, and drop it."""
    partition = ["server_id", "persona_lineage_id"]
    if table == "personal_memories":
        partition.append("user_id")
    same_partition = " AND ".join(f"same.{column} = old.{column}" for column in partition)
    same = await tx.fetch_int(
        f"SELECT same.id FROM {table} AS old JOIN {table} AS same ON {same_partition}"
        " WHERE old.id = ? AND same.content_hash = ?",
        (memory, content_hash(content)),
    )
    await tx.execute(
        "UPDATE OR IGNORE memory_sources SET memory_id = ? WHERE memory_id = ?", (same, memory)
    )
    await tx.execute("DELETE FROM memories WHERE id = ?", (memory,))


# The id itself ------------------------------------------------------------------------------------

_DELETED = (
    "people WHERE user_id = ?1 AND (?2 = 0 OR guild_id = ?2)",
    "person_names WHERE user_id = ?1 AND (?2 = 0 OR guild_id = ?2)",
    "privacy_levels WHERE user_id = ?1 AND level = 'open' AND (?2 = 0 OR guild_id = ?2)",
    "embeddings WHERE ?2 = 0 AND instr(':' || partition || ':', ':' || ?1 || ':')",
)
_BLANKED = (
    ("turns", "user_id", f"origin_id {_HERE}"),
    ("guild_settings", "changed_by", "(?2 = 0 OR guild_id = ?2)"),
    ("feature_flags", "changed_by", "(?2 = 0 OR guild_id = ?2)"),
    ("short_term_categories", "changed_by", "(?2 = 0 OR guild_id = ?2)"),
    ("memory_versions", "changed_by", f"memory_id IN {_OF_SCOPE}"),
    ("audit", "actor_id", "(?2 = 0 OR guild_id = ?2)"),
    ("erasures", "requested_by", "(?2 = 0 OR guild_id = ?2)"),
)


async def _forget_id(tx: Transaction, person: UserId, guild: GuildId) -> None:
    """Rows that only say who did something say it of nobody; what was used is counted on."""
    for rows in _DELETED:
        await tx.execute(f"DELETE FROM {rows}", (person, guild))
    for table, column, where in _BLANKED:
        await tx.execute(
            f"UPDATE {table} SET {column} = {NOBODY} WHERE {column} = ?1 AND {where}",
            (person, guild),
        )
    await tx.execute(
        "UPDATE audit SET subject = '' WHERE subject = CAST(?1 AS TEXT)"
        " AND (?2 = 0 OR guild_id = ?2)",
        (person, guild),
    )
    counts = ["requests", "prompt_tokens", "completion_tokens", "cost_micro"]
    sums = ", ".join(f"{count} = {count} + excluded.{count}" for count in counts)
    columns = f"task, provider, model, {', '.join(counts)}"
    await tx.execute(
        f"INSERT INTO usage (day, guild_id, user_id, {columns})"
        f" SELECT day, guild_id, {NOBODY}, {columns} FROM usage"
        " WHERE user_id = ?1 AND (?2 = 0 OR guild_id = ?2)"
        f" ON CONFLICT (day, guild_id, user_id, task, provider, model) DO UPDATE SET {sums}",
        (person, guild),
    )
    await tx.execute(
        "DELETE FROM usage WHERE user_id = ?1 AND (?2 = 0 OR guild_id = ?2)", (person, guild)
    )


async def _held(db: Snapshot, person: UserId, guild: GuildId) -> Held:
    async def count(sql: str) -> int:
        return await db.fetch_int(f"SELECT count(*) FROM ({sql})", (person, guild))

    return Held(
        about_them=await count(_ABOUT),
        told_by_them=await count(
            "SELECT DISTINCT memory_id FROM memory_sources"
            f" WHERE said_by = ?1 AND memory_id IN {_OF_SCOPE} AND memory_id NOT IN ({_ABOUT})"
        ),
        entries=await count(f"SELECT 1 FROM buffer_entries WHERE {_ENTRIES}"),
        episodes=await count(_EPISODES),
        notes=await count(f"SELECT 1 FROM short_term_memories WHERE {_NOTES}"),
    )

"""Undoing a run: what it took out of working memory comes back, its episodes go."""

import json
from dataclasses import dataclass
from datetime import timedelta

from bot.clock import Clock, to_ms
from bot.errors import UserError
from bot.identifiers import GuildId, LedgerId, LineageId, OriginId, RunId, UserId
from bot.memory.vectors import drop_vectors, ledger_partition
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.database import Database
from bot.storage.statements import Row, Transaction
from bot.storage.writer import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came back: entries, and how many episodes went."""

    entries: int
    episodes: int


async def restore_run(
    database: Database, clock: Clock, levels: Levels, run: RunId, *, days: int
) -> Restored:
    """Undo a committed run that is younger than `days`: so long its entries are archived.

    Raises UserError where there is no such run, it was undone before, it is too old, or a later
    run went on with what it wrote and has to be undone first.
    """
    return await database.write(_restore_job(run, levels, to_ms(clock.now()), timedelta(days=days)))


async def drop_archive(database: Database, clock: Clock, *, days: int) -> int:
    """Forget what was archived longer ago; returns how many entries."""
    limit = to_ms(clock.now() - timedelta(days=days))

    async def job(tx: Transaction) -> int:
        await tx.execute("DELETE FROM ledger_versions WHERE ended_at <= ?", (limit,))
        return await tx.execute("DELETE FROM entry_archive WHERE archived_at <= ?", (limit,))

    return await database.write(job)


def _restore_job(run: RunId, levels: Levels, now: int, kept: timedelta) -> Job[Restored]:
    async def job(tx: Transaction) -> Restored:
        found = await _undoable(tx, run, now - kept // timedelta(milliseconds=1))
        entries = await _bring_back(tx, run, levels, GuildId(found["guild_id"]))
        partition = ledger_partition(OriginId(found["origin_id"]), LineageId(found["lineage_id"]))
        await _tell_as_before(tx, run, partition)
        episodes = await _drop_episodes(tx, run, partition)
        await tx.execute(
            "UPDATE handoff_runs SET state = 'undone', ended_at = ? WHERE id = ?", (now, run)
        )
        return Restored(entries=entries, episodes=episodes)

    return job


async def _undoable(tx: Transaction, run: RunId, limit: int) -> Row:
    """The row of a run that may be undone, with its server."""
    found = await tx.fetch_one(
        "SELECT r.*, o.guild_id FROM handoff_runs AS r JOIN origins AS o ON o.id = r.origin_id"
        " WHERE r.id = ? AND r.state != 'aborted'",
        (run,),
    )
    if found is None:
        raise UserError("errors.restore.unknown", run=run)
    if found["state"] == "undone":
        raise UserError("errors.restore.undone", run=run)
    if found["ended_at"] <= limit:
        raise UserError("errors.restore.too_old", run=run)
    later = await tx.fetch_one(
        "WITH told AS (SELECT ledger_id FROM ledger_sources WHERE run_id = ?1"
        " UNION SELECT ledger_id FROM ledger_versions WHERE run_id = ?1)"
        " SELECT id FROM handoff_runs WHERE id != ?1 AND state = 'committed' AND id IN ("
        # It told one of the episodes anew, or took out what this run had pinned.
        "SELECT run_id FROM ledger_versions WHERE ended_at >= ?2 AND ledger_id IN told"
        " UNION SELECT a.run_id FROM entry_archive AS a JOIN ledger_sources AS s"
        " ON s.entry_id = a.entry_id WHERE s.run_id = ?1) ORDER BY ended_at DESC LIMIT 1",
        (run, found["ended_at"]),
    )
    if later is not None:
        raise UserError("errors.restore.later", run=run, later=later["id"])
    return found


async def _bring_back(tx: Transaction, run: RunId, levels: Levels, guild: GuildId) -> int:
    """Working memory as it was before the run, but for people who have opted out since."""
    await tx.execute(
        "UPDATE buffer_entries SET pinned = 0, version = version + 1 WHERE pinned = 1"
        " AND id IN (SELECT entry_id FROM ledger_sources WHERE run_id = ?)",
        (run,),
    )
    spoke = await tx.fetch_all(
        "SELECT DISTINCT author_id FROM entry_archive WHERE run_id = ? AND author_id IS NOT NULL",
        (run,),
    )
    authors = [UserId(row["author_id"]) for row in spoke]
    barred = [author for author in authors if levels.of(author, guild) is PrivacyLevel.FULL]
    entries = await tx.execute(
        "INSERT OR IGNORE INTO buffer_entries (id, origin_id, lineage_id, kind, author_id,"
        " persona_id, content, message_id, turn_id, said_at, scene, pinned, version, tokens)"
        " SELECT entry_id, origin_id, lineage_id, kind, author_id, persona_id, content,"
        " message_id, (SELECT id FROM turns WHERE id = turn_id), said_at, scene,"
        # The matter that held it may have been dropped since.
        " pinned AND EXISTS (SELECT 1 FROM ledger_sources AS s WHERE s.entry_id = a.entry_id),"
        " version + 1, tokens FROM entry_archive AS a WHERE run_id = ?"
        " AND coalesce(author_id NOT IN (SELECT value FROM json_each(?)), 1)",
        (run, json.dumps(barred)),
    )
    await tx.execute("DELETE FROM entry_archive WHERE run_id = ?", (run,))
    return entries


async def _tell_as_before(tx: Transaction, run: RunId, partition: str) -> None:
    """The matters that the run went on with are told as they were before it.

    Their vectors go: the former ones were not kept, and words recall as well.
    """
    versions = await tx.fetch_all("SELECT * FROM ledger_versions WHERE run_id = ?", (run,))
    for before in versions:
        ledger = before["ledger_id"]
        await tx.execute(
            "DELETE FROM ledger_sources WHERE ledger_id = ? AND run_id = ?", (ledger, run)
        )
        await tx.execute(
            "DELETE FROM ledger_quotes WHERE ledger_id = ? AND position >= ?",
            (ledger, before["quotes"]),
        )
        await tx.execute(
            "DELETE FROM ledger_people WHERE ledger_id = ?"
            " AND user_id NOT IN (SELECT value FROM json_each(?))",
            (ledger, before["people"]),
        )
        await tx.execute(
            "UPDATE ledger_entries SET content = ?, importance = ?, happened_from = ?,"
            " happened_until = ?, embedding_model = NULL, embedding_dimension = NULL WHERE id = ?",
            (
                *(before["content"], before["importance"]),
                *(before["happened_from"], before["happened_until"], ledger),
            ),
        )
    await drop_vectors(tx, partition, (LedgerId(before["ledger_id"]) for before in versions))
    await tx.execute("DELETE FROM ledger_versions WHERE run_id = ?", (run,))


async def _drop_episodes(tx: Transaction, run: RunId, partition: str) -> int:
    rows = await tx.fetch_all("SELECT id FROM ledger_entries WHERE run_id = ?", (run,))
    await drop_vectors(tx, partition, (LedgerId(row["id"]) for row in rows))
    return await tx.execute("DELETE FROM ledger_entries WHERE run_id = ?", (run,))

"""The one transaction of a run: episodes in, entries out, pins set; all of it or nothing."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.clock import to_ms
from bot.handoff.material import Material
from bot.handoff.runs import Outcome, Run, record_run
from bot.handoff.selection import DraftEpisode, Selection
from bot.identifiers import EntryId, LedgerId, RunId, UserId
from bot.llm.routing import Embeddings
from bot.memory.vectors import drop_vectors, ledger_partition, store_vector
from bot.memory.working import Entry
from bot.storage.statements import Snapshot, Transaction
from bot.storage.writer import Job

MOST_PINNED = 16
"""Entries that one matter keeps in working memory, the newest; the others are in its episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What is to be written.

    `looked_at`: the entries that were read before the model was asked, pinned ones too. `vectors`:
    one for each episode, where there is an embedder. `is_barred`: whose words may not be kept.
    """

    run: Run
    material: Material
    looked_at: Sequence[Entry]
    selection: Selection
    vectors: Embeddings | None
    model: str | None
    is_barred: Callable[[UserId], bool]
    now: datetime


def commit_job(commit: Commit) -> Job[Outcome | None]:
    """The job that commits a run; its result is None where the run was committed before.

    What changed while the model worked is read again: an episode of which a source was edited is
    not written, and the rest of its sources stay for a later run. Where any line that the model saw
    was deleted or barred, nothing is written at all: any episode may tell what it said.
    """

    async def job(tx: Transaction) -> Outcome | None:
        if await was_made(tx, commit.run.id):
            return None
        unchanged, lost = await _unchanged(tx, commit)
        plan = _plan(commit, unchanged, await _told(tx, commit), is_void=lost)
        await _Writing(tx, commit).all(plan)
        return plan.outcome

    return job


async def was_made(db: Snapshot, run: RunId) -> bool:
    """Whether a run was committed, undone since or not."""
    return bool(
        await db.fetch_int(
            "SELECT count(*) FROM handoff_runs WHERE id = ? AND state != 'aborted'", (run,)
        )
    )


async def _unchanged(tx: Transaction, commit: Commit) -> tuple[frozenset[EntryId], bool]:
    """Which entries are as they were looked at; and whether a line that was shown is lost."""
    rows = await tx.fetch_all(
        "SELECT id, version, pinned FROM buffer_entries"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (_ids(entry.id for entry in commit.looked_at),),
    )
    now = {row["id"]: (row["version"], bool(row["pinned"])) for row in rows}
    kept = {
        entry.id
        for entry in commit.looked_at
        if entry.id in now and not (entry.author is not None and commit.is_barred(entry.author))
    }
    shown = {entry.id for entry in commit.material.entries.values()}
    unchanged = (
        entry.id
        for entry in commit.looked_at
        if entry.id in kept and now[entry.id] == (entry.version, entry.pinned)
    )
    return frozenset(unchanged), not shown <= kept


async def _told(tx: Transaction, commit: Commit) -> frozenset[LedgerId]:
    """Those of the open matters of which the ledger still tells."""
    matters = _ids(matter.id for matter in commit.material.matters.values())
    rows = await tx.fetch_all(
        "SELECT id FROM ledger_entries WHERE id IN (SELECT value FROM json_each(?))", (matters,)
    )
    return frozenset(LedgerId(row["id"]) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a run does. `episodes` come with their numbers in the selection.

    `left`: what the model saw and the run leaves in working memory for a later one.
    """

    episodes: tuple[tuple[int, DraftEpisode], ...]
    pinned: frozenset[EntryId]
    gone: frozenset[EntryId]
    left: frozenset[EntryId]
    outcome: Outcome


def _plan(
    commit: Commit, unchanged: frozenset[EntryId], told: frozenset[LedgerId], *, is_void: bool
) -> _Plan:
    """What of the selection still holds, now that `unchanged` and `told` are what is left."""
    selection, material = commit.selection, commit.material
    matters = material.matters.values()
    whole = [
        (number, episode)
        for number, episode in enumerate(selection.episodes)
        if not is_void
        and _cited(episode, material) <= unchanged
        and (episode.continues is None or episode.continues.id in told)
    ]
    written = [episode for _, episode in whole]
    spoilt = [episode for episode in selection.episodes if episode not in written]
    touched = [*selection.resolved, *(e.continues for e in written if e.continues)]

    shown = {entry.id for entry in material.entries.values()}
    promoted = {entry.id for episode in written for entry in episode.sources}
    retained = {entry for e in written if e.retain for entry in _held((e,))[-MOST_PINNED:]}
    untold = {entry for matter in matters if matter.id not in told for entry in matter.entries}
    leaving = shown | {entry for matter in touched for entry in matter.entries}
    gone = (leaving & unchanged) - retained - untold - set(_held(spoilt))
    gone -= gone if is_void else set()
    in_ledger = promoted | {entry for matter in matters for entry in matter.entries}
    return _Plan(
        episodes=tuple(whole),
        pinned=frozenset(promoted & retained),
        gone=frozenset(gone),
        left=frozenset(shown - gone - retained),
        outcome=Outcome(
            run=commit.run.id,
            episodes=len(whole),
            promoted=len(promoted),
            forgotten=len(gone - in_ledger),
            pinned=len(promoted & retained),
        ),
    )


def _cited(episode: DraftEpisode, material: Material) -> set[EntryId]:
    """The lines that the model read for an episode: pinned ones of its matter among them."""
    matter = episode.continues
    read_again = {e for e, noted in material.noted.items() if matter and noted.id == matter.id}
    return read_again | {entry.id for entry in episode.sources}


def _held(episodes: Iterable[DraftEpisode]) -> list[EntryId]:
    """What the matters of episodes have pinned, oldest first, and then their sources."""
    held: list[EntryId] = []
    for episode in episodes:
        held += episode.continues.entries if episode.continues else ()
        held += [entry.id for entry in episode.sources]
    return held


class _Writing:
    """Writes one run within its transaction."""

    def __init__(self, tx: Transaction, commit: Commit) -> None:
        self._tx = tx
        self._commit = commit
        self._run = commit.run
        self._now = to_ms(commit.now)
        self._partition = ledger_partition(commit.run.key.origin, commit.run.key.lineage)

    async def all(self, plan: _Plan) -> None:
        # First the row of the run: all that follows refers to it.
        await record_run(
            self._tx, self._run, plan.outcome, model=self._commit.model, now=self._commit.now
        )
        for position, (number, episode) in enumerate(plan.episodes):
            await self._write_episode(position, number, episode)
        await self._change(
            "UPDATE buffer_entries SET pinned = 1, version = version + 1", plan.pinned
        )
        # The id of a run is made of versions: one over just these entries is another run.
        await self._change("UPDATE buffer_entries SET version = version + 1", plan.left)
        await self._archive(plan.gone)

    async def _write_episode(self, position: int, number: int, episode: DraftEpisode) -> None:
        if episode.continues is None:
            ledger = await self._insert(position, episode)
        else:
            ledger = episode.continues.id
            await self._go_on(ledger, episode)
        await self._write_parts(ledger, episode)
        vectors = self._commit.vectors
        if vectors is not None:
            vector = vectors.vectors[number]
            await store_vector(self._tx, self._partition, ledger, vectors.model, vector)
            await self._tx.execute(
                "UPDATE ledger_entries SET embedding_model = ?, embedding_dimension = ?"
                " WHERE id = ?",
                (vectors.model, len(vector), ledger),
            )

    async def _insert(self, position: int, episode: DraftEpisode) -> LedgerId:
        times = [to_ms(entry.said_at) for entry in episode.sources]
        key = self._run.key
        return LedgerId(
            await self._tx.insert(
                "INSERT INTO ledger_entries (origin_id, lineage_id, run_id, position, content,"
                " importance, scene, happened_from, happened_until, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(key.origin, key.lineage, self._run.id, position, episode.content),
                    *(episode.importance, episode.sources[0].scene),
                    *(min(times), max(times), self._now),
                ),
            )
        )

    async def _go_on(self, ledger: LedgerId, episode: DraftEpisode) -> None:
        """A matter has one episode: it is told anew, and what it said before is put by."""
        await self._tx.execute(
            "INSERT INTO ledger_versions (ledger_id, run_id, content, quotes, people, importance,"
            " happened_from, happened_until, ended_at) SELECT id, ?2, content,"
            " (SELECT coalesce(max(position) + 1, 0) FROM ledger_quotes WHERE ledger_id = ?1),"
            " (SELECT json_group_array(user_id) FROM ledger_people WHERE ledger_id = ?1),"
            " importance, happened_from, happened_until, ?3 FROM ledger_entries WHERE id = ?1",
            (ledger, self._run.id, self._now),
        )
        times = json.dumps([to_ms(entry.said_at) for entry in episode.sources])
        await self._tx.execute(
            "UPDATE ledger_entries SET content = ?2, importance = ?3,"
            " embedding_model = NULL, embedding_dimension = NULL, happened_from ="
            " min(happened_from, (SELECT coalesce(min(value), happened_from) FROM json_each(?4))),"
            " happened_until ="
            " max(happened_until, (SELECT coalesce(max(value), happened_until) FROM json_each(?4)))"
            " WHERE id = ?1",
            (ledger, episode.content, episode.importance, times),
        )
        await drop_vectors(self._tx, self._partition, (ledger,))

    async def _write_parts(self, ledger: LedgerId, episode: DraftEpisode) -> None:
        await self._tx.execute_many(
            "INSERT OR IGNORE INTO ledger_sources (ledger_id, entry_id, message_id, said_by,"
            " said_at, run_id) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (ledger, e.id, e.message_id, e.author, to_ms(e.said_at), self._run.id)
                for e in episode.sources
            ],
        )
        await self._tx.execute_many(
            "INSERT INTO ledger_quotes (ledger_id, position, content, said_by, persona_id,"
            " message_id) SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3, ?4, ?5"
            " FROM ledger_quotes WHERE ledger_id = ?1",
            [(ledger, q.content, q.said_by, q.persona, q.message_id) for q in episode.quotes],
        )
        await self._tx.execute_many(
            "INSERT OR IGNORE INTO ledger_people (ledger_id, user_id) VALUES (?, ?)",
            [(ledger, user) for user in sorted(episode.people)],
        )

    async def _archive(self, entries: Iterable[EntryId]) -> None:
        """Move entries out of working memory; only an undo reads the archive."""
        gone = _ids(entries)
        await self._tx.execute(
            "INSERT INTO entry_archive (entry_id, run_id, origin_id, lineage_id, kind,"
            " author_id, persona_id, content, message_id, turn_id, said_at, scene, pinned, version,"
            " tokens, archived_at) SELECT id, ?, origin_id, lineage_id, kind, author_id,"
            " persona_id, content, message_id, turn_id, said_at, scene, pinned, version, tokens, ?"
            " FROM buffer_entries WHERE id IN (SELECT value FROM json_each(?))",
            (self._run.id, self._now, gone),
        )
        await self._tx.execute(
            "DELETE FROM buffer_entries WHERE id IN (SELECT value FROM json_each(?))", (gone,)
        )

    async def _change(self, statement: str, entries: Iterable[EntryId]) -> None:
        chosen = "WHERE id IN (SELECT value FROM json_each(?))"
        await self._tx.execute(f"{statement} {chosen}", (_ids(entries),))


def _ids(ids: Iterable[int]) -> str:
    return json.dumps(sorted(ids))

"""One run from entries to episodes: the model chooses, then one transaction writes."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from bot.background import Done, Raised, report_bug, settle
from bot.clock import Clock
from bot.config import HandoffConfig
from bot.errors import ModelFault, StorageUnavailable, Unavailable
from bot.handoff.commit import Commit, commit_job, was_made
from bot.handoff.fitting import ALONE_AFTER, answer_tokens, bad_answers, fitting_material
from bot.handoff.look import Look
from bot.handoff.material import Material
from bot.handoff.runs import Outcome, Run, back_off, record_run
from bot.handoff.selection import Selection, closing_surplus, select, verbatim
from bot.identifiers import GuildId, UserId
from bot.llm.chat import Finished
from bot.llm.routing import Embeddings, Route
from bot.llm.usage import NOBODY, book
from bot.memory.buffers import BufferKey, note_due, note_fired, note_outcome
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.database import Database
from bot.storage.statements import Transaction
from bot.storage.writer import Job

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bill:
    """Every answer of a run, usable or not: it was paid for."""

    finished: list[Finished] = field(default_factory=list[Finished])

    @property
    def model(self) -> str | None:
        return self.finished[-1].model if self.finished else None


class Handover:
    """Makes runs. One buffer's runs must not overlap: whoever calls sees to that."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: HandoffConfig,
        *,
        levels: Levels,
        route: Route,
        embeddings: Route | None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._levels = levels
        self._route = route
        self._embeddings = embeddings

    async def make(
        self, look: Look, *, chosen: Callable[[], None] = lambda: None
    ) -> Outcome | None:
        """Hand over what the look found; None where the same run was made before.

        `chosen` is called once the model has answered: from then on a run is seen through.

        Where the model, its answer or the embedder fails, nothing is changed and the outcome names
        the failure. Raises StorageUnavailable where the run cannot be written.
        """
        await self._database.write(_touch(look.buffer.key))
        material = fitting_material(look, self._route, self._config)
        now = self._clock.now()
        run = Run.over(look.buffer.key, material.entries.values(), look.report, now)
        bill = _Bill()
        choice = await settle(self._choose(look, material, bill))
        chosen()
        if isinstance(choice, Raised):
            return await self._abort(look, run, choice.error, bill)
        selection, vectors = choice.value
        commit = Commit(
            run=run,
            material=material,
            looked_at=look.entries,
            selection=selection,
            vectors=vectors,
            model=bill.model,
            is_barred=self._bars(look.buffer.guild),
            now=self._clock.now(),
        )
        return await self._commit(look, commit, bill)

    async def _choose(
        self, look: Look, material: Material, bill: _Bill
    ) -> tuple[Selection, Embeddings | None]:
        async with asyncio.timeout(self._config.run_timeout_s):
            selection = await self._select(look, material, bill)
            selection = closing_surplus(selection, look.matters, self._config.max_matters)
            return selection, await self._embed(material, selection)

    async def _select(self, look: Look, material: Material, bill: _Bill) -> Selection:
        if bad_answers(look) >= ALONE_AFTER and len(material.new_entries) == 1:
            return verbatim(material)
        return await select(
            self._route,
            material,
            max_tokens=answer_tokens(self._route),
            repairs=self._config.repair_calls,
            omit_all_entries=self._config.omit_all_entries,
            paid=bill.finished.append,
        )

    async def _embed(self, material: Material, selection: Selection) -> Embeddings | None:
        if self._embeddings is None or not selection.episodes:
            return None
        shown = material.scenery.roster.show
        texts = [shown(episode.content) for episode in selection.episodes]
        return await self._embeddings.embed(texts)

    def _bars(self, guild: GuildId) -> Callable[[UserId], bool]:
        return lambda user: self._levels.of(user, guild) is PrivacyLevel.FULL

    async def _commit(self, look: Look, commit: Commit, bill: _Bill) -> Outcome | None:
        key, write = look.buffer.key, commit_job(commit)
        waits = len(look.candidates) > len(commit.material.new_entries)

        async def job(tx: Transaction) -> Outcome | None:
            outcome = await write(tx)
            await note_outcome(tx, key, failed_at=None)
            await note_fired(tx, key, scene_fired=look.scene_fired, state_fired=look.state_fired)
            if waits:
                await note_due(tx, key, commit.now, seen=commit.now)
            await self._book(tx, look, bill, commit.now)
            return outcome

        outcome = await self._database.write(job)
        if outcome is not None:
            log.info("handoff_committed", extra=_numbers(commit.run, outcome))
        return outcome

    async def _abort(self, look: Look, run: Run, error: Exception, bill: _Bill) -> Outcome:
        """Record the failure, and nothing else; the trigger is evaluated again at the next turn."""
        failure = _name_of(error)
        if not isinstance(error, ModelFault | Unavailable | TimeoutError):
            report_bug("handoff_failed", error)
        outcome = Outcome(run=run.id, failure=failure)
        now, key = self._clock.now(), look.buffer.key
        again = now + back_off(run.trigger, look.buffer.failures + 1, self._config)

        async def job(tx: Transaction) -> None:
            await self._book(tx, look, bill, now)
            if await was_made(tx, run.id):  # by a run that was cancelled while it was written
                return
            await record_run(tx, run, outcome, model=bill.model, now=now)
            await note_outcome(tx, key, failed_at=now)
            await note_due(tx, key, again, seen=now)

        written = await settle(self._database.write(job))
        match written:
            case Raised(StorageUnavailable(reason=reason)):
                log.warning("handoff_failure_not_recorded", extra={"reason": reason})
            case Raised(other):
                raise other
            case Done():
                log.warning("handoff_aborted", extra=_numbers(run, outcome))
        return outcome

    async def _book(self, tx: Transaction, look: Look, bill: _Bill, now: datetime) -> None:
        await book(tx, self._route, bill.finished, guild=look.buffer.guild, user=NOBODY, now=now)


def _touch(key: BufferKey) -> Job[int]:
    """A write that changes nothing: while none is possible, no model is to be paid for a run."""

    async def job(tx: Transaction) -> int:
        return await tx.execute(
            "UPDATE buffers SET failures = failures WHERE origin_id = ? AND lineage_id = ?",
            (key.origin, key.lineage),
        )

    return job


def _name_of(error: Exception) -> str:
    """A failure in one word or two, without what people wrote."""
    return error.kind if isinstance(error, ModelFault) else type(error).__name__


def _numbers(run: Run, outcome: Outcome) -> dict[str, object]:
    return {
        "run": run.id,
        "origin": run.key.origin,
        "lineage": run.key.lineage,
        "trigger": run.trigger,
        "trigger_reason": run.report.reason.value,
        "value": run.report.value,
        "limit": run.report.limit,
        "candidates": run.candidates,
        "episodes": outcome.episodes,
        "promoted": outcome.promoted,
        "forgotten": outcome.forgotten,
        "pinned": outcome.pinned,
        "failure": outcome.failure,
    }

"""A run of a handoff as it is recorded: what it took, what became of it, how often it failed."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.clock import to_ms
from bot.config import HandoffConfig
from bot.handoff.trigger import HandoffTrigger, TriggerReport
from bot.identifiers import RunId
from bot.memory.buffers import BufferKey
from bot.memory.working import Entry
from bot.storage.statements import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. Its id is made of its entries and their versions: the same run has the same id."""

    id: RunId
    key: BufferKey
    report: TriggerReport
    candidates: int
    started_at: datetime

    @classmethod
    def over(
        cls, key: BufferKey, entries: Iterable[Entry], report: TriggerReport, now: datetime
    ) -> "Run":
        """The run that takes these entries."""
        versions = [f"{entry.id}.{entry.version}" for entry in entries]
        named = f"{key.origin}/{key.lineage}/{','.join(versions)}"
        return cls(
            id=RunId(hashlib.blake2b(named.encode(), digest_size=8).hexdigest()),
            key=key,
            report=report,
            candidates=len(versions),
            started_at=now,
        )

    @property
    def trigger(self) -> HandoffTrigger:
        return self.report.trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to, in numbers of entries; `failure` where it was aborted."""

    run: RunId
    episodes: int = 0
    promoted: int = 0
    forgotten: int = 0
    pinned: int = 0
    failure: str | None = None


async def record_run(
    tx: Transaction, run: Run, outcome: Outcome, *, model: str | None, now: datetime
) -> None:
    """Write the row of a run; one that was aborted before and now worked is the same row."""
    await tx.execute(
        "INSERT INTO handoff_runs (id, origin_id, lineage_id, kind, reason, state, failure,"
        " candidates, model, started_at, ended_at, episodes, promoted, forgotten, pinned)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, reason = excluded.reason,"
        " state = excluded.state, failure = excluded.failure, model = excluded.model,"
        " started_at = excluded.started_at, ended_at = excluded.ended_at,"
        " episodes = excluded.episodes, promoted = excluded.promoted,"
        " forgotten = excluded.forgotten, pinned = excluded.pinned",
        (
            *(run.id, run.key.origin, run.key.lineage, run.trigger, run.report.reason),
            *("aborted" if outcome.failure else "committed", outcome.failure),
            *(run.candidates, model, to_ms(run.started_at), to_ms(now)),
            *(outcome.episodes, outcome.promoted, outcome.forgotten, outcome.pinned),
        ),
    )


def may_try_again(
    trigger: HandoffTrigger,
    failures: int,
    failed_at: datetime | None,
    now: datetime,
    config: HandoffConfig,
) -> bool:
    """Whether a run may follow the last failure already; one that cannot wait may do so sooner.

    A failure that lies ahead was noted while the clock was wrong: it holds nothing up.
    """
    if failed_at is None or failed_at > now:
        return True
    return now >= failed_at + back_off(trigger, failures, config)


def back_off(trigger: HandoffTrigger, failures: int, config: HandoffConfig) -> timedelta:
    """How long to wait after so many failures in a row."""
    if failures == 0:
        return timedelta(0)
    steps = config.back_off_min
    minutes = steps[min(failures, len(steps)) - 1]
    if trigger == "involuntary":
        minutes = min(minutes, config.involuntary_retry_min)
    return timedelta(minutes=minutes)

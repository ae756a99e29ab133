"""Which entries stay and which may be handed over. Pure, as the triggers are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.clock import FRESH
from bot.config import HandoffConfig
from bot.handoff.trigger import TriggerReason, TriggerReport, unpinned
from bot.memory.working import Entry

HARD_FLOOR = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A buffer in three: candidates for a handoff, the protected tail, and what is pinned."""

    candidates: tuple[Entry, ...]
    protected: tuple[Entry, ...]
    pinned: tuple[Entry, ...]


def partition_buffer(
    entries: Sequence[Entry],
    now: datetime,
    keep: int = HARD_FLOOR,
    *,
    fresh: timedelta = FRESH,
) -> Partition:
    """Divide a buffer (oldest first) at the watermark.

    Protected are the last `keep` entries, and all before them from the first one on that is younger
    than `fresh`.
    """
    counted = unpinned(entries)
    border = max(0, len(counted) - keep)
    first_fresh = (i for i, entry in enumerate(counted) if now - entry.said_at < fresh)
    border = min(border, next(first_fresh, border))
    return Partition(
        candidates=counted[:border],
        protected=counted[border:],
        pinned=tuple(entry for entry in entries if entry.pinned),
    )


def due_candidates(
    report: TriggerReport,
    entries: Sequence[Entry],
    now: datetime,
    config: HandoffConfig,
    *,
    ending: bool = False,
) -> tuple[Entry, ...]:
    """What a run for this trigger would take; empty where it would be too little to be worth it.

    A crowded buffer gives up its fresh entries but the last few: else a busy room frees nothing.
    `ending`: the room was closed or the persona withdrawn, so that one entry is enough.
    """
    if report.trigger == "none":
        return ()
    fresh = timedelta(minutes=config.fresh_min)
    candidates = partition_buffer(entries, now, config.keep_entries, fresh=fresh).candidates
    crowded = len(unpinned(entries)) > config.crowded_entries
    if report.trigger == "involuntary" and crowded and len(candidates) < config.velocity_candidates:
        candidates = partition_buffer(
            entries, now, config.crowded_keep_entries, fresh=timedelta(0)
        ).candidates
    return candidates if len(candidates) >= _needed(report, config, ending=ending) else ()


def _needed(report: TriggerReport, config: HandoffConfig, *, ending: bool) -> int:
    """How many candidates a run needs."""
    if ending:
        return config.ceiling_candidates
    match report.reason:
        case (
            TriggerReason.CEILING
            | TriggerReason.BUDGET
            | TriggerReason.STATE
            | TriggerReason.REQUESTED
        ):
            return config.ceiling_candidates
        case TriggerReason.VELOCITY:
            return config.velocity_candidates
        case TriggerReason.SCENE | TriggerReason.IDLE:
            return config.voluntary_candidates
        case TriggerReason.NONE:
            raise ValueError("nothing is due")

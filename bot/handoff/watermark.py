"""Which entries stay and which may be handed over. Pure, as the triggers are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.clock import FRESH
from bot.config import HandoffConfig
from bot.handoff.trigger import TriggerReason, TriggerReport, unpinned
from bot.memory.working import Entry

HARD_FLOOR = 8
_FRAME = 4
"""Tokens of an entry's speaker and line, beside its text."""


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
    scene: int | None = None,
    ending: bool = False,
) -> tuple[Entry, ...]:
    """What a run for this trigger would take; empty where it would be too little to be worth it.

    `scene`: where the persona is now. `ending`: the room was closed or the persona withdrawn, so
    that one entry is enough.
    """
    if report.trigger == "none":
        return ()
    fresh = timedelta(minutes=config.fresh_min)
    watermark = partition_buffer(entries, now, config.keep_entries, fresh=fresh)
    counted = unpinned(entries)
    candidates = max((watermark.candidates, *_given_up(report, counted, config)), key=len)
    if not ending and _is_the_rest_of_a_scene(report, counted, config, scene):
        return ()
    return candidates if len(candidates) >= _needed(report, config, ending=ending) else ()


def _given_up(
    report: TriggerReport, entries: tuple[Entry, ...], config: HandoffConfig
) -> Iterator[tuple[Entry, ...]]:
    """What fresh entries give way too, where they would else drop out of the prompt unseen.

    A crowded buffer keeps its last few; one that is too large keeps what takes half of its room.
    """
    if report.trigger == "involuntary" and len(entries) > config.crowded_entries:
        yield entries[: -config.crowded_keep_entries]
    if report.reason in (TriggerReason.CEILING, TriggerReason.BUDGET):
        keep = max(config.keep_entries, _newest_within(report, entries, config.kept_fraction))
        yield entries[: max(0, len(entries) - keep)]


def _newest_within(report: TriggerReport, entries: tuple[Entry, ...], fraction: float) -> int:
    """How many of the newest entries take that part of the limit; each by its share of the size."""
    sizes = [entry.tokens + _FRAME for entry in entries]
    left = report.limit * fraction * sum(sizes) / max(1, report.value)
    for count, size in enumerate(reversed(sizes)):
        left -= size
        if left < 0:
            return count
    return len(entries)


def _is_the_rest_of_a_scene(
    report: TriggerReport, entries: tuple[Entry, ...], config: HandoffConfig, scene: int | None
) -> bool:
    """Whether no more is left of earlier scenes than their last run kept: that was a handoff."""
    if report.reason is not TriggerReason.SCENE or scene is None:
        return False
    return sum(entry.scene != scene for entry in entries) <= config.keep_entries


def _needed(report: TriggerReport, config: HandoffConfig, *, ending: bool) -> int:
    """How many candidates a run needs."""
    if ending:
        return config.ceiling_candidates
    match report.reason:
        case TriggerReason.CEILING | TriggerReason.STATE | TriggerReason.REQUESTED:
            return config.ceiling_candidates
        case TriggerReason.VELOCITY:
            return config.velocity_candidates
        case TriggerReason.BUDGET | TriggerReason.SCENE | TriggerReason.IDLE:
            return config.voluntary_candidates
        case TriggerReason.NONE:
            raise ValueError("nothing is due")

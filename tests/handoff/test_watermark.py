"""What stays and what may be handed over, and when that is enough for a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.clock import is_fresh
from bot.config import HandoffConfig
from bot.handoff.trigger import HandoffTrigger, TriggerReason, TriggerReport
from bot.handoff.watermark import HARD_FLOOR, due_candidates, partition_buffer
from bot.memory.working import Entry
from tests.handoff.entries import NOW, entries, entry

CONFIG = HandoffConfig()
OLD, FRESH = timedelta(hours=1), timedelta(minutes=5)
HALF_HOUR, SECOND = timedelta(minutes=30), timedelta(seconds=1)


def report(reason: TriggerReason) -> TriggerReport:
    hard = (TriggerReason.CEILING, TriggerReason.BUDGET, TriggerReason.VELOCITY)
    trigger: HandoffTrigger = "involuntary" if reason in hard else "voluntary"
    return TriggerReport(trigger=trigger, reason=reason)


def taken(reason: TriggerReason, buffer: list[Entry], *, ending: bool = False) -> int:
    return len(due_candidates(report(reason), buffer, NOW, CONFIG, ending=ending))


def buffer_with(candidates: int, *, fresh: int = HARD_FLOOR) -> list[Entry]:
    return [*entries(candidates, ago=OLD), *entries(fresh, ago=FRESH, first=500)]


# --- the partition


def test_the_defaults_are_those_of_the_config() -> None:
    assert (CONFIG.keep_entries, timedelta(minutes=CONFIG.fresh_min)) == (HARD_FLOOR, HALF_HOUR)


def test_the_last_eight_stay_however_old() -> None:
    year = timedelta(days=365)
    assert partition_buffer(entries(8, ago=year), NOW).candidates == ()
    nine = entries(9, ago=year)
    parts = partition_buffer(nine, NOW)
    assert (parts.candidates, parts.protected) == (tuple(nine[:1]), tuple(nine[1:]))


def test_what_is_younger_than_half_an_hour_stays() -> None:
    young = [entry(1, ago=HALF_HOUR - SECOND), *entries(8, first=2)]
    assert partition_buffer(young, NOW).candidates == ()
    due = [entry(1, ago=HALF_HOUR), *entries(8, first=2)]
    assert partition_buffer(due, NOW).candidates == (due[0],)


def test_nothing_after_a_fresh_entry_is_a_candidate() -> None:
    said = [entry(1, ago=OLD), entry(2, ago=FRESH), *entries(10, ago=OLD, first=3)]
    parts = partition_buffer(said, NOW)
    assert (parts.candidates, parts.protected) == ((said[0],), tuple(said[1:]))


def test_pinned_entries_are_neither_candidates_nor_protected() -> None:
    said = entries(20, ago=OLD)
    said[3], said[15] = replace(said[3], pinned=True), replace(said[15], pinned=True)
    parts = partition_buffer(said, NOW)
    assert parts.pinned == (said[3], said[15])
    assert len(parts.protected) == HARD_FLOOR
    assert len(parts.candidates) == 10


@given(
    st.lists(st.tuples(st.integers(-5, 120), st.booleans()), max_size=60),
    st.integers(0, 25),
)
def test_a_buffer_falls_into_three_parts(made: list[tuple[int, bool]], keep: int) -> None:
    said = [
        entry(number, ago=timedelta(minutes=minutes), pinned=pinned)
        for number, (minutes, pinned) in enumerate(made)
    ]
    parts = partition_buffer(said, NOW, keep)
    counted = [one for one in said if not one.pinned]
    assert [*parts.candidates, *parts.protected] == counted
    assert list(parts.pinned) == [one for one in said if one.pinned]
    assert len(parts.protected) >= min(keep, len(counted))
    assert len(parts.protected) <= keep or is_fresh(NOW, parts.protected[0].said_at)
    assert not any(is_fresh(NOW, one.said_at) for one in parts.candidates)


# --- enough for a run


def test_nothing_is_taken_where_nothing_is_due() -> None:
    nothing = TriggerReport(trigger="none", reason=TriggerReason.NONE)
    assert due_candidates(nothing, buffer_with(30), NOW, CONFIG) == ()


@pytest.mark.parametrize(
    ("reason", "needed"),
    [
        (TriggerReason.VELOCITY, 12),
        (TriggerReason.SCENE, 4),
        (TriggerReason.IDLE, 4),
        (TriggerReason.CEILING, 1),
        (TriggerReason.BUDGET, 4),
        (TriggerReason.STATE, 1),
        (TriggerReason.REQUESTED, 1),
    ],
)
def test_a_run_needs_so_many_candidates(reason: TriggerReason, needed: int) -> None:
    assert taken(reason, buffer_with(needed - 1)) == 0
    assert taken(reason, buffer_with(needed)) == needed


@pytest.mark.parametrize("reason", [r for r in TriggerReason if r is not TriggerReason.NONE])
def test_one_candidate_is_enough_where_a_room_has_ended(reason: TriggerReason) -> None:
    assert taken(reason, buffer_with(0), ending=True) == 0
    assert taken(reason, buffer_with(1), ending=True) == 1


# --- a crowded room


def test_above_forty_entries_only_the_last_twenty_stay() -> None:
    assert taken(TriggerReason.VELOCITY, entries(40, ago=FRESH)) == 0
    assert taken(TriggerReason.VELOCITY, entries(41, ago=FRESH)) == 21


def test_pinned_entries_crowd_no_room() -> None:
    pinned = [entry(n, ago=FRESH, pinned=True) for n in range(100, 110)]
    assert taken(TriggerReason.VELOCITY, [*pinned, *entries(40, ago=FRESH)]) == 0


def test_a_crowded_room_keeps_its_last_twenty_or_fewer_where_they_are_old() -> None:
    assert taken(TriggerReason.VELOCITY, buffer_with(12, fresh=40)) == 32
    assert taken(TriggerReason.VELOCITY, buffer_with(40, fresh=12)) == 40
    assert taken(TriggerReason.VELOCITY, buffer_with(12, fresh=28)) == 12


@pytest.mark.parametrize("reason", [TriggerReason.CEILING, TriggerReason.BUDGET])
@pytest.mark.parametrize(
    ("value", "limit", "left"),
    [
        (1_000, 1_000, 15),  # half of thirty like entries fits half of the limit
        (1_000, 999, 14),
        (2_000, 1_000, 8),
        (9_000, 1_000, 8),  # the last eight always stay
    ],
)
def test_where_the_talk_does_not_fit_fresh_entries_give_way_to_half_of_its_space(
    reason: TriggerReason, value: int, limit: int, left: int
) -> None:
    full = TriggerReport(trigger="involuntary", reason=reason, value=value, limit=limit)
    fresh = [replace(one, tokens=10) for one in entries(30, ago=FRESH)]
    assert len(due_candidates(full, fresh, NOW, CONFIG)) == 30 - left


@pytest.mark.parametrize("reason", [TriggerReason.CEILING, TriggerReason.BUDGET])
def test_where_the_talk_does_not_fit_long_entries_count_for_more(reason: TriggerReason) -> None:
    full = TriggerReport(trigger="involuntary", reason=reason, value=1_000, limit=800)
    short = [replace(one, tokens=6) for one in entries(20, ago=FRESH)]
    long = [replace(one, tokens=96) for one in entries(10, ago=FRESH, first=500)]
    assert len(due_candidates(full, [*long, *short], NOW, CONFIG)) == 8
    assert len(due_candidates(full, [*short, *long], NOW, CONFIG)) == 22


def in_scenes(earlier: int, now: int) -> list[Entry]:
    later = entries(now, ago=FRESH, first=500)
    return [*entries(earlier, ago=OLD), *(replace(one, scene=1) for one in later)]


@pytest.mark.parametrize(("earlier", "count"), [(8, 0), (9, 9)])
def test_what_the_last_run_kept_of_a_scene_is_worth_no_run_of_its_own(
    earlier: int, count: int
) -> None:
    buffer = in_scenes(earlier, 9)
    scene = report(TriggerReason.SCENE)
    assert len(due_candidates(scene, buffer, NOW, CONFIG, scene=1)) == count
    assert len(due_candidates(scene, buffer, NOW, CONFIG)) == earlier
    idle = report(TriggerReason.IDLE)
    assert len(due_candidates(idle, buffer, NOW, CONFIG, scene=1)) == earlier


@pytest.mark.parametrize(
    "reason",
    [TriggerReason.SCENE, TriggerReason.IDLE, TriggerReason.STATE, TriggerReason.REQUESTED],
)
def test_what_can_wait_takes_nothing_fresh(reason: TriggerReason) -> None:
    assert taken(reason, entries(60, ago=FRESH)) == 0


def test_the_oldest_are_taken_in_order() -> None:
    said = buffer_with(15)
    assert due_candidates(report(TriggerReason.IDLE), said, NOW, CONFIG) == tuple(said[:15])

"""When a handoff is due: every trigger on both sides of its boundary."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.config import HandoffConfig
from bot.handoff.trigger import (
    HandoffState,
    TriggerReason,
    TriggerReport,
    check_handoff_trigger,
    explain_handoff_trigger,
    memory_section_length,
)
from bot.llm.chat import ChatMessage
from bot.memory.transcript import View, render_entries, section_tokens
from bot.memory.working import Entry, EntryKind
from bot.persona.personas import PersonaState
from tests.handoff.entries import NOW, PERSONA, ROSTER, entries, entry

VIEW = View(persona=PERSONA, roster=ROSTER, now=NOW, zone=ZoneInfo("UTC"))
THOUGHT = EntryKind.THOUGHT
HALF_HOUR, SECOND = timedelta(minutes=30), timedelta(seconds=1)
RESTING = [state for state in PersonaState if state is not PersonaState.ACTIVE]


def render(said: Sequence[Entry], now: datetime) -> Sequence[ChatMessage]:
    return render_entries(said, replace(VIEW, now=now))


def state(**given: Any) -> HandoffState:
    return HandoffState(render=render, **given)


def found(said: Sequence[Entry], window: int = 32_768, **given: Any) -> TriggerReport:
    return explain_handoff_trigger(state(**given), said, NOW, window)


def reason(said: Sequence[Entry], window: int = 32_768, **given: Any) -> TriggerReason:
    return found(said, window, **given).reason


def of_tokens(tokens: int, ratio: float = 1.0) -> list[Entry]:
    """One line that takes exactly so many tokens in a prompt."""

    def size(length: int) -> int:
        said = [entry(1, "x" * length)]
        return memory_section_length(said, NOW, render=render, ratio=ratio)

    length = bisect_left(range(tokens * 10), tokens, key=size)
    assert size(length) == tokens
    return [entry(1, "x" * length)]


# --- nothing to hand over


def test_an_empty_buffer_is_never_due() -> None:
    report = found([], persona=PersonaState.ASLEEP, turns_since=99, scene=3, budget=0)
    assert report == TriggerReport(trigger="none", reason=TriggerReason.NONE)


def test_a_buffer_of_pinned_entries_alone_is_never_due() -> None:
    pinned = [entry(n, "x" * 500, pinned=True, ago=HALF_HOUR, scene=n) for n in range(30)]
    assert reason(pinned, 100, budget=0, persona=PersonaState.DEAD) is TriggerReason.NONE


def test_a_few_fresh_lines_are_not_due() -> None:
    assert check_handoff_trigger(state(), entries(3), NOW) == "none"


# --- the ceiling and the budget


@pytest.mark.parametrize("ratio", [1.0, 1.1, 0.6])
def test_the_section_may_fill_sixty_per_cent_of_the_window_and_no_token_more(ratio: float) -> None:
    assert reason(of_tokens(600, ratio), 1_000, ratio=ratio) is TriggerReason.NONE
    report = found(of_tokens(601, ratio), 1_000, ratio=ratio)
    assert (report.trigger, report.reason) == ("involuntary", TriggerReason.CEILING)
    assert (report.value, report.limit) == (601, 600)


def test_the_ceiling_is_a_share_to_the_token() -> None:
    config = HandoffConfig(ceiling_fraction=0.29)
    assert reason(of_tokens(29), 100, config=config) is TriggerReason.NONE
    assert reason(of_tokens(30), 100, config=config) is TriggerReason.CEILING


def test_a_ceiling_of_nought_is_none() -> None:
    config = HandoffConfig(ceiling_fraction=0)
    assert reason(of_tokens(900), 100, config=config) is TriggerReason.NONE
    assert reason(of_tokens(900), 0) is TriggerReason.NONE


def test_the_window_is_32768_where_none_is_named() -> None:
    assert check_handoff_trigger(state(), of_tokens(19_660), NOW) == "none"
    assert check_handoff_trigger(state(), of_tokens(19_661), NOW) == "involuntary"


def test_the_section_is_measured_as_it_is_rendered() -> None:
    said = [entry(1, ago=timedelta(hours=3)), entry(2, "more"), entry(3, "yes", author=None)]
    measured = memory_section_length(said, NOW, render=render, ratio=1.1)
    assert measured == section_tokens(said, VIEW, 1.1)
    plain = HandoffState()
    assert measured != memory_section_length(said, NOW, render=plain.render, ratio=1.1)


def test_the_section_is_measured_at_the_time_of_the_look() -> None:
    lengths = [
        memory_section_length([entry(1)], NOW + after, render=render, ratio=1.0)
        for after in (timedelta(minutes=29), timedelta(days=1))
    ]
    assert lengths[0] < lengths[1]  # a heading says how long ago it was


def test_the_budget_may_be_filled_and_not_passed() -> None:
    assert reason(of_tokens(50), budget=50) is TriggerReason.NONE
    report = found(of_tokens(51), budget=50)
    assert (report.trigger, report.reason) == ("involuntary", TriggerReason.BUDGET)
    assert (report.value, report.limit) == (51, 50)


def test_pinned_entries_take_no_room() -> None:
    pinned = [entry(n, "x" * 500, pinned=True) for n in range(2, 5)]
    assert reason([*pinned, *of_tokens(50)], budget=50) is TriggerReason.NONE


# --- velocity


def test_more_than_twenty_entries_are_too_many() -> None:
    assert reason(entries(20)) is TriggerReason.NONE
    report = found(entries(21))
    assert (report.trigger, report.reason) == ("involuntary", TriggerReason.VELOCITY)
    assert (report.value, report.limit) == (21, 20)


def test_pinned_entries_are_not_counted() -> None:
    pinned = [entry(n, pinned=True) for n in range(100, 110)]
    assert reason([*pinned, *entries(20)]) is TriggerReason.NONE
    assert found([*pinned, *entries(21)]).value == 21


# --- scenes


def test_one_scene_is_not_due() -> None:
    assert reason(entries(3, scene=2), scene=2) is TriggerReason.NONE


@pytest.mark.parametrize(("scenes", "here"), [((1, 1, 2), 2), ((1, 1, 1), 2), ((1, 2, 3), 3)])
def test_entries_of_another_scene_are_due(scenes: Sequence[int], here: int) -> None:
    said = [entry(n, scene=scene) for n, scene in enumerate(scenes)]
    report = found(said, scene=here)
    assert (report.trigger, report.reason) == ("voluntary", TriggerReason.SCENE)
    assert (report.value, report.limit) == (len({*scenes, here}), 1)


def test_a_scene_is_due_once() -> None:
    said = [entry(1, scene=1), entry(2, scene=2)]
    assert reason(said, scene=2, scene_fired=1) is TriggerReason.SCENE
    assert reason(said, scene=2, scene_fired=2) is TriggerReason.NONE
    assert reason(said, scene=3, scene_fired=2) is TriggerReason.SCENE


def test_a_pinned_entry_of_another_scene_is_not_due() -> None:
    assert reason([entry(1, pinned=True), *entries(2, scene=1)], scene=1) is TriggerReason.NONE


# --- idle


@pytest.mark.parametrize(
    ("turns", "silence", "idle"),
    [
        (4, timedelta(0), None),
        (5, timedelta(0), 5),
        (0, HALF_HOUR - SECOND, None),
        (0, HALF_HOUR, 5),
        (4, timedelta(minutes=6) - SECOND, None),
        (4, timedelta(minutes=6), 5),
        (2, timedelta(minutes=18) - SECOND, None),
        (2, timedelta(minutes=18), 5),
        (0, timedelta(days=1), 240),
        (4, -timedelta(days=1), None),
    ],
)
def test_five_idle_turns_by_count_and_by_time_are_due(
    turns: int, silence: timedelta, idle: int | None
) -> None:
    report = found([entry(1, ago=silence)], turns_since=turns)
    expected = (TriggerReason.NONE, 0) if idle is None else (TriggerReason.IDLE, idle)
    assert (report.reason, report.value) == expected
    assert report.trigger == ("none" if idle is None else "voluntary")


def test_thoughts_do_not_end_an_idle_time() -> None:
    said = [entry(1, ago=HALF_HOUR), entry(2, kind=THOUGHT)]
    assert reason(said) is TriggerReason.IDLE
    assert reason([*said, entry(3)]) is TriggerReason.NONE
    assert reason([*said, entry(3, kind=EntryKind.ACTION)]) is TriggerReason.NONE


def test_where_there_are_only_thoughts_the_first_one_counts() -> None:
    thoughts = [entry(1, kind=THOUGHT, ago=HALF_HOUR), entry(2, kind=THOUGHT)]
    assert reason(thoughts) is TriggerReason.IDLE
    assert reason(thoughts[1:]) is TriggerReason.NONE


# --- states


def test_an_active_persona_is_in_no_state_that_is_due() -> None:
    fired = PersonaState.ASLEEP
    assert reason(entries(1), persona=PersonaState.ACTIVE, state_fired=fired) is TriggerReason.NONE


@pytest.mark.parametrize("entered", RESTING)
def test_entering_a_state_is_due_once(entered: PersonaState) -> None:
    report = found(entries(1), persona=entered)
    assert (report.trigger, report.reason) == ("voluntary", TriggerReason.STATE)
    assert reason(entries(1), persona=entered, state_fired=entered) is TriggerReason.NONE
    for earlier in set(RESTING) - {entered}:
        assert reason(entries(1), persona=entered, state_fired=earlier) is TriggerReason.STATE


# --- which comes first


def test_the_triggers_are_looked_for_in_their_order() -> None:
    said = [entry(n, "x" * 100, ago=HALF_HOUR, scene=n % 2) for n in range(21)]
    sleeping: dict[str, Any] = {"persona": PersonaState.ASLEEP, "budget": 10}
    nothing_fits = 100
    steps: list[tuple[TriggerReason, Callable[[], TriggerReport]]] = [
        (TriggerReason.CEILING, lambda: found(said, nothing_fits, **sleeping)),
        (TriggerReason.BUDGET, lambda: found(said, **sleeping)),
        (TriggerReason.VELOCITY, lambda: found(said, **sleeping | {"budget": None})),
        (TriggerReason.SCENE, lambda: found(said[:20], persona=PersonaState.ASLEEP)),
        (TriggerReason.IDLE, lambda: found(said[:1], persona=PersonaState.ASLEEP)),
        (TriggerReason.STATE, lambda: found(entries(1), persona=PersonaState.ASLEEP)),
    ]
    assert [look().reason for _, look in steps] == [expected for expected, _ in steps]


def test_the_short_answer_is_that_of_the_long_one() -> None:
    for said in (entries(1), entries(21), entries(3, ago=HALF_HOUR)):
        assert check_handoff_trigger(state(), said, NOW) == found(said).trigger


def test_the_numbers_are_those_of_the_config() -> None:
    config = HandoffConfig(velocity_entries=2, idle_turns=2, idle_turn_min=1)
    assert reason(entries(3), config=config) is TriggerReason.VELOCITY
    assert reason(entries(2, ago=timedelta(minutes=2)), config=config) is TriggerReason.IDLE
    assert reason(entries(2, ago=timedelta(minutes=1)), config=config) is TriggerReason.NONE

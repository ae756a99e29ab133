"""Is it time for a handoff? Pure: no model, no database, no wall clock."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from bot.config import HandoffConfig
from bot.llm.chat import ChatMessage
from bot.llm.tokens import estimate_message_tokens
from bot.memory.working import Entry, EntryKind
from bot.persona.personas import PersonaState

HandoffTrigger = Literal["none", "voluntary", "involuntary"]
Render = Callable[[Sequence[Entry], datetime], Sequence[ChatMessage]]
"""How entries stand in a prompt that is made at that time."""

DEFAULT_CONTEXT = 32_768


class TriggerReason(StrEnum):
    """Why a handoff is due; in the order in which it is looked for."""

    NONE = "none"
    CEILING = "ceiling"
    BUDGET = "budget"
    VELOCITY = "velocity"
    SCENE = "scene"
    IDLE = "idle"
    STATE = "state"
    REQUESTED = "requested"
    """Asked for by a manager; no trigger looks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerReport:
    """What was found: the reason, the value that was measured, and the limit that it reached."""

    trigger: HandoffTrigger
    reason: TriggerReason
    value: int = 0
    limit: int = 0


NOTHING_DUE = TriggerReport(trigger="none", reason=TriggerReason.NONE)


def plainly(entries: Sequence[Entry], _now: datetime) -> Sequence[ChatMessage]:
    """Each entry as a message of its own, where nobody said how they are shown."""
    return [ChatMessage(role="user", content=entry.content) for entry in entries]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffState:
    """A persona in one room, as the triggers see it.

    `scene`: where the persona is. `turns_since`: turns since the last entry that is no thought.
    `scene_fired` and `state_fired`: what a run was made for already. `budget`: tokens beyond which
    the section is soon too large for what the rest of the prompt leaves, where that is known.
    `heard_at`: when somebody last spoke in the room, whether or not that is in the buffer yet.
    """

    scene: int = 0
    persona: PersonaState = PersonaState.ACTIVE
    turns_since: int = 0
    scene_fired: int | None = None
    state_fired: PersonaState | None = None
    budget: int | None = None
    heard_at: datetime | None = None
    render: Render = plainly
    ratio: float = 1.0
    config: HandoffConfig = field(default_factory=HandoffConfig)


def check_handoff_trigger(
    state: HandoffState,
    entries: Sequence[Entry],
    now: datetime,
    max_context: int = DEFAULT_CONTEXT,
) -> HandoffTrigger:
    """Whether a handoff is due, and whether it can wait. `max_context`: the chat model's window."""
    return explain_handoff_trigger(state, entries, now, max_context).trigger


def explain_handoff_trigger(
    state: HandoffState,
    entries: Sequence[Entry],
    now: datetime,
    max_context: int = DEFAULT_CONTEXT,
) -> TriggerReport:
    """The first trigger that holds, with its reason. Pinned entries count for none."""
    return next(holding_triggers(state, entries, now, max_context), NOTHING_DUE)


def holding_triggers(
    state: HandoffState,
    entries: Sequence[Entry],
    now: datetime,
    max_context: int = DEFAULT_CONTEXT,
) -> Iterator[TriggerReport]:
    """Every trigger that holds, in order: what is too little for one may be enough for the next."""
    counted = unpinned(entries)
    if counted:
        yield from _involuntary(state, counted, now, max_context)
        yield from _voluntary(state, counted, now)


def memory_section_length(
    entries: Sequence[Entry], now: datetime, *, render: Render, ratio: float
) -> int:
    """Tokens of the working-memory section as it is rendered in a prompt."""
    return sum(estimate_message_tokens(message, ratio) for message in render(entries, now))


def unpinned(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries that are not kept open by a matter."""
    return tuple(entry for entry in entries if not entry.pinned)


def _involuntary(
    state: HandoffState, entries: Sequence[Entry], now: datetime, max_context: int
) -> Iterator[TriggerReport]:
    section = memory_section_length(entries, now, render=state.render, ratio=state.ratio)
    # 0.29 * 100 is 28.999999999999996 in floating point: 29 tokens, not 28.
    ceiling = int(round(max_context * state.config.ceiling_fraction, 6))
    velocity = state.config.velocity_entries
    if ceiling and section > ceiling:
        yield _report("involuntary", TriggerReason.CEILING, section, ceiling)
    if state.budget is not None and section > state.budget:
        yield _report("involuntary", TriggerReason.BUDGET, section, state.budget)
    if len(entries) > velocity:
        yield _report("involuntary", TriggerReason.VELOCITY, len(entries), velocity)


def _voluntary(
    state: HandoffState, entries: Sequence[Entry], now: datetime
) -> Iterator[TriggerReport]:
    scenes = {entry.scene for entry in entries} | {state.scene}
    if len(scenes) > 1 and state.scene_fired != state.scene:
        yield _report("voluntary", TriggerReason.SCENE, len(scenes), 1)
    idle = idle_turns(state, entries, now)
    if idle >= state.config.idle_turns:
        yield _report("voluntary", TriggerReason.IDLE, idle, state.config.idle_turns)
    if state.persona is not PersonaState.ACTIVE and state.state_fired is not state.persona:
        yield _report("voluntary", TriggerReason.STATE, 1, 1)


def idle_turns(state: HandoffState, entries: Sequence[Entry], now: datetime) -> int:
    """Turns, and whole spans of time, since something was last said or done."""
    spans = (now - last_heard(state, entries)) // timedelta(minutes=state.config.idle_turn_min)
    return state.turns_since + max(0, spans)


def last_heard(state: HandoffState, entries: Sequence[Entry]) -> datetime:
    """When something was last said or done; where there are only thoughts, before the first."""
    spoken = [entry for entry in entries if entry.kind is not EntryKind.THOUGHT]
    last = (spoken[-1] if spoken else entries[0]).said_at
    return max(last, state.heard_at or last)


def _report(
    trigger: HandoffTrigger, reason: TriggerReason, value: int, limit: int
) -> TriggerReport:
    return TriggerReport(trigger=trigger, reason=reason, value=value, limit=limit)

"""The plain reading of the handoff's specification, simulated: no database and no model.

A run is made whenever a trigger holds and there is a candidate. Protected are the last 8 entries
and the fresh ones, and nothing else: no batches, no crowded buffer, nothing that fires only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from benchmarks.handoff_rooms import SCENE_SILENCE, Line, Room
from bot.guild_settings import QuietHours
from bot.handoff import HandoffState, check_handoff_trigger, partition_buffer
from bot.identifiers import EntryId, PersonaId, UserId
from bot.llm.chat import ChatMessage
from bot.memory.working import Entry, EntryKind
from bot.persona.personas import PersonaState


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReading:
    """Runs where every entry is somebody's turn, as in the specification's own simulation.

    `runs_at_turns`: runs where only the turns of the room look. `longest`: entries of the longest
    buffer.
    """

    runs: int
    runs_at_turns: int
    longest: int


def read_plainly(room: Room, turns: Sequence[Sequence[Line]]) -> PlainReading:
    everywhere = [[line] for turn in turns for line in turn]
    # The reply stands before the next turn looks.
    at_turns = [
        [*before[-1:], *turn[:-1]] for before, turn in zip([[], *turns], turns, strict=False)
    ]
    runs, longest = _play(room, everywhere)
    return PlainReading(runs=runs, runs_at_turns=_play(room, at_turns)[0], longest=longest)


def _play(room: Room, steps: Sequence[Sequence[Line]]) -> tuple[int, int]:
    """The number of runs, and the length of the longest buffer; a look after each step."""
    buffer: list[Entry] = []
    number = runs = longest = scene = 0
    last_at: datetime | None = None
    for step in steps:
        for line in step:
            number += 1
            scene += last_at is not None and line.at - last_at >= SCENE_SILENCE
            last_at = line.at
            buffer.append(_entry(number, line, scene))
        longest = max(longest, len(buffer))
        if last_at is not None and (protected := _hands_over(room, buffer, scene, last_at)):
            runs += 1
            buffer = protected
    return runs, longest


def _hands_over(
    room: Room, buffer: Sequence[Entry], scene: int, now: datetime
) -> list[Entry] | None:
    """What is left after a run; None where there is none."""
    state = replace(_AWAKE, scene=scene, persona=_resting(room, now))
    if check_handoff_trigger(state, buffer, now) == "none":
        return None
    partition = partition_buffer(buffer, now)
    return list(partition.protected) if partition.candidates else None


def _resting(room: Room, now: datetime) -> PersonaState:
    quiet = room.quiet_hours is not None and QuietHours.parse(room.quiet_hours).holds(now)
    return PersonaState.ASLEEP if quiet else PersonaState.ACTIVE


def _not_measured(_entries: Sequence[Entry], _now: datetime) -> Sequence[ChatMessage]:
    """Here more than 20 entries trigger a run whatever their size, and fewer fit any window."""
    return ()


_AWAKE = HandoffState(render=_not_measured)


def _entry(number: int, line: Line, scene: int) -> Entry:
    return Entry(
        id=EntryId(number),
        kind=EntryKind.DIALOGUE,
        author=None if line.by is None else UserId(line.by + 1),
        persona=PersonaId(1) if line.by is None else None,
        content=line.text,
        message_id=None,
        said_at=line.at,
        scene=scene,
        pinned=False,
        version=1,
        tokens=1,
    )

"""Whatever is said, edited, deleted, handed over and undone: no entry is lost, none is twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import UserError
from bot.handoff.runs import Outcome
from bot.identifiers import EntryId, RunId, UserId
from tests.fakes import HttpError, Reply, Text
from tests.handoff.answers import CHUNKS, Answer
from tests.handoff.room import ANN, BEN, Room, chunk, open_room, result
from tests.talk import FakeClock

EXAMPLES = 30
MOST_STEPS = 12


@dataclass(frozen=True)
class Say:
    """So many lines; the persona's where `by` is None; then a silence."""

    lines: int
    by: UserId | None
    minutes: int


@dataclass(frozen=True)
class Touch:
    """Its author edits or deletes an entry: which one of all that were said, counted round."""

    which: int
    deletes: bool


@dataclass(frozen=True)
class Run:
    """`fault`: the model or its answer fails. `touch`: what happens while it works."""

    answer: Answer
    fault: str | None
    touch: Touch | None


@dataclass(frozen=True)
class Undo:
    """One of the runs, counted round from the newest."""

    which: int


@dataclass(frozen=True)
class Restart:
    pass


Step = Say | Touch | Run | Undo | Restart

_TOUCHES = st.builds(Touch, which=st.integers(0, 30), deletes=st.booleans())
_ANSWERS = st.builds(
    Answer,
    places=st.lists(st.integers(0, CHUNKS), min_size=1, max_size=6),
    retains=st.lists(st.booleans(), min_size=CHUNKS, max_size=CHUNKS),
    goes_on=st.lists(st.integers(0, 2), min_size=CHUNKS, max_size=CHUNKS),
    settles=st.frozensets(st.integers(1, 3), max_size=2),
)
_FAULTS = st.sampled_from([*[None] * 9, "down", "no JSON", "no source"])
_RUNS = st.builds(Run, answer=_ANSWERS, fault=_FAULTS, touch=st.none() | _TOUCHES)
_SAYS = st.builds(
    Say,
    lines=st.integers(1, 5),
    by=st.sampled_from([ANN, BEN, None]),
    minutes=st.sampled_from([1, 31, 60, 60 * 24 * 8]),
)
_OTHERS = st.one_of(_TOUCHES, st.builds(Undo, which=st.integers(0, 2)), st.builds(Restart))
_STEPS = st.lists(
    st.one_of(st.tuples(_SAYS, _RUNS), st.tuples(_SAYS, _RUNS), st.tuples(_OTHERS)),
    min_size=4,
    max_size=MOST_STEPS,
)


@dataclass
class Play:
    """A room over a folder, and what was said and deleted in it."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    said: list[EntryId] = field(default_factory=list[EntryId])
    deleted: set[EntryId] = field(default_factory=set[EntryId])

    async def all(self, steps: Sequence[Step]) -> None:
        """Play the steps, and look at what is there after each."""
        left = list(steps)
        room = None
        while left:
            async with AsyncExitStack() as stack:
                messages = room.messages if room else {}
                opened = open_room(self.folder, clock=self.clock, max_matters=2)
                room = await stack.enter_async_context(opened)
                room.messages.update(messages)
                while left and not isinstance(step := left.pop(0), Restart):
                    await self._step(room, step)
                    await self._look(room)

    async def _step(self, room: Room, step: Step) -> None:
        match step:
            case Say(lines, by, minutes):
                first = len(self.said)
                texts = [f"tomato number{first + place}" for place in range(lines)]
                self.said += await room.say(*texts, by=by)
                self.clock.pass_(minutes=minutes)
            case Touch():
                await self._touch(room, step)
            case Run():
                await self._run(room, step)
            case Undo(which):
                runs = await room.runs()
                if runs:
                    run = RunId(runs[-1 - which % len(runs)]["id"])
                    try:
                        await room.undo(run)
                    except UserError:
                        return

    async def _touch(self, room: Room, touch: Touch) -> None:
        if not self.said:
            return
        entry = self.said[touch.which % len(self.said)]
        if touch.deletes:
            self.deleted.add(entry)
            await room.delete(entry)
        elif entry not in self.deleted:
            await room.edit(entry, f"tomato again{self.clock.ticks}")

    async def _run(self, room: Room, run: Run) -> None:
        faults: dict[str | None, Reply | None] = {
            "down": HttpError(500),
            "no JSON": Text("no JSON"),
            "no source": result(chunk("E999", content="They spoke of a tomato")),
        }
        fault = faults.get(run.fault)
        room.model.clear()
        room.model.on(lambda request: fault or run.answer.to(request))
        look = await room.watch.look(room.key, requested=True)
        before = set(await room.archived())
        if look is None or not look.is_due:
            return
        if run.touch is None:
            outcome = await room.run()
        else:
            outcome = await room.run_while(self._touch(room, run.touch))
        assert outcome is not None
        assert bool(outcome.failure) == (fault is not None)
        await self._count(room, outcome, set(await room.archived()) - before)

    async def _count(self, room: Room, outcome: Outcome, archived: set[EntryId]) -> None:
        rows = await room.rows("SELECT entry_id FROM ledger_sources WHERE run_id = ?", outcome.run)
        assert len(rows) == outcome.promoted
        assert len(archived - set(await room.sources())) == outcome.forgotten

    async def _look(self, room: Room) -> None:
        entries = await room.entries()
        pinned = {entry.id for entry in entries if entry.pinned}
        waiting = {entry.id for entry in entries} - pinned
        sources = await room.sources()
        told = set(sources)
        archived = set(await room.archived())
        assert len(sources) == len(told)
        assert pinned <= told
        assert not archived & (pinned | waiting)
        assert not self.deleted & (pinned | waiting | archived)
        forgotten = archived - told
        erased = self.deleted - told
        # Each exactly one of these, and nothing else.
        assert sorted([*waiting, *told, *forgotten, *erased]) == sorted(self.said)
        assert told - pinned - self.deleted <= archived
        assert {row["ledger_id"] for row in await room.rows("SELECT * FROM ledger_sources")} == {
            row["id"] for row in await room.rows("SELECT id FROM ledger_entries")
        }


@settings(max_examples=EXAMPLES, deadline=None)
@given(_STEPS)
def test_every_entry_is_in_one_place(steps: list[tuple[Step, ...]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(Play(Path(folder)).all([step for some in steps for step in some]))

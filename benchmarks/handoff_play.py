"""Plays one room through the real capture and the real handoff engine, on a fake clock."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.handoff_rooms import PEOPLE, START, Line, Room
from bot.audience import Audience, Origin, Place
from bot.clock import to_ms
from bot.guild_settings import QuietHours
from bot.handoff.trigger import unpinned
from bot.identifiers import EntryId, TurnId, UserId
from bot.memory.buffers import BufferKey
from bot.memory.roster import Roster
from bot.memory.transcript import View, section_tokens
from bot.memory.working import Pace, Utterance, add_entries
from bot.persona.personas import Persona
from bot.privacy.names import Called, keep_names
from bot.storage.statements import Transaction
from bot.turn.budget import plan_budget
from bot.turn.history import fit_entries
from bot.turn.messages import IncomingMessage, Person
from bot.turn.turn_rows import end_turn, take_turn
from tests.fakes import ModelRequest, Text
from tests.talk import GUILD, FakeClock, Talk, open_talk

SWEEP_EVERY = timedelta(minutes=6)

_LINE = re.compile(r"^(E\d+) \d\d:\d\d .*?: (.*)$", re.MULTILINE)
_LINES_OF_A_CHUNK, _RUNS_OF_A_MATTER = 5, 10


class ScriptedKeeper:
    """A model that answers handoffs at once: it tells four of five lines and forgets the fifth.

    Every tenth run opens a matter, which the run after the next settles.
    """

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: ModelRequest) -> Text:
        self.asked += 1
        lines: list[tuple[str, str]] = _LINE.findall(request.last_user)
        step = _LINES_OF_A_CHUNK
        chunks = [_chunk(lines[at : at + step]) for at in range(0, len(lines), step)]
        turn = self.asked % _RUNS_OF_A_MATTER
        chunks[0]["retain_in_buffer"] = turn == 0
        resolved = ["P1"] if turn == 2 and "\nP1 (" in request.last_user else []
        answer = json.dumps({"chunks": chunks, "resolved": resolved})
        return Text(answer, chunk_size=len(answer))


def _chunk(lines: Sequence[tuple[str, str]]) -> dict[str, object]:
    told = lines[: _LINES_OF_A_CHUNK - 1]
    _, first = told[0]
    return {
        "source_entry_ids": [handle for handle, _ in told],
        "content": f"They talked: {first[:200]}",
        "quotes": [first[:100]],
        "importance": 1 + len(first) % 10,
        "involved_entity_ids": ["U1"],
        "retain_in_buffer": False,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Working memory as one prompt finds it, before it is made to fit; what is pinned apart."""

    entries: int
    section: int
    hidden: frozenset[EntryId]
    waited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a room. `budget`: tokens that a prompt with full blocks leaves for the talk."""

    samples: Sequence[Sample]
    budget: int
    runs_by_reason: dict[str, int]
    aborted: int
    episodes: int
    forgotten: int
    pinned: int
    prompt_tokens: int
    answer_tokens: int

    @property
    def runs(self) -> int:
        return sum(self.runs_by_reason.values())


async def play(room: Room, turns: Sequence[Sequence[Line]], window: int, folder: Path) -> Played:
    """Play a room with a database of its own."""
    async with open_talk(folder, window=window, clock=FakeClock(START)) as talk:
        keeper = ScriptedKeeper()
        talk.keeper.clear()
        talk.keeper.on(keeper)
        stage = await _Stage.build(talk, keeper, room)
        for turn in turns:
            await stage.take_turn(turn)
        await stage.wait_until(turns[-1][-1].at + timedelta(hours=3))
        return await stage.result()


@dataclass
class _Stage:
    """One room and its clock. A sweep comes every six minutes; whatever it starts is waited for."""

    talk: Talk
    keeper: ScriptedKeeper
    place: Place
    origin: Origin
    persona: Persona
    audience: Audience
    roster: Roster
    budget: int
    swept_at: datetime = START
    said: int = 0
    samples: list[Sample] = field(default_factory=list)

    @classmethod
    async def build(cls, talk: Talk, keeper: ScriptedKeeper, room: Room) -> "_Stage":
        services = talk.app.services
        place = talk.place(room.name)
        origin = await services.origins.of(place)
        persona = await services.personas.main(GUILD)
        if room.quiet_hours is not None:
            hours = QuietHours.parse(room.quiet_hours)
            await services.settings.set_quiet_hours(GUILD, place.channel_id, hours, UserId(1))
        people = [(person(number), name) for number, name in enumerate(PEOPLE)]

        async def job(tx: Transaction) -> None:
            called = [Called(user=user, name=name) for user, name in people]
            await keep_names(tx, GUILD, called, to_ms(START))

        await services.database.write(job)
        plan = plan_budget(services.chat.window, services.config.context)
        blocks = plan.fixed + plan.together + plan.short_term + plan.matters
        return cls(
            talk=talk,
            keeper=keeper,
            place=place,
            origin=origin,
            persona=persona,
            audience=await services.audiences.of_room(origin),
            roster=Roster.of(people, own_names=(persona.name,), someone="someone"),
            budget=min(plan.working_memory, plan.prompt - blocks),
        )

    @property
    def key(self) -> BufferKey:
        return BufferKey(origin=self.origin.id, lineage=self.persona.lineage)

    async def take_turn(self, lines: Sequence[Line]) -> None:
        """What `begin`, the prompt and `effects` do of a turn with working memory."""
        *heard, reply = lines
        engine, guild = self.talk.app.services.handoff, self.origin.guild_id
        for line in heard:
            await self.wait_until(line.at)
            self._hear(line)
        turn = await self._capture(heard)
        asked = self.keeper.asked
        await engine.before_turn(self.origin.id, self.persona.lineage, guild)
        self.samples.append(await self._sample(waited=self.keeper.asked > asked))
        engine.note_space(self.key, self.budget)
        await self.wait_until(reply.at)
        await self._keep_reply(reply, turn)
        engine.after_turn(self.origin.id, guild)
        await self.talk.handoffs()

    def _hear(self, line: Line) -> None:
        """What is said between two turns is in the ring alone, until the next one captures it."""
        rings, number = self.talk.app.services.rings, line.by or 0
        rings.open(self.origin.channel_id)
        rings.hear(
            IncomingMessage(
                id=self.talk.next_id(),
                place=self.place,
                author=Person(id=person(number), name=PEOPLE[number]),
                text=line.text,
                sent_at=line.at,
                locale="en-US",
            )
        )

    async def wait_until(self, at: datetime) -> None:
        """Let time pass, with the sweeps that fall into it."""
        while self.swept_at + SWEEP_EVERY <= at:
            self.swept_at += SWEEP_EVERY
            self._set_clock(self.swept_at)
            await self.talk.app.services.handoff.sweep()
            await self.talk.handoffs()
        self._set_clock(at)

    def _set_clock(self, at: datetime) -> None:
        self.talk.clock.pass_(seconds=(at - self.talk.clock.now()).total_seconds())

    async def _capture(self, lines: Sequence[Line]) -> TurnId:
        said = [self._utterance(line) for line in lines]
        message, author, now = self.talk.next_id(), UserId(1), self.talk.clock.now()

        async def job(tx: Transaction) -> TurnId | None:
            turn = await take_turn(tx, self.origin.id, message, self.persona.lineage, author, now)
            await self._add(tx, said)
            return turn

        turn = await self.talk.app.services.database.write(job)
        assert turn is not None
        return turn

    async def _keep_reply(self, line: Line, turn: TurnId) -> None:
        reply, now = self._utterance(line), self.talk.clock.now()

        async def job(tx: Transaction) -> None:
            await self._add(tx, [reply])
            await end_turn(tx, turn, "done", [], now)

        await self.talk.app.services.database.write(job)

    def _utterance(self, line: Line) -> Utterance:
        return Utterance(
            content=line.text,
            said_at=line.at,
            author=None if line.by is None else person(line.by),
            persona=self.persona.id if line.by is None else None,
            message_id=self.talk.next_id(),
        )

    async def _add(self, tx: Transaction, said: Sequence[Utterance]) -> None:
        pace = Pace.of(self.talk.app.services.config.handoff)
        await add_entries(tx, self.origin.id, self.persona.lineage, said, pace)

    async def _sample(self, *, waited: bool) -> Sample:
        services = self.talk.app.services
        entries = unpinned(await services.working.entries(self.audience, self.persona.lineage))
        now, zone = self.talk.clock.now(), await services.settings.zone(GUILD)
        view = View(persona=self.persona.id, roster=self.roster, now=now, zone=zone)
        ratio, keep = services.chat.ratio, services.config.context.unshortened_entries
        told = fit_entries(entries, view, budget=self.budget, ratio=ratio, keep=keep)
        return Sample(
            entries=len(entries),
            section=section_tokens(entries, view, ratio),
            hidden=frozenset(e.id for e in entries) - {e.id for e in told},
            waited=waited,
        )

    async def result(self) -> Played:
        runs = await self.talk.rows(
            "SELECT reason, count(*) AS runs FROM handoff_runs WHERE state = 'committed'"
            " GROUP BY reason ORDER BY runs DESC"
        )
        (sums,) = await self.talk.rows(
            "SELECT count(*) FILTER (WHERE state != 'committed') AS aborted,"
            " coalesce(sum(episodes), 0) AS episodes, coalesce(sum(forgotten), 0) AS forgotten,"
            " coalesce(sum(pinned), 0) AS pinned FROM handoff_runs"
        )
        (tokens,) = await self.talk.rows(
            "SELECT coalesce(sum(prompt_tokens), 0) AS prompt_tokens,"
            " coalesce(sum(completion_tokens), 0) AS answer_tokens"
            " FROM usage WHERE task = 'handoff'"
        )
        return Played(
            samples=self.samples,
            budget=self.budget,
            runs_by_reason={str(row["reason"]): int(str(row["runs"])) for row in runs},
            **{name: int(str(number)) for name, number in {**sums, **tokens}.items()},
        )


def person(number: int) -> UserId:
    return UserId(100 + number)

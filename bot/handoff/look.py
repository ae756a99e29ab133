"""A look at one buffer: is a handoff due, and what would it take?"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.clock import Clock, to_ms
from bot.config import HandoffConfig
from bot.guild_settings import GuildSettings
from bot.handoff.material import Scenery
from bot.handoff.runs import may_try_again
from bot.handoff.trigger import (
    NOTHING_DUE,
    HandoffState,
    TriggerReason,
    TriggerReport,
    holding_triggers,
    last_heard,
    unpinned,
)
from bot.handoff.watermark import due_candidates
from bot.i18n import t
from bot.identifiers import ChannelId, UserId
from bot.llm.routing import Route
from bot.memory.buffers import Buffer, BufferKey, read_buffer
from bot.memory.ledger import Matter, open_matters
from bot.memory.people import People
from bot.memory.references import referenced_people
from bot.memory.roster import Roster, plain_name
from bot.memory.transcript import PROMPT_LOCALE, View, render_entries
from bot.memory.working import Entry, EntryKind, oldest_entries
from bot.persona.personas import Persona, PersonaState, persona_of_lineage
from bot.storage.database import Database
from bot.storage.statements import Snapshot

_FEWEST_READ = 100
"""Entries that one look takes in at least, where there are as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found. `candidates` is empty where nothing is worth a run.

    `report`: the first trigger that is worth one, or else the first of those that are `holding`.
    `space`: tokens that the rest of the prompt leaves for the section, where that is known.
    `quiet_at`: when the room has been quiet for long enough for a handoff.
    """

    buffer: Buffer
    persona: Persona
    resting: PersonaState
    entries: tuple[Entry, ...]
    matters: tuple[Matter, ...]
    scenery: Scenery
    report: TriggerReport
    holding: frozenset[TriggerReason]
    candidates: tuple[Entry, ...]
    last_failure: str | None
    space: int | None
    quiet_at: datetime
    may_try: bool

    @property
    def is_due(self) -> bool:
        """Whether a run is to be made now."""
        return bool(self.candidates) and self.may_try

    @property
    def does_not_fit(self) -> bool:
        """Whether the section is larger than its space in the prompt."""
        match self.report.reason:
            case TriggerReason.CEILING:
                return True
            case TriggerReason.BUDGET:
                return self.space is not None and self.report.value > self.space
            case _:
                return False

    @property
    def scene_fired(self) -> int | None:
        """The scene for which a handoff was looked for, this look included."""
        fired = TriggerReason.SCENE in self.holding
        return self.buffer.scene if fired else self.buffer.scene_fired

    @property
    def state_fired(self) -> str | None:
        """The state for which a handoff was looked for; none while the persona is awake."""
        if self.resting is PersonaState.ACTIVE:
            return None
        fired = TriggerReason.STATE in self.holding
        return self.resting.value if fired else self.buffer.state_fired


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """One state of the file."""

    buffer: Buffer
    persona: Persona
    channel: ChannelId
    entries: tuple[Entry, ...]
    matters: tuple[Matter, ...]
    turns_since: int
    last_failure: str | None


class Watch:
    """Looks at buffers. `heard_at`: when somebody last spoke in a channel, as far as we listen."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: HandoffConfig,
        *,
        people: People,
        settings: GuildSettings,
        chat: Route,
        heard_at: Callable[[ChannelId], datetime | None],
        own_identity: Callable[[], UserId | None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._people = people
        self._settings = settings
        self._chat = chat
        self._heard_at = heard_at
        # More than any trigger counts and one run can take, and few enough to measure at once.
        self._most_read = max(
            _FEWEST_READ,
            config.velocity_entries + 1,
            config.crowded_entries + 1,
            config.keep_entries + config.max_candidates,
        )
        self._own_identity = own_identity

    async def look(
        self, key: BufferKey, *, space: int | None = None, requested: bool = False
    ) -> Look | None:
        """Look at one buffer; None where it is not there. `space`: see Look.

        `requested`: a manager wants a run now, whatever the triggers say.
        """
        read = await self._database.read(lambda db: _read(db, key, most=self._most_read))
        if read is None:
            return None
        now = self._clock.now()
        scenery = await self._scenery(read, now)
        resting = await self._resting(read)
        view = View(persona=read.persona.id, roster=scenery.roster, now=now, zone=scenery.zone)
        state = HandoffState(
            scene=read.buffer.scene,
            persona=resting,
            turns_since=read.turns_since,
            scene_fired=read.buffer.scene_fired,
            state_fired=_state(read.buffer.state_fired),
            budget=None if space is None else int(space * self._config.early_fraction),
            heard_at=self._heard_at(read.channel),
            render=lambda entries, at: render_entries(entries, replace(view, now=at)),
            ratio=self._chat.ratio,
            config=self._config,
        )
        await asyncio.sleep(0)  # long entries take a while to read, and as long to measure
        reports = tuple(holding_triggers(state, read.entries, now, self._chat.window))
        if requested:
            reports = (_asked_for(reports[0] if reports else NOTHING_DUE),)
        found = [(report, self._candidates(report, read, now)) for report in reports]
        worthwhile = (one for one in found if one[1])
        report, candidates = next(worthwhile, found[0] if found else (NOTHING_DUE, ()))
        return Look(
            buffer=read.buffer,
            persona=read.persona,
            resting=resting,
            entries=read.entries,
            matters=read.matters,
            scenery=scenery,
            report=report,
            holding=frozenset(one.reason for one in reports),
            last_failure=read.last_failure,
            candidates=candidates,
            space=space,
            quiet_at=self._quiet_at(state, unpinned(read.entries), now),
            may_try=requested
            or may_try_again(
                report.trigger, read.buffer.failures, read.buffer.failed_at, now, self._config
            ),
        )

    def _candidates(self, report: TriggerReport, read: _Read, now: datetime) -> tuple[Entry, ...]:
        return due_candidates(
            report,
            read.entries,
            now,
            self._config,
            scene=read.buffer.scene,
            ending=read.buffer.has_ended,
        )

    def _quiet_at(self, state: HandoffState, entries: Sequence[Entry], now: datetime) -> datetime:
        span = timedelta(minutes=self._config.idle_turns * self._config.idle_turn_min)
        return (last_heard(state, entries) if entries else now) + span

    async def _resting(self, read: _Read) -> PersonaState:
        """The persona's state in this room: quiet hours are a kind of sleep."""
        if read.persona.state is not PersonaState.ACTIVE:
            return read.persona.state
        quiet = await self._settings.is_quiet(read.buffer.guild, read.channel)
        return PersonaState.ASLEEP if quiet else PersonaState.ACTIVE

    async def _scenery(self, read: _Read, now: datetime) -> Scenery:
        return Scenery(
            name=read.persona.name,
            persona=read.persona.id,
            roster=await self._roster(read),
            zone=await self._settings.zone(read.buffer.guild),
            now=now,
        )

    async def _roster(self, read: _Read) -> Roster:
        """Everybody who spoke or is spoken of in the buffer, by the names of the day."""
        texts = [entry.content for entry in read.entries]
        texts += [matter.content for matter in read.matters]
        spoke = dict.fromkeys(e.author for e in read.entries if e.author is not None)
        mentioned = _mentioned(texts)
        found = await self._people.names(read.buffer.guild, {*spoke, *mentioned})
        names = {user: plain_name(name) for user, name in found.items()}
        own = self._own_identity()
        if own is not None:
            names[own] = read.persona.name
        someone = t("people.someone", PROMPT_LOCALE)
        people = dict.fromkeys((*spoke, *mentioned))
        roster = Roster.of(
            [(user, names.get(user, someone)) for user in people if user != own],
            own_names=(read.persona.name,),
            also_known={own: read.persona.name} if own is not None else None,
            someone=someone,
        )
        return roster.with_free_handles([*texts, *names.values()])


def _asked_for(report: TriggerReport) -> TriggerReport:
    """The report of a run that a manager wants now, which is as urgent as it was before."""
    if report.trigger == "none":
        return TriggerReport(trigger="voluntary", reason=TriggerReason.REQUESTED)
    return replace(report, reason=TriggerReason.REQUESTED)


def _mentioned(texts: Iterable[str]) -> Sequence[UserId]:
    return sorted({user for text in texts for user in referenced_people(text)})


def _state(stored: str | None) -> PersonaState | None:
    return None if stored is None else PersonaState(stored)


async def _read(db: Snapshot, key: BufferKey, *, most: int) -> _Read | None:
    buffer = await read_buffer(db, key)
    if buffer is None:
        return None
    persona = await persona_of_lineage(db, buffer.guild, key.lineage)
    if persona is None:
        return None
    entries = await oldest_entries(db, key.origin, key.lineage, most=most)
    return _Read(
        buffer=buffer,
        persona=persona,
        channel=ChannelId(
            await db.fetch_int("SELECT channel_id FROM origins WHERE id = ?", (key.origin,))
        ),
        entries=entries,
        matters=await open_matters(db, key.origin, key.lineage),
        turns_since=await _turns_since(db, key, entries),
        last_failure=await _last_failure(db, key) if buffer.failures else None,
    )


async def _turns_since(db: Snapshot, key: BufferKey, entries: Sequence[Entry]) -> int:
    """Turns that ended since something was last said or done."""
    spoken = [entry for entry in entries if entry.kind is not EntryKind.THOUGHT]
    if not spoken:
        return 0
    return await db.fetch_int(
        "SELECT count(*) FROM turns WHERE origin_id = ? AND lineage_id = ? AND started_at > ?"
        " AND ended_at IS NOT NULL",
        (key.origin, key.lineage, to_ms(spoken[-1].said_at)),
    )


async def _last_failure(db: Snapshot, key: BufferKey) -> str | None:
    row = await db.fetch_one(
        "SELECT failure FROM handoff_runs WHERE origin_id = ? AND lineage_id = ?"
        " ORDER BY ended_at DESC LIMIT 1",
        (key.origin, key.lineage),
    )
    return row["failure"] if row else None

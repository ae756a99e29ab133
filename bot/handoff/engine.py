"""The handoff engine: when buffers are looked at, and which runs are made, one at a time each."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

from bot.background import Done, Raised, TaskOwner, report_bug, settle
from bot.clock import Clock
from bot.config import HandoffConfig
from bot.errors import StorageUnavailable
from bot.features import Features, Flag
from bot.guild_settings import GuildSettings
from bot.handoff.handover import Handover
from bot.handoff.look import Look, Watch
from bot.handoff.runs import Outcome, back_off
from bot.handoff.trigger import TriggerReason
from bot.identifiers import GuildId, LineageId, OriginId
from bot.llm.routing import Route
from bot.memory.buffers import (
    BufferKey,
    begin_scene,
    buffers_in,
    buffers_in_channel,
    buffers_of,
    drop_due,
    due_buffers,
    note_due,
    note_fired,
)
from bot.persona.personas import PersonaState
from bot.storage.database import Database
from bot.storage.statements import Transaction

log = logging.getLogger(__name__)

SWEPT_AT_ONCE = 20
"""Buffers that one sweep looks at: what piled up while we were away is spread over several."""
_DEFERRED = timedelta(hours=1)
_REMEMBERED_SPACES = 10_000

Result = asyncio.Future[Done[Outcome | None] | Raised]


class HandoffEngine:
    """Looks at buffers at the start of turns, after them, and when rooms go quiet.

    `may_spend` says whether a server's budget of the day is left.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        config: HandoffConfig,
        *,
        watch: Watch,
        handover: Handover,
        features: Features,
        settings: GuildSettings,
        route: Route,
        background: TaskOwner,
        may_spend: Callable[[GuildId], Awaitable[bool]],
    ) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._watch = watch
        self._handover = handover
        self._features = features
        self._settings = settings
        self._background = background
        self._may_spend = may_spend
        self._has_one_slot = route.provider.slots == 1
        self._places = asyncio.Semaphore(config.runs_per_provider)
        self._runs: dict[BufferKey, Result] = {}
        self._started: dict[BufferKey, float] = {}
        self._patient: dict[BufferKey, asyncio.Task[None]] = {}
        self._spaces: OrderedDict[BufferKey, int] = OrderedDict()

    # --- a turn

    async def before_turn(self, origin: OriginId, lineage: LineageId, guild: GuildId) -> None:
        """Look at every buffer of the room before anybody acts.

        Only where what this lineage heard does not fit its prompt is the run awaited, and not for
        long. Raises StorageUnavailable.
        """
        await self._make_way()
        if not await self._features.enabled(guild, Flag.HANDOFF):
            return
        for look in await self._looks(origin):
            if look.is_due and look.does_not_fit and look.buffer.key.lineage == lineage:
                result = self._start(look)
                await asyncio.wait({result}, timeout=self._patience_with(look.buffer.key))

    def after_turn(self, origin: OriginId, guild: GuildId) -> None:
        """Look again once the reply stands; what is due runs in the background."""
        self._background.spawn(f"handoff-look-{origin}", self._attend_room(origin, guild))

    def _patience_with(self, key: BufferKey) -> float:
        """Seconds that a turn still waits for a run: all turns together no more than one would."""
        waited = self._clock.monotonic() - self._started.get(key, self._clock.monotonic())
        return max(0.0, self._config.wait_s - waited)

    def note_space(self, key: BufferKey, tokens: int) -> None:
        """What the rest of a prompt left for working memory."""
        self._spaces[key] = tokens
        self._spaces.move_to_end(key)
        while len(self._spaces) > _REMEMBERED_SPACES:
            self._spaces.popitem(last=False)

    # --- commands and events

    async def run_now(self, key: BufferKey) -> Outcome | None:
        """Make a run that a manager asked for; None where there is nothing to hand over.

        Raises StorageUnavailable.
        """
        look = await self._look(key, requested=True)
        if look is None or not look.is_due:
            return None
        made = await asyncio.shield(self._start(look))
        if isinstance(made, Raised):
            raise made.error
        return made.value

    async def look(self, key: BufferKey) -> Look | None:
        """How things stand with one buffer."""
        return await self._look(key)

    async def begin_scene(self, origin: OriginId, guild: GuildId) -> None:
        """What follows in this room is another scene."""
        await self._change_scene(origin, ends=False)
        self.after_turn(origin, guild)

    async def end_room(self, origin: OriginId, guild: GuildId) -> None:
        """The room was closed: even a little that is left is handed over."""
        await self._change_scene(origin, ends=True)
        self.after_turn(origin, guild)

    async def attend_persona(self, guild: GuildId, lineage: LineageId) -> None:
        """A persona was sent to sleep, paused or woken: look at all her rooms in that server."""
        buffers = await self._database.read(lambda db: buffers_of(db, guild, lineage))
        for buffer in buffers:
            self.after_turn(buffer.key.origin, guild)

    # --- quiet rooms

    async def keep_sweeping(self) -> None:
        """Look at quiet rooms for ever, every few minutes."""
        while True:
            await asyncio.sleep(self._config.sweep_min * 60)
            match await settle(self.sweep()):
                case Done():
                    pass
                case Raised(StorageUnavailable(reason=reason)):
                    log.warning("handoff_sweep_waits", extra={"reason": reason})
                case Raised(error):
                    report_bug("handoff_sweep_failed", error)

    async def sweep(self) -> None:
        """Look at the buffers that are due, the longest due first, and start their runs."""
        now, keep = self._clock.now(), self._config.keep_entries

        async def job(tx: Transaction) -> tuple[BufferKey, ...]:
            await drop_due(tx, now, up_to=keep)
            return await due_buffers(tx, now, more_than=keep, most=SWEPT_AT_ONCE)

        due = await self._database.write(job)
        for key in dict.fromkeys((*due, *await self._newly_quiet())):
            swept = await settle(self._sweep_one(key))
            if isinstance(swept, Raised) and not isinstance(swept.error, StorageUnavailable):
                report_bug("handoff_sweep_failed", swept.error)

    async def _sweep_one(self, key: BufferKey) -> None:
        look = await self._look(key)
        if look is None or not await self._features.enabled(look.buffer.guild, Flag.HANDOFF):
            await self._due_again(key, None)
            return
        await self._attend(look)
        if not look.candidates:
            await self._due_again(key, self._look_again_at(look))

    # --- within

    def _look_again_at(self, look: Look) -> datetime | None:
        """When a room will be quiet, or what is left in a closed one old enough; None: never."""
        newest = max((entry.said_at for entry in look.entries), default=None)
        again = look.quiet_at
        if look.buffer.has_ended and newest is not None:
            again = newest + timedelta(minutes=self._config.fresh_min)
        return again if again > self._clock.now() else None

    async def _newly_quiet(self) -> list[BufferKey]:
        """Buffers of rooms whose quiet hours have begun."""
        found: list[BufferKey] = []
        for guild, channel in await self._settings.rooms_with_quiet_hours():
            if await self._settings.is_quiet(guild, channel):
                buffers = await self._database.read(partial(buffers_in_channel, channel=channel))
                found += [b.key for b in buffers if b.state_fired != PersonaState.ASLEEP]
        return found

    async def _attend_room(self, origin: OriginId, guild: GuildId) -> None:
        if not await self._features.enabled(guild, Flag.HANDOFF):
            return
        for look in await self._looks(origin):
            await self._attend(look)

    async def _attend(self, look: Look) -> None:
        """Start the run that a look found due; note what it used up where there is too little."""
        if look.is_due:
            self._start(look)
        elif look.candidates:
            wait = back_off(look.report.trigger, look.buffer.failures, self._config)
            failed_at = look.buffer.failed_at or self._clock.now()
            await self._due_again(look.buffer.key, failed_at + wait)
        else:
            await self._note_fired(look)

    async def _looks(self, origin: OriginId) -> list[Look]:
        buffers = await self._database.read(lambda db: buffers_in(db, origin))
        looks = [await self._look(buffer.key) for buffer in buffers]
        return [look for look in looks if look is not None]

    async def _look(self, key: BufferKey, *, requested: bool = False) -> Look | None:
        look = await self._watch.look(key, space=self._spaces.get(key), requested=requested)
        if look is not None:
            log.debug(
                "handoff_looked",
                extra={
                    "origin": key.origin,
                    "lineage": key.lineage,
                    "trigger": look.report.trigger,
                    "trigger_reason": look.report.reason.value,
                    "value": look.report.value,
                    "limit": look.report.limit,
                    "candidates": len(look.candidates),
                },
            )
        return look

    def _start(self, look: Look) -> Result:
        """The run of a buffer: the one under way, or a new one."""
        key = look.buffer.key
        requested = look.report.reason is TriggerReason.REQUESTED
        waits = self._has_one_slot and look.report.trigger == "voluntary" and not requested
        under_way = self._runs.get(key)
        before = None if waits else self._patient.pop(key, None)
        if before is not None:  # it can wait, this one cannot
            before.cancel()
        elif under_way is not None:
            return under_way
        result: Result = asyncio.get_running_loop().create_future()
        self._runs[key] = result
        self._started[key] = self._clock.monotonic()
        run = self._run(key, result, before, requested=requested, waits=waits)
        task = self._background.spawn(f"handoff-run-{key.origin}", run)
        if waits:
            self._patient[key] = task
        task.add_done_callback(lambda done: self._end(key, done, result))
        return result

    def _end(self, key: BufferKey, task: asyncio.Task[None], result: Result) -> None:
        if self._runs.get(key) is result:
            del self._runs[key]
            del self._started[key]
        if self._patient.get(key) is task:
            del self._patient[key]
        if not result.done():  # cancelled
            result.set_result(Done(None))

    async def _run(
        self,
        key: BufferKey,
        result: Result,
        before: asyncio.Task[None] | None,
        *,
        requested: bool,
        waits: bool,
    ) -> None:
        """Make a run when its time has come, and `before` has ended; it never raises."""
        if before is not None:
            await asyncio.wait({before})
        if waits:  # every turn that comes meanwhile cancels it
            await asyncio.sleep(self._config.one_slot_quiet_s)
        async with self._places:
            made = await settle(self._make(key, requested=requested))
        match made:
            case Done():
                pass
            case Raised(StorageUnavailable(reason=reason)):
                log.warning("handoff_not_written", extra={"reason": reason})
            case Raised(error):
                report_bug("handoff_failed", error)
        result.set_result(made)

    async def _make(self, key: BufferKey, *, requested: bool) -> Outcome | None:
        look = await self._look(key, requested=requested)  # the run may have waited for its place
        if look is None or not look.is_due:
            return None
        if not await self._may_spend(look.buffer.guild):
            log.info("handoff_deferred", extra={"origin": key.origin})
            await self._due_again(key, self._clock.now() + _DEFERRED)
            return None
        return await self._handover.make(look, chosen=lambda: self._see_through(key))

    def _see_through(self, key: BufferKey) -> None:
        """The model has answered: no turn calls the run off any more."""
        self._patient.pop(key, None)

    async def _make_way(self) -> None:
        """A turn arrives: on a server with one slot, runs that can wait let it go first."""
        patient = list(self._patient.values())
        for task in patient:
            task.cancel()
        if patient:
            await asyncio.wait(patient, timeout=1)

    async def _change_scene(self, origin: OriginId, *, ends: bool) -> None:
        now = self._clock.now()

        async def job(tx: Transaction) -> None:
            keys = [buffer.key for buffer in await buffers_in(tx, origin)]
            await begin_scene(tx, keys, now, ends=ends)

        await self._database.write(job)

    async def _due_again(self, key: BufferKey, due_at: datetime | None) -> None:
        seen = self._clock.now()

        async def job(tx: Transaction) -> None:
            await note_due(tx, key, due_at, seen=seen)

        await self._database.write(job)

    async def _note_fired(self, look: Look) -> None:
        before = (look.buffer.scene_fired, look.buffer.state_fired)
        if before == (look.scene_fired, look.state_fired):
            return

        async def job(tx: Transaction) -> None:
            await note_fired(
                tx,
                look.buffer.key,
                scene_fired=look.scene_fired,
                state_fired=look.state_fired,
            )

        await self._database.write(job)

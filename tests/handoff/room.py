"""One room with its handoff engine: a real database, a loopback model, and a clock of its own.

    async with open_room(tmp_path) as room:
        await room.say("I planted beans", "They need rain", ago=timedelta(hours=2))
        await room.say("later")                          # the newest entry always stays
        outcome = await room.committed(chunk("E1", "E2", content="Ann planted beans"))

Handles are those of the prompt, in order of time: E1 is the oldest candidate.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.audience import Audience, OriginKind, Place
from bot.background import TaskOwner
from bot.config import HandoffConfig
from bot.features import Features
from bot.guild_settings import GuildSettings
from bot.handoff.engine import HandoffEngine
from bot.handoff.handover import Handover
from bot.handoff.look import Watch
from bot.handoff.restore import Restored, restore_run
from bot.handoff.runs import Outcome
from bot.identifiers import (
    ChannelId,
    EntryId,
    GuildId,
    LedgerId,
    MessageId,
    PersonaId,
    RunId,
    UserId,
)
from bot.llm.client import ProviderSettings
from bot.llm.routing import Router, RouterSettings
from bot.llm.trial import RetrySettings
from bot.memory.buffers import BufferKey
from bot.memory.ledger import Episode, Ledger, Matter
from bot.memory.people import People
from bot.memory.working import (
    Entry,
    EntryKind,
    Pace,
    Utterance,
    WorkingMemory,
    add_entries,
    editing,
    forgetting,
)
from bot.persona.personas import FIRST_LINEAGE, Personas, PersonaState
from bot.privacy.levels import Levels, PrivacyLevel
from bot.privacy.names import Called, keep_names
from bot.privacy.origins import Origins
from bot.storage.database import Database
from bot.storage.statements import Transaction
from bot.storage.writer import Job
from tests.fakes import Json, LoopbackModel, ModelRequest, Reply
from tests.talk import FakeClock

GUILD = GuildId(500)
PLACE = Place(kind=OriginKind.CHANNEL, guild_id=GUILD, channel_id=ChannelId(77), name="general")
ANN, BEN, CARL = UserId(101), UserId(102), UserId(103)
NAMES = {ANN: "Ann", BEN: "Ben", CARL: "Carl"}
MEMORY = (
    *("buffer_entries", "entry_archive", "ledger_entries", "ledger_sources", "ledger_quotes"),
    *("ledger_people", "ledger_versions", "embeddings"),
)
"""The tables that a handoff moves memory between."""

Row = dict[str, Any]
Tables = Mapping[str, list[Row]]


def chunk(
    *sources: str,
    content: str,
    quotes: Sequence[str] = (),
    importance: int = 5,
    involved: Sequence[str] = (),
    retain: bool = False,
) -> dict[str, object]:
    """One chunk of an answer."""
    return {
        "source_entry_ids": list(sources),
        "content": content,
        "quotes": list(quotes),
        "importance": importance,
        "involved_entity_ids": list(involved),
        "retain_in_buffer": retain,
    }


def result(*chunks: Mapping[str, object], resolved: Sequence[str] = ()) -> Json:
    """A whole answer."""
    return Json({"chunks": list(chunks), "resolved": list(resolved)})


def shown_lines(request: ModelRequest) -> dict[str, str]:
    """What a run showed the model: the text of each line by its handle."""
    lines = re.findall(r"^(E[0-9]+) [0-9]{2}:[0-9]{2} .*?: (.*)$", request.last_user, re.MULTILINE)
    return dict(lines)


def tell_everything(request: ModelRequest) -> Reply:
    """The answer that makes one episode of all lines."""
    lines = shown_lines(request)
    words = max(lines.values(), key=len, default="").split()
    return result(chunk(*lines, content=f"They said: {' '.join(reversed(words))}"))  # no copy


class GatedModel(LoopbackModel):
    """Holds back the answers to chats while its gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def _answer(self, http: web.Request, request: ModelRequest) -> web.StreamResponse:
        if request.kind == "chat":
            await self.gate.wait()
        return await super()._answer(http, request)


@dataclass
class Room:
    """See the module's docstring."""

    database: Database
    clock: FakeClock
    model: GatedModel
    config: HandoffConfig
    levels: Levels
    settings: GuildSettings
    working: WorkingMemory
    ledger: Ledger
    watch: Watch
    handover: Handover
    engine: HandoffEngine
    background: TaskOwner
    key: BufferKey
    persona: PersonaId
    messages: dict[EntryId, MessageId] = field(default_factory=dict[EntryId, MessageId])

    # --- what is said

    async def say(
        self,
        *texts: str,
        by: UserId | None = ANN,
        ago: timedelta = timedelta(0),
        kind: EntryKind = EntryKind.DIALOGUE,
    ) -> list[EntryId]:
        """Lines of a person, or of the persona (None), a second apart, the first so long ago."""
        job = self.saying(*texts, by=by, ago=ago, kind=kind)
        said = await self.database.write(job)
        self.messages.update(said)
        return list(said)

    def saying(
        self,
        *texts: str,
        by: UserId | None = ANN,
        ago: timedelta = timedelta(0),
        kind: EntryKind = EntryKind.DIALOGUE,
    ) -> Job[dict[EntryId, MessageId]]:
        """The job that captures such lines; its result: the message of each new entry."""
        begun = self.clock.now() - ago

        async def job(tx: Transaction) -> dict[EntryId, MessageId]:
            newest = await tx.fetch_int("SELECT max(id) FROM buffer_entries")
            known = await tx.fetch_int("SELECT max(message_id) FROM capture_cursors")
            said = [
                Utterance(
                    content=text,
                    said_at=begun + timedelta(seconds=place),
                    author=by,
                    persona=self.persona if by is None else None,
                    message_id=MessageId(1 + known + place),
                )
                for place, text in enumerate(texts)
            ]
            await tx.execute(
                "INSERT OR REPLACE INTO capture_cursors VALUES (?, ?, ?)",
                (self.key.origin, self.key.lineage, known + len(texts)),
            )
            await add_entries(tx, self.key.origin, self.key.lineage, said, Pace.of(self.config))
            await tx.execute("UPDATE buffer_entries SET kind = ? WHERE id > ?", (kind, newest))
            rows = await tx.fetch_all(
                "SELECT id, message_id FROM buffer_entries WHERE id > ? ORDER BY id", (newest,)
            )
            return {EntryId(row["id"]): MessageId(row["message_id"]) for row in rows}

        return job

    async def edit(self, entry: EntryId, text: str) -> None:
        """Its author edits the message of an entry."""
        await self.database.write(editing(self.messages[entry], text))

    async def delete(self, *entries: EntryId) -> None:
        """Their authors delete the messages of entries."""
        await self.database.write(forgetting([self.messages[entry] for entry in entries]))

    async def close_off(self, person: UserId) -> None:
        """A person goes FULL; what they said leaves working memory."""
        await self.levels.set(person, GUILD, PrivacyLevel.FULL)
        await self.working.forget_author(person, GUILD)

    async def more_rooms(self, count: int, *texts: str, ago: timedelta) -> None:
        """Other rooms of the server, in each of which the same was said."""
        for number in range(1, count + 1):
            channel = ChannelId(PLACE.channel_id + number)
            origin = await Origins(self.database, FakeClock()).of(
                replace(PLACE, channel_id=channel)
            )
            here = replace(self, key=replace(self.key, origin=origin.id))
            await here.say(*texts, ago=ago)

    async def set_state(self, state: PersonaState) -> None:
        """Send the persona to sleep, pause or wake her."""
        personas = Personas(self.database, self.clock, default_name="Madeleine")
        await personas.set_state(await personas.main(GUILD), state)

    # --- runs

    def answer(self, *chunks: Mapping[str, object], resolved: Sequence[str] = ()) -> None:
        """What the model answers next."""
        self.model.queue(result(*chunks, resolved=resolved))

    async def run(self) -> Outcome | None:
        """Make a run, as a manager asks for it."""
        return await self.engine.run_now(self.key)

    async def run_while(self, event: Awaitable[object]) -> Outcome | None:
        """Make a run, and have something happen while the model works on its answer."""
        self.model.gate.clear()
        asked = len(self.model.chats)
        running = asyncio.create_task(self.run())
        await self.model.wait_for_requests(asked + 1)
        await event
        self.model.gate.set()
        return await running

    async def committed(
        self, *chunks: Mapping[str, object], resolved: Sequence[str] = ()
    ) -> Outcome:
        """A run of which the model answers this, and which has to work."""
        self.answer(*chunks, resolved=resolved)
        return await self.worked()

    async def worked(self) -> Outcome:
        """A run that has to work, with whatever the model answers."""
        outcome = await self.run()
        assert outcome is not None
        assert outcome.failure is None
        return outcome

    async def undo(self, run: RunId) -> Restored:
        """Undo a run."""
        return await restore_run(
            self.database, self.clock, self.levels, run, days=self.config.archive_days
        )

    # --- what is there

    async def rows(self, sql: str, *params: int | str) -> list[Row]:
        """What a query finds in the file."""
        return [dict(row) for row in await self.database.fetch_all(sql, params)]

    async def tables(self, *names: str) -> Tables:
        """Every row of tables; by default of all that hold memory."""
        return {
            name: await self.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in names or MEMORY
        }

    async def entries(self) -> tuple[Entry, ...]:
        """The buffer, oldest first."""
        return await self.working.entries(self.audience, self.key.lineage)

    async def ids(self) -> list[EntryId]:
        return [entry.id for entry in await self.entries()]

    async def pinned(self) -> list[EntryId]:
        return [entry.id for entry in await self.entries() if entry.pinned]

    async def matters(self) -> tuple[Matter, ...]:
        return await self.ledger.open_matters(self.audience, self.key.lineage)

    async def episodes(self) -> tuple[Episode, ...]:
        return await self.ledger.episodes(self.audience, self.key.lineage)

    async def sources(self, ledger: LedgerId | None = None) -> list[EntryId]:
        """The entries that episodes were made of."""
        rows = await self.rows("SELECT ledger_id, entry_id FROM ledger_sources ORDER BY entry_id")
        return [row["entry_id"] for row in rows if ledger in (None, row["ledger_id"])]

    async def archived(self) -> list[EntryId]:
        rows = await self.rows("SELECT entry_id FROM entry_archive ORDER BY entry_id")
        return [row["entry_id"] for row in rows]

    async def runs(self) -> list[Row]:
        return await self.rows("SELECT * FROM handoff_runs ORDER BY rowid")

    async def buffer(self) -> Row:
        (row,) = await self.rows("SELECT * FROM buffers")
        return row

    @property
    def audience(self) -> Audience:
        return Audience(here=self.key.origin, heard=frozenset({self.key.origin}))

    @property
    def prompt(self) -> str:
        """What the model was shown last."""
        return self.model.last.last_user


@asynccontextmanager
async def open_room(
    folder: Path,
    *,
    embedder: bool = False,
    window: int = 32_768,
    slots: int = 4,
    busy_timeout_ms: int = 1_000,
    clock: FakeClock | None = None,
    model: GatedModel | None = None,
    **handoff: Any,
) -> AsyncIterator[Room]:
    """A room over `folder`; open it again for a restart. `handoff`: settings that differ.

    One entry stays protected instead of 8, unless told otherwise: short talks are easier to read.
    """
    clock = clock or FakeClock()
    config = HandoffConfig(**{"keep_entries": 1, **handoff})
    async with AsyncExitStack() as stack:
        served = model or await stack.enter_async_context(GatedModel())
        database = await Database.open(folder / "madeleine.db", busy_timeout_ms=busy_timeout_ms)
        stack.push_async_callback(database.close)
        router = _router(served, clock, window=window, slots=slots, embedder=embedder)
        stack.push_async_callback(router.close)
        background = TaskOwner()
        stack.push_async_callback(background.close, grace_s=0)
        yield await _room(database, clock, served, config, router, background)


def _router(
    model: LoopbackModel, clock: FakeClock, *, window: int, slots: int, embedder: bool
) -> Router:
    def provider(name: str) -> ProviderSettings:
        return ProviderSettings(
            name=name, base_url=model.base_url, model=name, max_context=window, slots=slots
        )

    async def no_wait(_: float) -> None:
        return None

    settings = RouterSettings(
        chat=(provider("chat-model"),),
        embeddings=(provider("embed-model"),) if embedder else (),
        retry=RetrySettings(retries=0),
    )
    return Router(settings, clock=clock, sleep=no_wait)


async def _room(
    database: Database,
    clock: FakeClock,
    model: GatedModel,
    config: HandoffConfig,
    router: Router,
    background: TaskOwner,
) -> Room:
    levels = Levels(database, clock)
    await levels.load()
    origin = await Origins(database, FakeClock()).of(PLACE)
    persona = await Personas(database, clock, default_name="Madeleine").main(GUILD)
    settings = GuildSettings(database, clock, default_zone="UTC")

    async def names(tx: Transaction) -> None:
        called = [Called(user=user, name=name) for user, name in NAMES.items()]
        await keep_names(tx, GUILD, called, 0)

    await database.write(names)
    watch = Watch(
        database,
        clock,
        config,
        people=People(database),
        settings=settings,
        chat=router.chat,
        heard_at=lambda _: None,
        own_identity=lambda: None,
    )
    handover = Handover(
        database,
        clock,
        config,
        levels=levels,
        route=router.handoff,
        embeddings=router.embeddings,
    )

    async def may_spend(_: GuildId) -> bool:
        return True

    engine = HandoffEngine(
        database,
        clock,
        config,
        watch=watch,
        handover=handover,
        features=Features(database, clock),
        settings=settings,
        route=router.handoff,
        background=background,
        may_spend=may_spend,
    )
    return Room(
        database=database,
        clock=clock,
        model=model,
        config=config,
        levels=levels,
        settings=settings,
        working=WorkingMemory(database),
        ledger=Ledger(database),
        watch=watch,
        handover=handover,
        engine=engine,
        background=background,
        key=BufferKey(origin=origin.id, lineage=FIRST_LINEAGE),
        persona=persona.id,
    )

"""A conversation with the whole application, without a transport: for tests of turn and memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from bot.app import Application, open_application, router_settings
from bot.audience import DIRECT_MESSAGES, OriginKind, Place
from bot.config import Config, load_config
from bot.features import Flag
from bot.identifiers import ChannelId, GuildId, MemoryId, MessageId, UserId
from bot.llm.client import ProviderSettings, ToolsMode
from bot.memory.changes import TurnKey
from bot.memory.long_term import Actor, Listening, NewMemory, Scope, Source
from bot.privacy.hearing import RoomDirectory
from bot.privacy.levels import PrivacyLevel
from bot.turn.messages import (
    NO_FOOTER,
    Delivered,
    Footer,
    IncomingMessage,
    Person,
    TurnRequest,
)
from bot.turn.pipeline import run_turn
from bot.turn.reception import Reception
from bot.turn.report import TurnReport
from tests.fakes import Json, LoopbackModel, ModelRequest

GUILD = GuildId(500)
BOT = UserId(1)
NOTHING_KEPT = {"chunks": [], "resolved": []}
START = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


@dataclass
class FakeClock:
    """Time that moves only when a test moves it."""

    time: datetime = START
    ticks: float = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.ticks

    def pass_(self, **span: float) -> None:
        step = timedelta(**span)
        self.time += step
        self.ticks += step.total_seconds()


@dataclass
class RecordingDelivery:
    """Keeps what it was given. `fails` is raised by `finish`."""

    clock: FakeClock
    message_id: MessageId
    shown: list[str] = field(default_factory=list)
    text: str = ""
    footer: str = ""
    undoes: TurnKey | None = None
    fails: Exception | None = None

    async def start(self) -> None:
        return None

    async def show(self, text: str) -> None:
        self.shown.append(text)

    async def finish(self, text: str, *, footer: Footer = NO_FOOTER) -> Delivered:
        if self.fails is not None:
            raise self.fails
        self.text, self.footer, self.undoes = text, footer.text, footer.undoes
        return Delivered(message_ids=(self.message_id,), text=text, sent_at=self.clock.now())

    async def abandon(self) -> Delivered | None:
        if not self.shown:
            return None
        return Delivered(
            message_ids=(self.message_id,), text=self.shown[-1], sent_at=self.clock.now()
        )


@dataclass
class RecordedHistory:
    """What the transport would give when the past is asked for."""

    messages: tuple[IncomingMessage, ...] = ()
    asked: int = 0

    async def newest(self, place: Place, limit: int) -> tuple[IncomingMessage, ...]:
        self.asked += 1
        return self.messages[-limit:]


@dataclass
class Talk:
    """People talking to Madeleine; each `say` is one turn, run to its end.

    `keeper`: the model that handoffs ask; it keeps nothing unless a test has it answer otherwise.
    """

    app: Application
    model: LoopbackModel
    keeper: LoopbackModel
    clock: FakeClock
    history: RecordedHistory = field(default_factory=RecordedHistory)
    people: dict[str, Person] = field(default_factory=dict)
    last: RecordingDelivery | None = None
    _number: int = 1000

    def next_id(self) -> MessageId:
        self._number += 1
        return MessageId(self._number)

    def person(self, name: str, *, manager: bool = False) -> Person:
        if name not in self.people:
            user = UserId(10 + crc32(name.encode()))
            self.people[name] = Person(id=user, name=name, is_manager=manager)
        return self.people[name]

    def place(self, channel: str = "general", *, guild: GuildId = GUILD) -> Place:
        """A channel by its name; a name that begins with @ is a direct message."""
        number = ChannelId(10_000 + sum(map(ord, channel)) + int(guild) * 100_000)
        if channel.startswith("@"):
            return Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=number)
        return Place(kind=OriginKind.CHANNEL, guild_id=guild, channel_id=number, name=channel)

    def message(
        self, name: str, text: str, channel: str = "general", **more: object
    ) -> IncomingMessage:
        """A message as a transport would make it, later than every one before."""
        self.clock.pass_(seconds=1)
        fields: dict[str, object] = {
            "id": self.next_id(),
            "place": self.place(channel),
            "author": self.person(name),
            "text": text,
            "sent_at": self.clock.now(),
            "locale": "en-US",
            "mentions_us": True,
            **more,
        }
        return IncomingMessage(**fields)  # pyright: ignore[reportArgumentType]

    async def say(
        self, name: str, text: str, channel: str = "general", **more: object
    ) -> TurnReport | None:
        """Say something to Madeleine; returns what the turn came to."""
        return await self.take(self.message(name, text, channel, **more))

    async def take(
        self,
        message: IncomingMessage,
        *,
        joined: Sequence[IncomingMessage] = (),
        fails: Exception | None = None,
    ) -> TurnReport | None:
        """Run the turn of a message."""
        self.last = RecordingDelivery(self.clock, self.next_id(), fails=fails)
        request = TurnRequest(
            message=message, joined=tuple(joined), delivery=self.last, history=self.history
        )
        return await run_turn(self.app.services, request)

    def overhear(self, name: str, text: str, channel: str = "general") -> IncomingMessage:
        """Say something that is not for Madeleine."""
        message = self.message(name, text, channel, mentions_us=False)
        self.app.services.rings.hear(message)
        return message

    def send(self, message: IncomingMessage) -> tuple[Reception, RecordingDelivery]:
        """Bring a message in as a transport does: its turn, if it takes one, runs by itself."""
        delivery = RecordingDelivery(self.clock, self.next_id())
        received = self.app.receiver.receive(message, lambda: delivery, self.history)
        return received, delivery

    def own(self, text: str, channel: str = "general", **more: object) -> IncomingMessage:
        """A message of Madeleine's own, as a transport reads it from the past."""
        me = Person(id=BOT, name="Madeleine", is_bot=True)
        more = {"author": me, "is_own": True, "mentions_us": False, **more}
        return self.message("Madeleine", text, channel, **more)

    async def teach(
        self, content: str, *, about: str | None = None, by: str = "Ann", channel: str = "general"
    ) -> MemoryId:
        """Keep a memory about a person, or about the server, as said in a channel."""
        services = self.app.services
        place = self.place(channel)
        origin = await services.origins.of(place)
        listening = Listening(
            server=origin.guild_id,
            lineage=(await services.personas.main(place.guild_key)).lineage,
            audience=await services.audiences.of_room(origin),
        )
        said_by = self.person(by).id
        new = NewMemory(
            scope=Scope.SERVER if about is None else Scope.PERSONAL,
            server=origin.guild_id,
            subject=None if about is None else self.person(about).id,
            lineage=listening.lineage,
            content=content,
            source=Source(
                origin=origin.id, message_id=None, said_by=said_by, said_at=self.clock.now()
            ),
        )
        actor = Actor(user=said_by, is_manager=False)
        return (await services.long_term.create(new, actor, listening)).id

    async def level(self, name: str, level: PrivacyLevel, guild: GuildId = DIRECT_MESSAGES) -> None:
        """Choose a privacy level, everywhere or for one server."""
        await self.app.receiver.set_level(self.person(name), guild, level, seen_in=GUILD)

    async def switch(self, flag: Flag, *, on: bool, guild: GuildId = GUILD) -> None:
        """Switch a feature of the server."""
        by = self.person("Manager", manager=True).id
        await self.app.services.features.switch(guild, flag, enabled=on, by=by)

    async def handoffs(self) -> None:
        """Wait until every handoff that a turn left behind is done."""
        while under_way := [
            task
            for task in asyncio.all_tasks()
            if task.get_name().startswith(("handoff-look-", "handoff-run-"))
        ]:
            await asyncio.wait(under_way)

    @property
    def prompt(self) -> ModelRequest:
        """What the model was asked last."""
        return self.model.last

    @property
    def lines(self) -> list[str]:
        """The conversation in the last prompt, line by line, the persona's lines marked with >."""
        return [
            line if message["role"] == "user" else f"> {line}"
            for message in self.prompt.messages
            if message["role"] in ("user", "assistant")
            for line in (message["content"] or "").splitlines()
        ]

    async def rows(self, sql: str) -> list[dict[str, object]]:
        """What a query finds in the file."""
        return [dict(row) for row in await self.app.services.database.fetch_all(sql)]


def talk_config(folder: Path, environ: Mapping[str, str] | None = None) -> Config:
    """The default configuration with its database in `folder`."""
    return load_config(
        None, {"MADELEINE__STORAGE__PATH": str(folder / "madeleine.db"), **(environ or {})}
    )


@asynccontextmanager
async def open_talk(
    folder: Path,
    *,
    tools: ToolsMode = "native",
    window: int = 32_768,
    environ: Mapping[str, str] | None = None,
    clock: FakeClock | None = None,
    model: LoopbackModel | None = None,
    short_term_memory_tool: bool = True,
    rooms: RoomDirectory | None = None,
) -> AsyncIterator[Talk]:
    """The application over a loopback model; open the same folder again for a restart."""
    clock = clock or FakeClock()
    config = talk_config(folder, environ)
    async with LoopbackModel() as own_model, LoopbackModel() as keeper:
        served = model or own_model
        provider = ProviderSettings(
            name="loopback",
            base_url=served.base_url,
            model="fake",
            max_context=window,
            tools=tools,
            short_term_memory_tool=short_term_memory_tool,
        )
        handoff = replace(provider, name="handoff", base_url=keeper.base_url, max_context=32_768)
        routes = replace(router_settings(config, {}, [provider]), handoff=(handoff,))
        keeper.on(lambda _: None if keeper.queued else Json(NOTHING_KEPT))
        async with open_application(
            config, routes, clock=clock, own_identity=lambda: BOT, rooms=rooms
        ) as app:
            talk = Talk(app=app, model=served, keeper=keeper, clock=clock)
            talk._number = int(clock.now().timestamp() * 1000)
            await settled()
            yield talk


async def settled() -> None:
    """Let every ready task run."""
    for _ in range(5):
        await asyncio.sleep(0)

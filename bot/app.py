"""The composition root: builds every object once and hands it on by constructor."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from bot.background import TaskOwner
from bot.clock import Clock, SystemClock
from bot.config import Config, ProviderConfig, RouteConfig, resolve_api_key
from bot.errors import StartupError, StorageUnavailable
from bot.features import Features, Flag
from bot.guild_settings import GuildSettings
from bot.handoff import HandoffEngine
from bot.handoff.by_hand import ByHand
from bot.handoff.handover import Handover
from bot.handoff.look import Watch
from bot.handoff.restore import drop_archive
from bot.identifiers import UserId
from bot.llm.client import ProviderSettings
from bot.llm.routing import Router, RouterSettings
from bot.llm.tokens import RatioSettings
from bot.llm.trial import RetrySettings
from bot.memory.categories import Categories
from bot.memory.erasure import Erasures
from bot.memory.forgetting import Forgetting
from bot.memory.intent import load_intent_packs
from bot.memory.ledger import Ledger
from bot.memory.long_term import LongTermMemory
from bot.memory.people import People
from bot.memory.short_term import ShortTermMemory
from bot.memory.short_term_rows import ShortTermRows
from bot.memory.working import WorkingMemory
from bot.persona.personas import Personas
from bot.privacy.audiences import Audiences
from bot.privacy.forgotten import ForgottenValues
from bot.privacy.hearing import NoRooms, RoomDirectory
from bot.privacy.levels import Levels, PrivacyLevel
from bot.privacy.origins import Origins
from bot.storage.database import Database
from bot.storage.state import ApplicationState
from bot.tools.long_term import CreateLongTermMemory, UpdateLongTermMemory
from bot.tools.registry import ToolRegistry
from bot.tools.short_term import UpdateShortTermMemory
from bot.turn.allowance import Allowance
from bot.turn.late_writes import LateWrites
from bot.turn.pipeline import run_turn
from bot.turn.queue import TurnQueue
from bot.turn.reception import Receiver
from bot.turn.ring import Rings
from bot.turn.services import TurnServices
from bot.turn.triggers import Triggers
from bot.turn.turn_rows import TurnRows

log = logging.getLogger(__name__)

DEFAULT_NAME = "Madeleine"
_SWEEP_EVERY_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Everything that a transport needs."""

    services: TurnServices
    receiver: Receiver
    turn_rows: TurnRows
    state: ApplicationState
    background: TaskOwner


@asynccontextmanager
async def open_application(
    config: Config,
    routes: RouterSettings,
    *,
    clock: Clock | None = None,
    own_identity: Callable[[], UserId | None],
    rooms: RoomDirectory | None = None,
) -> AsyncGenerator[Application, None]:
    """Open the database and build the application; closes it all again, turns last to first.

    `rooms`: who reads which room now; without it every room hears itself alone.
    Raises StartupError where the database cannot be opened.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        database = await Database.open(
            config.storage.database_path,
            readers=config.storage.readers,
            queue_size=config.storage.queue_size,
            batch_size=config.storage.batch,
            busy_timeout_ms=config.storage.busy_timeout_ms,
        )
        stack.push_async_callback(database.close)
        router = Router(routes, clock=clock)
        stack.push_async_callback(router.close)
        background = TaskOwner()
        stack.push_async_callback(background.close, grace_s=0)
        services, rows = _services(
            _Ground(
                config=config,
                clock=clock,
                database=database,
                router=router,
                background=background,
                own_identity=own_identity,
                rooms=rooms or NoRooms(),
            )
        )
        turn_rows = TurnRows(database, clock)
        await asyncio.to_thread(load_intent_packs)  # takes 0.3 s, too long for the event loop
        await services.levels.load()
        await _close_interrupted(turn_rows, services)
        background.spawn("sweep", _sweep(services, rows))
        background.spawn("handoff-sweep", services.handoff.keep_sweeping())
        yield Application(
            services=services,
            receiver=_receiver(config, services),
            turn_rows=turn_rows,
            state=ApplicationState(database),
            background=background,
        )


async def _close_interrupted(turn_rows: TurnRows, services: TurnServices) -> None:
    """What has to be written before the first message; StartupError where it cannot be."""
    try:
        interrupted = await turn_rows.fail_unfinished()
        await services.forgotten.load()
    except StorageUnavailable as error:
        raise StartupError(
            "errors.storage.cannot_write", path=str(services.database.path), reason=error.reason
        ) from error
    if interrupted:
        log.info("turns_interrupted", extra={"turns": interrupted})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What everything else is built upon."""

    config: Config
    clock: Clock
    database: Database
    router: Router
    background: TaskOwner
    own_identity: Callable[[], UserId | None]
    rooms: RoomDirectory


def _services(ground: _Ground) -> tuple[TurnServices, ShortTermRows]:
    config, clock, database = ground.config, ground.clock, ground.database
    levels = Levels(database, clock, PrivacyLevel[config.privacy.default_level])
    people = People(database)
    forgotten = ForgottenValues(database, clock)
    retention = timedelta(days=config.memory.stm_retention_days)
    rows = ShortTermRows(database, clock, retention=retention)
    short_term = ShortTermMemory(rows, levels, forgotten, clock, config.memory)
    long_term = LongTermMemory(database, people, levels, forgotten, clock, config.memory)
    configured = {flag: bool(getattr(config.features, flag)) for flag in Flag}
    features = Features(database, clock, configured)
    settings = GuildSettings(database, clock, default_zone=config.locale.zone)
    allowance = Allowance(database, clock, config.budgets)
    active = timedelta(hours=config.context.active_channel_hours)
    rings = Rings(clock, levels, size=config.context.ring_messages, active=active)
    origins, erasures = Origins(database, clock), Erasures(database, clock)
    handoff, by_hand = _handoff(ground, people, levels, features, settings, rings, allowance)
    services = TurnServices(
        config=config,
        clock=clock,
        database=database,
        features=features,
        settings=settings,
        levels=levels,
        origins=origins,
        audiences=Audiences(origins, ground.rooms),
        people=people,
        personas=Personas(database, clock, default_name=DEFAULT_NAME),
        working=WorkingMemory(database),
        short_term=short_term,
        categories=Categories(database, clock, config.memory),
        long_term=long_term,
        ledger=Ledger(database),
        erasures=erasures,
        forgotten=forgotten,
        forgetting=Forgetting(database, forgotten, erasures),
        handoff=handoff,
        by_hand=by_hand,
        tools=_tools(config, short_term, long_term),
        rings=rings,
        allowance=allowance,
        late_writes=LateWrites(database, limit=config.storage.capture_queue_size),
        chat=ground.router.chat,
        own_identity=ground.own_identity,
    )
    return services, rows


def _tools(config: Config, short_term: ShortTermMemory, long_term: LongTermMemory) -> ToolRegistry:
    return ToolRegistry(
        (
            CreateLongTermMemory(long_term),
            UpdateLongTermMemory(long_term),
            UpdateShortTermMemory(short_term, config.memory),
        ),
        timeout_s=config.turn.tool_timeout_s,
    )


def _handoff(
    ground: _Ground,
    people: People,
    levels: Levels,
    features: Features,
    settings: GuildSettings,
    rings: Rings,
    allowance: Allowance,
) -> tuple[HandoffEngine, ByHand]:
    config, clock, database = ground.config.handoff, ground.clock, ground.database
    route = ground.router.handoff
    watch = Watch(
        database,
        clock,
        config,
        people=people,
        settings=settings,
        chat=ground.router.chat,
        heard_at=rings.heard_at,
        own_identity=ground.own_identity,
    )
    handover = Handover(
        database,
        clock,
        config,
        levels=levels,
        route=route,
        embeddings=ground.router.embeddings,
    )
    engine = HandoffEngine(
        database,
        clock,
        config,
        watch=watch,
        handover=handover,
        features=features,
        settings=settings,
        route=route,
        background=ground.background,
        may_spend=allowance.has_left,
    )
    return engine, ByHand(watch, database, levels, clock)


def _receiver(config: Config, services: TurnServices) -> Receiver:
    return Receiver(
        rings=services.rings,
        triggers=Triggers(
            services.levels,
            answer_other_bots=config.discord.answer_other_bots,
            bot_exchanges=config.turn.bot_exchanges,
        ),
        queue=TurnQueue(
            lambda request: run_turn(services, request),
            limit=config.turn.queue_size,
            joined_limit=config.turn.joined_max,
        ),
        working=services.working,
        short_term=services.short_term,
        levels=services.levels,
        late_writes=services.late_writes,
        erasures=services.erasures,
        long_term=services.long_term,
        forgotten=services.forgotten,
        forgetting=services.forgetting,
    )


async def _sweep(services: TurnServices, rows: ShortTermRows) -> None:
    """Drop what has outlived its time, now and every hour."""
    while True:
        services.short_term.sweep()
        try:
            await rows.drop_expired()
            days = services.config.handoff.archive_days
            await drop_archive(services.database, services.clock, days=days)
            await services.long_term.drop_old_changes()
            await services.erasures.finish_unfinished()
        except StorageUnavailable as unavailable:
            log.warning("sweep_waits", extra={"reason": unavailable.reason})
        await asyncio.sleep(_SWEEP_EVERY_S)


def router_settings(
    config: Config, environ: Mapping[str, str], chat: Sequence[ProviderSettings] | None = None
) -> RouterSettings:
    """The routes that the config names; `chat` stands in where `[llm.chat]` does not."""
    llm = config.llm
    return RouterSettings(
        chat=tuple(chat) if chat else _providers(config, llm.chat, environ),
        handoff=_providers(config, llm.handoff, environ),
        embeddings=_providers(config, llm.embeddings, environ),
        retry=RetrySettings(retries=llm.retries, retry_after_max_s=llm.retry_after_max_s),
        ratio=RatioSettings(
            start=llm.token_ratio_start,
            lowest=llm.token_ratio_min,
            highest=llm.token_ratio_max,
            weight=llm.token_ratio_weight,
        ),
    )


def _providers(
    config: Config, route: RouteConfig | None, environ: Mapping[str, str]
) -> tuple[ProviderSettings, ...]:
    if route is None:
        return ()
    return tuple(_provider(config, provider, environ) for provider in route.providers)


def _provider(
    config: Config, provider: ProviderConfig, environ: Mapping[str, str]
) -> ProviderSettings:
    key = resolve_api_key(provider, environ)
    return ProviderSettings(
        name=provider.base_url,
        base_url=provider.base_url,
        model=provider.model,
        max_context=provider.max_context,
        api_key=key.get_secret_value() if key else None,
        timeout_s=provider.timeout_s,
        stall_s=config.llm.stream_stall_s,
        tools=provider.tools,
        slots=provider.slots,
        short_term_memory_tool=provider.takes_short_term_memory_tool,
        input_price=provider.input_price,
        output_price=provider.output_price,
    )

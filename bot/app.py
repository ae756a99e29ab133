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
from bot.errors import StorageUnavailable
from bot.features import Features, Flag
from bot.identifiers import UserId
from bot.llm.client import ProviderSettings
from bot.llm.routing import Router, RouterSettings
from bot.llm.tokens import RatioSettings
from bot.llm.trial import RetrySettings
from bot.memory.intent import load_intent_packs
from bot.memory.long_term import LongTermMemory
from bot.memory.people import People
from bot.memory.short_term import ShortTermMemory
from bot.memory.short_term_rows import ShortTermRows
from bot.memory.working import WorkingMemory
from bot.persona.personas import Personas
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
) -> AsyncGenerator[Application, None]:
    """Open the database and build the application; closes it all again, turns last to first.

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
        services, rows = _services(config, clock, database, router, own_identity)
        turn_rows = TurnRows(database, clock)
        await asyncio.to_thread(load_intent_packs)  # takes 0.3 s, too long for the event loop
        await services.levels.load()
        interrupted = await turn_rows.fail_unfinished()
        if interrupted:
            log.info("turns_interrupted", extra={"turns": interrupted})
        background.spawn("sweep", _sweep(services.short_term, rows))
        yield Application(
            services=services,
            receiver=_receiver(config, services),
            turn_rows=turn_rows,
            state=ApplicationState(database),
            background=background,
        )


def _services(
    config: Config,
    clock: Clock,
    database: Database,
    router: Router,
    own_identity: Callable[[], UserId | None],
) -> tuple[TurnServices, ShortTermRows]:
    levels = Levels(database, clock, PrivacyLevel[config.privacy.default_level])
    people = People(database)
    rows = ShortTermRows(
        database, clock, retention=timedelta(days=config.memory.stm_retention_days)
    )
    short_term = ShortTermMemory(rows, levels, clock, config.memory)
    long_term = LongTermMemory(database, people, levels, clock, config.memory)
    tools = ToolRegistry(
        (
            CreateLongTermMemory(long_term),
            UpdateLongTermMemory(long_term),
            UpdateShortTermMemory(short_term, config.memory),
        ),
        timeout_s=config.turn.tool_timeout_s,
    )
    configured = {flag: bool(getattr(config.features, flag)) for flag in Flag}
    services = TurnServices(
        config=config,
        clock=clock,
        database=database,
        features=Features(database, clock, configured),
        levels=levels,
        origins=Origins(database),
        people=people,
        personas=Personas(database, clock, default_name=DEFAULT_NAME),
        working=WorkingMemory(database),
        short_term=short_term,
        long_term=long_term,
        tools=tools,
        rings=Rings(
            clock,
            levels,
            size=config.context.ring_messages,
            active=timedelta(hours=config.context.active_channel_hours),
        ),
        allowance=Allowance(database, clock, config.budgets),
        late_writes=LateWrites(database, limit=config.storage.capture_queue_size),
        chat=router.chat,
        own_identity=own_identity,
    )
    return services, rows


def _receiver(config: Config, services: TurnServices) -> Receiver:
    return Receiver(
        rings=services.rings,
        triggers=Triggers(
            services.levels,
            answer_other_bots=config.discord.answer_other_bots,
            bot_exchanges=config.turn.bot_exchanges,
        ),
        queue=TurnQueue(lambda request: run_turn(services, request), limit=config.turn.queue_size),
        working=services.working,
        short_term=services.short_term,
        levels=services.levels,
        late_writes=services.late_writes,
    )


async def _sweep(short_term: ShortTermMemory, rows: ShortTermRows) -> None:
    """Drop short-term memory that has outlived its time, now and every hour."""
    while True:
        short_term.sweep()
        try:
            await rows.drop_expired()
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

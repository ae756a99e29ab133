"""Rules that hold between keys. Each takes a config whose single values are in range."""

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from itertools import pairwise
from typing import cast

from bot.config.faults import Finding
from bot.config.providers import ProviderConfig, RouteConfig
from bot.config.schema import Loc
from bot.config.sections import Config

ROUTES = ("chat", "handoff", "embeddings")

AT_MOST = (
    ("handoff.keep_entries", "handoff.velocity_entries"),
    ("handoff.keep_entries", "handoff.crowded_keep_entries"),
    ("handoff.velocity_entries", "handoff.crowded_entries"),
    ("handoff.crowded_keep_entries", "handoff.crowded_entries"),
    ("handoff.ceiling_candidates", "handoff.max_candidates"),
    ("handoff.voluntary_candidates", "handoff.max_candidates"),
    ("handoff.velocity_candidates", "handoff.max_candidates"),
    ("context.server_memories_tokens", "context.memories_together_tokens"),
    ("context.personal_memories_tokens", "context.memories_together_tokens"),
    ("context.recalled_tokens", "context.memories_together_tokens"),
    ("memory.stm_raw_ttl_hours", "memory.stm_summary_ttl_hours"),
    ("llm.token_ratio_min", "llm.token_ratio_start"),
    ("llm.token_ratio_start", "llm.token_ratio_max"),
    ("turn.tool_timeout_s", "turn.timeout_s"),
    ("storage.batch", "storage.queue_size"),
)


def _number(config: Config, key: str) -> float:
    return cast("float", reduce(getattr, key.split("."), config))


def providers(config: Config) -> Iterator[tuple[Loc, ProviderConfig]]:
    """Every provider of every route with its place."""
    for name in ROUTES:
        route: RouteConfig | None = getattr(config.llm, name)
        if route is not None:
            yield ("llm", name), route
            for number, fallback in enumerate(route.fallbacks):
                yield ("llm", name, "fallbacks", number), fallback


def cross_findings(
    config: Config, environ: Mapping[str, str], faulty: Collection[Loc]
) -> Iterator[Finding]:
    """What is wrong between keys; a rule that reads one of the `faulty` keys is left out."""
    for small, large in AT_MOST:
        number, limit = _number(config, small), _number(config, large)
        keys = (tuple(small.split(".")), tuple(large.split(".")))
        if number > limit and not any(key in faulty for key in keys):
            problem = f"must be at most {large}, which is {limit:,}"
            yield Finding(loc=keys[0], value=number, problem=problem)
    yield from _share_findings(config, faulty)
    yield from _provider_findings(config, environ, faulty)
    yield from _money_findings(config, faulty)


def _share_findings(config: Config, faulty: Collection[Loc]) -> Iterator[Finding]:
    reserve, persona = config.context.reply_reserve_fraction, config.context.persona_fraction
    keys: tuple[Loc, Loc] = (("context", "reply_reserve_fraction"), ("context", "persona_fraction"))
    if reserve + persona >= 1 and not any(key in faulty for key in keys):
        problem = f"and context.persona_fraction, which is {persona}, must stay below 1 together"
        yield Finding(loc=keys[0], value=reserve, problem=problem)
    steps = config.handoff.back_off_min
    if any(later < earlier for earlier, later in pairwise(steps)):
        problem = "must not fall: each wait is at least as long as the one before"
        yield Finding(loc=("handoff", "back_off_min"), value=steps, problem=problem)


def _provider_findings(
    config: Config, environ: Mapping[str, str], faulty: Collection[Loc]
) -> Iterator[Finding]:
    reserve = config.context.reply_reserve_tokens
    for loc, provider in providers(config):
        if provider.max_context < reserve and ("context", "reply_reserve_tokens") not in faulty:
            problem = f"must be at least context.reply_reserve_tokens, which is {reserve:,}"
            yield Finding(loc=(*loc, "max_context"), value=provider.max_context, problem=problem)
        variable = provider.api_key_env
        if variable and not environ.get(variable, "").strip():
            problem = "names an environment variable that is not set; set it, or take this key out"
            yield Finding(loc=(*loc, "api_key_env"), value=variable, problem=problem)


def _money_findings(config: Config, faulty: Collection[Loc]) -> Iterator[Finding]:
    chat = config.llm.chat
    if chat is None or chat.input_price or chat.output_price:
        return
    for name in ("person_daily_money", "guild_daily_money"):
        amount: int = getattr(config.budgets, name)
        if amount and ("llm", "chat") not in faulty:
            problem = "needs input_price and output_price in [llm.chat]; without them it never acts"
            yield Finding(loc=("budgets", name), value=amount, problem=problem)

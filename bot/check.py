"""`madeleine check`: what is wrong with token, intents, permissions, models and database."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing

from rich.console import Console as Screen
from rich.markup import escape
from rich.table import Table

from bot.app import router_settings
from bot.check_line import CheckLine, Verdict
from bot.clock import SystemClock
from bot.config import Config, describe_fault, find_token
from bot.discord_io.check import check_discord
from bot.errors import ConfigError, ModelFault, StartupError
from bot.i18n import t
from bot.llm.chat import ChatMessage, ChatRequest
from bot.llm.client import ModelClient, ProviderSettings
from bot.storage.inspection import Inspection, inspect_database

_SIGNS: Mapping[Verdict, str] = {
    "ok": "[green]✓[/]",
    "warning": "[yellow]![/]",
    "fault": "[red]✗[/]",
}


async def check(config: Config, environ: Mapping[str, str]) -> int:
    """Print a table of what was found; returns 0 where nothing keeps Madeleine from running."""
    locale = config.locale.default
    lines = await _database(config)
    lines += await _models(config, environ)
    lines += await _discord(config, environ)
    table = Table(show_header=False, box=None, pad_edge=False)
    for line in lines:
        table.add_row(_SIGNS[line.verdict], escape(t(line.key, locale, **line.params)))
    Screen(file=sys.stdout, highlight=False).print(table)
    return int(any(line.verdict == "fault" for line in lines))


async def _database(config: Config) -> list[CheckLine]:
    path = config.storage.database_path
    try:
        found = await asyncio.to_thread(inspect_database, path)
    except StartupError as error:
        return [CheckLine(verdict="fault", key=error.key, params=error.params)]
    named = {"path": str(path)}
    if not found.version:
        return [CheckLine(verdict="ok", key="check.database_new", params=named)]
    lines = [_found(found, named)]
    if found.in_use:
        lines.append(CheckLine(verdict="ok", key="check.database_in_use", params=named))
    return lines


def _found(found: Inspection, named: dict[str, str]) -> CheckLine:
    if found.damage is not None:
        params = {**named, "reason": found.damage}
        return CheckLine(verdict="fault", key="check.database_damaged", params=params)
    if found.version < found.known:
        params = {**named, "found": found.version, "known": found.known}
        return CheckLine(verdict="ok", key="check.database_older", params=params)
    return CheckLine(verdict="ok", key="check.database", params=named)


async def _models(config: Config, environ: Mapping[str, str]) -> list[CheckLine]:
    if config.llm.chat is None:
        return [CheckLine(verdict="fault", key="check.no_chat_model")]
    routes = router_settings(config, environ)
    chat = dict.fromkeys((*routes.chat, *routes.handoff))
    lines = [await _chat_model(settings) for settings in chat]
    return lines + [await _embedding_model(settings) for settings in routes.embeddings]


async def _chat_model(settings: ProviderSettings) -> CheckLine:
    client = ModelClient(settings, SystemClock())
    hello = ChatMessage(role="user", content="Hello")
    try:
        async with aclosing(client.stream(ChatRequest(messages=(hello,), max_tokens=1))) as events:
            async for _ in events:
                pass
    except ModelFault as fault:
        return _model_fault(settings, fault)
    finally:
        await client.close()
    return CheckLine(verdict="ok", key="check.model", params=_named(settings))


async def _embedding_model(settings: ProviderSettings) -> CheckLine:
    client = ModelClient(settings, SystemClock())
    try:
        await client.embed(["hello"])
    except ModelFault as fault:
        return _model_fault(settings, fault)
    finally:
        await client.close()
    return CheckLine(verdict="ok", key="check.model", params=_named(settings))


def _model_fault(settings: ProviderSettings, fault: ModelFault) -> CheckLine:
    params = {**_named(settings), "reason": fault.detail}
    return CheckLine(verdict="fault", key=f"check.model_{_remedy(fault)}", params=params)


def _remedy(fault: ModelFault) -> str:
    """Which advice helps: look at the key, at the address, or at the provider's own words."""
    match fault.kind:
        case "auth":
            return "key"
        case "connection" | "timeout" | "stalled":
            return "unreachable"
        case _:
            return "refused"


def _named(settings: ProviderSettings) -> dict[str, str]:
    return {"model": settings.model, "url": settings.base_url}


async def _discord(config: Config, environ: Mapping[str, str]) -> list[CheckLine]:
    try:
        token = find_token(config, environ)
    except ConfigError as error:
        params = {"reason": "; ".join(map(describe_fault, error.faults))}
        return [CheckLine(verdict="fault", key="check.token_unusable", params=params)]
    if token is None:
        params = {"variable": config.discord.token_env}
        return [CheckLine(verdict="fault", key="check.no_token", params=params)]
    return await check_discord(config, token.get_secret_value())

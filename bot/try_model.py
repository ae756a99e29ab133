"""Which model `madeleine try` talks with: named, found on this machine, or the embedded one."""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import platformdirs
from pydantic import TypeAdapter, ValidationError
from rich.console import Console as Screen
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar

from bot.app import router_settings
from bot.config import Config
from bot.config.values import BaseUrl
from bot.errors import StartupError
from bot.i18n import t
from bot.llm.client import ProviderSettings
from bot.llm.discovery import FoundServer, find_local_server
from bot.llm.local import LocalModel
from bot.llm.model_file import EMBEDDED_MODEL, Progress, cached_model, describe, fetch_model
from bot.llm.routing import RouterSettings

EMBEDDED_WINDOW = 800
"""What the embedded model is given: a reply, and a prompt of about 600 tokens it reads in time."""
FALLBACK_WINDOW = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWishes:
    """What the command line says about the model."""

    base_url: str | None
    model: str | None
    model_path: Path | None
    agrees: bool
    """Whether the download was agreed to beforehand (`--yes`)."""


@asynccontextmanager
async def chosen_model(
    config: Config, wishes: ModelWishes, environ: Mapping[str, str], locale: str
) -> AsyncGenerator[RouterSettings, None]:
    """The routes of `try`; a model server of our own runs as long as the block.

    In order: what the command line names; the config; a server that listens on this machine; the
    embedded model. Raises StartupError with what to do.
    """
    screen = Screen(stderr=True, highlight=False)
    if wishes.model_path is not None and (wishes.base_url is not None or wishes.model is not None):
        raise StartupError("errors.model_twice")
    if wishes.base_url is not None:
        yield router_settings(config, environ, [_named(config, wishes.base_url, wishes.model)])
        return
    if config.llm.chat is not None and wishes.model_path is None:
        yield _configured(config, environ, wishes.model)
        return
    found = None if wishes.model_path else await find_local_server()
    if found is not None:
        screen.print(_found_line(found, locale))
        yield router_settings(config, environ, [_found(config, found, wishes.model)])
        return
    if wishes.model is not None:
        raise StartupError("errors.model_server_missing", model=wishes.model)
    path = wishes.model_path or await _embedded(wishes, screen, locale)
    screen.print(t("local.starting", locale, name=path.stem))
    local = await LocalModel.start(path)
    try:
        if wishes.model_path is None:
            screen.print(t("console.embedded", locale))
        yield router_settings(config, environ, [_own(config, local)])
    finally:
        await local.close()


def _configured(config: Config, environ: Mapping[str, str], model: str | None) -> RouterSettings:
    """The configured chat route; another model named for it is asked alone, without fallbacks."""
    routes = router_settings(config, environ)
    if model is None:
        return routes
    return replace(routes, chat=(replace(routes.chat[0], model=model),))


def _named(config: Config, base_url: str, model: str | None) -> ProviderSettings:
    try:
        address = TypeAdapter[str](BaseUrl).validate_python(base_url)
    except ValidationError as error:  # it may hold a password, so it is not shown
        raise StartupError("errors.base_url") from error
    if not model:
        raise StartupError("errors.model_missing")
    return ProviderSettings(
        name=address,
        base_url=address,
        model=model,
        max_context=32_768,
        stall_s=config.llm.stream_stall_s,
    )


def _found(config: Config, found: FoundServer, model: str | None) -> ProviderSettings:
    return ProviderSettings(
        name=found.kind,
        base_url=found.base_url,
        model=model or found.model,
        max_context=found.context_tokens or FALLBACK_WINDOW,
        stall_s=config.llm.stream_stall_s,
        slots=1,
    )


def _found_line(found: FoundServer, locale: str) -> str:
    server = t(f"local.server_{found.kind}", locale)
    return t("local.found_server", locale, model=found.model, server=server, url=found.base_url)


def _own(config: Config, local: LocalModel) -> ProviderSettings:
    return ProviderSettings(
        name="embedded",
        base_url=local.base_url,
        api_key=local.api_key,
        model=local.model,
        max_context=EMBEDDED_WINDOW,
        timeout_s=config.llm.stream_stall_s,
        stall_s=config.llm.stream_stall_s,
        tools="structured",
        slots=1,
        short_term_memory_tool=False,
    )


def _words_for_yes(locale: str) -> set[str]:
    """What agrees, in the language of the question and in English."""
    return {word for one in (locale, "en-US") for word in t("local.yes", one).split()}


async def _embedded(wishes: ModelWishes, screen: Screen, locale: str) -> Path:
    """The embedded model's file; the person is asked before it is downloaded."""
    folder = platformdirs.user_cache_path("madeleine")
    cached = await cached_model(folder)
    if cached is not None:
        return cached
    screen.print(t("local.offer", locale, folder=str(folder), **asdict(describe())))
    if not wishes.agrees:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise StartupError("local.needs_yes")
        answer = screen.input(t("local.ask", locale) + " ")
        if answer.strip().casefold() not in _words_for_yes(locale):
            raise StartupError("local.declined")
    with ProgressBar(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=screen,
    ) as bar:
        return await fetch_model(folder, _moving(bar, locale))


def _moving(bar: ProgressBar, locale: str) -> Callable[[Progress], None]:
    task = bar.add_task("", total=EMBEDDED_MODEL.size_bytes)

    def move(progress: Progress) -> None:
        bar.update(
            task,
            description=t(f"local.stage_{progress.stage}", locale),
            completed=progress.done_bytes,
            total=progress.total_bytes,
        )

    return move

"""`madeleine try`: a chat in the terminal, or a script played through the same turn."""

import asyncio
import getpass
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path

from bot.app import Application, open_application
from bot.config import Config
from bot.console import HOME, Console
from bot.console_script import read_script
from bot.i18n import t
from bot.privacy.hearing import OpenRooms
from bot.try_model import ModelWishes, chosen_model
from bot.turn.prefill import prefill


async def try_console(
    config: Config, environ: Mapping[str, str], wishes: ModelWishes, *, script: Path | None
) -> int:
    """Talk until the person leaves, or play a script; returns the exit code.

    Raises StartupError where there is no model, no database, or the script cannot be read.
    """
    locale = config.locale.default
    if script is not None:
        list(read_script(script))  # a fault in it is told before a model is started
    async with (
        chosen_model(config, wishes, environ, locale) as routes,
        open_application(config, routes, own_identity=lambda: None, rooms=OpenRooms()) as app,
    ):
        close_s = config.discord.shutdown_close_ms / 1000
        if script is not None:
            console = Console(app.services, app.receiver, locale, out=None)
            await _to_the_end(app, console.play(script, sys.stdout), close_s=close_s)
            return 0
        persona = await app.services.personas.main(HOME)
        folder = str(config.storage.database_path.parent)
        print(t("console.banner", locale, name=persona.name, folder=folder))
        if app.services.chat.provider.slots == 1:
            app.background.spawn("prefill", prefill(app.services, HOME))
        console = Console(app.services, app.receiver, locale, out=sys.stdout)
        await _to_the_end(app, console.chat(_name(locale)), close_s=close_s)
        print(t("console.bye", locale))
    return 0


async def _to_the_end(
    app: Application, talking: Coroutine[object, object, None], *, close_s: float
) -> None:
    """Run the talk, then write what waits; after Ctrl-C a locked database is not waited for."""
    talk = asyncio.ensure_future(talking)
    try:
        await asyncio.wait({talk})
        talk.result()
    finally:
        app.services.database.hurry(after_s=close_s)
        talk.cancel()
        await asyncio.wait({talk}, timeout=close_s)
        await app.services.late_writes.flush(within_s=close_s / 2)


def _name(locale: str) -> str:
    """What the person is called: as on this machine."""
    try:
        return getpass.getuser().capitalize()
    except OSError:
        return t("console.you", locale)

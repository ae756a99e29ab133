"""`madeleine run`: connect to Discord, answer, and end cleanly when told to."""

import asyncio
import logging
import signal
from collections.abc import Mapping

import discord

from bot.app import Application, open_application, router_settings
from bot.config import Config, resolve_token, run_faults
from bot.discord_io.client import MadeleineBot, OwnIdentity
from bot.discord_io.pacing import CALL_FAILED
from bot.discord_io.rooms import DiscordRooms
from bot.errors import ConfigError, StartupError

log = logging.getLogger(__name__)


async def run_discord(config: Config, environ: Mapping[str, str]) -> int:
    """Answer in Discord until SIGINT or SIGTERM; returns 0.

    Raises ConfigError where token or model are missing, StartupError where Discord or the database
    refuses us.
    """
    faults = run_faults(config, environ)
    if faults:
        raise ConfigError(faults)
    token = resolve_token(config, environ).get_secret_value()
    identity, rooms = OwnIdentity(), DiscordRooms(roles_kept_min=config.privacy.roles_cache_min)
    routes = router_settings(config, environ)
    async with open_application(config, routes, own_identity=identity, rooms=rooms) as app:
        bot = MadeleineBot(
            config=config,
            services=app.services,
            receiver=app.receiver,
            turn_rows=app.turn_rows,
            state=app.state,
            background=app.background,
            identity=identity,
            rooms=rooms,
        )
        told_to_stop = _stop_event()
        connection = asyncio.create_task(bot.start(token))
        waiting = asyncio.create_task(told_to_stop.wait())
        try:
            await asyncio.wait({connection, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if connection.done():
                _raise_refusal(connection)
        finally:
            waiting.cancel()
            await _shut_down(config, app, bot, connection)
    return 0


def _stop_event() -> asyncio.Event:
    """Set by SIGINT and SIGTERM. Discord's own `run` would leave at once, without closing."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, event.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(event.set))
    return event


def _raise_refusal(connection: asyncio.Task[None]) -> None:
    """Raise why the connection ended on its own, in words that say what to mend."""
    try:
        connection.result()
    except discord.LoginFailure as error:
        raise StartupError("errors.discord.token") from error
    except discord.PrivilegedIntentsRequired as error:
        raise StartupError("errors.discord.intent") from error
    except (*CALL_FAILED, discord.GatewayNotFound, discord.ConnectionClosed) as error:
        raise StartupError("errors.discord.unreachable", reason=str(error)) from error


async def _shut_down(
    config: Config, app: Application, bot: MadeleineBot, connection: asyncio.Task[None]
) -> None:
    """Stop intake, let turns end, then cancel them, write what waits, and close.

    A database that another program holds locked is not waited for beyond these times; half of the
    last is left for closing it.
    """
    log.info("stopping")
    turns_s = config.discord.shutdown_turns_ms / 1000
    close_s = config.discord.shutdown_close_ms / 1000
    app.services.database.hurry(after_s=turns_s)
    await app.receiver.queue.close(
        grace_s=turns_s, cancel_s=config.discord.shutdown_cancel_ms / 1000
    )
    flushing = asyncio.create_task(app.services.late_writes.flush(within_s=close_s / 2))
    closing = asyncio.create_task(bot.close())
    _, late = await asyncio.wait({closing}, timeout=close_s)
    for task in (connection, *late):
        task.cancel()
    await asyncio.gather(connection, flushing, closing, return_exceptions=True)
    log.info("stopped")

"""What of Discord is missing, and where to mend it."""

import discord

from bot.check_line import CheckLine
from bot.config import Config
from bot.discord_io.client import wanted_intents
from bot.discord_io.pacing import CALL_FAILED
from bot.i18n import t

PERMISSIONS = (
    "view_channel",
    "send_messages",
    "send_messages_in_threads",
    "read_message_history",
    "add_reactions",
    "attach_files",
    "embed_links",
)


async def check_discord(config: Config, token: str) -> list[CheckLine]:
    """Log in without connecting; look at token, intents and the permissions in each server."""
    client = discord.Client(intents=wanted_intents(config))
    try:
        async with client:
            await client.login(token)
            return [*await _application(client, config), *await _servers(client, config)]
    except discord.LoginFailure:
        return [CheckLine(verdict="fault", key="errors.discord.token")]
    except CALL_FAILED as error:
        params = {"reason": str(error)}
        return [CheckLine(verdict="fault", key="errors.discord.unreachable", params=params)]


async def _application(client: discord.Client, config: Config) -> list[CheckLine]:
    application = await client.application_info()
    lines = [CheckLine(verdict="ok", key="check.token", params={"name": application.name})]
    flags = application.flags
    allowed = flags.gateway_message_content or flags.gateway_message_content_limited
    if config.discord.message_content_intent and not allowed:
        lines.append(CheckLine(verdict="fault", key="errors.discord.intent"))
    return lines


async def _servers(client: discord.Client, config: Config) -> list[CheckLine]:
    guilds = [guild.id async for guild in client.fetch_guilds()]
    if not guilds:
        invite = discord.utils.oauth_url(client.application_id or 0, permissions=_needed())
        return [CheckLine(verdict="warning", key="check.no_server", params={"invite": invite})]
    locale = config.locale.default
    return [await _permissions(client, await client.fetch_guild(guild), locale) for guild in guilds]


def _needed() -> discord.Permissions:
    return discord.Permissions(**dict.fromkeys(PERMISSIONS, True))


async def _permissions(client: discord.Client, guild: discord.Guild, locale: str) -> CheckLine:
    """What her roles allow in a server; single channels may still say otherwise."""
    us = client.user
    if us is None:
        raise RuntimeError("asked for our own user before the login")
    granted = (await guild.fetch_member(us.id)).guild_permissions
    lacking = [name for name in PERMISSIONS if not getattr(granted, name)]
    if not lacking:
        return CheckLine(verdict="ok", key="check.permissions", params={"server": guild.name})
    missing = ", ".join(t(f"check.permission.{name}", locale) for name in lacking)
    params = {"server": guild.name, "missing": missing}
    return CheckLine(verdict="fault", key="check.permissions_missing", params=params)

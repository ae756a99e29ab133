"""Who may read which room: kept as Discord tells it, so that nothing is heard where it must not."""

import asyncio
import logging

import discord
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.rooms import readers_of
from bot.errors import StorageUnavailable
from bot.identifiers import ChannelId, GuildId
from bot.privacy.hearing import ServerRooms

log = logging.getLogger(__name__)

_GATHER_S = 1.0
"""Changes come in bursts: what is stored of them is written once."""


class Rights(commands.Cog):
    """Forgets who reads a server's rooms when that changes, and keeps what outlives a room."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot
        self._waiting: set[GuildId] = set()

    @commands.Cog.listener()
    async def on_ready(self) -> None:
        for guild in self._bot.guilds:
            self._bot.rooms.forget(GuildId(guild.id))
            await self._compare(GuildId(guild.id), witnessed=False)

    @commands.Cog.listener()
    async def on_guild_available(self, guild: discord.Guild) -> None:
        self._bot.rooms.forget(GuildId(guild.id))
        await self._compare(GuildId(guild.id), witnessed=False)

    @commands.Cog.listener()
    async def on_guild_update(self, _: discord.Guild, guild: discord.Guild) -> None:
        self._changed(guild)

    @commands.Cog.listener()
    async def on_guild_role_create(self, role: discord.Role) -> None:
        self._changed(role.guild)

    @commands.Cog.listener()
    async def on_guild_role_update(self, _: discord.Role, role: discord.Role) -> None:
        self._changed(role.guild)

    @commands.Cog.listener()
    async def on_guild_role_delete(self, role: discord.Role) -> None:
        self._changed(role.guild)

    @commands.Cog.listener()
    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        self._changed(channel.guild)

    @commands.Cog.listener()
    async def on_guild_channel_update(
        self, _: discord.abc.GuildChannel, channel: discord.abc.GuildChannel
    ) -> None:
        self._changed(channel.guild)

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        """What everybody could read up to the end stays known to everybody."""
        guild = GuildId(channel.guild.id)
        self._bot.rooms.forget(guild)
        rooms = await self._bot.rooms.rooms(guild)
        if rooms is not None:
            last = {**rooms.readers, ChannelId(channel.id): readers_of(channel)}
            await self._compare(guild, ServerRooms(readers=last), witnessed=True)
            await self._compare(guild, witnessed=True)

    def _changed(self, guild: discord.Guild) -> None:
        key = GuildId(guild.id)
        self._bot.rooms.forget(key)
        if key not in self._waiting:
            self._waiting.add(key)
            self._bot.background.spawn(f"rights-{key}", self._compare_soon(key))

    async def _compare_soon(self, guild: GuildId) -> None:
        await asyncio.sleep(_GATHER_S)
        self._waiting.discard(guild)
        await self._compare(guild, witnessed=True)

    async def _compare(
        self, guild: GuildId, rooms: ServerRooms | None = None, *, witnessed: bool
    ) -> None:
        rooms = rooms or await self._bot.rooms.rooms(guild)
        if rooms is None:
            return
        try:
            await self._bot.services.origins.compare(guild, rooms, witnessed=witnessed)
        except StorageUnavailable as unavailable:  # a channel that is gone is heard nowhere then
            log.warning("rights_not_kept", extra={"reason": unavailable.reason})


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Rights(bot))

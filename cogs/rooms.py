"""/scene, and what becomes of a room that is closed."""

import logging

import discord
from discord import app_commands
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import Interaction, answer, locale_of, origin_of, require_speaker
from bot.discord_io.translation import text
from bot.errors import StorageUnavailable
from bot.i18n import t
from bot.identifiers import ChannelId

log = logging.getLogger(__name__)


class Rooms(commands.Cog):
    """Begins scenes, and ends rooms when Discord closes them."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(name=text("scene.name"), description=text("scene.description"))
    async def scene(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        require_speaker(interaction)
        origin = await origin_of(interaction)
        await self._bot.services.handoff.begin_scene(origin.id, origin.guild_id)
        await answer(interaction, t("ui.scene.begun", locale_of(interaction)))

    @commands.Cog.listener()
    async def on_thread_update(self, before: discord.Thread, after: discord.Thread) -> None:
        archived = after.archived and not before.archived
        locked = after.locked and not before.locked
        if archived or locked:
            await self._end(after.id)

    @commands.Cog.listener()
    async def on_raw_thread_update(self, event: discord.RawThreadUpdateEvent) -> None:
        state = event.data["thread_metadata"]
        if event.thread is None and (state["archived"] or state.get("locked", False)):
            await self._end(event.thread_id)

    @commands.Cog.listener()
    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        await self._end(event.thread_id)

    @commands.Cog.listener()
    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        await self._end(channel.id)

    async def _end(self, channel: int) -> None:
        """Hand over what a closed room holds; the sweeper does it later where that fails now."""
        services = self._bot.services
        try:
            for origin in await services.origins.known_in(ChannelId(channel)):
                await services.handoff.end_room(origin.id, origin.guild_id)
        except StorageUnavailable as unavailable:
            log.warning("room_not_ended", extra={"reason": unavailable.reason})


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Rooms(bot))

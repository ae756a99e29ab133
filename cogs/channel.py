"""/channel: how Madeleine behaves in one channel."""

from discord import app_commands
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import (
    Interaction,
    answer,
    guild_of,
    locale_of,
    person_of,
    require_manager,
)
from bot.discord_io.translation import text
from bot.errors import UserError
from bot.guild_settings import QuietHours
from bot.i18n import t
from bot.identifiers import ChannelId, GuildId

LONGEST_HOURS = 40


@app_commands.guild_only()
@app_commands.default_permissions(manage_guild=True)
class Channel(
    commands.GroupCog,
    group_name=text("channel.name"),
    group_description=text("channel.description"),
):
    """Sets when a channel is quiet; for managers."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(
        name=text("channel.quiet.name"), description=text("channel.quiet.description")
    )
    @app_commands.rename(hours=text("channel.quiet.hours.name"))
    @app_commands.describe(hours=text("channel.quiet.hours.description"))
    async def quiet(
        self,
        interaction: Interaction,
        hours: app_commands.Range[str, 1, LONGEST_HOURS] | None = None,
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        require_manager(interaction)
        guild, channel = guild_of(interaction), channel_of(interaction)
        locale = locale_of(interaction)
        if hours is not None:
            span = None if _means_off(hours, locale) else QuietHours.parse(hours)
            by = person_of(interaction).id
            await self._bot.services.settings.set_quiet_hours(guild, channel, span, by)
        await answer(interaction, await self._told(guild, channel, locale))

    async def _told(self, guild: GuildId, channel: ChannelId, locale: str) -> str:
        settings = self._bot.services.settings
        hours = await settings.quiet_hours(guild, channel)
        if hours is None:
            return t("ui.channel.never_quiet", locale)
        return t(
            "ui.channel.quiet",
            locale,
            begin=f"{hours.begin:%H:%M}",
            end=f"{hours.end:%H:%M}",
            zone=(await settings.zone(guild)).key,
        )


def channel_of(interaction: Interaction) -> ChannelId:
    """The channel or thread where a command was given. Raises UserError where there is none."""
    if interaction.channel_id is None:
        raise UserError("errors.command.no_channel")
    return ChannelId(interaction.channel_id)


def _means_off(hours: str, locale: str) -> bool:
    """Whether it says "off", in English or in the person's language."""
    words = {t("commands.features.off", one).casefold() for one in ("en-US", locale)}
    return hours.strip().casefold() in words


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Channel(bot))

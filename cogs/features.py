"""/features: what is switched on in a server, and by whom."""

from zoneinfo import ZoneInfo

from discord import app_commands
from discord.ext import commands

from bot.clock import naturalize_time
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
from bot.features import Flag, FlagState
from bot.guild_settings import matching_zones
from bot.i18n import t

FLAGS = [
    app_commands.Choice(name=text(f"features.flags.{flag.value}"), value=flag.value)
    for flag in Flag
]
SWITCH = [
    app_commands.Choice(name=text("features.on"), value="on"),
    app_commands.Choice(name=text("features.off"), value="off"),
]

MOST_OFFERED = 25


@app_commands.guild_only()
@app_commands.default_permissions(manage_guild=True)
class Features(
    commands.GroupCog,
    group_name=text("features.name"),
    group_description=text("features.description"),
):
    """Shows and switches feature flags; for managers."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(
        name=text("features.show.name"), description=text("features.show.description")
    )
    async def show(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        require_manager(interaction)
        guild, locale = guild_of(interaction), locale_of(interaction)
        states = await self._bot.services.features.states(guild)
        zone = await self._bot.services.settings.zone(guild)
        lines = [self._line(state, zone, locale) for state in states.values()]
        await answer(interaction, "\n".join((*lines, _zone_line(zone, locale))))

    @app_commands.command(
        name=text("features.set.name"), description=text("features.set.description")
    )
    @app_commands.rename(flag=text("features.set.flag.name"), state=text("features.set.state.name"))
    @app_commands.describe(
        flag=text("features.set.flag.description"), state=text("features.set.state.description")
    )
    @app_commands.choices(flag=FLAGS, state=SWITCH)
    async def set(self, interaction: Interaction, flag: str, state: str) -> None:
        await interaction.response.defer(ephemeral=True)
        require_manager(interaction)
        guild, changed = guild_of(interaction), Flag(flag)
        await self._bot.services.features.switch(
            guild, changed, enabled=state == "on", by=person_of(interaction).id
        )
        states = await self._bot.services.features.states(guild)
        zone = await self._bot.services.settings.zone(guild)
        await answer(interaction, self._line(states[changed], zone, locale_of(interaction)))

    @app_commands.command(
        name=text("features.zone.name"), description=text("features.zone.description")
    )
    @app_commands.rename(zone=text("features.zone.zone.name"))
    @app_commands.describe(zone=text("features.zone.zone.description"))
    async def zone(self, interaction: Interaction, zone: str) -> None:
        await interaction.response.defer(ephemeral=True)
        require_manager(interaction)
        guild, settings = guild_of(interaction), self._bot.services.settings
        await settings.set_zone(guild, zone, person_of(interaction).id)
        await answer(interaction, _zone_line(await settings.zone(guild), locale_of(interaction)))

    @zone.autocomplete("zone")
    async def offer_zones(
        self, _interaction: Interaction, current: str
    ) -> list[app_commands.Choice[str]]:
        found = await matching_zones(current, most=MOST_OFFERED)
        return [app_commands.Choice(name=zone, value=zone) for zone in found]

    def _line(self, state: FlagState, zone: ZoneInfo, locale: str) -> str:
        """A flag, its meaning, its default, and who changed it when."""
        line = t(
            "ui.features.line",
            locale,
            flag=state.flag.value,
            meaning=t(f"commands.features.flags.{state.flag.value}", locale),
            state=_on_or_off(enabled=state.enabled, locale=locale),
            default=_on_or_off(enabled=state.default, locale=locale),
        )
        if state.changed_at is None:
            return line
        now = self._bot.services.clock.now()
        age = naturalize_time(now, state.changed_at, zone, locale)
        changed = t("ui.features.changed", locale, person=f"<@{state.changed_by}>", age=age)
        return f"{line} {changed}"


def _zone_line(zone: ZoneInfo, locale: str) -> str:
    return t("ui.features.zone", locale, zone=zone.key)


def _on_or_off(*, enabled: bool, locale: str) -> str:
    return t("commands.features.on" if enabled else "commands.features.off", locale)


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Features(bot))

"""/features: what is switched on in a server, and by whom."""

from zoneinfo import ZoneInfo

from discord import app_commands
from discord.ext import commands

from bot.clock import naturalize_time
from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import Interaction, answer, locale_of, person_of, require_manager
from bot.discord_io.translation import text
from bot.errors import UserError
from bot.features import Flag, FlagState
from bot.i18n import t
from bot.identifiers import GuildId

FLAGS = [
    app_commands.Choice(name=text(f"features.flags.{flag.value}"), value=flag.value)
    for flag in Flag
]
SWITCH = [
    app_commands.Choice(name=text("features.on"), value="on"),
    app_commands.Choice(name=text("features.off"), value="off"),
]


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
        states = await self._bot.services.features.states(guild_of(interaction))
        lines = [self._line(state, locale_of(interaction)) for state in states.values()]
        await answer(interaction, "\n".join(lines))

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
        await answer(interaction, self._line(states[changed], locale_of(interaction)))

    def _line(self, state: FlagState, locale: str) -> str:
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
        zone = ZoneInfo(self._bot.config.locale.zone)
        now = self._bot.services.clock.now()
        age = naturalize_time(now, state.changed_at, zone, locale)
        changed = t("ui.features.changed", locale, person=f"<@{state.changed_by}>", age=age)
        return f"{line} {changed}"


def guild_of(interaction: Interaction) -> GuildId:
    """The server where a command was given. Raises UserError in a direct message."""
    if interaction.guild_id is None:
        raise UserError("errors.command.server_only")
    return GuildId(interaction.guild_id)


def _on_or_off(*, enabled: bool, locale: str) -> str:
    return t("commands.features.on" if enabled else "commands.features.off", locale)


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Features(bot))

"""/privacy: what a person lets Madeleine keep."""

from discord import app_commands
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import Interaction, answer, locale_of, person_of
from bot.discord_io.translation import text
from bot.i18n import t
from bot.identifiers import GuildId
from bot.privacy.levels import EVERYWHERE, PrivacyLevel

LEVELS = [
    app_commands.Choice(name=text(f"privacy.levels.{level.name.lower()}"), value=level.name)
    for level in PrivacyLevel
]
WHERE = [
    app_commands.Choice(name=text("privacy.everywhere"), value="everywhere"),
    app_commands.Choice(name=text("privacy.this_server"), value="server"),
]


class Privacy(
    commands.GroupCog,
    group_name=text("privacy.name"),
    group_description=text("privacy.description"),
):
    """Sets a person's own level; it is theirs alone."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(
        name=text("privacy.level.name"), description=text("privacy.level.description")
    )
    @app_commands.rename(
        level=text("privacy.level.level.name"), where=text("privacy.level.where.name")
    )
    @app_commands.describe(
        level=text("privacy.level.level.description"),
        where=text("privacy.level.where.description"),
    )
    @app_commands.choices(level=LEVELS, where=WHERE)
    async def level(
        self, interaction: Interaction, level: str | None = None, where: str = "everywhere"
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        person, locale = person_of(interaction), locale_of(interaction)
        here = GuildId(interaction.guild_id or 0)
        levels = self._bot.services.levels
        chosen = None if level is None else PrivacyLevel[level]
        if chosen is not None:
            guild = here if where == "server" else EVERYWHERE
            await self._bot.receiver.set_level(person, guild, chosen, seen_in=here)
        current = levels.of(person.id, here)
        name = t(f"commands.privacy.levels.{current.name.lower()}", locale)
        lines = [
            t("ui.privacy.level", locale, level=name),
            t(f"ui.privacy.{current.name.lower()}", locale),
        ]
        if chosen is not None and current > chosen:
            lines.append(t(f"ui.privacy.stricter_{where}", locale))
        await answer(interaction, "\n".join(lines))


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Privacy(bot))

"""/privacy: what a person lets Madeleine keep, and what becomes of it."""

import io
from dataclasses import asdict

import discord
from discord import app_commands
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import Interaction, answer, locale_of, person_of
from bot.discord_io.forms import Confirm
from bot.discord_io.pacing import CALL_FAILED
from bot.discord_io.translation import text
from bot.errors import UserError
from bot.i18n import t
from bot.identifiers import GuildId
from bot.memory.export import export_of
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
    """Serves a person's own wishes; nobody has any for somebody else."""

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

    @app_commands.command(
        name=text("privacy.erase.name"), description=text("privacy.erase.description")
    )
    @app_commands.rename(where=text("privacy.erase.where.name"))
    @app_commands.describe(where=text("privacy.erase.where.description"))
    @app_commands.choices(where=WHERE)
    async def erase(self, interaction: Interaction, where: str = "everywhere") -> None:
        await interaction.response.defer(ephemeral=True)
        person, locale = person_of(interaction), locale_of(interaction)
        guild = GuildId(interaction.guild_id or 0) if where == "server" else EVERYWHERE

        async def agreed(pressed: Interaction) -> None:
            await self._bot.receiver.erase(person.id, guild)
            await answer(pressed, t("ui.privacy.erased", locale))

        held = await self._bot.services.erasures.preview(person.id, guild)
        counts = {name: str(count) for name, count in asdict(held).items()}
        question = t(f"ui.privacy.erase_{where}", locale, **counts)
        await Confirm(t("ui.privacy.erase_button", locale), agreed).send(interaction, question)

    @app_commands.command(
        name=text("privacy.export.name"), description=text("privacy.export.description")
    )
    async def export(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        services, person = self._bot.services, person_of(interaction)
        document = await export_of(services.database, person.id, services.clock.now())
        file = discord.File(io.BytesIO(document.encode()), filename="madeleine.json")
        try:
            await interaction.user.send(t("ui.privacy.export", locale_of(interaction)), file=file)
        except CALL_FAILED as error:
            raise UserError("ui.privacy.export_closed") from error
        await answer(interaction, t("ui.privacy.exported", locale_of(interaction)))

    @app_commands.command(
        name=text("privacy.notice.name"), description=text("privacy.notice.description")
    )
    async def notice(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        config = self._bot.config
        await answer(
            interaction,
            t(
                "ui.privacy.notice",
                locale_of(interaction),
                messages=str(config.context.ring_messages),
                kept=str(config.handoff.keep_entries),
                stm_days=str(config.memory.stm_retention_days),
                archive_days=str(config.handoff.archive_days),
            ),
        )


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Privacy(bot))

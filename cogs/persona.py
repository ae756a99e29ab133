"""/persona: who Madeleine is in a server, and whether she is awake."""

from discord import app_commands
from discord.ext import commands

from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import Interaction, answer, guild_of, locale_of, require_manager
from bot.discord_io.translation import text
from bot.i18n import t
from bot.persona.personas import PersonaState

STATES = {
    "asleep": PersonaState.ASLEEP,
    "paused": PersonaState.UNCONSCIOUS,
    "awake": PersonaState.ACTIVE,
}
CHOICES = [app_commands.Choice(name=text(f"persona.states.{name}"), value=name) for name in STATES]


@app_commands.guild_only()
@app_commands.default_permissions(manage_guild=True)
class PersonaCommands(
    commands.GroupCog,
    group_name=text("persona.name"),
    group_description=text("persona.description"),
):
    """Sends a server's persona to sleep, pauses and wakes her; for managers."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(
        name=text("persona.sleep.name"), description=text("persona.sleep.description")
    )
    @app_commands.rename(state=text("persona.sleep.state.name"))
    @app_commands.describe(state=text("persona.sleep.state.description"))
    @app_commands.choices(state=CHOICES)
    async def sleep(self, interaction: Interaction, state: str) -> None:
        await interaction.response.defer(ephemeral=True)
        require_manager(interaction)
        guild, services = guild_of(interaction), self._bot.services
        persona = await services.personas.main(guild)
        await services.personas.set_state(persona, STATES[state])
        await services.handoff.attend_persona(guild, persona.lineage)
        await answer(
            interaction, t(f"ui.persona.{state}", locale_of(interaction), name=persona.name)
        )


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(PersonaCommands(bot))

"""The border of the slash commands: whatever one raises is answered in plain words."""

import discord
from discord import app_commands

from bot.background import report_bug
from bot.errors import StorageUnavailable, UserError
from bot.i18n import t


class MadeleineTree(app_commands.CommandTree[discord.Client]):
    """discord.py's command tree with our answers to errors."""

    async def on_error(
        self, interaction: discord.Interaction, error: app_commands.AppCommandError
    ) -> None:
        """Tell the person what went wrong and what to do; a bug is logged under a short id."""
        cause = error.original if isinstance(error, app_commands.CommandInvokeError) else error
        await answer_error(interaction, cause)


async def answer_error(interaction: discord.Interaction, error: Exception) -> None:
    """Tell the person in plain words what a command, a button or a form of theirs met with."""
    text = _in_words(error, interaction.locale.value)
    try:
        if interaction.response.is_done():
            await interaction.followup.send(text, ephemeral=True)
        else:
            await interaction.response.send_message(text, ephemeral=True)
    except discord.HTTPException as failed:
        report_bug("command_answer_failed", failed)


def _in_words(error: Exception, locale: str) -> str:
    match error:
        case UserError(key=key, params=params):
            return t(key, locale, **params)
        case StorageUnavailable():
            return t("turn.storage", locale)
        case app_commands.MissingPermissions():
            return t("errors.command.managers_only", locale)
        case _:
            return t("turn.bug", locale, id=report_bug("command_failed", error))

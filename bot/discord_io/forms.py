"""A text typed into a form, and a question answered by a button."""

from collections.abc import Awaitable, Callable
from typing import Self, cast

import discord

from bot.discord_io.answer_view import AnswerView
from bot.discord_io.command_tree import answer_error
from bot.discord_io.commands import Interaction

LONGEST_TITLE = 45
LONGEST_FIELD = 4_000
ASKED_FOR_S = 10 * 60.0


class TextForm(discord.ui.Modal):
    """Asks for a text, with what it says now filled in."""

    def __init__(
        self, title: str, before: str, done: Callable[[Interaction, str], Awaitable[None]]
    ) -> None:
        super().__init__(title=title[:LONGEST_TITLE])
        self._done = done
        self._field: discord.ui.TextInput[Self] = discord.ui.TextInput(
            label=title[:LONGEST_TITLE],
            style=discord.TextStyle.paragraph,
            default=before[:LONGEST_FIELD],
            max_length=LONGEST_FIELD,
            required=False,
        )
        self.add_item(self._field)

    async def on_submit(self, interaction: discord.Interaction, /) -> None:
        """Hand the text on."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        await self._done(cast("Interaction", interaction), self._field.value)

    async def on_error(self, interaction: discord.Interaction, error: Exception, /) -> None:
        """What does not work is told in words."""
        await answer_error(interaction, error)


class Confirm(AnswerView):
    """One button under a question that only its reader sees; without it nothing is done."""

    def __init__(self, label: str, agreed: Callable[[Interaction], Awaitable[None]]) -> None:
        super().__init__(timeout_s=ASKED_FOR_S)
        self._agreed = agreed
        self.yes.label = label

    @discord.ui.button(style=discord.ButtonStyle.danger)
    async def yes(self, interaction: discord.Interaction, _: discord.ui.Button[Self]) -> None:
        self.stop()
        await interaction.response.edit_message(view=None)
        await self._agreed(cast("Interaction", interaction))

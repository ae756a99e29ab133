"""Buttons under an answer that only its reader sees; they go when nobody pressed them for long."""

from typing import Self

import discord

from bot.background import Raised, settle
from bot.discord_io.command_tree import answer_error


class AnswerView(discord.ui.View):
    """What such buttons share: how they go, and how faults are told."""

    def __init__(self, *, timeout_s: float) -> None:
        super().__init__(timeout=timeout_s)
        self._message: discord.Message | None = None

    async def send(self, interaction: discord.Interaction, text: str) -> None:
        """Answer a deferred command, for its author alone, with the buttons under it."""
        self._message = await interaction.followup.send(text, view=self, ephemeral=True, wait=True)

    async def on_timeout(self) -> None:
        """The buttons go; what is read stays."""
        if self._message is None:
            return
        outcome = await settle(self._message.edit(view=None))
        if isinstance(outcome, Raised) and not isinstance(outcome.error, discord.HTTPException):
            raise outcome.error

    async def on_error(
        self, interaction: discord.Interaction, error: Exception, item: discord.ui.Item[Self], /
    ) -> None:
        """What does not work is told in words."""
        del item
        await answer_error(interaction, error)

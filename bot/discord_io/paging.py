"""Long answers as pages, turned by whoever asked."""

from collections.abc import Sequence
from typing import Self

import discord

from bot.background import Raised, settle
from bot.discord_io.command_tree import answer_error
from bot.i18n import t

TURNED_FOR_S = 14 * 60.0
"""Discord lets an answer be changed for 15 minutes."""


class Pages(discord.ui.View):
    """Buttons to the page before and after; they go when the answer cannot be changed any more."""

    def __init__(self, pages: Sequence[str], *, reader: int, locale: str) -> None:
        super().__init__(timeout=TURNED_FOR_S)
        self._pages = pages
        self._reader = reader
        self._place = 0
        self._message: discord.Message | None = None
        self.back.label = t("ui.pages.back", locale)
        self.forth.label = t("ui.pages.forth", locale)
        self._label()

    async def send(self, interaction: discord.Interaction) -> None:
        """Answer with the first page, for the asker alone."""
        self._message = await interaction.followup.send(
            self._pages[0], view=self, ephemeral=True, wait=True
        )

    @discord.ui.button(style=discord.ButtonStyle.secondary)
    async def back(self, interaction: discord.Interaction, _: discord.ui.Button[Self]) -> None:
        await self._turn(interaction, -1)

    @discord.ui.button(style=discord.ButtonStyle.secondary, disabled=True)
    async def position(self, interaction: discord.Interaction, _: discord.ui.Button[Self]) -> None:
        """Shows the page; it cannot be pressed."""

    @discord.ui.button(style=discord.ButtonStyle.secondary)
    async def forth(self, interaction: discord.Interaction, _: discord.ui.Button[Self]) -> None:
        await self._turn(interaction, 1)

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        """Only whoever asked turns the pages."""
        return interaction.user.id == self._reader

    async def on_timeout(self) -> None:
        """The buttons go; what is read stays."""
        if self._message is not None:
            outcome = await settle(self._message.edit(view=None))
            if isinstance(outcome, Raised) and not isinstance(outcome.error, discord.HTTPException):
                raise outcome.error

    async def on_error(
        self, interaction: discord.Interaction, error: Exception, item: discord.ui.Item[Self], /
    ) -> None:
        """A page that cannot be shown is told in words."""
        del item
        await answer_error(interaction, error)

    async def _turn(self, interaction: discord.Interaction, by: int) -> None:
        self._place = max(0, min(len(self._pages) - 1, self._place + by))
        self._label()
        await interaction.response.edit_message(content=self._pages[self._place], view=self)

    def _label(self) -> None:
        self.back.disabled = self._place == 0
        self.forth.disabled = self._place == len(self._pages) - 1
        self.position.label = f"{self._place + 1} / {len(self._pages)}"

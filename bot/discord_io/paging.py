"""Long answers as pages, turned by whoever asked."""

from collections.abc import Sequence
from typing import Self

import discord

from bot.discord_io.answer_view import AnswerView
from bot.i18n import t

TURNED_FOR_S = 14 * 60.0
"""Discord lets an answer be changed for 15 minutes."""


class Pages(AnswerView):
    """Buttons to the page before and after; they go when the answer cannot be changed any more."""

    def __init__(self, pages: Sequence[str], *, reader: int, locale: str) -> None:
        super().__init__(timeout_s=TURNED_FOR_S)
        self._pages = pages
        self._reader = reader
        self._place = 0
        self.back.label = t("ui.pages.back", locale)
        self.forth.label = t("ui.pages.forth", locale)
        self._label()

    async def open(self, interaction: discord.Interaction) -> None:
        """Answer with the first page."""
        await self.send(interaction, self._pages[0])

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

    async def _turn(self, interaction: discord.Interaction, by: int) -> None:
        self._place = max(0, min(len(self._pages) - 1, self._place + by))
        self._label()
        await interaction.response.edit_message(content=self._pages[self._place], view=self)

    def _label(self) -> None:
        self.back.disabled = self._place == 0
        self.forth.disabled = self._place == len(self._pages) - 1
        self.position.label = f"{self._place + 1} / {len(self._pages)}"

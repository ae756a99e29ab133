"""The Undo button: what the model changed in memory is taken back by whoever may."""

import re
from dataclasses import replace
from typing import Self, cast

import discord

from bot.background import Raised, settle
from bot.discord_io.client import MadeleineBot
from bot.discord_io.command_tree import answer_error
from bot.discord_io.commands import Interaction, actor_of, listening_of, locale_of
from bot.discord_io.undo_button import UNDO_ID, undone_turn
from bot.i18n import t
from bot.memory.changes import TurnKey
from bot.memory.references import show_names


class UndoButton(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template=UNDO_ID):
    """Finds itself again by its id, under whatever message it stands."""

    def __init__(self, button: discord.ui.Button[discord.ui.View], turn: TurnKey) -> None:
        super().__init__(button)
        self._turn = turn

    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction,
        item: discord.ui.Item[discord.ui.View],
        match: re.Match[str],
        /,
    ) -> Self:
        del interaction
        return cls(cast("discord.ui.Button[discord.ui.View]", item), undone_turn(match))

    async def callback(self, interaction: discord.Interaction) -> None:
        outcome = await settle(self._undo(cast("Interaction", interaction)))
        if isinstance(outcome, Raised):
            await answer_error(interaction, outcome.error)

    async def _undo(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        listening = replace(await listening_of(interaction), lineage=self._turn.lineage)
        undone = await interaction.client.services.long_term.undo(
            self._turn,
            await actor_of(interaction, listening),
            listening,
        )
        locale = locale_of(interaction)
        lines = [
            t(f"ui.undo.{change.kind}", locale, text=show_names(change.text, "<@{}>".format))
            for change in undone
        ]
        await interaction.followup.send("\n".join(lines)[:2_000], ephemeral=True)
        if interaction.message is not None:
            await interaction.message.edit(
                content=_struck(interaction.message.content, len(undone)), view=None
            )


def _struck(content: str, notices: int) -> str:
    """The message with the small lines that no longer hold struck through, if there is space."""
    lines = content.splitlines()
    for place in range(max(0, len(lines) - notices), len(lines)):
        if lines[place].startswith("-# "):
            lines[place] = f"-# ~~{lines[place][3:]}~~"
    struck = "\n".join(lines)
    return struck if len(struck) <= 2_000 else content


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    bot.add_dynamic_items(UndoButton)

"""The buttons under a reply: what the model changed is taken back, what is asked is forgotten."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Self, cast

import discord

from bot.background import Raised, settle
from bot.discord_io.client import MadeleineBot
from bot.discord_io.command_tree import answer_error
from bot.discord_io.commands import Interaction, actor_of, listening_of, locale_of
from bot.discord_io.reply_buttons import FORGET_ID, UNDO_ID, asked_memories, undone_turn
from bot.i18n import t
from bot.identifiers import MemoryId
from bot.memory.changes import TurnKey
from bot.memory.references import show_names
from bot.memory.refusals import MemoryRefused
from bot.turn.messages import AskedToForget

log = logging.getLogger(__name__)


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
        await _rewrite(interaction, lambda lines: _struck(lines, len(undone)))


class ForgetButton(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template=FORGET_ID):
    """Forgets what somebody asked to forget, as far as whoever presses it may."""

    def __init__(self, button: discord.ui.Button[discord.ui.View], asked: AskedToForget) -> None:
        super().__init__(button)
        self._asked = asked

    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction,
        item: discord.ui.Item[discord.ui.View],
        match: re.Match[str],
        /,
    ) -> Self:
        del interaction
        return cls(cast("discord.ui.Button[discord.ui.View]", item), asked_memories(match))

    async def callback(self, interaction: discord.Interaction) -> None:
        outcome = await settle(self._forget(cast("Interaction", interaction)))
        if isinstance(outcome, Raised):
            await answer_error(interaction, outcome.error)

    async def _forget(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        listening = replace(await listening_of(interaction), lineage=self._asked.lineage)
        actor, locale = await actor_of(interaction, listening), locale_of(interaction)
        lines: list[str] = []
        forgotten: list[MemoryId] = []
        for memory in self._asked.memories:
            try:
                old = await interaction.client.services.long_term.forget(memory, actor, listening)
            except MemoryRefused as refused:  # gone already, or not theirs: the others are
                lines.append(t(refused.key, locale, **refused.params))
                continue
            text = show_names(old.content, "<@{}>".format)
            lines.append(t("ui.memory.forgot", locale, text=text))
            forgotten.append(memory)
        await interaction.followup.send("\n".join(lines)[:2_000], ephemeral=True)
        asked = len(self._asked.memories)
        if forgotten:
            await _rewrite(interaction, lambda lines: lines[: len(lines) - asked])


async def _rewrite(interaction: Interaction, change: Callable[[list[str]], list[str]]) -> None:
    """Bring the small lines of a reply up to what was done, and take the pressed button away.

    Where that fails it is done all the same.
    """
    message = interaction.message
    if message is None:
        return
    lines = message.content.splitlines()
    first = len(lines)
    while first and lines[first - 1].startswith("-# "):
        first -= 1
    content = "\n".join([*lines[:first], *change(lines[first:])]) or "\u2026"
    content = content if len(content) <= 2_000 else message.content
    pressed = interaction.data.get("custom_id") if interaction.data else None
    view = discord.ui.View.from_message(message, timeout=None)
    for item in list(view.children):
        if getattr(item, "custom_id", None) == pressed:
            view.remove_item(item)
    view.stop()
    outcome = await settle(message.edit(content=content, view=view if view.children else None))
    if isinstance(outcome, Raised):
        log.warning("reply_not_rewritten", extra={"reason": repr(outcome.error)})


def _struck(lines: list[str], notices: int) -> list[str]:
    """The small lines, those that no longer hold struck through: they come first."""
    gone = [f"-# ~~{line.removeprefix('-# ')}~~" for line in lines[:notices]]
    return [*gone, *lines[notices:]]


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    bot.add_dynamic_items(UndoButton, ForgetButton)

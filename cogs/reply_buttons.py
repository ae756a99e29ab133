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
from bot.memory.references import show_names
from bot.memory.refusals import MemoryRefused

log = logging.getLogger(__name__)


class _ReplyButton(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template="reply"):
    """Finds itself again by its id, under whatever message it stands; `named` is that id."""

    def __init__(self, button: discord.ui.Button[discord.ui.View], named: re.Match[str]) -> None:
        super().__init__(button)
        self.named = named

    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction,
        item: discord.ui.Item[discord.ui.View],
        match: re.Match[str],
        /,
    ) -> Self:
        del interaction
        return cls(cast("discord.ui.Button[discord.ui.View]", item), match)

    async def callback(self, interaction: discord.Interaction) -> None:
        outcome = await settle(self.press(cast("Interaction", interaction)))
        if isinstance(outcome, Raised):
            await answer_error(interaction, outcome.error)

    async def press(self, interaction: Interaction) -> None:
        """What the button is for."""
        raise NotImplementedError


class UndoButton(_ReplyButton, template=UNDO_ID):
    """Takes back what a reply changed in memory, as far as whoever presses it may."""

    async def press(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        turn = undone_turn(self.named)
        listening = replace(await listening_of(interaction), lineage=turn.lineage)
        actor = await actor_of(interaction, listening)
        undone = await interaction.client.services.long_term.undo(turn, actor, listening)
        locale = locale_of(interaction)
        lines = [
            t(f"ui.undo.{change.kind}", locale, text=show_names(change.text, "<@{}>".format))
            for change in undone
        ]
        await interaction.followup.send("\n".join(lines)[:2_000], ephemeral=True)
        await _rewrite(interaction, lambda lines: _struck(lines, len(undone)))


class ForgetButton(_ReplyButton, template=FORGET_ID):
    """Forgets what somebody asked to forget, as far as whoever presses it may."""

    async def press(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        asked = asked_memories(self.named)
        listening = replace(await listening_of(interaction), lineage=asked.lineage)
        actor, locale = await actor_of(interaction, listening), locale_of(interaction)
        lines: list[str] = []
        forgotten: list[MemoryId] = []
        for memory in asked.memories:
            try:
                old = await interaction.client.services.long_term.forget(memory, actor, listening)
            except MemoryRefused as refused:  # gone already, or not theirs: the others are
                lines.append(t(refused.key, locale, **refused.params))
                continue
            text = show_names(old.content, "<@{}>".format)
            lines.append(t("ui.memory.forgot", locale, text=text))
            forgotten.append(memory)
        await interaction.followup.send("\n".join(lines)[:2_000], ephemeral=True)
        if forgotten:
            count = len(asked.memories)
            await _rewrite(interaction, lambda lines: lines[: len(lines) - count])


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

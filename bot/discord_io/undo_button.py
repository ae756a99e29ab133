"""The Undo button under a reply. It names its turn, so that it works after a restart as well."""

import re

import discord

from bot.i18n import t
from bot.identifiers import LineageId, MessageId
from bot.memory.changes import TurnKey

UNDO_ID = re.compile(r"undo:(?P<message>\d+):(?P<lineage>\d+)")


def undo_view(turn: TurnKey, locale: str) -> discord.ui.View:
    """The button that undoes what a turn changed in memory."""
    view = discord.ui.View(timeout=None)
    view.add_item(
        discord.ui.Button(
            style=discord.ButtonStyle.secondary,
            label=t("ui.undo.button", locale),
            custom_id=f"undo:{turn.message}:{turn.lineage}",
        )
    )
    view.stop()  # whoever answers is found by the id: the library need not keep a view per reply
    return view


def undone_turn(found: re.Match[str]) -> TurnKey:
    """The turn that a button names."""
    return TurnKey(
        message=MessageId(int(found["message"])), lineage=LineageId(int(found["lineage"]))
    )

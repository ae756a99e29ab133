"""The buttons under a reply. Each names what it is for, so that it works after a restart too."""

import re

import discord

from bot.i18n import t
from bot.identifiers import LineageId, MemoryId, MessageId
from bot.memory.changes import TurnKey
from bot.turn.messages import AskedToForget, Footer

UNDO_ID = re.compile(r"undo:(?P<message>\d+):(?P<lineage>\d+)")
FORGET_ID = re.compile(r"forget:(?P<lineage>\d+):(?P<memories>[\d,]+)")


def footer_view(footer: Footer, locale: str) -> discord.ui.View | None:
    """The buttons that undo what a turn changed, and that forget what somebody asked to forget."""
    view = discord.ui.View(timeout=None)
    if footer.undoes is not None:
        undo = f"undo:{footer.undoes.message}:{footer.undoes.lineage}"
        view.add_item(_button(discord.ButtonStyle.secondary, t("ui.undo.button", locale), undo))
    if footer.forgets is not None:
        memories = ",".join(str(memory) for memory in footer.forgets.memories)
        forget = f"forget:{footer.forgets.lineage}:{memories}"
        label = t("ui.memory.forget_button", locale)
        view.add_item(_button(discord.ButtonStyle.danger, label, forget))
    view.stop()  # whoever answers is found by the id: the library need not keep a view per reply
    return view if view.children else None


def undone_turn(found: re.Match[str]) -> TurnKey:
    """The turn that an undo button names."""
    return TurnKey(
        message=MessageId(int(found["message"])), lineage=LineageId(int(found["lineage"]))
    )


def asked_memories(found: re.Match[str]) -> AskedToForget:
    """The memories that a forget button names."""
    numbers = (int(number) for number in found["memories"].split(",") if number)
    return AskedToForget(
        lineage=LineageId(int(found["lineage"])), memories=tuple(map(MemoryId, numbers))
    )


def _button(
    style: discord.ButtonStyle, label: str, custom_id: str
) -> discord.ui.Button[discord.ui.View]:
    return discord.ui.Button(style=style, label=label, custom_id=custom_id)

"""Forgetting by words: what would go is shown first, and goes once that is confirmed."""

import re
from collections.abc import Iterable
from unicodedata import east_asian_width

from bot.discord_io.commands import Interaction, answer, guild_of, locale_of
from bot.discord_io.forms import Confirm
from bot.errors import UserError
from bot.i18n import t
from bot.memory.forgetting import Traces
from bot.memory.listening import Actor

SHORTEST = 3
_NUMBER = re.compile("[1-9][0-9]{0,8}")


def are_numbers(typed: Iterable[str]) -> bool:
    """Whether all of it names memories; a longer number is a value: a telephone number, a code."""
    return all(map(_NUMBER.fullmatch, typed))


async def ask_to_forget(interaction: Interaction, words: str, actor: Actor) -> None:
    """Show what holds the words, as far as the actor may forget it, and forget it on request.

    Raises UserError where the words are too few to mean one thing, or stand nowhere.
    """
    guild, locale, wanted = guild_of(interaction), locale_of(interaction), words.strip()
    if sum(2 if east_asian_width(sign) in "WF" else 1 for sign in wanted) < SHORTEST:
        raise UserError("errors.command.forget_short", limit=SHORTEST)
    traces = await interaction.client.services.forgetting.traces(wanted, guild, actor)
    if traces.are_none and not actor.is_manager:
        raise UserError("ui.memory.not_found", words=wanted)

    async def agreed(pressed: Interaction) -> None:
        found = await pressed.client.receiver.forget_words(wanted, guild, actor)
        await answer(pressed, t("ui.memory.forgot_words", locale, **_counts(found)))

    key = "ui.memory.forget_words" if actor.is_manager else "ui.memory.forget_own_words"
    question = t(key, locale, words=wanted, **_counts(traces))
    await Confirm(t("ui.memory.forget_button", locale), agreed).send(interaction, question)


def _counts(traces: Traces) -> dict[str, str]:
    return {
        "memories": str(len(traces.memories)),
        "entries": str(len(traces.entries)),
        "episodes": str(len(traces.episodes)),
        "notes": str(len(traces.notes)),
    }

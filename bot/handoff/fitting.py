"""What one request to the handoff model has space for."""

from collections.abc import Sequence

from bot.config import HandoffConfig
from bot.handoff.look import Look
from bot.handoff.material import Material, oldest_that_fit
from bot.handoff.pins import overdue_pins
from bot.identifiers import EntryId
from bot.llm.routing import Route
from bot.llm.tokens import estimate_message_tokens
from bot.memory.ledger import Matter
from bot.memory.working import Entry

LONGEST_ANSWER = 4_096
"""Tokens of the longest answer that is asked for; at most a quarter of the window."""
_BAD_ANSWERS = frozenset(("malformed", "cut", "rejected"))
ALONE_AFTER = 8
"""After so many bad answers in a row, a line that is asked about alone is told without a model."""


def answer_tokens(route: Route) -> int:
    """The longest answer that a run asks for."""
    return min(LONGEST_ANSWER, route.window // 4)


def fitting_material(look: Look, route: Route, config: HandoffConfig) -> Material:
    """The oldest candidates, the overdue pins and the open matters, as far as one prompt goes.

    After bad answers the batch is halved, again and again: one line may be what the model stumbles
    over. Where even one line does not fit with the rest, matters and pins are left out.
    """
    taken: Sequence[Entry] = oldest_that_fit(
        look.candidates,
        look.scenery.roster,
        tokens=int(route.window * config.window_fraction),
        most=max(1, config.max_candidates >> bad_answers(look)),
        ratio=route.ratio,
    )
    overdue: Sequence[Entry] = overdue_pins(look.entries, look.matters, look.scenery.now, config)
    matters: Sequence[Matter] = look.matters
    space = route.window - answer_tokens(route)
    while True:
        material = Material.of(taken, overdue, matters, look.scenery)
        if _size(material, route) <= space or len(taken) + len(overdue) + len(matters) <= 1:
            return material
        if len(matters) > 1 or (matters and len(taken) == 1):
            left_out = matters[len(matters) // 2 :]
            matters = matters[: len(matters) // 2]
            overdue = _without(overdue, left_out)
        elif overdue and len(taken) == 1:
            overdue = overdue[: len(overdue) // 2]
        else:
            taken = taken[: max(1, len(taken) // 2)]


def bad_answers(look: Look) -> int:
    """How many answers in a row could not be used; 0 where it was the provider that failed."""
    return look.buffer.failures if look.last_failure in _BAD_ANSWERS else 0


def _without(entries: Sequence[Entry], matters: Sequence[Matter]) -> list[Entry]:
    held: set[EntryId] = {entry for matter in matters for entry in matter.entries}
    return [entry for entry in entries if entry.id not in held]


def _size(material: Material, route: Route) -> int:
    example = route.tools_mode == "structured"
    messages = material.messages(example=example)
    return sum(estimate_message_tokens(message, route.ratio) for message in messages)

"""How much of working memory a prompt has room for."""

from collections.abc import Sequence
from dataclasses import replace

from bot.llm.chat import ChatMessage
from bot.llm.tokens import estimate_message_tokens, estimate_tokens
from bot.memory.quoting import FEWEST_CHARACTERS, shortened
from bot.memory.transcript import View, heading_between, rendered_line, section_tokens
from bot.memory.working import Entry
from bot.prompts import prompt

_HEADING_MESSAGE = ChatMessage(role="user", content="[the night before last, or about so long]")


def fit_entries(
    entries: Sequence[Entry], view: View, *, budget: int, ratio: float, keep: int
) -> tuple[Entry, ...]:
    """The newest entries that fit `budget` tokens when rendered.

    The last `keep` stay, and all that is asked, which stands at the end: where those alone are too
    long, long texts among them lose their middle. Where that is not enough either, the oldest of
    them go; the message that started the turn, or else the very last one, never does.
    """
    keep = max(keep, sum(entry.message_id in view.asked for entry in entries))
    count = _newest_that_fit(entries, view, budget=budget, ratio=ratio)
    if count < min(keep, len(entries)):
        return _shorten(list(entries[-keep:]), view, budget=budget, ratio=ratio)
    return tuple(entries[len(entries) - count :])


def _newest_that_fit(entries: Sequence[Entry], view: View, *, budget: int, ratio: float) -> int:
    """How many of the newest entries fit, each rendered once: a busy room's are long to render."""
    # Whatever entry is the oldest that fits may get a heading.
    left = budget - estimate_message_tokens(_HEADING_MESSAGE, ratio)
    role = ""
    for count, entry in enumerate(reversed(entries)):
        before = entries[-count - 2] if count + 2 <= len(entries) else None
        line = rendered_line(entry, view)
        heading = heading_between(before, entry, view)
        if heading is not None:
            left -= estimate_message_tokens(ChatMessage(role="user", content=heading), ratio)
        frame = estimate_message_tokens(ChatMessage(role=line.role, content=""), ratio)
        left -= estimate_tokens(f"{line.content}\n", ratio) + (frame if line.role != role else 0)
        if left < 0:
            return count
        role = line.role if heading is None else "user"
    return len(entries)


def _shorten(entries: list[Entry], view: View, *, budget: int, ratio: float) -> tuple[Entry, ...]:
    # As they are read: cutting a stored text could leave half a reference.
    shown = [replace(entry, content=view.roster.show(entry.content)) for entry in entries]
    mark = f" {prompt('blocks.shortened')} "

    def cut(most: int) -> list[Entry]:
        return [replace(entry, content=shortened(entry.content, most, mark)) for entry in shown]

    def fits(most: int) -> bool:
        return section_tokens(cut(most), view, ratio) <= budget

    while len(shown) > 1 and not fits(FEWEST_CHARACTERS):
        starts_the_turn = shown[0].message_id in view.asked
        del shown[1 if starts_the_turn else 0]
    low = FEWEST_CHARACTERS
    high = max(len(entry.content) for entry in shown)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return tuple(cut(low))

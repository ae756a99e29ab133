"""Working memory as the messages of a prompt."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.clock import is_fresh, naturalize_time
from bot.identifiers import PersonaId
from bot.llm.chat import ChatMessage
from bot.llm.tokens import estimate_message_tokens, estimate_tokens
from bot.memory.roster import Roster
from bot.memory.working import Entry
from bot.prompts import prompt
from bot.turn.quoting import FEWEST_CHARACTERS, shortened, spoken

PROMPT_LOCALE = "en-US"
_HEADING_MESSAGE = ChatMessage(role="user", content="[the night before last, or about so long]")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From where entries are read: as which persona, when, and under which names."""

    persona: PersonaId
    roster: Roster
    now: datetime
    zone: ZoneInfo


def render_entries(entries: Iterable[Entry], view: View) -> tuple[ChatMessage, ...]:
    """The entries as messages: consecutive lines of one side are one message.

    Where the scene or the day changes, a heading says how long ago what follows was. The persona's
    own lines bear no name: a model copies the form of its own lines.
    """
    messages: list[ChatMessage] = []
    before: Entry | None = None
    for entry in entries:
        heading = _heading(before, entry, view)
        if heading is not None:
            _append(messages, ChatMessage(role="user", content=heading))
        _append(messages, _line(entry, view))
        before = entry
    return tuple(messages)


def section_tokens(entries: Iterable[Entry], view: View, ratio: float) -> int:
    """The size of the entries as they are rendered."""
    return sum(estimate_message_tokens(message, ratio) for message in render_entries(entries, view))


def fit_entries(
    entries: Sequence[Entry], view: View, *, budget: int, ratio: float, keep: int
) -> tuple[Entry, ...]:
    """The newest entries that fit `budget` tokens when rendered.

    The last `keep` stay: where those alone are too long, long texts among them lose their middle.
    Where that is not enough either, the oldest of them go; the very last one never does.
    """
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
        line = _line(entry, view)
        heading = _heading(before, entry, view)
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
        shown.pop(0)
    low = FEWEST_CHARACTERS
    high = max(len(entry.content) for entry in shown)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return tuple(cut(low))


def _line(entry: Entry, view: View) -> ChatMessage:
    text = spoken(view.roster.show(entry.content))
    if entry.persona == view.persona:
        return ChatMessage(role="assistant", content=text)
    return ChatMessage(role="user", content=f"{_speaker(entry, view)}: {text}")


def _speaker(entry: Entry, view: View) -> str:
    return view.roster.name(entry.author) if entry.author is not None else view.roster.someone


def _heading(before: Entry | None, entry: Entry, view: View) -> str | None:
    if before is None:
        changes = not is_fresh(view.now, entry.said_at)
    else:
        changes = entry.scene != before.scene or _day(entry, view) != _day(before, view)
    if not changes:
        return None
    age = naturalize_time(view.now, entry.said_at, view.zone, PROMPT_LOCALE)
    return prompt("blocks.heading", age=age)


def _day(entry: Entry, view: View) -> int:
    return entry.said_at.astimezone(view.zone).toordinal()


def _append(messages: list[ChatMessage], message: ChatMessage) -> None:
    if messages and messages[-1].role == message.role:
        joined = f"{messages[-1].content}\n{message.content}"
        messages[-1] = replace(messages[-1], content=joined)
    else:
        messages.append(message)

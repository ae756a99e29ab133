"""Working memory as it stands in a prompt: a conversation with names and times."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.clock import is_fresh, naturalize_time
from bot.identifiers import MessageId, PersonaId
from bot.llm.chat import ChatMessage, Role
from bot.llm.tokens import estimate_message_tokens
from bot.memory.quoting import spoken
from bot.memory.roster import Roster
from bot.memory.working import Entry
from bot.prompts import prompt

PROMPT_LOCALE = "en-US"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From where entries are read: as which persona, when, under which names, to answer what."""

    persona: PersonaId
    roster: Roster
    now: datetime
    zone: ZoneInfo
    asked: frozenset[MessageId] = frozenset()


def render_entries(
    entries: Iterable[Entry], view: View, *, gap: bool = False
) -> tuple[ChatMessage, ...]:
    """The entries as messages: consecutive lines of one side are one message.

    `gap`: a line says first that earlier talk is left out.

    Where the scene or the day changes, a heading says how long ago what follows was. The persona's
    own lines bear no name: a model copies the form of its own lines.
    """
    sides: list[tuple[Role, list[str]]] = []

    def add(role: Role, line: str) -> None:
        if sides and sides[-1][0] == role:
            sides[-1][1].append(line)
        else:
            sides.append((role, [line]))

    if gap:
        add("user", prompt("blocks.gap"))
    before: Entry | None = None
    for entry in entries:
        heading = heading_between(before, entry, view)
        if heading is not None:
            add("user", heading)
        line = rendered_line(entry, view)
        add(line.role, line.content)
        before = entry
    return tuple(ChatMessage(role=role, content="\n".join(lines)) for role, lines in sides)


def section_tokens(entries: Iterable[Entry], view: View, ratio: float) -> int:
    """The size of the entries as they are rendered."""
    return sum(estimate_message_tokens(message, ratio) for message in render_entries(entries, view))


def rendered_line(entry: Entry, view: View) -> ChatMessage:
    """One entry as a message of its own."""
    text = spoken(view.roster.show(entry.content))
    if entry.persona == view.persona:
        return ChatMessage(role="assistant", content=text)
    return ChatMessage(role="user", content=f"{_speaker(entry, view)}: {text}")


def heading_between(before: Entry | None, entry: Entry, view: View) -> str | None:
    """How long ago `entry` was, where that has to be said; None where the talk just goes on."""
    if before is None:
        changes = not is_fresh(view.now, entry.said_at)
    else:
        changes = entry.scene != before.scene or _day(entry, view) != _day(before, view)
    if not changes:
        return None
    age = naturalize_time(view.now, entry.said_at, view.zone, PROMPT_LOCALE)
    return prompt("blocks.heading", age=age)


def _speaker(entry: Entry, view: View) -> str:
    return view.roster.name(entry.author) if entry.author is not None else view.roster.someone


def _day(entry: Entry, view: View) -> int:
    return entry.said_at.astimezone(view.zone).toordinal()

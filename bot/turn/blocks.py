"""The memory blocks of a prompt: quoted, dated, each within its budget."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from bot.clock import naturalize_time
from bot.identifiers import MemoryId
from bot.llm.tokens import estimate_tokens
from bot.memory.long_term import Memory
from bot.memory.short_term import ShortTermEntry
from bot.prompts import prompt
from bot.turn.budget import Budget
from bot.turn.context import TurnContext
from bot.turn.history import PROMPT_LOCALE
from bot.turn.quoting import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks as text, and the handles under which memories are shown in them."""

    server: str
    people: str
    room_note: str
    other_rooms: str
    shown: dict[str, MemoryId] = field(default_factory=dict[str, MemoryId])

    @property
    def text(self) -> str:
        """The blocks that say something, in the order of the prompt."""
        blocks = (self.server, self.people, self.room_note, self.other_rooms)
        return "\n\n".join(filter(None, blocks))

    def visible(self) -> dict[str, MemoryId]:
        """The handles that the text really shows."""
        text = self.text
        return {handle: memory for handle, memory in self.shown.items() if f"- {handle} " in text}

    def cut(self) -> "Blocks | None":
        """The same without the block that is missed least; None where nothing is left to cut."""
        for name in ("other_rooms", "people", "server", "room_note"):
            if getattr(self, name):
                return replace(self, **{name: ""})
        return None


def memory_blocks(context: TurnContext, budget: Budget, ratio: float) -> Blocks:
    """All memory of a turn that fits; what has to go, goes oldest first."""
    handles = _Handles()
    together = _Allowance(budget.together, ratio)
    server = _Allowance(budget.server, ratio, within=together)
    lines = [
        handles.line(memory, context)
        for memory in context.server_memories
        if server.takes(_fact(memory, context))
    ]
    short_term = _Allowance(budget.short_term, ratio)
    room_note = _room_note(context, short_term)
    return Blocks(
        server=_block("blocks.server", lines),
        people=_people(context, budget, ratio, together, handles),
        room_note=room_note,
        other_rooms=_other_rooms(context, short_term),
        shown=handles.shown,
    )


class _Allowance:
    """Counts tokens down; a text is taken whole or not at all."""

    def __init__(self, tokens: int, ratio: float, within: "_Allowance | None" = None) -> None:
        self._left = tokens
        self._ratio = ratio
        self._within = within

    def takes(self, text: str) -> bool:
        tokens = estimate_tokens(text, self._ratio)
        if tokens > self._left or (self._within is not None and tokens > self._within.left):
            return False
        self.spend(tokens)
        return True

    @property
    def left(self) -> int:
        return self._left

    def spend(self, tokens: int) -> None:
        self._left -= tokens
        if self._within is not None:
            self._within.spend(tokens)


class _Handles:
    """Numbers the memories of one prompt: M1, M2 ..."""

    def __init__(self) -> None:
        self.shown: dict[str, MemoryId] = {}

    def line(self, memory: Memory, context: TurnContext) -> str:
        handle = f"M{len(self.shown) + 1}"
        self.shown[handle] = memory.id
        return prompt("blocks.memory", handle=handle, text=_fact(memory, context))


def _fact(memory: Memory, context: TurnContext) -> str:
    """A memory as it is quoted; what somebody said of another is shown as their claim."""
    text = quoted(context.roster.show(memory.content))
    age = naturalize_time(context.now, memory.updated_at, context.zone, PROMPT_LOCALE)
    if memory.author == memory.subject:
        return prompt("blocks.fact", text=text, age=age)
    return prompt("blocks.claim", text=text, age=age, name=context.roster.name(memory.author))


def _people(
    context: TurnContext, budget: Budget, ratio: float, together: _Allowance, handles: _Handles
) -> str:
    """Everybody who takes part, each with a fair share of what may be said of people."""
    participants = context.roster.participants
    known = {p.user: context.personal_memories.get(p.user, ()) for p in participants}
    remembered = sum(1 for memories in known.values() if memories)
    allowance = _Allowance(budget.personal, ratio, within=together)
    lines: list[str] = []
    for participant in participants:
        speaks = participant.user == context.speaker.id
        key = "blocks.speaking" if speaks else "blocks.person"
        lines.append(prompt(key, handle=participant.handle, name=participant.name))
        memories = known[participant.user]
        if not memories:
            continue
        share = _Allowance(allowance.left // remembered, ratio, within=allowance)
        remembered -= 1
        lines += [
            handles.line(memory, context)
            for memory in memories
            if share.takes(_fact(memory, context))
        ]
    return _block("blocks.people", lines)


def _room_note(context: TurnContext, allowance: _Allowance) -> str:
    note = context.room_note
    if note is None or note.text is None:
        return ""
    age = naturalize_time(context.now, note.text.written_at, context.zone, PROMPT_LOCALE)
    lines = _noted(note, context.roster.show)
    return _block("blocks.room_note", filter(allowance.takes, lines), age=age)


def _other_rooms(context: TurnContext, allowance: _Allowance) -> str:
    blocks: list[str] = []
    for note in context.other_rooms:
        age = naturalize_time(context.now, note.captured_at, context.zone, PROMPT_LOCALE)
        lines = _noted(note, context.roster.show) or [
            f"- {context.roster.name(turn.author)}: {quoted(context.roster.show(turn.content))}"
            for turn in note.turns
            if turn.author is not None
        ]
        blocks.append(_block("blocks.other_room", filter(allowance.takes, lines), age=age))
    return "\n".join(filter(None, blocks))


def _noted(note: ShortTermEntry, show: Callable[[str], str]) -> list[str]:
    """What was noted: categories before the summary."""
    if note.text is None:
        return []
    lines = [f"- {label}: {quoted(show(text))}" for label, text in note.text.categories.items()]
    if note.text.summary:
        lines.append(f"- {quoted(show(note.text.summary))}")
    return lines


def _block(key: str, lines: Iterable[str], **params: str) -> str:
    text = "\n".join(lines)
    return f"{prompt(key, **params)}\n{text}" if text else ""

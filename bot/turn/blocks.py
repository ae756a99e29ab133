"""The memory blocks of a prompt: quoted, dated, each within its budget."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.clock import naturalize_time
from bot.identifiers import MemoryId, UserId
from bot.llm.tokens import estimate_tokens
from bot.memory.ledger import Episode, Quote
from bot.memory.long_term import Memory
from bot.memory.quoting import FEWEST_CHARACTERS, quoted, shortened
from bot.memory.roster import Participant
from bot.memory.short_term import ShortTermEntry
from bot.memory.transcript import PROMPT_LOCALE
from bot.memory.working import Entry
from bot.prompts import prompt
from bot.turn.budget import Budget
from bot.turn.context import TurnContext

_SHORTEST_LINE = 8
"""Tokens below which no line of a memory fits any more."""
_MOST_MISFITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks as text, and which memory is shown in them under which handle."""

    server: str
    people: str
    recalled: str
    room_note: str
    other_rooms: str
    matters: str
    of_server: Mapping[str, MemoryId] = field(default_factory=dict[str, MemoryId])
    of_people: Mapping[str, MemoryId] = field(default_factory=dict[str, MemoryId])

    @property
    def text(self) -> str:
        """The blocks that say something, in the order of the prompt."""
        blocks = (
            *(self.server, self.people, self.recalled),
            *(self.room_note, self.other_rooms, self.matters),
        )
        return "\n\n".join(filter(None, blocks))

    @property
    def shown(self) -> dict[str, MemoryId]:
        """The handles that the text shows."""
        return {
            **(self.of_server if self.server else {}),
            **(self.of_people if self.people else {}),
        }

    def cut(self) -> "Blocks | None":
        """The same without the block that is missed least; None where nothing is left to cut."""
        for name in ("recalled", "other_rooms", "people", "server", "room_note", "matters"):
            if getattr(self, name):
                return replace(self, **{name: ""})
        return None


def memory_blocks(context: TurnContext, budget: Budget, ratio: float) -> Blocks:
    """All memory of a turn that fits; what has to go, goes oldest first."""
    together = _Allowance(budget.together, ratio)
    server = _Allowance(budget.server, ratio, within=together)
    personal = _Allowance(budget.personal, ratio, within=together)
    short_term = _Allowance(budget.short_term, ratio)
    facts = _Facts(context)
    heading = prompt("blocks.server")
    lines = facts.lines(context.server_memories, server) if server.takes(heading) else []
    of_server = dict(facts.shown)
    return Blocks(
        server=_block(heading, lines),
        people=_people(context, personal, facts),
        recalled=_recalled(context, _Allowance(budget.recalled, ratio, within=together)),
        matters=_matters(context, _Allowance(budget.matters, ratio)),
        room_note=_room_note(context, short_term),
        other_rooms=_other_rooms(context, short_term),
        of_server=of_server,
        of_people={h: memory for h, memory in facts.shown.items() if h not in of_server},
    )


class _Allowance:
    """Counts tokens down, line by line; a line is taken whole or not at all."""

    def __init__(self, tokens: int, ratio: float, within: "_Allowance | None" = None) -> None:
        self._own = tokens
        self._ratio = ratio
        self._within = within

    def takes(self, line: str) -> bool:
        tokens = estimate_tokens(f"{line}\n", self._ratio)
        if tokens > self.left:
            return False
        self.spend(tokens)
        return True

    @property
    def left(self) -> int:
        return self._own if self._within is None else min(self._own, self._within.left)

    @property
    def is_spent(self) -> bool:
        return self.left < _SHORTEST_LINE

    def share(self, parts: int) -> "_Allowance":
        """An even part of what is left."""
        return _Allowance(self.left // parts, self._ratio, within=self)

    def spend(self, tokens: int) -> None:
        self._own -= tokens
        if self._within is not None:
            self._within.spend(tokens)


class _Facts:
    """Writes memories as lines and numbers those that are shown: M1, M2 ..."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self.shown: dict[str, MemoryId] = {}

    def lines(self, memories: Iterable[Memory], allowance: _Allowance) -> list[str]:
        """The memories that may still be shown, a line each; after a few that do not fit, the rest,
        which is older, is not looked at.
        """
        told: list[Memory] = []
        lines: list[str] = []
        misfits = 0
        for memory in memories:
            if allowance.is_spent or misfits > _MOST_MISFITS:
                break
            handle = f"M{len(self.shown) + 1}"
            line = prompt("blocks.memory", handle=handle, text=_fact(memory, self._context))
            if allowance.takes(line):
                self.shown[handle] = memory.id
                told.append(memory)
                lines.append(line)
            else:
                misfits += 1
        for place, memory in enumerate(told):  # what was, where what is leaves space
            was = _former(memory, self._context)
            if was and allowance.takes(was):
                lines[place] += f" {was}"
        return lines


def _fact(memory: Memory, context: TurnContext) -> str:
    """A memory as it is quoted; what somebody said of another is shown as their claim."""
    text = quoted(context.roster.show(memory.content))
    age = naturalize_time(context.now, memory.updated_at, context.zone, PROMPT_LOCALE)
    if memory.author == memory.subject:
        return prompt("blocks.fact", text=text, age=age)
    return prompt("blocks.claim", text=text, age=age, name=context.roster.name(memory.author))


def _former(memory: Memory, context: TurnContext) -> str:
    """What a memory said before it was changed last, if that is heard here."""
    if not memory.former:
        return ""
    former = memory.former[0]
    text = quoted(context.roster.show(former.content))
    age = naturalize_time(context.now, former.ended_at, context.zone, PROMPT_LOCALE)
    return prompt("blocks.former", text=text, age=age)


def _people(context: TurnContext, allowance: _Allowance, facts: _Facts) -> str:
    """Who takes part: whoever speaks, those of whom something is known, then the others.

    What may be said of people is shared evenly among those of whom something is known.
    """
    participants = context.roster.participants
    names = {p.user: _name_line(p, context) for p in participants}
    heading = prompt("blocks.people")
    lines: dict[UserId, list[str]] = {}
    speaker = context.speaker.id
    allowance.takes(heading)
    if speaker in names and allowance.takes(names[speaker]):
        lines[speaker] = [names[speaker]]
    known = [p.user for p in participants if context.personal_memories.get(p.user)]
    for position, user in enumerate(known):
        share = allowance.share(len(known) - position)
        if user in lines or share.takes(names[user]):
            memories = context.personal_memories[user]
            lines[user] = [names[user], *facts.lines(memories, share)]
    for user, name in names.items():
        if user not in lines and allowance.takes(name):
            lines[user] = [name]
    return _block(heading, [line for user in names for line in lines.get(user, [])])


def _name_line(participant: Participant, context: TurnContext) -> str:
    speaks = participant.user == context.speaker.id
    key = "blocks.speaking" if speaks else "blocks.person"
    return prompt(key, handle=participant.handle, name=participant.name)


def _recalled(context: TurnContext, allowance: _Allowance) -> str:
    """Episodes, the best that fit, told in order of time."""
    heading = prompt("blocks.recalled")
    if not (context.episodes and allowance.takes(heading)):
        return ""
    lines: list[tuple[datetime, str]] = []
    for episode in context.episodes:
        line = _episode(episode, context, allowance, may_shorten=not lines)
        if line is not None:
            lines.append((episode.happened_from, line))
    return _block(heading, [line for _, line in sorted(lines)])


def _episode(
    episode: Episode, context: TurnContext, allowance: _Allowance, *, may_shorten: bool
) -> str | None:
    """What happened and when, with what was said word for word, or without that where it is long.

    None where there is no space for it.
    """
    show = context.roster.show
    age = naturalize_time(context.now, episode.happened_until, context.zone, PROMPT_LOCALE)
    told = prompt("blocks.episode", age=age, text=quoted(show(episode.content)))
    whole = " ".join((told, *(_quote(quote, context) for quote in episode.quotes)))
    for line in (whole, told):
        if allowance.takes(line):
            return line
    return _shortened_line(show(episode.content), age, allowance) if may_shorten else None


def _quote(quote: Quote, context: TurnContext) -> str:
    text = quoted(context.roster.show(quote.content))
    return prompt("blocks.quote", name=_quoted_speaker(quote, context), text=text)


def _quoted_speaker(quote: Quote, context: TurnContext) -> str:
    if quote.said_by is not None:
        return context.roster.name(quote.said_by)
    own = quote.persona == context.persona.id
    return context.persona.name if own else context.roster.someone


def _matters(context: TurnContext, allowance: _Allowance) -> str:
    """What is still open here, the newest first where not all of it fits."""
    heading = prompt("blocks.matters")
    if not (context.matters and allowance.takes(heading)):
        return ""
    lines: list[str] = []
    for place, matter in enumerate(reversed(context.matters)):
        share = allowance.share(len(context.matters) - place)
        age = naturalize_time(context.now, matter.happened_from, context.zone, PROMPT_LOCALE)
        line = _shortened_line(context.roster.show(matter.content), age, share)
        if line is not None:
            lines.append(line)
    return _block(heading, lines[::-1])


def _shortened_line(text: str, age: str, allowance: _Allowance) -> str | None:
    """What happened, with its middle left out where it is too long; None where nothing fits."""
    mark = f" {prompt('blocks.shortened')} "
    most = len(text)
    while True:
        shown = quoted(shortened(text, most, mark))
        line = prompt("blocks.episode", age=age, text=shown)
        if allowance.takes(line):
            return line
        most = most * 9 // 10
        if allowance.is_spent or most < FEWEST_CHARACTERS:
            return None


def _room_note(context: TurnContext, allowance: _Allowance) -> str:
    note = context.room_note
    if note is None or note.text is None:
        return ""
    age = naturalize_time(context.now, note.text.written_at, context.zone, PROMPT_LOCALE)
    heading = prompt("blocks.room_note", age=age)
    return _block(heading, _noted(note, context, allowance) if allowance.takes(heading) else [])


def _other_rooms(context: TurnContext, allowance: _Allowance) -> str:
    """The notes of other rooms, or what was said there last."""
    blocks: list[str] = []
    for note in context.other_rooms:
        age = naturalize_time(context.now, note.newest_at, context.zone, PROMPT_LOCALE)
        heading = prompt("blocks.other_room", age=age)
        if not allowance.takes(heading):
            break
        noted = _noted(note, context, allowance)
        blocks.append(_block(heading, noted or _last_said(note, context, allowance)))
    return "\n".join(filter(None, blocks))


def _last_said(note: ShortTermEntry, context: TurnContext, allowance: _Allowance) -> list[str]:
    said = [
        prompt(
            "blocks.said",
            name=_speaker(turn, context),
            text=quoted(context.roster.show(turn.content)),
            age=naturalize_time(context.now, turn.said_at, context.zone, PROMPT_LOCALE),
        )
        for turn in note.turns
    ]
    newest = [line for line in reversed(said) if allowance.takes(line)]
    return newest[::-1]


def _speaker(turn: Entry, context: TurnContext) -> str:
    if turn.author is not None:
        return context.roster.name(turn.author)
    own = turn.persona == context.persona.id
    return context.persona.name if own else context.roster.someone


def _noted(note: ShortTermEntry, context: TurnContext, allowance: _Allowance) -> list[str]:
    """What was noted: categories before the summary. A long text loses its middle."""
    if note.text is None:
        return []
    noted = note.text.categories
    known = [one.label for one in context.categories if one.label in noted]
    texts = [(f"- {label}: ", noted[label]) for label in known]
    texts += [("- ", note.text.summary)] if note.text.summary else []
    mark = f" {prompt('blocks.shortened')} "
    lines: list[str] = []
    for start, text in texts:
        shown = context.roster.show(text)
        most = len(shown)
        while not allowance.takes(line := start + quoted(shortened(shown, most, mark))):
            most = most * 9 // 10
            if allowance.is_spent or most < FEWEST_CHARACTERS:
                return lines
        lines.append(line)
    return lines


def _block(heading: str, lines: list[str]) -> str:
    return "\n".join((heading, *lines)) if lines else ""

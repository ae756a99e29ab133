"""The values of a turn made by hand, for tests of its pure functions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from bot.audience import Audience, Origin, OriginKind, Place
from bot.config import Config
from bot.features import Flag
from bot.identifiers import (
    ChannelId,
    EntryId,
    GuildId,
    LineageId,
    MemoryId,
    MessageId,
    OriginId,
    PersonaId,
    UserId,
)
from bot.llm.chat import ChatMessage
from bot.llm.tokens import estimate_message_tokens
from bot.memory.categories import Category
from bot.memory.ledger import Episode, Matter
from bot.memory.long_term import Memory, Scope, Source
from bot.memory.roster import Roster
from bot.memory.short_term import ShortTermEntry
from bot.memory.short_term_rows import ShortTermText
from bot.memory.working import Entry, EntryKind
from bot.persona.personas import Persona
from bot.turn.blocks import memory_blocks
from bot.turn.budget import plan_budget
from bot.turn.context import TurnContext
from bot.turn.messages import Delivery, History, IncomingMessage, Person, TurnRequest
from bot.turn.prompt import Prompt, PromptStyle, assemble

NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
PERSONA = PersonaId(7)
HERE, LINEAGE, GUILD = OriginId(1), LineageId(1), GuildId(500)
CONFIG = Config()
NATIVE = PromptStyle(
    tools_as_text=False, offers_tools=True, offers_short_term_memory=True, nudges=True
)
STRUCTURED = PromptStyle(
    tools_as_text=True, offers_tools=True, offers_short_term_memory=True, nudges=False
)


def person(number: int) -> UserId:
    return UserId(100 + number)


def entry(number: int, text: str, *, author: UserId | None = None) -> Entry:
    """What was said `number` seconds after the first; without an author, by the persona."""
    return Entry(
        id=EntryId(number),
        kind=EntryKind.DIALOGUE,
        author=author,
        persona=None if author else PERSONA,
        content=text,
        message_id=MessageId(1000 + number),
        said_at=NOW - timedelta(minutes=20) + timedelta(seconds=number),
        scene=0,
        pinned=False,
        version=1,
        tokens=1,
    )


def memory(number: int, text: str, *, about: UserId | None = None) -> Memory:
    author = about or person(0)
    return Memory(
        id=MemoryId(number),
        scope=Scope.PERSONAL if about else Scope.SERVER,
        server=GUILD,
        subject=about,
        lineage=LINEAGE,
        content=text,
        author=author,
        created_at=NOW,
        updated_at=NOW,
        sources=(Source(origin=HERE, message_id=None, said_by=author, said_at=NOW),),
    )


def note(*, summary: str = "", categories: Mapping[str, str] | None = None) -> ShortTermEntry:
    text = ShortTermText(summary=summary, categories=categories or {}, written_at=NOW)
    return ShortTermEntry(origin=HERE, guild=GUILD, captured_at=NOW, text=text)


def other_room(turns: Sequence[Entry]) -> ShortTermEntry:
    return ShortTermEntry(origin=OriginId(2), guild=GUILD, captured_at=NOW, turns=tuple(turns))


def context(
    entries: Sequence[Entry],
    *,
    names: Sequence[str] = ("Ann",),
    joined: int = 0,
    server: Sequence[Memory] = (),
    personal: Mapping[UserId, tuple[Memory, ...]] | None = None,
    room_note: ShortTermEntry | None = None,
    other_rooms: Sequence[ShortTermEntry] = (),
    episodes: Sequence[Episode] = (),
    matters: Sequence[Matter] = (),
) -> TurnContext:
    """A turn that the last entry started, or the one before those that `joined`.

    The people are numbered in the order of their names.
    """
    people = [(person(number), name) for number, name in enumerate(names)]
    message, *added = (_asked(entry, names[0]) for entry in entries[-joined - 1 :])
    no_transport = None
    return TurnContext(
        request=TurnRequest(
            message=message,
            joined=tuple(added),
            delivery=cast("Delivery", no_transport),
            history=cast("History", no_transport),
        ),
        origin=Origin(
            id=HERE,
            kind=OriginKind.CHANNEL,
            guild_id=GUILD,
            channel_id=ChannelId(1),
            parent_id=None,
            open_to_everyone=False,
        ),
        persona=Persona(
            id=PERSONA,
            guild_id=GUILD,
            lineage=LINEAGE,
            name="Madeleine",
            prompt="You are warm, curious and plain-spoken.",
            sample_lines=(),
        ),
        audience=Audience(here=HERE, heard=frozenset({HERE})),
        roster=Roster.of(people, own_names=("Madeleine",), someone="someone"),
        entries=tuple(entries),
        server_memories=tuple(server),
        personal_memories=personal or {},
        room_note=room_note,
        other_rooms=tuple(other_rooms),
        episodes=tuple(episodes),
        matters=tuple(matters),
        flags=frozenset(Flag),
        explicit_long_term_memory_intent=False,
        forget_intent=False,
        categories=tuple(
            Category(label=label, description="what belongs there")
            for label in (room_note.text.categories if room_note and room_note.text else ())
        ),
        now=NOW,
        zone=ZoneInfo("UTC"),
    )


def _asked(entry: Entry, name: str) -> IncomingMessage:
    return IncomingMessage(
        id=entry.message_id or MessageId(1),
        place=Place(kind=OriginKind.CHANNEL, guild_id=GUILD, channel_id=ChannelId(1)),
        author=Person(id=entry.author or person(0), name=name),
        text=entry.content,
        sent_at=entry.said_at,
        locale="en-US",
    )


def made_prompt(
    turn: TurnContext,
    window: int,
    *,
    ratio: float = 1.1,
    style: PromptStyle = NATIVE,
    tool_tokens: int = 0,
) -> Prompt:
    """The prompt of a turn for a model with that window."""
    budget = plan_budget(window, CONFIG.context)
    blocks = memory_blocks(turn, budget, ratio)
    return assemble(
        turn, blocks, budget, style, CONFIG.context, ratio=ratio, tool_tokens=tool_tokens
    )


def tokens(messages: Sequence[ChatMessage], ratio: float = 1.1) -> int:
    return sum(estimate_message_tokens(message, ratio) for message in messages)

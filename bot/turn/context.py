"""The context stage: everything that the prompt of one turn is made of, read once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from zoneinfo import ZoneInfo

from bot.audience import Audience, Origin
from bot.features import Flag
from bot.i18n import t
from bot.identifiers import UserId
from bot.memory.intent import has_explicit_long_term_memory_intent
from bot.memory.long_term import Listening, Memory
from bot.memory.references import referenced_people
from bot.memory.roster import NameMatching, Roster
from bot.memory.short_term import ShortTermEntry
from bot.memory.working import Entry
from bot.persona.personas import Persona
from bot.turn.begin import Begun
from bot.turn.history import PROMPT_LOCALE, View
from bot.turn.messages import Person, TurnRequest
from bot.turn.quoting import HANDLE, without_hidden_signs
from bot.turn.services import TurnServices

MOST_PARTICIPANTS = 25
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What is known at the start of a turn; nothing in it changes while the turn runs."""

    request: TurnRequest
    origin: Origin
    persona: Persona
    audience: Audience
    roster: Roster
    entries: tuple[Entry, ...]
    server_memories: tuple[Memory, ...]
    personal_memories: Mapping[UserId, tuple[Memory, ...]]
    room_note: ShortTermEntry | None
    other_rooms: tuple[ShortTermEntry, ...]
    flags: frozenset[Flag]
    explicit_long_term_memory_intent: bool
    now: datetime
    zone: ZoneInfo

    @property
    def speaker(self) -> Person:
        """The person who started the turn."""
        return self.request.message.author

    @property
    def listening(self) -> Listening:
        """From where this turn reads memories."""
        return Listening(
            server=self.origin.guild_id, lineage=self.persona.lineage, audience=self.audience
        )

    @property
    def view(self) -> View:
        """From where this turn reads entries."""
        return View(persona=self.persona.id, roster=self.roster, now=self.now, zone=self.zone)


async def read_context(services: TurnServices, request: TurnRequest, begun: Begun) -> TurnContext:
    """Read what the prompt needs: the gate, who takes part, memories, notes, working memory."""
    guild = begun.origin.guild_id
    audience = await services.origins.audience_in(begun.origin)
    listening = Listening(server=guild, lineage=begun.persona.lineage, audience=audience)
    entries = await services.working.entries(audience, begun.persona.lineage)
    entries = _question_last(_with_uncaptured(entries, begun), request)
    takes_part = _participants(request, entries)
    server_memories = await services.long_term.server_memories(listening)
    personal = {
        user: await services.long_term.personal_memories(user, listening) for user in takes_part
    }
    room_note = await services.short_term.of_room(audience, begun.persona.lineage)
    other_rooms = services.short_term.of_other_rooms(
        audience, begun.persona.lineage, services.config.context.other_channels
    )
    states = await services.features.states(guild)
    return TurnContext(
        request=request,
        origin=begun.origin,
        persona=begun.persona,
        audience=audience,
        roster=await _roster(
            services,
            request,
            begun,
            takes_part,
            _texts(entries, server_memories, personal),
            {memory.author for memory in _memories(server_memories, personal)}
            | {entry.author for entry in entries if entry.author is not None},
        ),
        entries=entries,
        server_memories=server_memories,
        personal_memories=personal,
        room_note=room_note,
        other_rooms=other_rooms,
        flags=frozenset(flag for flag, state in states.items() if state.enabled),
        explicit_long_term_memory_intent=any(
            has_explicit_long_term_memory_intent(message.text) for message in request.messages
        ),
        now=services.clock.now(),
        zone=ZoneInfo(services.config.locale.zone),
    )


def _with_uncaptured(entries: tuple[Entry, ...], begun: Begun) -> tuple[Entry, ...]:
    known = {entry.message_id for entry in entries}
    return (*entries, *(e for e in begun.uncaptured if e.message_id not in known))


def _question_last(entries: tuple[Entry, ...], request: TurnRequest) -> tuple[Entry, ...]:
    """The talk with what this turn answers at its end: while it waited, other things were said."""
    asked = {message.id for message in request.messages}
    return tuple(sorted(entries, key=lambda entry: entry.message_id in asked))


def _participants(request: TurnRequest, entries: tuple[Entry, ...]) -> tuple[UserId, ...]:
    """Who takes part, in the order in which they were first heard: the newest few of them.

    Whoever speaks counts as newer than whom they mention.
    """
    users = [entry.author for entry in entries if entry.author is not None]
    for message in request.messages:
        users += [*(person.id for person in message.people), message.author.id]
    newest_first = list(dict.fromkeys(reversed(users)))[:MOST_PARTICIPANTS]
    return tuple(user for user in dict.fromkeys(users) if user in newest_first)


def _texts(
    entries: tuple[Entry, ...],
    server: tuple[Memory, ...],
    personal: Mapping[UserId, tuple[Memory, ...]],
) -> list[str]:
    memories = _memories(server, personal)
    return [entry.content for entry in entries] + [memory.content for memory in memories]


def _memories(
    server: tuple[Memory, ...], personal: Mapping[UserId, tuple[Memory, ...]]
) -> list[Memory]:
    return [*server, *(memory for known in personal.values() for memory in known)]


async def _roster(
    services: TurnServices,
    request: TurnRequest,
    begun: Begun,
    takes_part: tuple[UserId, ...],
    texts: list[str],
    told_by: set[UserId],
) -> Roster:
    referred = {user for text in texts for user in referenced_people(text)} | told_by
    guild = request.message.place.guild_key
    names = {**await services.people.names(guild, {*takes_part, *referred}), **begun.names}
    for message in request.messages:
        for person in (message.author, *message.people):
            names[person.id] = person.name
    someone = t("people.someone", PROMPT_LOCALE)
    own = services.own_identity()
    if own is not None:
        names[own] = begun.persona.name
    names = {user: _plain_name(name) for user, name in names.items()}
    roster = Roster.of(
        [(user, names.get(user, someone)) for user in takes_part if user != own],
        own_names=(begun.persona.name,),
        also_known={u: name for u, name in names.items() if u not in takes_part or u == own},
        someone=someone,
        matching=NameMatching(
            similarity=services.config.memory.target_similarity,
            margin=services.config.memory.target_margin,
            candidates=services.config.memory.target_candidates,
        ),
    )
    return _with_own_handles(roster, [*texts, *names.values()])


def _plain_name(name: str) -> str:
    """A display name on one line, without signs that only make it look like another's."""
    return " ".join(without_hidden_signs(name.replace(_JOINER, "")).split())


def _with_own_handles(roster: Roster, texts: list[str]) -> Roster:
    """The roster with handles that nobody used as a word: "U2" may be a band."""
    used = {word for text in texts for word in HANDLE.findall(text)}
    free = (handle for number in count(1) if (handle := f"U{number}") not in used)
    participants = tuple(replace(p, handle=next(free)) for p in roster.participants)
    return replace(roster, participants=participants)

"""The context stage: everything that the prompt of one turn is made of, read once."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.audience import Audience, Origin, OriginKind
from bot.features import Flag
from bot.i18n import t
from bot.identifiers import LedgerId, MessageId, UserId
from bot.memory.buffers import BufferKey
from bot.memory.categories import Category
from bot.memory.changes import TurnKey
from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent
from bot.memory.ledger import Episode, Matter
from bot.memory.long_term import Listening, Memory
from bot.memory.recall import Question, recall
from bot.memory.references import named_people, referenced_people
from bot.memory.roster import NameMatching, Roster, plain_name
from bot.memory.short_term import ShortTermEntry
from bot.memory.transcript import PROMPT_LOCALE, View
from bot.memory.working import Entry
from bot.persona.personas import Persona
from bot.turn.begin import Begun, as_entry, as_it_stands
from bot.turn.messages import Person, TurnRequest
from bot.turn.services import TurnServices
from bot.turn.turn_rows import replies_in_parts

MOST_PARTICIPANTS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What is known at the start of a turn; nothing in it changes while the turn runs.

    `entries` are without what is pinned: that is told as one of the open `matters`. `episodes`: the
    best first.
    """

    request: TurnRequest
    origin: Origin
    persona: Persona
    audience: Audience
    roster: Roster
    entries: tuple[Entry, ...]
    server_memories: tuple[Memory, ...]
    personal_memories: Mapping[UserId, tuple[Memory, ...]]
    room_note: ShortTermEntry | None
    categories: tuple[Category, ...]
    other_rooms: tuple[ShortTermEntry, ...]
    episodes: tuple[Episode, ...]
    matters: tuple[Matter, ...]
    flags: frozenset[Flag]
    explicit_long_term_memory_intent: bool
    forget_intent: bool
    now: datetime
    zone: ZoneInfo

    @property
    def speaker(self) -> Person:
        """The person who started the turn."""
        return self.request.message.author

    @property
    def turn(self) -> TurnKey:
        """By what this turn is known again."""
        return TurnKey(message=self.request.message.id, lineage=self.persona.lineage)

    @property
    def buffer(self) -> BufferKey:
        """Whose working memory this turn reads."""
        return BufferKey(origin=self.origin.id, lineage=self.persona.lineage)

    @property
    def listening(self) -> Listening:
        """From where this turn reads memories."""
        return Listening(
            server=self.origin.guild_id, lineage=self.persona.lineage, audience=self.audience
        )

    @property
    def view(self) -> View:
        """From where this turn reads entries."""
        return View(
            persona=self.persona.id,
            roster=self.roster,
            now=self.now,
            zone=self.zone,
            asked=frozenset(message.id for message in self.request.messages),
        )


async def read_context(services: TurnServices, request: TurnRequest, begun: Begun) -> TurnContext:
    """Read what the prompt needs: the gate, who takes part, memories, notes, working memory.

    What joined the turn and was edited or deleted since is in it as it stands now. (Where the
    message that started it is gone, the queue is ending the turn.)
    """
    guild = begun.origin.guild_id
    audience = await _audience(services, request, begun.origin)
    listening = Listening(server=guild, lineage=begun.persona.lineage, audience=audience)
    entries = await services.working.entries(audience, begun.persona.lineage)
    request = as_it_stands(services, request) or request
    entries = await as_they_stand(services, _with_uncaptured(entries, begun, request))
    entries = _question_last(entries, request)
    states = await services.features.states(guild)
    flags = frozenset(flag for flag, state in states.items() if state.enabled)
    matters = await services.ledger.open_matters(audience, begun.persona.lineage)
    told_already = {matter.id for matter in matters}
    episodes = (
        await _recalled(services, request, audience, listening, told_already)
        if Flag.RECALL in flags
        else ()
    )
    takes_part = _participants(request, entries)
    server_memories = await services.long_term.server_memories(listening)
    personal = {
        user: await services.long_term.personal_memories(user, listening) for user in takes_part
    }
    room_note = await services.short_term.of_room(audience, begun.persona.lineage)
    other_rooms = await services.short_term.of_other_rooms(
        audience, begun.persona.lineage, services.config.context.other_channels
    )
    memories = [*server_memories, *(memory for known in personal.values() for memory in known)]
    told, told_by = _told(entries, memories, episodes, matters)
    return TurnContext(
        request=request,
        origin=begun.origin,
        persona=begun.persona,
        audience=audience,
        roster=await _roster(services, request, begun, takes_part, told, told_by),
        entries=entries,
        server_memories=server_memories,
        personal_memories=personal,
        room_note=room_note,
        categories=await services.categories.of(guild),
        other_rooms=other_rooms,
        episodes=episodes,
        matters=matters,
        flags=flags,
        explicit_long_term_memory_intent=any(
            has_explicit_long_term_memory_intent(message.text) for message in request.messages
        ),
        forget_intent=any(has_forget_intent(message.text) for message in request.messages),
        now=services.clock.now(),
        zone=await services.settings.zone(guild),
    )


async def _audience(services: TurnServices, request: TurnRequest, origin: Origin) -> Audience:
    """Whoever reads the room will read the reply; in a direct message, one person."""
    if origin.kind is OriginKind.DIRECT:
        return await services.audiences.of_person(origin, request.message.author.id)
    return await services.audiences.of_room(origin)


def _told(
    entries: Sequence[Entry],
    memories: Sequence[Memory],
    episodes: Sequence[Episode],
    matters: Sequence[Matter],
) -> tuple[list[str], list[UserId | None]]:
    """Every text that the prompt may show, and whose words they are."""
    quotes = [quote for episode in episodes for quote in episode.quotes]
    former = [text for memory in memories for text in memory.former[:1]]
    texts = [one.content for one in (*entries, *memories, *former, *episodes, *quotes, *matters)]
    said_by = [
        *(entry.author for entry in entries),
        *(memory.author for memory in memories),
        *(quote.said_by for quote in quotes),
    ]
    return texts, said_by


async def _recalled(
    services: TurnServices,
    request: TurnRequest,
    audience: Audience,
    listening: Listening,
    told_already: Set[LedgerId],
) -> tuple[Episode, ...]:
    """The episodes that have to do with what is asked, the best first."""
    known = await services.ledger.episodes(audience, listening.lineage)
    episodes = [episode for episode in known if episode.id not in told_already]
    if not episodes:
        return ()
    asked = " ".join(message.text for message in request.messages)
    people = {user for episode in episodes for user in episode.people}
    names = await services.people.names(listening.server, people)
    named = named_people(asked, [(name, user) for user, name in names.items()])
    return recall(
        episodes,
        Question(text=asked, people=named | referenced_people(asked), here=audience.here),
        services.clock.now(),
        hourly_decay=services.config.recall.hourly_decay,
    )


def _with_uncaptured(
    entries: tuple[Entry, ...], begun: Begun, request: TurnRequest
) -> tuple[Entry, ...]:
    """The buffer without what is pinned, and with what is asked even where no row holds it.

    It could not be written, or a handoff took it while the turn waited.
    """
    known = {entry.message_id for entry in entries}
    new = {entry.message_id: entry for entry in begun.uncaptured}
    new.update({m.id: as_entry(m, begun.persona) for m in request.messages})
    return (
        *(entry for entry in entries if not entry.pinned),
        *(entry for message, entry in new.items() if message not in known),
    )


async def as_they_stand(services: TurnServices, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Entries after what was edited or deleted lately: their rows may not have followed yet.

    A reply of several messages is gone where one of them is.
    """
    own = [entry.message_id for entry in entries if entry.author is None and entry.message_id]
    parts = await services.database.read(lambda db: replies_in_parts(db, own))
    text_now = services.rings.text_now

    def standing(entry: Entry) -> Entry | None:
        if entry.message_id is None:
            return entry
        text = text_now(entry.message_id, entry.content)
        whole = all(text_now(part, "") is not None for part in parts.get(entry.message_id, ()))
        return replace(entry, content=text) if text is not None and whole else None

    return tuple(current for entry in entries if (current := standing(entry)) is not None)


def _question_last(entries: tuple[Entry, ...], request: TurnRequest) -> tuple[Entry, ...]:
    """The talk with what this turn answers at its end: while it waited, other things were said."""
    place = {message.id: number for number, message in enumerate(request.messages, 1)}
    return tuple(sorted(entries, key=lambda entry: place.get(entry.message_id or MessageId(0), 0)))


def _participants(request: TurnRequest, entries: tuple[Entry, ...]) -> tuple[UserId, ...]:
    """Who takes part, in the order in which they were first heard: the newest few of them.

    Whoever speaks counts as newer than whom they mention.
    """
    users = [entry.author for entry in entries if entry.author is not None]
    for message in request.messages:
        users += [*(person.id for person in message.people), message.author.id]
    newest_first = list(dict.fromkeys(reversed(users)))[:MOST_PARTICIPANTS]
    return tuple(user for user in dict.fromkeys(users) if user in newest_first)


async def _roster(
    services: TurnServices,
    request: TurnRequest,
    begun: Begun,
    takes_part: tuple[UserId, ...],
    texts: Sequence[str],
    told_by: Iterable[UserId | None],
) -> Roster:
    referred = {user for text in texts for user in referenced_people(text)}
    referred.update(user for user in told_by if user is not None)
    guild = request.message.place.guild_key
    names = dict(await services.people.names(guild, {*takes_part, *referred}))
    for user, called in begun.names.items():
        if user not in names or not called.of_account:
            names[user] = called.name
    someone = t("people.someone", PROMPT_LOCALE)
    own = services.own_identity()
    if own is not None:
        names[own] = begun.persona.name
    names = {user: plain_name(name) for user, name in names.items()}
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
    here = {p.id for message in request.messages for p in (message.author, *message.people)}
    roster = roster.with_at_hand(here, texts)
    return roster.with_free_handles([*texts, *names.values()])

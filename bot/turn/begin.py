"""The begin stage: take the messages in and record the turn, in one transaction."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.audience import Origin
from bot.clock import to_ms
from bot.errors import StorageUnavailable, Unavailable
from bot.identifiers import EntryId, LineageId, MessageId, TurnId, UserId
from bot.llm.tokens import estimate_tokens
from bot.memory import working
from bot.memory.working import Entry, EntryKind, Pace, Utterance
from bot.persona.personas import Persona
from bot.privacy.levels import PrivacyLevel
from bot.privacy.names import Called, keep_names, newest_names
from bot.storage.statements import Snapshot, Transaction
from bot.turn.messages import IncomingMessage, TurnRequest
from bot.turn.services import TurnServices
from bot.turn.turn_rows import active_lineages, known_replies, take_turn

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A turn that is ours to take, because of `request`.

    Where the database could not be written, `turn` is None and `uncaptured` holds what the model
    must see all the same. `names`: what those who spoke lately are called.
    """

    request: TurnRequest
    turn: TurnId | None
    origin: Origin
    persona: Persona
    names: Mapping[UserId, Called]
    uncaptured: tuple[Entry, ...] = ()


async def begin(services: TurnServices, request: TurnRequest) -> Begun | None:
    """Capture what was said since the last turn and record this one.

    None where the message was taken before, its author went FULL while it waited, or the persona
    answers nobody now. Where the database cannot be written the turn goes on, and the capture
    waits.
    """
    place, author = request.message.place, request.message.author
    if services.levels.of(author.id, place.guild_key) is PrivacyLevel.FULL:
        return None
    persona = await services.personas.main(place.guild_key)
    if not persona.takes_turns:
        return None
    origin = await services.origins.of(place)
    await _fill_ring(services, request)
    await services.late_writes.retry()
    current = as_it_stands(services, request)
    if current is None:
        return None
    request = current
    said = _since_last_time(services, request)
    asked = {message.id for message in request.messages}
    people = [p for m in said if not m.is_own for p in (m.author, *m.people)]
    names = newest_names(p.called for p in people if p.id != services.own_identity())

    async def job(tx: Transaction) -> TurnId | None:
        trigger, now = request.message, services.clock.now()
        turn = await take_turn(tx, origin.id, trigger.id, persona.lineage, trigger.author.id, now)
        if turn is not None:
            await capture(tx)
        return turn

    async def capture(tx: Transaction) -> None:
        now = services.clock.now()
        await keep_names(tx, origin.guild_id, names.values(), to_ms(now))
        active = timedelta(hours=services.config.context.active_channel_hours)
        for lineage in {persona.lineage, *await active_lineages(tx, origin.id, now, active)}:
            await capture_messages(tx, services, origin, lineage, persona, said, asked)
            if said and services.rings.vouches(place.channel_id):
                await working.advance_cursor(tx, origin.id, lineage, said[-1].id)

    try:
        turn = await services.database.write(job)
    except StorageUnavailable as unavailable:
        log.warning("capture_waits", extra={"reason": unavailable.reason})
        services.late_writes.keep(capture)
        uncaptured = await services.database.read(
            lambda db: _new_messages(db, origin, persona.lineage, said, asked)
        )
        return Begun(
            request=request,
            turn=None,
            origin=origin,
            persona=persona,
            names=names,
            uncaptured=tuple(as_entry(message, persona) for message in uncaptured),
        )
    if turn is None:
        return None
    return Begun(request=request, turn=turn, origin=origin, persona=persona, names=names)


async def _fill_ring(services: TurnServices, request: TurnRequest) -> None:
    """Open the channel's ring; where it cannot vouch for the gap, read the newest messages once."""
    place = request.message.place
    services.rings.open(place.channel_id)
    for message in request.messages:
        services.rings.hear(message)
    if not services.rings.vouches(place.channel_id):
        try:
            newest = await request.history.newest(place, services.config.context.fetched_messages)
        except Unavailable as unavailable:  # the next turn asks again; the cursor stays behind
            log.warning("history_unavailable", extra={"reason": unavailable.reason})
        else:
            services.rings.load(place.channel_id, newest)


def as_it_stands(services: TurnServices, request: TurnRequest) -> TurnRequest | None:
    """The request after what was edited or deleted meanwhile; None where its message is gone."""
    message = services.rings.as_it_stands(request.message)
    joined = (services.rings.as_it_stands(one) for one in request.joined)
    if message is None:
        return None
    return replace(request, message=message, joined=tuple(one for one in joined if one))


def _since_last_time(services: TurnServices, request: TurnRequest) -> tuple[IncomingMessage, ...]:
    """What the ring holds, and the turn's own messages whatever the ring has room for."""
    messages = {m.id: m for m in services.rings.messages(request.message.place.channel_id)}
    messages.update({m.id: m for m in request.messages})
    return tuple(messages[key] for key in sorted(messages))


def _still_standing(
    services: TurnServices, said: tuple[IncomingMessage, ...]
) -> tuple[IncomingMessage, ...]:
    """What may be kept of it now: a capture that waited for the database may be late."""

    def may_keep(message: IncomingMessage) -> bool:
        level = services.levels.of(message.author.id, message.place.guild_key)
        if services.forgotten.holds(message.text, message.place.guild_key):
            return False
        return message.is_own or level is not PrivacyLevel.FULL

    current = map(services.rings.as_it_stands, said)
    return tuple(message for message in current if message is not None and may_keep(message))


async def capture_messages(
    tx: Transaction,
    services: TurnServices,
    origin: Origin,
    lineage: LineageId,
    persona: Persona,
    said: tuple[IncomingMessage, ...],
    asked: set[MessageId],
) -> None:
    """Write what was said beyond the cursor, and what is asked, into one buffer.

    What may not be kept is not: of a person who is FULL, or what was to be forgotten here.
    """
    standing = _still_standing(services, said)
    new = await _new_messages(tx, origin, lineage, standing, asked)
    await working.add_entries(
        tx,
        origin.id,
        lineage,
        [_utterance(message, persona) for message in new],
        Pace.of(services.config.handoff),
    )


async def _new_messages(
    db: Snapshot,
    origin: Origin,
    lineage: LineageId,
    said: tuple[IncomingMessage, ...],
    asked: set[MessageId],
) -> list[IncomingMessage]:
    """What lies beyond the cursor, and what is asked: the ring may have lost it before.

    What a handoff took while the turn waited does not come back.
    """
    cursor = await working.cursor_of(db, origin.id, lineage)
    new = [message for message in said if message.id > cursor or message.id in asked]
    known = await known_replies(db, [message.id for message in new if message.is_own])
    known |= await working.handed_over(db, lineage, asked)
    return [message for message in new if message.id not in known]


def _utterance(message: IncomingMessage, persona: Persona) -> Utterance:
    return Utterance(
        content=message.text,
        said_at=message.sent_at,
        author=None if message.is_own else message.author.id,
        persona=persona.id if message.is_own else None,
        message_id=message.id,
    )


def as_entry(message: IncomingMessage, persona: Persona) -> Entry:
    """A message as the prompt needs it, without a row."""
    return Entry(
        id=EntryId(0),
        kind=EntryKind.DIALOGUE,
        author=None if message.is_own else message.author.id,
        persona=persona.id if message.is_own else None,
        content=message.text,
        message_id=message.id,
        said_at=message.sent_at,
        scene=0,
        pinned=False,
        version=1,
        tokens=estimate_tokens(message.text, 1.0),
    )

"""The effects stage: the reply into working memory, the turn closed, notes and accounts kept."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.errors import StorageUnavailable
from bot.features import Flag
from bot.identifiers import TurnId
from bot.llm.chat import Finished
from bot.llm.usage import book
from bot.memory.buffers import note_hidden
from bot.memory.short_term import store_short_term_memory
from bot.memory.working import Entry, Pace, Utterance, add_entries, drop_entries
from bot.storage.statements import Transaction
from bot.storage.writer import Job
from bot.turn.begin import Begun
from bot.turn.context import TurnContext, as_they_stand
from bot.turn.generate import Generated
from bot.turn.messages import Delivered
from bot.turn.services import TurnServices
from bot.turn.turn_rows import active_lineages, end_turn, take_turn


async def effects(
    services: TurnServices,
    context: TurnContext,
    begun: Begun,
    generated: Generated,
    delivered: Delivered,
) -> None:
    """Keep the reply and close the turn, in one transaction; then the short-term copy.

    Where the database cannot be written, the reply waits and is written by a later turn.
    """
    await services.late_writes.write(_ending_job(services, context, begun, generated, delivered))
    try:
        entries = await _entries_now(services, context)
    except StorageUnavailable:
        return  # what was read before the reply may have been deleted since
    store_short_term_memory(
        services.short_term,
        begun.origin,
        context.persona.lineage,
        entries,
        triggered_by=context.speaker.id,
    )


async def _entries_now(services: TurnServices, context: TurnContext) -> tuple[Entry, ...]:
    """The buffer as it stands, read again where something was deleted meanwhile."""
    while True:
        version = services.short_term.version
        entries = await services.working.entries(context.audience, context.persona.lineage)
        entries = await as_they_stand(services, entries)
        if version == services.short_term.version:
            return entries


def _ending_job(
    services: TurnServices,
    context: TurnContext,
    begun: Begun,
    generated: Generated,
    delivered: Delivered,
) -> Job[None]:
    now = services.clock.now()
    content = context.roster.hide(delivered.text)

    async def job(tx: Transaction) -> None:
        turn = await _turn_of(tx, begun, now)
        await keep_reply(tx, services, begun, _reply(begun, delivered, content, turn))
        await note_hidden(tx, context.buffer, len(generated.hidden))
        if Flag.HANDOFF not in context.flags:  # nothing takes over what does not fit
            await drop_entries(tx, generated.hidden)
        if turn is not None:
            await end_turn(
                tx,
                turn,
                "done",
                delivered.message_ids,
                now,
                usage=generated.usage,
                model=generated.finished[-1].model if generated.finished else None,
            )
        await _book(tx, services, begun, generated.finished, now)

    return job


async def keep_reply(
    tx: Transaction, services: TurnServices, begun: Begun, reply: Utterance
) -> None:
    """Write what the persona said into every buffer that listens in the room."""
    if not reply.content or services.forgotten.holds(reply.content, begun.origin.guild_id):
        return
    active = timedelta(hours=services.config.context.active_channel_hours)
    lineages = await active_lineages(tx, begun.origin.id, services.clock.now(), active)
    for lineage in {begun.persona.lineage, *lineages}:
        await add_entries(
            tx,
            begun.origin.id,
            lineage,
            [reply],
            Pace.of(services.config.handoff),
        )


def failure_job(
    services: TurnServices,
    begun: Begun,
    failure: str,
    delivered: Delivered | None,
    *,
    stands: str = "",
    finished: Sequence[Finished] = (),
) -> Job[None]:
    """The job that closes a turn which gave no whole reply.

    `stands`: what people can read of the reply belongs to the talk, as it is stored. What was
    `finished` is booked: it was paid for.
    """
    now = services.clock.now()

    async def job(tx: Transaction) -> None:
        turn = await _turn_of(tx, begun, now)
        if turn is not None:
            replies = delivered.message_ids if delivered else ()
            if not await end_turn(tx, turn, "failed", replies, now, failure=failure):
                return  # it was answered, kept and booked before it was called off
        if delivered is not None:
            await keep_reply(tx, services, begun, _reply(begun, delivered, stands, turn))
        await _book(tx, services, begun, finished, now)

    return job


def _reply(begun: Begun, delivered: Delivered, content: str, turn: TurnId | None) -> Utterance:
    return Utterance(
        content=content,
        said_at=delivered.sent_at,
        persona=begun.persona.id,
        message_id=delivered.message_ids[0] if delivered.message_ids else None,
        turn=turn,
    )


async def _turn_of(tx: Transaction, begun: Begun, now: datetime) -> TurnId | None:
    """The row of the turn; where `begin` could not write it, it is made up for."""
    if begun.turn is not None:
        return begun.turn
    message = begun.request.message
    return await take_turn(
        tx, begun.origin.id, message.id, begun.persona.lineage, message.author.id, now
    )


async def _book(
    tx: Transaction,
    services: TurnServices,
    begun: Begun,
    finished: Sequence[Finished],
    now: datetime,
) -> None:
    guild, user = begun.origin.guild_id, begun.request.message.author.id
    await book(tx, services.chat, finished, guild=guild, user=user, now=now)

"""The effects stage: the reply into working memory, the turn closed, notes and accounts kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.errors import StorageUnavailable
from bot.identifiers import GuildId, TurnId, UserId
from bot.llm.chat import Finished
from bot.memory.short_term import store_short_term_memory
from bot.memory.working import Utterance, add_entries
from bot.storage.statements import Transaction
from bot.storage.writer import Job
from bot.turn.begin import Begun
from bot.turn.context import TurnContext
from bot.turn.generate import Generated
from bot.turn.messages import Delivered
from bot.turn.services import TurnServices
from bot.turn.turn_rows import active_lineages, end_turn, take_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """What the requests of one turn to one model come to."""

    provider: str
    model: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_micro: int


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
        entries = await services.working.entries(context.audience, context.persona.lineage)
    except StorageUnavailable:
        return  # what was read before the reply may have been deleted since
    store_short_term_memory(
        services.short_term,
        begun.origin,
        context.persona.lineage,
        entries,
        triggered_by=context.speaker.id,
    )


def _ending_job(
    services: TurnServices,
    context: TurnContext,
    begun: Begun,
    generated: Generated,
    delivered: Delivered,
) -> Job[None]:
    now = services.clock.now()
    day = now.date().isoformat()
    content = context.roster.hide(delivered.text)

    async def job(tx: Transaction) -> None:
        turn = await _turn_of(tx, begun, now)
        await keep_reply(tx, services, begun, _reply(begun, delivered, content, turn))
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
        for account in _accounts(services, generated.finished):
            await _book(tx, account, day, begun.origin.guild_id, context.speaker.id)

    return job


async def keep_reply(
    tx: Transaction, services: TurnServices, begun: Begun, reply: Utterance
) -> None:
    """Write what the persona said into every buffer that listens in the room."""
    if not reply.content:
        return
    active = timedelta(hours=services.config.context.active_channel_hours)
    lineages = await active_lineages(tx, begun.origin.id, services.clock.now(), active)
    for lineage in {begun.persona.lineage, *lineages}:
        await add_entries(
            tx,
            begun.origin.id,
            lineage,
            [reply],
            scene_silence=timedelta(minutes=services.config.handoff.scene_silence_min),
            limit=services.config.memory.buffer_max_entries,
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
    day, user = now.date().isoformat(), begun.request.message.author.id

    async def job(tx: Transaction) -> None:
        turn = await _turn_of(tx, begun, now)
        if delivered is not None:
            await keep_reply(tx, services, begun, _reply(begun, delivered, stands, turn))
        if turn is not None:
            replies = delivered.message_ids if delivered else ()
            await end_turn(tx, turn, "failed", replies, now, failure=failure)
        for account in _accounts(services, finished):
            await _book(tx, account, day, begun.origin.guild_id, user)

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


def _accounts(services: TurnServices, finished: Sequence[Finished]) -> list[_Account]:
    accounts: dict[tuple[str, str], _Account] = {}
    for answer in finished:
        key = (answer.provider, answer.model)
        before = accounts.get(key)
        prompt_tokens = answer.usage.prompt_tokens if answer.usage else 0
        completion_tokens = answer.usage.completion_tokens if answer.usage else 0
        accounts[key] = _Account(
            provider=answer.provider,
            model=answer.model,
            requests=(before.requests if before else 0) + 1,
            prompt_tokens=(before.prompt_tokens if before else 0) + prompt_tokens,
            completion_tokens=(before.completion_tokens if before else 0) + completion_tokens,
            cost_micro=(before.cost_micro if before else 0) + services.chat.cost(answer),
        )
    return list(accounts.values())


async def _book(tx: Transaction, account: _Account, day: str, guild: GuildId, user: UserId) -> None:
    await tx.execute(
        "INSERT INTO usage (day, guild_id, user_id, task, provider, model, requests,"
        " prompt_tokens, completion_tokens, cost_micro) VALUES (?, ?, ?, 'chat', ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (day, guild_id, user_id, task, provider, model) DO UPDATE SET"
        " requests = requests + excluded.requests,"
        " prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
        " completion_tokens = completion_tokens + excluded.completion_tokens,"
        " cost_micro = cost_micro + excluded.cost_micro",
        (
            *(day, guild, user, account.provider, account.model, account.requests),
            *(account.prompt_tokens, account.completion_tokens, account.cost_micro),
        ),
    )

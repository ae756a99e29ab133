"""One turn, from message to memory: begin, context, generate, effects."""

import asyncio
import logging
from datetime import timedelta

from bot.background import Done, Raised, report_bug, settle
from bot.errors import ContextTooLong, ModelUnavailable, StorageUnavailable, UserError
from bot.i18n import t
from bot.memory.working import Utterance
from bot.storage.statements import Transaction
from bot.turn.begin import Begun, begin
from bot.turn.context import read_context
from bot.turn.effects import effects, failure_job, keep_reply
from bot.turn.generate import generate
from bot.turn.messages import Delivered, Delivery, TurnRequest, Undeliverable
from bot.turn.report import TurnReport
from bot.turn.services import TurnServices

log = logging.getLogger(__name__)


async def run_turn(services: TurnServices, request: TurnRequest) -> TurnReport | None:
    """Take one turn; None where the message was answered before, or may not be answered.

    Whatever fails is told to the person in plain words, and the turn is closed. Only cancellation
    passes through, after what stands in the channel was kept.
    """
    beginning = await settle(begin(services, request))
    if isinstance(beginning, Raised):
        return await _apologise(services, request, None, beginning.error)
    begun = beginning.value
    if begun is None:
        log.info("turn_not_taken", extra={"message_id": request.message.id})
        return None
    try:
        outcome = await settle(_answer(services, request, begun))
    except asyncio.CancelledError:
        await _keep_what_stands(services, request, begun)
        raise
    match outcome:
        case Done(report):
            return report
        case Raised(error):
            return await _apologise(services, request, begun, error)


async def _answer(services: TurnServices, request: TurnRequest, begun: Begun) -> TurnReport:
    async with asyncio.timeout(services.config.turn.timeout_s):
        refusal = await services.allowance.refusal(request.message.author.id, begun.origin.guild_id)
        if refusal is not None:
            raise UserError(refusal.key, **refusal.params)
        await request.delivery.start()
        context = await read_context(services, request, begun)
        generated = await generate(services, context, request.delivery)
        delivered = await request.delivery.finish(generated.text, footer=generated.footer)
    await effects(services, context, begun, generated, delivered)
    return TurnReport(reply=generated.text, footer=generated.footer, tool_calls=generated.calls)


async def _apologise(
    services: TurnServices, request: TurnRequest, begun: Begun | None, error: Exception
) -> TurnReport:
    """Say in plain words what went wrong and when to try again; it is no part of the talk."""
    log.warning("turn_failed", extra={"reason": type(error).__name__})
    text = "" if isinstance(error, Undeliverable) else _apology(services, request, error)
    delivered = await _say(request.delivery, text)
    if begun is not None:
        failure = type(error).__name__
        await services.late_writes.write(failure_job(services, begun, failure, delivered))
    return TurnReport(reply=text)


async def _say(delivery: Delivery, text: str) -> Delivered | None:
    if not text:
        return await delivery.abandon()
    try:
        return await delivery.finish(text)
    except Undeliverable:
        return None


def _apology(services: TurnServices, request: TurnRequest, error: Exception) -> str:
    locale = request.message.locale
    match error:
        case UserError(key=key, params=params):
            return t(key, locale, **params)
        case ContextTooLong():
            return t("turn.too_long", locale)
        case TimeoutError():
            return t("turn.timed_out", locale)
        case StorageUnavailable():
            return t("turn.storage", locale)
        case ModelUnavailable(retry_at=retry_at) if retry_at is not None:
            seconds = (retry_at - services.clock.now()) / timedelta(seconds=1)
            return t("turn.model_retry", locale, count=max(1, -(-int(seconds) // 60)))
        case ModelUnavailable():
            return t("turn.model", locale)
        case _:
            return t("turn.bug", locale, id=report_bug("turn_failed", error))


async def _keep_what_stands(services: TurnServices, request: TurnRequest, begun: Begun) -> None:
    """A turn was cancelled: what people can read of it belongs to the talk."""
    delivered = await request.delivery.abandon()
    await services.late_writes.write(failure_job(services, begun, "cancelled", delivered))
    if delivered is None or not delivered.text:
        return
    said = Utterance(
        content=delivered.text,
        said_at=delivered.sent_at,
        persona=begun.persona.id,
        message_id=delivered.message_ids[0],
        turn=begun.turn,
    )

    async def job(tx: Transaction) -> None:
        await keep_reply(tx, services, begun, said)

    await services.late_writes.write(job)

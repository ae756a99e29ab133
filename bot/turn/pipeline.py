"""One turn, from message to memory: begin, context, generate, effects."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta

from bot.background import Done, Raised, TaskOwner, report_bug, settle
from bot.errors import ContextTooLong, ModelUnavailable, StorageUnavailable, UserError
from bot.i18n import t
from bot.llm.chat import Finished
from bot.storage.statements import Transaction
from bot.storage.writer import Job
from bot.turn.answer import Answer
from bot.turn.begin import Begun, begin
from bot.turn.context import TurnContext, read_context
from bot.turn.effects import effects, failure_job
from bot.turn.generate import generate
from bot.turn.messages import TurnRequest, Undeliverable
from bot.turn.report import TurnReport
from bot.turn.services import TurnServices
from bot.turn.tool_loop import LoopState
from bot.turn.turn_rows import fail_taken, mark_replying

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Underway:
    """How far a turn has come, for whoever has to end it early."""

    context: TurnContext | None = None
    loop: LoopState | None = None
    is_replying: bool = False
    tasks: TaskOwner = field(default_factory=TaskOwner)

    @property
    def finished(self) -> tuple[Finished, ...]:
        """The answers that were paid for."""
        return tuple(self.loop.finished) if self.loop else ()


async def run_turn(services: TurnServices, request: TurnRequest) -> TurnReport | None:
    """Take one turn; None where the message was answered before, or may not be answered.

    Whatever fails is told to the person in plain words, and the turn is closed. Only cancellation
    passes through, after what stands in the channel was kept.
    """
    try:
        beginning = await settle(begin(services, request))
    except asyncio.CancelledError:
        await services.late_writes.write(_cancelled_job(services, request))
        raise
    if isinstance(beginning, Raised):
        return await _apologise(services, request, None, beginning.error)
    begun = beginning.value
    if begun is None:
        log.info("turn_not_taken", extra={"message_id": request.message.id})
        return None
    underway = _Underway()
    try:
        report = await _see_through(services, begun, underway)
        services.handoff.after_turn(begun.origin.id, begun.origin.guild_id)
        return report
    finally:
        await underway.tasks.close(grace_s=0)  # a write that was handed over is done all the same


async def _see_through(
    services: TurnServices, begun: Begun, underway: _Underway
) -> TurnReport | None:
    """Answer; and where that fails or is cancelled, close the turn."""
    try:
        outcome = await settle(_answer(services, begun, underway))
    except asyncio.CancelledError:
        await _keep_what_stands(services, begun, underway, "cancelled")
        raise
    match outcome:
        case Done(report):
            return report
        case Raised(Undeliverable()):
            log.warning("turn_undeliverable")
            await _keep_what_stands(services, begun, underway, Undeliverable.__name__)
            return TurnReport(reply="")
        case Raised(error):
            return await _apologise(services, begun.request, begun, error, underway)


async def _answer(services: TurnServices, begun: Begun, underway: _Underway) -> TurnReport:
    request = begun.request
    async with asyncio.timeout(services.config.turn.timeout_s):
        refusal = await services.allowance.refusal(request.message.author.id, begun.origin.guild_id)
        if refusal is not None:
            raise UserError(refusal.key, **refusal.params)
        await request.delivery.start()
        await _look_before(services, begun)
        context = underway.context = await read_context(services, request, begun)
        loop = underway.loop = LoopState(answer=Answer(context.persona.name))

        async def show(text: str) -> None:
            if text.strip():
                _note_reply(services, begun, underway)
            await request.delivery.show(text)

        generated = await generate(services, context, show, loop)
        _note_reply(services, begun, underway)
        delivered = await request.delivery.finish(generated.text, footer=generated.footer)
    await effects(services, context, begun, generated, delivered)
    return TurnReport(
        reply=generated.text,
        footer=generated.footer.text,
        undoes=generated.footer.undoes,
        forgets=generated.footer.forgets,
        tool_calls=generated.calls,
    )


async def _look_before(services: TurnServices, begun: Begun) -> None:
    """Is it time for a handoff? What cannot be read or written now is looked at after the turn."""
    origin = begun.origin
    try:
        await services.handoff.before_turn(origin.id, begun.persona.lineage, origin.guild_id)
    except StorageUnavailable as unavailable:
        log.warning("handoff_not_looked", extra={"reason": unavailable.reason})


def _note_reply(services: TurnServices, begun: Begun, underway: _Underway) -> None:
    """Have the row say that a reply has begun; the reply does not wait for that."""
    if begun.turn is not None and not underway.is_replying:
        underway.is_replying = True
        underway.tasks.spawn("mark-replying", mark_replying(services.database, begun.turn))


async def _apologise(
    services: TurnServices,
    request: TurnRequest,
    begun: Begun | None,
    error: Exception,
    underway: _Underway | None = None,
) -> TurnReport:
    """Say in plain words what went wrong and when to try again; it is no part of the talk."""
    log.warning("turn_failed", extra={"reason": type(error).__name__})
    text = _apology(services, request, error)
    said = await settle(request.delivery.finish(text))
    if isinstance(said, Raised) and not isinstance(said.error, Undeliverable):
        report_bug("apology_failed", said.error)
    delivered = said.value if isinstance(said, Done) else None
    if begun is not None:
        finished = underway.finished if underway else ()
        failure = type(error).__name__
        job = failure_job(services, begun, failure, delivered, finished=finished)
        await services.late_writes.write(job)
    return TurnReport(reply=text)


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


async def _keep_what_stands(
    services: TurnServices, begun: Begun, underway: _Underway, failure: str
) -> None:
    """A turn ended early: what people can read of its reply belongs to the talk."""
    delivered = await begun.request.delivery.abandon()
    stands = delivered.text if delivered else ""
    if underway.context is not None:
        stands = underway.context.roster.hide(stands)
    job = failure_job(
        services, begun, failure, delivered, stands=stands, finished=underway.finished
    )
    await services.late_writes.write(job)


def _cancelled_job(services: TurnServices, request: TurnRequest) -> Job[None]:
    """Closes a turn that was cancelled while its row was being written."""
    now = services.clock.now()

    async def job(tx: Transaction) -> None:
        await fail_taken(tx, request.message.id, now)

    return job

"""What the commands about handoffs answer in plain words, in Discord as in the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from bot.clock import naturalize_time
from bot.errors import UserError
from bot.features import Flag
from bot.handoff.health import DayOfRuns, Health, LastRun, read_health
from bot.handoff.runs import Outcome
from bot.handoff.trigger import TriggerReason, TriggerReport
from bot.i18n import t
from bot.memory.buffers import BufferKey
from bot.memory.long_term import Listening
from bot.turn.services import TurnServices

_NO_ANSWER = frozenset(
    (
        *("ModelUnavailable", "rate_limited", "server", "timeout", "stalled", "connection"),
        *("rejected", "auth"),
    )
)
_NO_USE = frozenset(("malformed", "cut"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRow:
    """One line of the table that `/memory health` shows."""

    label: str
    value: str


async def hand_over(services: TurnServices, listening: Listening, locale: str) -> str:
    """Make a run in the room where the command was given; says what came of it.

    Raises UserError where handoffs are switched off or the day's budget is used up.
    """
    if not await services.features.enabled(listening.server, Flag.HANDOFF):
        raise UserError("errors.handoff.off")
    if not await services.allowance.has_left(listening.server):
        raise UserError("errors.handoff.budget")
    key = BufferKey(origin=listening.audience.here, lineage=listening.lineage)
    outcome = await services.handoff.run_now(key)
    if outcome is None:
        return t("ui.handoff.nothing", locale)
    if outcome.failure is None:
        undo = t("ui.handoff.undo", locale, run=outcome.run)
        return f"{_made(outcome, locale)} {undo}"
    failed = t("ui.handoff.failed", locale, reason=_reason(outcome.failure, locale))
    return f"{failed} {_again(await _health(services, listening), services.clock.now(), locale)}"


async def health_rows(
    services: TurnServices, listening: Listening, locale: str
) -> tuple[HealthRow, ...]:
    """How it stands with the room where the command was given; empty where nothing was said yet."""
    health = await _health(services, listening)
    if health is None:
        return ()
    is_on = await services.features.enabled(listening.server, Flag.HANDOFF)
    zone, now = await services.settings.zone(listening.server), services.clock.now()
    last = health.last_run
    age = naturalize_time(now, last.ended_at, zone, locale) if last else ""
    values = {
        "entries": t(
            "ui.health.entries_value", locale, entries=health.entries, pinned=health.pinned
        ),
        "section": _section(health, locale),
        "trigger": _trigger(health.report, locale) if is_on else t("errors.handoff.off", locale),
        "old_enough": f"{health.old_enough}",
        "last_run": _last_run(last, age, locale) if last else t("ui.health.no_run", locale),
        "failures": _failures(health, now, locale),
        "hidden": f"{health.hidden}",
        "matters": f"{health.matters}",
        "episodes": f"{health.episodes}",
        "day": _day(health.day, locale),
    }
    return tuple(
        HealthRow(label=t(f"ui.health.{name}", locale), value=value)
        for name, value in values.items()
    )


async def _health(services: TurnServices, listening: Listening) -> Health | None:
    return await read_health(
        listening.audience,
        listening.lineage,
        engine=services.handoff,
        database=services.database,
        chat=services.chat,
        config=services.config.handoff,
    )


def _made(outcome: Outcome, locale: str) -> str:
    return " ".join(_parts(outcome, locale)) or t("ui.handoff.unchanged", locale)


def _parts(outcome: Outcome, locale: str) -> Iterator[str]:
    if outcome.episodes:
        lines = t("ui.handoff.lines", locale, count=outcome.promoted)
        episodes = t("ui.handoff.episodes", locale, count=outcome.episodes)
        yield t("ui.handoff.became", locale, lines=lines, episodes=episodes)
    if outcome.forgotten:
        yield t("ui.handoff.forgotten", locale, count=outcome.forgotten)
    if outcome.pinned:
        yield t("ui.handoff.open", locale, count=outcome.pinned)


def _reason(failure: str, locale: str) -> str:
    if failure in _NO_ANSWER:
        return t("ui.handoff.no_answer", locale)
    if failure in _NO_USE:
        return t("ui.handoff.no_use", locale)
    return t("ui.handoff.bug", locale)


def _again(health: Health | None, now: datetime, locale: str) -> str:
    """When a failed run is made again: by itself only where something else than a wish asks."""
    if health is None or health.retry_at is None or health.report.trigger == "none":
        return t("ui.handoff.ask_again", locale)
    minutes = -(-(health.retry_at - now) // timedelta(minutes=1))
    return t("ui.handoff.retry", locale, count=max(1, minutes))


def _section(health: Health, locale: str) -> str:
    if not health.section_limit:
        return t("ui.health.section_unlimited", locale, tokens=health.section)
    return t("ui.health.section_value", locale, tokens=health.section, limit=health.section_limit)


def _trigger(report: TriggerReport, locale: str) -> str:
    """What the triggers say, with what was measured and the limit that it reached."""
    match report.reason:
        case TriggerReason.NONE | TriggerReason.REQUESTED:
            return t("ui.health.triggers.none", locale)
        case (
            TriggerReason.CEILING
            | TriggerReason.BUDGET
            | TriggerReason.VELOCITY
            | TriggerReason.SCENE
            | TriggerReason.IDLE
            | TriggerReason.STATE
        ):
            key = f"ui.health.triggers.{report.reason.value}"
            return t(key, locale, value=report.value, limit=report.limit)
        case _:
            assert_never(report.reason)


def _last_run(run: LastRun, age: str, locale: str) -> str:
    outcome = run.outcome
    if run.is_undone:
        done = t("ui.health.undone", locale)
    elif outcome.failure is not None:
        done = t("ui.handoff.failed", locale, reason=_reason(outcome.failure, locale))
    else:
        done = _made(outcome, locale)
    return t("ui.health.last_run_value", locale, age=age, done=done, run=outcome.run)


def _failures(health: Health, now: datetime, locale: str) -> str:
    if not health.failures:
        return t("ui.health.no_failures", locale)
    failures = t("ui.health.failures_value", locale, count=health.failures)
    return f"{failures} {_again(health, now, locale)}"


def _day(day: DayOfRuns, locale: str) -> str:
    runs = t("ui.health.day_value", locale, committed=day.committed, aborted=day.aborted)
    if day.tokens is None:
        return runs
    return f"{runs} {t('ui.health.day_tokens', locale, tokens=day.tokens)}"

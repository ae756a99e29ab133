"""The injected clock, how long ago something was in words, and times in their stored form."""

import time
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from bot.i18n import t

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FRESH = timedelta(minutes=30)
CALENDAR_FROM = timedelta(hours=6)
DAYS_FROM = timedelta(hours=48)
DAY_BEGINS = timedelta(hours=5)

RECENT: tuple[tuple[timedelta, str], ...] = (
    (timedelta(minutes=1), "time.just_now"),
    (timedelta(minutes=3), "time.moments"),
    (timedelta(minutes=10), "time.few_minutes"),
    (FRESH, "time.several_minutes"),
    (timedelta(minutes=45), "time.half_hour"),
    (timedelta(hours=2), "time.hour"),
    (timedelta(hours=3), "time.couple_hours"),
    (CALENDAR_FROM, "time.few_hours"),
)
DISTANT: tuple[tuple[timedelta, str], ...] = (
    (timedelta(days=3), "time.couple_days"),
    (timedelta(days=7), "time.few_days"),
    (timedelta(days=14), "time.week"),
    (timedelta(days=21), "time.couple_weeks"),
    (timedelta(days=30), "time.few_weeks"),
    (timedelta(days=60), "time.month"),
    (timedelta(days=90), "time.couple_months"),
    (timedelta(days=180), "time.few_months"),
    (timedelta(days=365), "time.many_months"),
    (timedelta(days=730), "time.year"),
)

DayPart = Literal["morning", "afternoon", "evening", "night"]


class Clock(Protocol):
    """Where time comes from; handed in, so that tests own it."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring and timeouts."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def to_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970 in UTC, rounded down: the stored form of an aware datetime."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """The aware UTC datetime that `to_ms` stored."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def is_fresh(now: datetime, past: datetime) -> bool:
    """Whether `past` is younger than 30 minutes; a future time is."""
    return _elapsed(now, past) < FRESH


def naturalize_time(now: datetime, past: datetime, zone: ZoneInfo, locale: str) -> str:
    """How long ago `past` was, in words: "moments ago", "yesterday evening", "a few weeks ago".

    `zone` is whose calendar counts, from 6 to 48 hours back. A future time is "just now".
    """
    return t(_phrase_key(now, past, zone), locale)


def _phrase_key(now: datetime, past: datetime, zone: ZoneInfo) -> str:
    elapsed = _elapsed(now, past)
    if CALENDAR_FROM <= elapsed < DAYS_FROM:
        return _calendar_key(now.astimezone(zone), past.astimezone(zone))
    for limit, key in RECENT if elapsed < CALENDAR_FROM else DISTANT:
        if elapsed < limit:
            return key
    return "time.years"


def _calendar_key(now: datetime, past: datetime) -> str:
    part = _part_of_day(past.hour)
    days = _day_number(now) - _day_number(past)
    if days <= 0:
        return f"time.today_{part}"
    if days == 1:
        return f"time.yesterday_{part}"
    # Where the clocks went forward, 48 hours can reach into a third day.
    return "time.night_before_last" if days == 2 and part == "night" else "time.two_days"


def _part_of_day(hour: int) -> DayPart:
    if 5 <= hour < 12:
        return "morning"
    if 12 <= hour < 17:
        return "afternoon"
    return "evening" if 17 <= hour < 21 else "night"


def _day_number(local: datetime) -> int:
    """The day as people live it, by the wall clock: before 05:00 it is still the day before."""
    return (local.replace(tzinfo=None) - DAY_BEGINS).toordinal()


def _elapsed(now: datetime, past: datetime) -> timedelta:
    # Two datetimes of one zone subtract by the wall clock, an hour off across a clock change.
    return now.astimezone(UTC) - past.astimezone(UTC)

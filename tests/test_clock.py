from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.clock import SystemClock, from_ms, is_fresh, naturalize_time, to_ms
from bot.i18n import catalogue

UTC_ZONE = ZoneInfo("UTC")
TOKYO = ZoneInfo("Asia/Tokyo")
NEW_YORK = ZoneInfo("America/New_York")
KIRITIMATI = ZoneInfo("Pacific/Kiritimati")
PAGO_PAGO = ZoneInfo("Pacific/Pago_Pago")
KATHMANDU = ZoneInfo("Asia/Kathmandu")
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
ZONES = (UTC_ZONE, TOKYO, NEW_YORK, KIRITIMATI, PAGO_PAGO, KATHMANDU, SAO_PAULO)
LOCALES = ("en-US", "pt-BR", "ja")

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
INSTANT = timedelta(milliseconds=1)

BOUNDARIES = [
    (timedelta(minutes=1), "just now", "moments ago"),
    (timedelta(minutes=3), "moments ago", "a few minutes ago"),
    (timedelta(minutes=10), "a few minutes ago", "several minutes ago"),
    (timedelta(minutes=30), "several minutes ago", "about half an hour ago"),
    (timedelta(minutes=45), "about half an hour ago", "about an hour ago"),
    (timedelta(hours=2), "about an hour ago", "a couple of hours ago"),
    (timedelta(hours=3), "a couple of hours ago", "a few hours ago"),
    (timedelta(hours=6), "a few hours ago", "earlier today, in the morning"),
    (timedelta(hours=48), "two days ago", "a couple of days ago"),
    (timedelta(days=3), "a couple of days ago", "a few days ago"),
    (timedelta(days=7), "a few days ago", "about a week ago"),
    (timedelta(days=14), "about a week ago", "a couple of weeks ago"),
    (timedelta(days=21), "a couple of weeks ago", "a few weeks ago"),
    (timedelta(days=30), "a few weeks ago", "about a month ago"),
    (timedelta(days=60), "about a month ago", "a couple of months ago"),
    (timedelta(days=90), "a couple of months ago", "a few months ago"),
    (timedelta(days=180), "a few months ago", "many months ago"),
    (timedelta(days=365), "many months ago", "about a year ago"),
    (timedelta(days=730), "about a year ago", "years ago"),
]

NEAR_TO_FAR = [
    "just_now", "moments", "few_minutes", "several_minutes", "half_hour",
    "hour", "couple_hours", "few_hours",
    "today_night", "today_evening", "today_afternoon", "today_morning",
    "yesterday_night", "yesterday_evening", "yesterday_afternoon", "yesterday_morning",
    "night_before_last", "two_days", "couple_days", "few_days", "week", "couple_weeks", "few_weeks",
    "month", "couple_months", "few_months", "many_months", "year", "years",
]  # fmt: skip


def ago(now: datetime, past: datetime, zone: ZoneInfo = UTC_ZONE, locale: str = "en-US") -> str:
    return naturalize_time(now, past, zone, locale)


def distance(now: datetime, past: datetime, zone: ZoneInfo, locale: str = "en-US") -> int:
    phrases = [catalogue().texts(locale)[f"time.{key}"] for key in NEAR_TO_FAR]
    return phrases.index(ago(now, past, zone, locale))


@pytest.mark.parametrize(("limit", "below", "at"), BOUNDARIES)
def test_a_phrase_changes_exactly_at_its_boundary(limit: timedelta, below: str, at: str) -> None:
    now = NOON if limit != timedelta(hours=48) else NOON.replace(hour=20)
    assert (ago(now, now - limit + INSTANT), ago(now, now - limit)) == (below, at)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize(("limit", "below", "at"), BOUNDARIES)
def test_the_boundaries_are_those_of_every_locale(
    limit: timedelta, below: str, at: str, locale: str
) -> None:
    english, own = (catalogue().texts(one) for one in ("en-US", locale))
    keys = {english[key]: key for key in (f"time.{name}" for name in NEAR_TO_FAR)}
    now = NOON if limit != timedelta(hours=48) else NOON.replace(hour=20)
    assert ago(now, now - limit + INSTANT, locale=locale) == own[keys[below]]
    assert ago(now, now - limit, locale=locale) == own[keys[at]]


@pytest.mark.parametrize("ahead", [timedelta(0), INSTANT, timedelta(days=400)])
def test_the_future_is_just_now(ahead: timedelta) -> None:
    assert ago(NOON, NOON + ahead) == "just now"


@pytest.mark.parametrize(
    ("past", "phrase"),
    [
        ("2026-05-20T05:00", "earlier today, in the morning"),
        ("2026-05-20T11:59", "earlier today, in the morning"),
        ("2026-05-20T12:00", "earlier today, in the afternoon"),
        ("2026-05-20T16:59", "earlier today, in the afternoon"),
        ("2026-05-20T17:00", "earlier today, in the evening"),
        ("2026-05-20T20:59", "earlier today, in the evening"),
        ("2026-05-20T21:00", "earlier tonight"),
        ("2026-05-20T04:59", "last night"),
        ("2026-05-19T21:00", "last night"),
        ("2026-05-19T20:59", "yesterday evening"),
        ("2026-05-19T17:00", "yesterday evening"),
        ("2026-05-19T16:59", "yesterday afternoon"),
        ("2026-05-19T12:00", "yesterday afternoon"),
        ("2026-05-19T11:59", "yesterday morning"),
        ("2026-05-19T05:00", "yesterday morning"),
        ("2026-05-19T04:59", "the night before last"),
    ],
)
def test_the_calendar_says_when_it_was(past: str, phrase: str) -> None:
    at_three = datetime(2026, 5, 21, 3, 0, tzinfo=UTC)
    assert ago(at_three, datetime.fromisoformat(past).replace(tzinfo=UTC)) == phrase


@pytest.mark.parametrize(
    ("now", "past", "phrase"),
    [
        ("2026-05-21T04:59", "2026-05-20T21:30", "earlier tonight"),
        ("2026-05-21T05:00", "2026-05-20T21:30", "last night"),
        ("2026-05-21T04:59", "2026-05-20T09:00", "earlier today, in the morning"),
        ("2026-05-21T05:00", "2026-05-20T09:00", "yesterday morning"),
        ("2026-05-21T04:59", "2026-05-19T09:00", "yesterday morning"),
        ("2026-05-21T05:00", "2026-05-19T09:00", "two days ago"),
        ("2026-05-21T05:00", "2026-05-19T21:00", "the night before last"),
        ("2026-05-21T05:00", "2026-05-19T20:59", "two days ago"),
        ("2026-05-21T12:00", "2026-05-20T02:00", "the night before last"),
    ],
)
def test_the_day_begins_at_five(now: str, past: str, phrase: str) -> None:
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, past)]
    assert ago(*moments) == phrase


@pytest.mark.parametrize(
    ("zone", "phrase"),
    [
        (UTC_ZONE, "last night"),
        (TOKYO, "earlier today, in the morning"),
        (NEW_YORK, "yesterday evening"),
        (KIRITIMATI, "earlier today, in the afternoon"),
        (PAGO_PAGO, "earlier today, in the morning"),
        (KATHMANDU, "last night"),
    ],
)
def test_the_calendar_is_that_of_the_zone(zone: ZoneInfo, phrase: str) -> None:
    now, past = datetime(2026, 5, 20, 10, 0, tzinfo=UTC), datetime(2026, 5, 19, 22, 30, tzinfo=UTC)
    assert ago(now, past, zone) == phrase


def test_clocks_going_forward_shift_no_day() -> None:
    now = datetime(2026, 3, 8, 9, 0, tzinfo=NEW_YORK)
    assert ago(now, datetime(2026, 3, 7, 20, 59, tzinfo=NEW_YORK), NEW_YORK) == "yesterday evening"
    assert ago(now, datetime(2026, 3, 7, 21, 0, tzinfo=NEW_YORK), NEW_YORK) == "last night"


def test_clocks_going_back_shift_no_day() -> None:
    now = datetime(2026, 11, 1, 9, 0, tzinfo=NEW_YORK)
    assert (
        ago(now, datetime(2026, 10, 31, 20, 59, tzinfo=NEW_YORK), NEW_YORK) == "yesterday evening"
    )
    assert ago(now, datetime(2026, 10, 31, 21, 0, tzinfo=NEW_YORK), NEW_YORK) == "last night"


def test_hours_are_real_hours_across_a_clock_change() -> None:
    before = datetime(2026, 3, 8, 1, 59, tzinfo=NEW_YORK)
    after = datetime(2026, 3, 8, 3, 1, tzinfo=NEW_YORK)
    assert ago(after, before, NEW_YORK) == "moments ago"
    assert is_fresh(after, before)
    repeated = datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK)
    assert not is_fresh(repeated.replace(fold=1), repeated)


def test_forty_eight_hours_across_a_clock_change_never_name_a_wrong_night() -> None:
    now = datetime(2026, 3, 9, 5, 15, tzinfo=NEW_YORK)
    past = now.astimezone(UTC) - timedelta(hours=47, minutes=50)
    assert past.astimezone(NEW_YORK).hour == 4
    assert ago(now, past, NEW_YORK) == "two days ago"


@pytest.mark.parametrize("locale", LOCALES)
def test_every_locale_has_its_own_phrase_for_every_distance(locale: str) -> None:
    texts = catalogue().texts(locale)
    assert sorted(k for k in texts if k.startswith("time.")) == sorted(
        f"time.{k}" for k in NEAR_TO_FAR
    )
    assert len({texts[f"time.{key}"] for key in NEAR_TO_FAR}) == len(NEAR_TO_FAR)


@pytest.mark.parametrize(
    ("locale", "phrase"), [("en-US", "last night"), ("pt-BR", "ontem à noite"), ("ja", "昨夜")]
)
def test_the_phrase_is_in_the_language_of_the_locale(locale: str, phrase: str) -> None:
    assert ago(NOON, NOON - timedelta(hours=12), UTC_ZONE, locale) == phrase


@given(
    now=st.integers(631_152_000_000, 4_102_444_800_000).map(from_ms),
    seconds=st.floats(-(10**6), 10**8),
    further=st.floats(0, 10**6),
    zone=st.sampled_from(ZONES),
    locale=st.sampled_from(LOCALES),
)
def test_what_is_longer_ago_never_sounds_nearer(
    now: datetime, seconds: float, further: float, zone: ZoneInfo, locale: str
) -> None:
    nearer, farther = (now - timedelta(seconds=s) for s in (seconds, seconds + further))
    assert distance(now, nearer, zone, locale) <= distance(now, farther, zone, locale)


@pytest.mark.parametrize(
    ("age", "fresh"),
    [
        (timedelta(minutes=30), False),
        (timedelta(minutes=30) - INSTANT, True),
        (timedelta(0), True),
        (timedelta(days=-3), True),
        (timedelta(days=3), False),
    ],
)
def test_fresh_is_younger_than_thirty_minutes(age: timedelta, *, fresh: bool) -> None:
    assert is_fresh(NOON, NOON - age) is fresh


def test_a_time_is_stored_in_whole_milliseconds_of_utc() -> None:
    moment = datetime(2026, 5, 20, 21, 0, 0, 123_999, tzinfo=TOKYO)
    assert to_ms(moment) == 1_779_278_400_123
    assert from_ms(1_779_278_400_123) == datetime(2026, 5, 20, 12, 0, 0, 123_000, tzinfo=UTC)
    assert from_ms(to_ms(moment)).tzinfo is UTC


@given(st.integers(-(10**13), 10**14))
def test_what_is_stored_comes_back(milliseconds: int) -> None:
    assert to_ms(from_ms(milliseconds)) == milliseconds


def test_the_system_clock_is_aware_and_runs_forward() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()

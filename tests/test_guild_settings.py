"""What a server's managers set: its time zone, and when a room is quiet."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, time
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.guild_settings import GuildSettings, QuietHours, matching_zones
from bot.identifiers import ChannelId, GuildId, UserId
from bot.storage.database import Database
from tests.storage.jobs import opened
from tests.talk import FakeClock

GUILD, OTHER = GuildId(500), GuildId(600)
ROOM, LOUNGE = ChannelId(7), ChannelId(8)
OLGA = UserId(1)
NIGHT = QuietHours(begin=time(22), end=time(7))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with opened(tmp_path / "madeleine.db") as database:
        yield database


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def settings(database: Database, clock: FakeClock) -> GuildSettings:
    return GuildSettings(database, clock, default_zone="Europe/Lisbon")


# --- quiet hours


@pytest.mark.parametrize(
    "written",
    [
        *("22:00-07:00", "22:00 - 7:00", " 22-7 ", "22:00\u201307:00", "22 to 7"),
        *("22:00\u301c7:00", "22:00\uff5e07:00", "22:00~07:00"),
    ],
)
def test_hours_are_understood_however_they_are_written(written: str) -> None:
    assert QuietHours.parse(written) == NIGHT


def test_midnight_may_be_24() -> None:
    assert QuietHours.parse("24-6") == QuietHours(begin=time(0), end=time(6))
    assert QuietHours.parse("20-24") == QuietHours(begin=time(20), end=time(0))


@pytest.mark.parametrize(
    "written",
    [
        "",
        "22",
        "22:00",
        "late-early",
        "25-7",
        "22-25",
        "22:60-7",
        "22:5-7",
        "7-7",
        "0-24",
        "22-7-8",
    ],
)
def test_what_is_no_span_of_hours_is_refused(written: str) -> None:
    with pytest.raises(UserError, match=r"errors\.settings\.quiet_hours"):
        QuietHours.parse(written)


def test_hours_are_written_as_they_are_read() -> None:
    assert str(NIGHT) == "22:00-07:00"
    assert QuietHours.parse(str(NIGHT)) == NIGHT


@pytest.mark.parametrize(
    ("hours", "quiet", "loud"),
    [
        ("22-7", [(22, 0), (23, 59), (0, 0), (6, 59)], [(7, 0), (12, 0), (21, 59)]),
        ("13-15", [(13, 0), (14, 59)], [(12, 59), (15, 0), (0, 0)]),
        ("20-24", [(20, 0), (23, 59)], [(0, 0), (19, 59)]),
    ],
)
def test_it_is_quiet_from_the_first_hour_until_the_last(
    hours: str, quiet: list[tuple[int, int]], loud: list[tuple[int, int]]
) -> None:
    span = QuietHours.parse(hours)
    for hour, minute in quiet:
        assert span.holds(datetime(2026, 3, 4, hour, minute, tzinfo=UTC))
    for hour, minute in loud:
        assert not span.holds(datetime(2026, 3, 4, hour, minute, tzinfo=UTC))


async def test_a_room_is_quiet_by_the_clock_of_its_server(
    settings: GuildSettings, clock: FakeClock
) -> None:
    await settings.set_quiet_hours(GUILD, ROOM, NIGHT, OLGA)
    await settings.set_zone(GUILD, "Asia/Tokyo", OLGA)
    clock.time = datetime(2026, 3, 4, 12, 59, tzinfo=UTC)
    assert not await settings.is_quiet(GUILD, ROOM)
    clock.pass_(minutes=1)
    assert await settings.is_quiet(GUILD, ROOM)
    await settings.set_zone(GUILD, "UTC", OLGA)
    assert not await settings.is_quiet(GUILD, ROOM)


async def test_quiet_hours_hold_in_their_own_room_until_they_are_ended(
    settings: GuildSettings,
) -> None:
    await settings.set_quiet_hours(GUILD, ROOM, NIGHT, OLGA)
    assert await settings.quiet_hours(GUILD, ROOM) == NIGHT
    assert await settings.quiet_hours(GUILD, LOUNGE) is None
    assert await settings.quiet_hours(OTHER, ROOM) is None
    assert await settings.rooms_with_quiet_hours() == ((GUILD, ROOM),)
    await settings.set_quiet_hours(GUILD, ROOM, None, OLGA)
    assert await settings.quiet_hours(GUILD, ROOM) is None
    assert await settings.rooms_with_quiet_hours() == ()


async def test_settings_are_kept_with_who_made_them_and_when(
    settings: GuildSettings, database: Database, clock: FakeClock
) -> None:
    await settings.set_quiet_hours(GUILD, ROOM, NIGHT, OLGA)
    again = GuildSettings(database, clock, default_zone="UTC")
    assert await again.quiet_hours(GUILD, ROOM) == NIGHT
    row = await database.fetch_one("SELECT changed_by, changed_at FROM guild_settings")
    assert row is not None
    assert tuple(row) == (OLGA, int(clock.now().timestamp() * 1000))


# --- time zones


async def test_a_server_has_the_configured_zone_until_it_chooses_its_own(
    settings: GuildSettings,
) -> None:
    assert (await settings.zone(GUILD)).key == "Europe/Lisbon"
    await settings.set_zone(GUILD, "Asia/Tokyo", OLGA)
    assert (await settings.zone(GUILD)).key == "Asia/Tokyo"
    assert (await settings.zone(OTHER)).key == "Europe/Lisbon"


@pytest.mark.parametrize("typed", ["America/New_York", " america/new york ", "AMERICA/NEW_YORK"])
async def test_a_zone_is_known_however_it_is_typed(settings: GuildSettings, typed: str) -> None:
    await settings.set_zone(GUILD, typed, OLGA)
    assert (await settings.zone(GUILD)).key == "America/New_York"


@pytest.mark.parametrize(
    "typed", ["", "Lisbon", "Europe", "../../etc/passwd", "/etc/localtime", "localtime", "x\0"]
)
async def test_what_is_no_zone_is_refused(settings: GuildSettings, typed: str) -> None:
    with pytest.raises(UserError, match=r"errors\.settings\.zone"):
        await settings.set_zone(GUILD, typed, OLGA)
    assert (await settings.zone(GUILD)).key == "Europe/Lisbon"


async def test_zones_are_offered_by_what_was_typed_of_them() -> None:
    assert (await matching_zones("lis", most=25))[0] == "Europe/Lisbon"
    assert await matching_zones("new y", most=25) == ("America/New_York",)
    assert await matching_zones("EUROPE/LIS", most=25) == ("Europe/Lisbon",)
    assert await matching_zones("nowhere", most=25) == ()


async def test_no_more_zones_are_offered_than_fit() -> None:
    assert len(await matching_zones("", most=25)) == 25
    assert len(await matching_zones("a", most=3)) == 3

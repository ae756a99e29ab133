"""Where things were said: one row for each place, true to what the place is now."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.audience import OriginKind, Place
from bot.identifiers import ChannelId, GuildId
from bot.privacy.origins import Origins
from bot.storage.database import Database
from tests.storage.jobs import opened
from tests.talk import FakeClock

GUILD = GuildId(500)
ROOM = Place(
    kind=OriginKind.CHANNEL, guild_id=GUILD, channel_id=ChannelId(7), open_to_everyone=True
)
DIRECT = Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=ChannelId(8))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield database
    await database.close()


@pytest.fixture
def origins(database: Database) -> Origins:
    return Origins(database, FakeClock())


async def test_a_place_has_one_row_however_often_it_is_asked_for(
    database: Database, origins: Origins
) -> None:
    found = await asyncio.gather(*(origins.of(ROOM) for _ in range(10)))
    assert len({origin.id for origin in found}) == 1
    assert len(await database.fetch_all("SELECT 1 FROM origins")) == 1


async def test_a_place_keeps_its_row_over_a_restart(tmp_path: Path) -> None:
    ids: list[int] = []
    for _ in range(2):
        async with opened(tmp_path / "madeleine.db") as database:
            ids.append((await Origins(database, FakeClock()).of(ROOM)).id)
    assert ids[0] == ids[1]


@pytest.mark.parametrize("first", [True, False])
async def test_a_room_that_is_closed_and_opened_again_is_known_as_it_is_now(
    database: Database, origins: Origins, first: bool
) -> None:
    for is_open in (first, not first, first, not first, first):
        place = replace(ROOM, open_to_everyone=is_open)
        assert (await origins.of(place)).open_to_everyone is is_open
        row = await database.fetch_one("SELECT open_to_everyone FROM origins")
        assert row is not None
        assert bool(row[0]) is is_open


async def test_a_thread_knows_its_parent_which_gets_its_own_row(
    database: Database, origins: Origins
) -> None:
    thread = Place(
        kind=OriginKind.THREAD,
        guild_id=GUILD,
        channel_id=ChannelId(70),
        parent_id=ROOM.channel_id,
        open_to_everyone=True,
    )
    found = await origins.of(thread)
    parent = await origins.of(ROOM)
    assert found.parent_id == parent.id
    assert found.id != parent.id


async def test_a_private_thread_makes_no_open_room_of_its_parent(origins: Origins) -> None:
    private = Place(
        kind=OriginKind.PRIVATE_THREAD,
        guild_id=GUILD,
        channel_id=ChannelId(70),
        parent_id=ROOM.channel_id,
        open_to_everyone=True,
    )
    await origins.of(private)
    closed = replace(ROOM, open_to_everyone=False)
    assert not (await origins.of(closed)).open_to_everyone


async def test_a_thread_leaves_what_is_known_of_its_parent_as_it_is(
    database: Database, origins: Origins
) -> None:
    await origins.of(replace(ROOM, open_to_everyone=False))
    thread = Place(
        kind=OriginKind.THREAD,
        guild_id=GUILD,
        channel_id=ChannelId(70),
        parent_id=ROOM.channel_id,
        open_to_everyone=True,
    )
    await origins.of(thread)
    row = await database.fetch_one("SELECT open_to_everyone FROM origins WHERE channel_id = 7")
    assert row is not None
    assert row[0] == 0


async def test_a_room_that_is_not_known_gets_no_row_by_being_looked_for(
    database: Database, origins: Origins
) -> None:
    assert await origins.known_in(ROOM.channel_id) == ()
    assert await database.fetch_all("SELECT 1 FROM origins") == []


async def test_a_room_is_found_by_its_channel_alone(origins: Origins) -> None:
    room, direct = await origins.of(ROOM), await origins.of(DIRECT)
    assert await origins.known_in(ROOM.channel_id) == (room,)
    assert await origins.known_in(DIRECT.channel_id) == (direct,)


async def test_a_thread_that_was_taken_for_a_channel_is_found_as_both(origins: Origins) -> None:
    as_channel = await origins.of(ROOM)
    as_thread = await origins.of(
        replace(ROOM, kind=OriginKind.THREAD, parent_id=ChannelId(70), open_to_everyone=False)
    )
    assert await origins.known_in(ROOM.channel_id) == (as_channel, as_thread)


async def test_a_server_is_no_room(origins: Origins) -> None:
    """The oldest channel of an old server has the server's own id."""
    await origins.of_server(GUILD)
    assert await origins.known_in(ChannelId(GUILD)) == ()

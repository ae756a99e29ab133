"""An audience is computed once, and anew when rights or rooms change."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.audience import DIRECT_MESSAGES, OriginKind, Place
from bot.identifiers import ChannelId, GuildId, OriginId
from bot.privacy.audiences import Audiences
from bot.privacy.hearing import Everyone, NoRooms, OpenRooms, Readers, ServerRooms
from bot.privacy.origins import Origins
from bot.storage.database import Database
from tests.talk import FakeClock

GUILD = GuildId(500)
ROOM = Place(kind=OriginKind.CHANNEL, guild_id=GUILD, channel_id=ChannelId(7))
DIRECT = Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=ChannelId(8))
OTHER = replace(ROOM, channel_id=ChannelId(9))


@pytest.fixture
async def origins(tmp_path: Path) -> AsyncIterator[Origins]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield Origins(database, FakeClock())
    await database.close()


async def test_where_no_rights_are_known_a_room_hears_itself_and_its_server(
    origins: Origins,
) -> None:
    room, server = await origins.of(ROOM), await origins.of_server(GUILD)
    await origins.of(OTHER)
    audience = await Audiences(origins, NoRooms()).of_room(room)
    assert audience.here == room.id
    assert audience.heard == {room.id, server.id}


async def test_where_everybody_reads_everything_every_room_is_heard(origins: Origins) -> None:
    room, other = await origins.of(ROOM), await origins.of(OTHER)
    audience = await Audiences(origins, OpenRooms()).of_room(room)
    assert other.id in audience.heard


async def test_a_direct_message_hears_nothing_else(origins: Origins) -> None:
    direct = await origins.of(DIRECT)
    assert direct.guild_id == DIRECT_MESSAGES
    assert (await Audiences(origins, OpenRooms()).of_room(direct)).heard == {direct.id}


async def test_servers_do_not_hear_each_other(origins: Origins) -> None:
    audiences = Audiences(origins, OpenRooms())
    here = await audiences.of_room(await origins.of(ROOM))
    there_room = replace(ROOM, guild_id=GuildId(600), channel_id=ChannelId(9))
    there = await audiences.of_room(await origins.of(there_room))
    assert not here.heard & there.heard


class Rights(NoRooms):
    """Rights that a test sets."""

    def __init__(self) -> None:
        self.now = ServerRooms()

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        del guild
        return self.now


async def test_it_is_the_same_until_rights_or_rooms_change(origins: Origins) -> None:
    rights = Rights()
    readers = Readers(everyone=Everyone.OPEN)
    rights.now = ServerRooms(all_others=readers)
    audiences, room = Audiences(origins, rights), await origins.of(ROOM)
    first = await audiences.of_room(room)
    assert await audiences.of_room(room) is first
    other = await origins.of(OTHER)
    second = await audiences.of_room(room)
    assert second.heard - first.heard == {other.id}
    closed = Readers(everyone=Everyone.CLOSED)
    rights.now = ServerRooms(readers={OTHER.channel_id: closed}, all_others=readers)
    assert other.id not in (await audiences.of_room(room)).heard


async def test_a_room_newer_than_what_was_read_hears_what_everybody_does(origins: Origins) -> None:
    room = await origins.of(ROOM)
    unlisted = replace(room, id=OriginId(room.id + 100), channel_id=ChannelId(77))
    audience = await Audiences(origins, OpenRooms()).of_room(unlisted)
    assert audience.here == unlisted.id
    assert {unlisted.id, room.id} <= audience.heard


# --- a room that is gone


@pytest.mark.parametrize(("witnessed", "heard"), [(True, True), (False, False)])
async def test_a_room_whose_end_nobody_saw_is_heard_no_more(
    origins: Origins, *, witnessed: bool, heard: bool
) -> None:
    rights = Rights()
    readers = Readers(everyone=Everyone.OPEN)
    rights.now = ServerRooms(readers={ROOM.channel_id: readers, OTHER.channel_id: readers})
    room, other = await origins.of(ROOM), await origins.of(replace(OTHER, open_to_everyone=True))
    rights.now = ServerRooms(readers={ROOM.channel_id: readers})
    await origins.compare(GUILD, rights.now, witnessed=witnessed)
    audience = await Audiences(origins, rights).of_room(room)
    assert (other.id in audience.heard) is heard


async def test_a_room_that_was_closed_before_its_end_is_not_heard(origins: Origins) -> None:
    rights = Rights()
    readers, closed = Readers(everyone=Everyone.OPEN), Readers(everyone=Everyone.CLOSED)
    room, other = await origins.of(ROOM), await origins.of(replace(OTHER, open_to_everyone=True))
    both = ServerRooms(readers={ROOM.channel_id: readers, OTHER.channel_id: closed})
    await origins.compare(GUILD, both, witnessed=True)
    rights.now = ServerRooms(readers={ROOM.channel_id: readers})
    await origins.compare(GUILD, rights.now, witnessed=True)
    assert other.id not in (await Audiences(origins, rights).of_room(room)).heard

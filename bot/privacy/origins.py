"""Where things were said: the stored places."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bot.audience import DIRECT_MESSAGES, Origin, OriginKind, Place
from bot.clock import Clock, to_ms
from bot.identifiers import ChannelId, GuildId, OriginId, UserId
from bot.privacy.hearing import Known, ServerRooms
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction
from bot.storage.writer import Job

_Key = tuple[OriginKind, ChannelId]


class Origins:
    """Gives every place its row, once."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._in_server: VersionedCache[GuildId, tuple[Known, ...]] = VersionedCache()
        self._known: dict[tuple[OriginKind, ChannelId], tuple[Place, Origin]] = {}

    async def of(self, place: Place) -> Origin:
        """The origin of a place; its row is made, or brought up to date where the place changed.

        StorageUnavailable where that has to be written and cannot be: a room without a row has no
        turn, no memory and no audience, and nothing that waits to be captured could name it.
        """
        key = (place.kind, place.channel_id)
        unnamed = replace(place, name="")
        known = self._known.get(key)
        if known is not None and known[0] == unnamed:
            return known[1]
        origin = await self._database.read(lambda db: _up_to_date(db, unnamed))
        if origin is None:  # a database that cannot be written need not be, for a room it knows
            origin = await self._database.write(self._keep_job(unnamed))
        self._known[key] = (unnamed, origin)
        return origin

    async def known_in(self, channel: ChannelId) -> tuple[Origin, ...]:
        """The origins that a channel, a thread or a direct message has so far; makes none.

        There may be two: a thread of which Discord had not yet told us that it is one was a
        channel.
        """
        rooms = json.dumps([kind for kind in OriginKind if kind is not OriginKind.SERVER])
        rows = await self._database.fetch_all(
            "SELECT * FROM origins WHERE kind IN (SELECT value FROM json_each(?))"
            " AND channel_id = ? ORDER BY id",
            (rooms, channel),
        )
        return tuple(map(_origin, rows))

    async def channels(self, origins: Iterable[OriginId]) -> Mapping[OriginId, ChannelId]:
        """The channels, threads or direct messages that origins are; a server is none."""
        rows = await self._database.fetch_all(
            "SELECT id, channel_id FROM origins WHERE kind != ?"
            " AND id IN (SELECT value FROM json_each(?))",
            (OriginKind.SERVER, json.dumps(sorted(set(origins)))),
        )
        return {OriginId(row["id"]): ChannelId(row["channel_id"]) for row in rows}

    async def of_server(self, guild: GuildId) -> Origin:
        """The origin that stands for a whole server: what is said there is for all its rooms."""
        return await self.of(server_place(guild))

    async def in_server(self, guild: GuildId) -> tuple[Known, ...]:
        """Every origin that a server has so far; the same object until one changes."""
        return await self._in_server.get(guild, lambda: self._read_server(guild))

    async def servers_that_know(self, person: UserId) -> tuple[GuildId, ...]:
        """The servers in which something is remembered about a person."""
        rows = await self._database.fetch_all(
            "SELECT DISTINCT server_id FROM personal_memories WHERE user_id = ? AND server_id != ?",
            (person, DIRECT_MESSAGES),
        )
        return tuple(GuildId(row["server_id"]) for row in rows)

    async def compare(self, guild: GuildId, rooms: ServerRooms, *, witnessed: bool) -> None:
        """Bring what is stored of a server's rooms up to date with how they are now.

        A channel that is gone stays open to everyone if it was that, where its end was `witnessed`;
        else it may have been closed before, and nobody hears it any more.
        """
        changed = [
            (known.origin.id, is_open, is_deleted)
            for known in await self.in_server(guild)
            if known.origin.kind is not OriginKind.SERVER
            for is_open, is_deleted in (_as_it_is(known, rooms, witnessed=witnessed),)
            if (is_open, is_deleted) != (known.origin.open_to_everyone, known.origin.is_deleted)
        ]
        if not changed:
            return
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> None:
            for origin, is_open, is_deleted in changed:
                await tx.execute(
                    "UPDATE origins SET open_to_everyone = ?, deleted_at = ? WHERE id = ?",
                    (is_open, now if is_deleted else None, origin),
                )
            tx.after_commit(lambda: self._in_server.invalidate(guild))
            tx.after_commit(self._known.clear)

        await self._database.write(job)

    def _keep_job(self, place: Place) -> Job[Origin]:
        async def job(tx: Transaction) -> Origin:
            tx.after_commit(lambda: self._in_server.invalidate(place.guild_key))
            return await keep_origin(tx, place)

        return job

    async def _read_server(self, guild: GuildId) -> tuple[Known, ...]:
        rows = await self._database.fetch_all(
            "SELECT origins.*, parents.channel_id AS room FROM origins"
            " LEFT JOIN origins AS parents ON parents.id = origins.parent_id"
            " WHERE origins.guild_id = ? ORDER BY origins.id",
            (guild,),
        )
        return tuple(
            Known(origin=_origin(row), room=ChannelId(row["room"] or row["channel_id"]))
            for row in rows
        )


def _as_it_is(known: Known, rooms: ServerRooms, *, witnessed: bool) -> tuple[bool, bool]:
    """Whether a room is open to everyone, and whether it is gone."""
    readers = rooms.of(known.room)
    if readers is not None:
        is_private = known.origin.kind is OriginKind.PRIVATE_THREAD
        return readers.are_everybody and not is_private, False
    keeps = known.origin.is_deleted or witnessed
    return known.origin.open_to_everyone and keeps, True


def server_place(guild: GuildId) -> Place:
    """A server as a whole, as a place."""
    return Place(
        kind=OriginKind.SERVER, guild_id=guild, channel_id=ChannelId(guild), open_to_everyone=True
    )


async def keep_origin(tx: Transaction, place: Place) -> Origin:
    """Insert or refresh the row of a place; a thread's parent gets its row first."""
    parent_id: OriginId | None = None
    if place.parent_id is not None:
        parent = Place(
            kind=OriginKind.CHANNEL,
            guild_id=place.guild_id,
            channel_id=place.parent_id,
            open_to_everyone=place.open_to_everyone and place.kind is OriginKind.THREAD,
        )
        parent_id = (await _known(tx, parent) or await keep_origin(tx, parent)).id
    await tx.execute(
        "INSERT INTO origins (guild_id, channel_id, kind, parent_id, open_to_everyone)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, channel_id) DO UPDATE SET"
        " parent_id = excluded.parent_id, open_to_everyone = excluded.open_to_everyone,"
        " deleted_at = NULL",
        (place.guild_key, place.channel_id, place.kind, parent_id, place.open_to_everyone),
    )
    origin = await _known(tx, place)
    if origin is None:
        raise RuntimeError("the origin that was just written is not there")
    return origin


async def _up_to_date(db: Snapshot, place: Place) -> Origin | None:
    """The stored origin of a place, where its row still says what the place is."""
    origin = await _known(db, place)
    if origin is None or origin.is_deleted or origin.open_to_everyone != place.open_to_everyone:
        return None
    if place.parent_id is None:
        return origin if origin.parent_id is None else None
    row = await db.fetch_one("SELECT channel_id FROM origins WHERE id = ?", (origin.parent_id,))
    return origin if row is not None and row["channel_id"] == place.parent_id else None


async def _known(db: Snapshot, place: Place) -> Origin | None:
    row = await db.fetch_one(
        "SELECT * FROM origins WHERE kind = ? AND channel_id = ?", (place.kind, place.channel_id)
    )
    return _origin(row) if row else None


def _origin(row: Row) -> Origin:
    return Origin(
        id=OriginId(row["id"]),
        kind=OriginKind(row["kind"]),
        guild_id=GuildId(row["guild_id"]),
        channel_id=ChannelId(row["channel_id"]),
        parent_id=None if row["parent_id"] is None else OriginId(row["parent_id"]),
        open_to_everyone=bool(row["open_to_everyone"]),
        is_deleted=row["deleted_at"] is not None,
    )

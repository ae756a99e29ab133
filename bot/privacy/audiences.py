"""Who is heard where a reply will stand: computed once, and kept until somebody's rights change."""

from collections import OrderedDict
from dataclasses import dataclass

from bot.audience import Audience, Origin, OriginKind
from bot.identifiers import OriginId, UserId
from bot.privacy.hearing import Known, RoomDirectory, ServerRooms, hears
from bot.privacy.origins import Origins

_MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class _Computed:
    """An audience and what it was computed from."""

    rooms: ServerRooms | None
    origins: tuple[Known, ...]
    audience: Audience


class Audiences:
    """Gives every reply its audience."""

    def __init__(self, origins: Origins, directory: RoomDirectory) -> None:
        self._origins = origins
        self._directory = directory
        self._kept: OrderedDict[OriginId, _Computed] = OrderedDict()

    async def of_room(self, origin: Origin) -> Audience:
        """For a reply that everybody who reads a room of a server will see.

        In a direct message that is nobody but its person: see `of_person`.
        """
        if origin.kind is OriginKind.DIRECT:
            return Audience(here=origin.id, heard=frozenset((origin.id,)))
        await self._origins.of_server(origin.guild_id)
        origins = await self._origins.in_server(origin.guild_id)
        rooms = await self._directory.rooms(origin.guild_id)
        kept = self._kept.get(origin.id)
        if kept is None or kept.rooms is not rooms or kept.origins is not origins:
            kept = _Computed(rooms, origins, _audience(origin, origins, rooms))
            self._keep(origin.id, kept)
        self._kept.move_to_end(origin.id)
        return kept.audience

    async def of_person(self, origin: Origin, person: UserId) -> Audience:
        """For a reply that one person alone will see: by their own rights.

        An answer to a command in a server is told from all that they can read there. A direct
        message hears itself, and what is known about the person from wherever they can read.
        """
        if origin.kind is not OriginKind.DIRECT:
            shared = await self.of_room(origin)
            own = await self._readable(origin, person)
            return Audience(here=origin.id, heard=shared.heard | own, listener=person)
        told: set[OriginId] = set()
        for guild in await self._origins.servers_that_know(person):
            server = await self._origins.of_server(guild)
            told |= {server.id, *await self._readable(server, person)}
        return Audience(
            here=origin.id,
            heard=frozenset((origin.id,)),
            listener=person,
            to_listener=frozenset(told),
        )

    async def _readable(self, origin: Origin, person: UserId) -> frozenset[OriginId]:
        """The origins of a server whose channels a person can read now."""
        channels = await self._directory.readable_by(origin.guild_id, person)
        return frozenset(
            known.origin.id
            for known in await self._origins.in_server(origin.guild_id)
            if known.room in channels
            and known.origin.kind in (OriginKind.CHANNEL, OriginKind.THREAD)
        )

    def _keep(self, origin: OriginId, computed: _Computed) -> None:
        self._kept[origin] = computed
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def _audience(origin: Origin, origins: tuple[Known, ...], rooms: ServerRooms | None) -> Audience:
    """Who is heard in a room. One that is newer than `origins` hears what everybody does."""
    unlisted = Known(origin=origin, room=origin.channel_id)
    here = next((known for known in origins if known.origin.id == origin.id), unlisted)
    heard = {source.origin.id for source in origins if hears(here, source, rooms)}
    return Audience(here=origin.id, heard=frozenset({origin.id, *heard}))

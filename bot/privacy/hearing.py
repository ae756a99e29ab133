"""Who may hear what: whether all who read one room also read another, by the permissions of now.

Decided from roles and overwrites alone, without a list of members. The answer may be no too often;
it is never yes wrongly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol, assert_never

from bot.audience import Origin, OriginKind
from bot.identifiers import ChannelId, GuildId, UserId


class Everyone(IntEnum):
    """What a room says of View Channel to @everyone; who may see it grows with the number."""

    CLOSED = 0
    UNSAID = 1  # as a member's roles have it
    OPEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Who reads a channel of a server, as far as overwrites tell.

    `granted` and `denied` are the roles and members that have an overwrite of View Channel of their
    own. The owner, administrators and Madeleine herself read everything; they are not among them.
    `withholds_past`: somebody who may view it may not read what was said before.
    """

    everyone: Everyone
    granted: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()
    withholds_past: bool = False
    is_announcement: bool = False

    @property
    def are_everybody(self) -> bool:
        """Whether nobody on the server is kept out."""
        return self.everyone is Everyone.OPEN and not self.denied and not self.withholds_past


def all_read(here: Readers, there: Readers) -> bool:
    """Whether whoever reads `here` reads `there` too.

    A member sees a channel by what it says to @everyone, over that what it grants or denies to one
    of their roles (a grant wins), over that what it says to them by name. So nobody is lost who has
    at least the same grants and no further denial. An announcement is read on other servers too.
    """
    if there.are_everybody:
        return True
    return (
        not there.withholds_past
        and not here.is_announcement
        and here.everyone <= there.everyone
        and here.granted <= there.granted
        and there.denied <= here.denied
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRooms:
    """The channels of one server, without its threads; a thread has the readers of its parent.

    `all_others`: who reads channels that are not named; None: there are no others.
    """

    readers: Mapping[ChannelId, Readers] = field(default_factory=dict[ChannelId, Readers])
    all_others: Readers | None = None

    def of(self, room: ChannelId) -> Readers | None:
        """Who reads a channel; None where it is gone."""
        return self.readers.get(room, self.all_others)


class RoomDirectory(Protocol):
    """What a transport knows of the rooms of now."""

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        """The channels of a server; None where they are not known now.

        The same object until something in it changes.
        """
        ...

    async def readable_by(self, guild: GuildId, user: UserId) -> frozenset[ChannelId]:
        """The channels whose past one person can read now; none where that cannot be told."""
        ...


class NoRooms:
    """Nothing is known of permissions: every room hears itself alone."""

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        """Not known."""
        del guild

    async def readable_by(self, guild: GuildId, user: UserId) -> frozenset[ChannelId]:
        """None for certain."""
        del guild, user
        return frozenset()


class OpenRooms(NoRooms):
    """Everybody reads every room, as in a terminal."""

    def __init__(self) -> None:
        self._rooms = ServerRooms(all_others=Readers(everyone=Everyone.OPEN))

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        """The same for every server."""
        del guild
        return self._rooms


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A stored origin and the channel that says who reads it: a thread has its parent's readers."""

    origin: Origin
    room: ChannelId


def hears(here: Known, source: Known, rooms: ServerRooms | None) -> bool:
    """Whether what was said in `source` may be used in `here`: two origins of one server."""
    if source.origin.id == here.origin.id:
        return True
    match source.origin.kind:
        case OriginKind.SERVER:
            return True
        case OriginKind.DIRECT | OriginKind.PRIVATE_THREAD:
            return False
        case OriginKind.CHANNEL | OriginKind.THREAD:
            return rooms is not None and _room_hears(here, source, rooms)
        case _:
            assert_never(source.origin.kind)


def _room_hears(here: Known, source: Known, rooms: ServerRooms) -> bool:
    there = rooms.of(source.room)
    if there is None:
        return source.origin.is_deleted and source.origin.open_to_everyone
    readers = rooms.of(here.room)
    if readers is None:
        return there.are_everybody
    if here.origin.kind is not OriginKind.CHANNEL:  # what is said in a thread is not sent on
        readers = replace(readers, is_announcement=False)
    return all_read(readers, there)

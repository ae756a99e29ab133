"""Where something was said (`Origin`) and where it may be heard (`Audience`).

Who may hear is decided in privacy.
"""

from dataclasses import dataclass
from enum import StrEnum

from bot.identifiers import ChannelId, GuildId, OriginId, UserId

DIRECT_MESSAGES = GuildId(0)
"""Stands in the guild's place for everything that belongs to no server."""


class OriginKind(StrEnum):
    """What sort of place an origin is."""

    SERVER = "server"
    CHANNEL = "channel"
    THREAD = "thread"
    PRIVATE_THREAD = "private_thread"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place as the transport knows it, before it has a row.

    `guild_id` is None in a direct message. A server as a whole (`/memory teach`) is the
    place whose channel id is the guild's id.
    """

    kind: OriginKind
    guild_id: GuildId | None
    channel_id: ChannelId
    parent_id: ChannelId | None = None
    open_to_everyone: bool = False
    name: str = ""

    @property
    def guild_key(self) -> GuildId:
        """The guild as tables know it: DIRECT_MESSAGES where there is none."""
        return self.guild_id or DIRECT_MESSAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A stored place: one row of `origins`.

    `open_to_everyone`: nobody on the server was kept out when this was seen last.
    """

    id: OriginId
    kind: OriginKind
    guild_id: GuildId
    channel_id: ChannelId
    parent_id: OriginId | None
    open_to_everyone: bool
    is_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The origins that may be heard where a reply will stand; computed once a turn.

    `here` is always among `heard`. A read without an audience does not exist outside privacy.
    `listener` is set where one person alone reads the reply; what is known about them is heard
    from `to_listener` too.
    """

    here: OriginId
    heard: frozenset[OriginId]
    listener: UserId | None = None
    to_listener: frozenset[OriginId] = frozenset()

    def __post_init__(self) -> None:
        if self.here not in self.heard:
            raise ValueError("an audience hears at least the place where it stands")

    @property
    def ids(self) -> tuple[OriginId, ...]:
        """The origins in a fixed order, to bind to a statement."""
        return tuple(sorted(self.heard))

"""Who reads the channels of a Discord server, from its roles and overwrites."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import discord

from bot.discord_io.pacing import CALL_FAILED
from bot.identifiers import ChannelId, GuildId, UserId
from bot.privacy.hearing import Everyone, Readers, ServerRooms

if TYPE_CHECKING:
    from discord.abc import GuildChannel

_FETCH_S = 3.0
"""How long an answer waits to learn somebody's roles; the library tries again for half a minute."""
_MOST_MEMBERS = 1_000
_AT_ONCE = 20

_Right = Literal["view_channel", "read_message_history", "connect"]


class DiscordRooms:
    """What the client knows of rooms now. `client` is set as soon as there is one.

    Members are not told to us: the roles of one are fetched when asked for, and kept a while.
    """

    def __init__(self, *, roles_kept_min: int) -> None:
        self._roles_kept_s = roles_kept_min * 60
        self.client: discord.Client | None = None
        self._rooms: dict[GuildId, ServerRooms] = {}
        self._changes = 0
        self._members: OrderedDict[tuple[int, int], tuple[float, discord.Member]]
        self._members = OrderedDict()

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        """The channels of a server; the same object until `forget`."""
        if guild in self._rooms:
            return self._rooms[guild]
        found, changes = self._guild(guild), self._changes
        if found is None:
            return None
        rooms = await rooms_of(found)
        if changes == self._changes:  # else something changed while they were read
            self._rooms[guild] = rooms
        return rooms

    async def readable_by(self, guild: GuildId, user: UserId) -> frozenset[ChannelId]:
        """The channels whose past a member can read; none for whoever is no member."""
        found = self._guild(guild)
        member = None if found is None else await self._member(found, user)
        if found is None or member is None:
            return frozenset()
        return frozenset(
            ChannelId(channel.id)
            for channel in found.channels
            if not isinstance(channel, discord.CategoryChannel) and _reads(member, channel)
        )

    def forget(self, guild: GuildId) -> None:
        """Something in a server's rooms or roles has changed."""
        self._changes += 1
        self._rooms.pop(guild, None)

    def forget_all(self) -> None:
        """Whatever changed was not told to us."""
        self._changes += 1
        self._rooms.clear()
        self._members.clear()

    def meet(self, member: discord.Member) -> None:
        """Discord has just told us a member's roles."""
        key = (member.guild.id, member.id)
        self._members[key] = (time.monotonic(), member)
        self._members.move_to_end(key)
        while len(self._members) > _MOST_MEMBERS:
            self._members.popitem(last=False)

    def _guild(self, guild: GuildId) -> discord.Guild | None:
        found = self.client.get_guild(guild) if self.client is not None else None
        return None if found is None or found.unavailable else found

    async def _member(self, guild: discord.Guild, user: UserId) -> discord.Member | None:
        known = self._members.get((guild.id, user))
        if known is not None and time.monotonic() - known[0] < self._roles_kept_s:
            return known[1]
        try:
            async with asyncio.timeout(_FETCH_S):
                member = await guild.fetch_member(user)
        except (*CALL_FAILED, TimeoutError):
            self._members.pop((guild.id, user), None)
            return None
        self.meet(member)
        return member


def _reads(member: discord.Member, channel: "GuildChannel") -> bool:
    rights = channel.permissions_for(member)
    is_voice = isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    connects = rights.connect or not is_voice
    return rights.view_channel and rights.read_message_history and connects


async def rooms_of(guild: discord.Guild) -> ServerRooms:
    """The channels of a server and who reads them now; a large server is read in pieces.

    Building the library's overwrites takes 0.3 ms a channel.
    """
    uncounted = _uncounted(guild)
    readers: dict[ChannelId, Readers] = {}
    for number, channel in enumerate(tuple(guild.channels), 1):
        if not isinstance(channel, discord.CategoryChannel):
            readers[ChannelId(channel.id)] = readers_of(channel, uncounted)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return ServerRooms(readers=readers)


def readers_of(channel: "GuildChannel", uncounted: frozenset[int] | None = None) -> Readers:
    """Who reads a channel. One synchronised with its category has its overwrites as its own."""
    if channel.guild.default_role.permissions.administrator:
        return Readers(everyone=Everyone.OPEN)
    uncounted = _uncounted(channel.guild) if uncounted is None else uncounted
    everyone = channel.guild.default_role.id
    others = {target.id: overwrite for target, overwrite in channel.overwrites.items()}
    own = others.pop(everyone, discord.PermissionOverwrite())
    for one in uncounted:
        others.pop(one, None)
    reading: tuple[_Right, ...] = ("read_message_history",)
    if isinstance(channel, discord.VoiceChannel | discord.StageChannel):
        reading = ("read_message_history", "connect")
    views = _everyone_views(channel.guild, own)
    return Readers(
        everyone=views,
        granted=frozenset(one for one, overwrite in others.items() if overwrite.view_channel),
        denied=frozenset(
            one for one, overwrite in others.items() if overwrite.view_channel is False
        ),
        withholds_past=any(
            _is_withheld(right, channel.guild, views, own, others.values()) for right in reading
        ),
        is_announcement=isinstance(channel, discord.TextChannel) and channel.is_news(),
    )


def _uncounted(guild: discord.Guild) -> frozenset[int]:
    """The owner, the roles of administrators, and our own member and role: they count nowhere."""
    ours = guild.self_role
    return frozenset(
        (
            guild.owner_id or 0,
            0 if guild.me is None else guild.me.id,  # pyright: ignore[reportUnnecessaryComparison]
            0 if ours is None else ours.id,
            *(role.id for role in guild.roles if role.permissions.administrator),
        )
    )


def _everyone_views(guild: discord.Guild, own: discord.PermissionOverwrite) -> Everyone:
    if own.view_channel is not None:
        return Everyone.OPEN if own.view_channel else Everyone.CLOSED
    if guild.default_role.permissions.view_channel:
        return Everyone.OPEN
    some_role_views = any(role.permissions.view_channel for role in _counted_roles(guild))
    return Everyone.UNSAID if some_role_views else Everyone.CLOSED


def _is_withheld(
    right: _Right,
    guild: discord.Guild,
    views: Everyone,
    own: discord.PermissionOverwrite,
    others: Iterable[discord.PermissionOverwrite],
) -> bool:
    """Whether somebody who may view the channel might lack a right that reading it needs."""
    others = tuple(others)
    if any(getattr(one, right) is False for one in others):
        return True
    for_everyone: bool | None = getattr(own, right)
    if for_everyone is None and getattr(guild.default_role.permissions, right):
        for_everyone = True
    if for_everyone:
        return False
    if any(one.view_channel and not getattr(one, right) for one in others):
        return True
    if views is not Everyone.UNSAID:
        return views is Everyone.OPEN
    return for_everyone is False or not all(
        getattr(role.permissions, right)
        for role in _counted_roles(guild)
        if role.permissions.view_channel
    )


def _counted_roles(guild: discord.Guild) -> Iterable[discord.Role]:
    return (role for role in guild.roles if not role.permissions.administrator)

"""A Discord channel as a place: what sort it is, and whether everybody on the server reads it."""

from typing import TYPE_CHECKING

import discord

from bot.audience import OriginKind, Place
from bot.identifiers import ChannelId, GuildId

if TYPE_CHECKING:
    from discord.abc import GuildChannel, MessageableChannel


def place_of(channel: "MessageableChannel | GuildChannel") -> Place:
    """The place that `channel` is now."""
    if isinstance(channel, discord.Thread):
        return _thread(channel)
    if isinstance(channel, discord.DMChannel | discord.GroupChannel):
        return Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=ChannelId(channel.id))
    if isinstance(channel, discord.PartialMessageable):
        return _unknown(channel)
    return Place(
        kind=OriginKind.CHANNEL,
        guild_id=GuildId(channel.guild.id),
        channel_id=ChannelId(channel.id),
        open_to_everyone=_is_open_to_everyone(channel),
        name=channel.name,
    )


def _thread(thread: discord.Thread) -> Place:
    is_private = thread.is_private()
    parent = thread.parent
    return Place(
        kind=OriginKind.PRIVATE_THREAD if is_private else OriginKind.THREAD,
        guild_id=GuildId(thread.guild.id),
        channel_id=ChannelId(thread.id),
        parent_id=ChannelId(thread.parent_id),
        open_to_everyone=not is_private and parent is not None and _is_open_to_everyone(parent),
        name=thread.name,
    )


def _unknown(channel: discord.PartialMessageable) -> Place:
    """A channel of which Discord told us no more than its id: nobody is known to read it."""
    guild_id = channel.guild_id
    return Place(
        kind=OriginKind.DIRECT if guild_id is None else OriginKind.CHANNEL,
        guild_id=None if guild_id is None else GuildId(guild_id),
        channel_id=ChannelId(channel.id),
    )


def _is_open_to_everyone(channel: "GuildChannel") -> bool:
    """Whether @everyone may view the channel and its past, and no role or member is denied that.

    A channel synchronised with its category has the category's overwrites as its own.
    """
    everyone = channel.guild.default_role
    base = everyone.permissions
    if base.administrator:
        return True
    others = [one for target, one in channel.overwrites.items() if target.id != everyone.id]
    if any(one.view_channel is False or one.read_message_history is False for one in others):
        return False
    own = channel.overwrites_for(everyone)
    may_view = base.view_channel if own.view_channel is None else own.view_channel
    may_read_past = own.read_message_history
    if may_read_past is None:
        may_read_past = base.read_message_history
    return may_view and may_read_past

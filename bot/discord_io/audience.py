"""A Discord channel as a place: what sort it is, and whether everybody on the server reads it."""

from typing import TYPE_CHECKING

import discord

from bot.audience import OriginKind, Place
from bot.discord_io.rooms import readers_of
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
        open_to_everyone=readers_of(channel).are_everybody,
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
        open_to_everyone=not is_private and parent is not None and readers_of(parent).are_everybody,
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

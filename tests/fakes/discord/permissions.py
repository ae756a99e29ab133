"""Permissions as Discord computes them: roles, then overwrites, then what follows from them."""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.discord.records import Channel, Member, Overwrite


class Permission(IntFlag):
    NONE = 0
    KICK_MEMBERS = 1 << 1
    BAN_MEMBERS = 1 << 2
    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_AUDIT_LOG = 1 << 7
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    SEND_TTS_MESSAGES = 1 << 12
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_EXTERNAL_EMOJIS = 1 << 18
    CHANGE_NICKNAME = 1 << 26
    MANAGE_NICKNAMES = 1 << 27
    MANAGE_ROLES = 1 << 28
    MANAGE_WEBHOOKS = 1 << 29
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


EVERYTHING = Permission((1 << 53) - 1)

# What @everyone may do in a server that nobody has configured.
DEFAULT_EVERYONE = (
    Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.ADD_REACTIONS
    | Permission.READ_MESSAGE_HISTORY
    | Permission.USE_EXTERNAL_EMOJIS
    | Permission.CHANGE_NICKNAME
    | Permission.USE_APPLICATION_COMMANDS
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.CREATE_PRIVATE_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
)

# What the invitation of the bot asks for, beyond @everyone's.
DEFAULT_BOT = (
    Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.ADD_REACTIONS
    | Permission.READ_MESSAGE_HISTORY
    | Permission.SEND_MESSAGES_IN_THREADS
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.MANAGE_WEBHOOKS
)

DIRECT_MESSAGE = (
    Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.ADD_REACTIONS
    | Permission.READ_MESSAGE_HISTORY
    | Permission.USE_EXTERNAL_EMOJIS
    | Permission.USE_APPLICATION_COMMANDS
)

# Denied together with the right to send.
NEEDS_SENDING = (
    Permission.MENTION_EVERYONE
    | Permission.SEND_TTS_MESSAGES
    | Permission.ATTACH_FILES
    | Permission.EMBED_LINKS
)


def guild_permissions(member: Member) -> Permission:
    """What a member may do in the guild, before any channel has its say."""
    if member.user.id == member.guild.owner_id:
        return EVERYTHING
    granted = member.guild.everyone.permissions
    for role in member.roles:
        granted |= role.permissions
    return EVERYTHING if Permission.ADMINISTRATOR in granted else granted


def channel_permissions(member: Member, channel: Channel) -> Permission:
    """What a member may do in a channel or thread; nothing at all where they may not view it."""
    granted = guild_permissions(member)
    if Permission.ADMINISTRATOR in granted:
        return EVERYTHING
    place = channel.parent if channel.thread is not None and channel.parent else channel
    granted = _apply_overwrites(granted, member, place.overwrites)
    if Permission.VIEW_CHANNEL not in granted or not _in_private_thread(member, channel, granted):
        return Permission.NONE
    right_to_send = (
        Permission.SEND_MESSAGES_IN_THREADS if channel.thread else Permission.SEND_MESSAGES
    )
    return granted if right_to_send in granted else granted & ~NEEDS_SENDING


def _apply_overwrites(
    granted: Permission, member: Member, overwrites: dict[int, Overwrite]
) -> Permission:
    everyone = overwrites.get(member.guild.id)
    if everyone:
        granted = (granted & ~everyone.deny) | everyone.allow
    allow = deny = Permission.NONE
    for role in member.roles:
        if overwrite := overwrites.get(role.id):
            allow |= overwrite.allow
            deny |= overwrite.deny
    granted = (granted & ~deny) | allow
    own = overwrites.get(member.user.id)
    return (granted & ~own.deny) | own.allow if own else granted


def _in_private_thread(member: Member, channel: Channel, granted: Permission) -> bool:
    """Whether a thread's own door is open: a private one has members, moderators see all."""
    if channel.thread is None or not channel.is_private_thread:
        return True
    return member.user.id in channel.thread.member_ids or Permission.MANAGE_THREADS in granted

"""The payloads of REST v10 and gateway v10, written from the records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.fakes.discord.permissions import channel_permissions
from tests.fakes.discord.records import ChannelKind, JsonObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.fakes.discord.records import (
        Attachment,
        Channel,
        Guild,
        Member,
        Message,
        Role,
        User,
        Webhook,
    )


def iso(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None


def user_payload(user: User) -> JsonObject:
    return {
        "id": str(user.id),
        "username": user.name,
        "discriminator": "0000" if user.is_bot else "0",
        "global_name": user.display_name,
        "avatar": None,
        "bot": user.is_bot,
        "public_flags": 0,
    }


def role_payload(role: Role) -> JsonObject:
    return {
        "id": str(role.id),
        "name": role.name,
        "permissions": str(role.permissions.value),
        "position": role.position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": role.managed,
        "mentionable": role.mentionable,
        "flags": 0,
    }


def member_payload(member: Member, *, with_user: bool = True) -> JsonObject:
    payload: JsonObject = {
        "roles": [str(role.id) for role in member.roles],
        "nick": member.nick,
        "avatar": None,
        "joined_at": iso(member.joined_at),
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
    }
    return {**payload, "user": user_payload(member.user)} if with_user else payload


def channel_payload(channel: Channel) -> JsonObject:
    if channel.is_direct:
        recipients = [user_payload(channel.recipient)] if channel.recipient else []
        return {
            "id": str(channel.id),
            "type": int(channel.kind),
            "recipients": recipients,
            "last_message_id": None,
            "flags": 0,
        }
    payload: JsonObject = {
        "id": str(channel.id),
        "type": int(channel.kind),
        "guild_id": str(channel.guild.id) if channel.guild else None,
        "name": channel.name,
        "parent_id": str(channel.parent.id) if channel.parent else None,
        "position": channel.position,
        "topic": channel.topic,
        "nsfw": channel.nsfw,
        "rate_limit_per_user": 0,
        "last_message_id": str(max(channel.messages)) if channel.messages else None,
        "flags": 0,
        "permission_overwrites": overwrites_payload(channel),
    }
    if channel.kind is ChannelKind.FORUM:
        payload |= {"available_tags": [], "default_reaction_emoji": None, "default_forum_layout": 0}
    return payload | _thread_fields(channel) if channel.thread else payload


def overwrites_payload(channel: Channel) -> list[JsonObject]:
    return [
        {
            "id": str(target),
            "type": 0 if overwrite.is_role else 1,
            "allow": str(overwrite.allow.value),
            "deny": str(overwrite.deny.value),
        }
        for target, overwrite in channel.overwrites.items()
    ]


def _thread_fields(channel: Channel) -> JsonObject:
    thread = channel.thread
    if thread is None:
        return {}
    return {
        "owner_id": str(thread.owner_id),
        "message_count": len(channel.messages),
        "total_message_sent": len(channel.messages),
        "member_count": len(thread.member_ids),
        "thread_metadata": {
            "archived": thread.archived,
            "locked": thread.locked,
            "invitable": thread.invitable,
            "auto_archive_duration": thread.auto_archive_minutes,
            "archive_timestamp": iso(thread.created_at),
            "create_timestamp": iso(thread.created_at),
        },
    }


def thread_member_payload(channel: Channel, user_id: int) -> JsonObject:
    joined = channel.thread.created_at if channel.thread else None
    return {
        "id": str(channel.id),
        "user_id": str(user_id),
        "join_timestamp": iso(joined),
        "flags": 0,
    }


def thread_payload(channel: Channel, bot: User) -> JsonObject:
    """A thread as the bot is told of it: with its own membership where it has one."""
    payload = channel_payload(channel)
    if channel.thread and bot.id in channel.thread.member_ids:
        payload["member"] = thread_member_payload(channel, bot.id)
    return payload


def guild_payload(
    guild: Guild, channels: Iterable[Channel], members: Iterable[Member], bot: User
) -> JsonObject:
    """GUILD_CREATE: every channel, the threads the bot can view, the members it may list."""
    every = list(channels)
    myself = guild.members[bot.id]
    threads = [
        channel
        for channel in every
        if channel.thread and not channel.thread.archived and channel_permissions(myself, channel)
    ]
    return guild_summary(guild) | {
        "joined_at": iso(guild.joined_at),
        "large": False,
        "unavailable": False,
        "member_count": len(guild.members),
        "members": [member_payload(member) for member in members],
        "channels": [channel_payload(channel) for channel in every if not channel.thread],
        "threads": [thread_payload(channel, bot) for channel in threads],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def guild_summary(guild: Guild) -> JsonObject:
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner_id),
        "preferred_locale": guild.locale,
        "roles": [role_payload(role) for role in guild.roles.values()],
        "icon": None,
        "splash": None,
        "banner": None,
        "description": None,
        "features": ["COMMUNITY"],
        "emojis": [],
        "stickers": [],
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "application_id": None,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "premium_progress_bar_enabled": False,
        "vanity_url_code": None,
    }


def attachment_payload(attachment: Attachment) -> JsonObject:
    payload: JsonObject = {
        "id": str(attachment.id),
        "filename": attachment.name,
        "size": len(attachment.content),
        "url": attachment.url,
        "proxy_url": attachment.url,
        "content_type": attachment.content_type,
    }
    if attachment.description is not None:
        payload["description"] = attachment.description
    return payload


def webhook_payload(webhook: Webhook) -> JsonObject:
    guild = webhook.channel.guild
    return {
        "id": str(webhook.id),
        "type": 1,
        "token": webhook.token,
        "name": webhook.name,
        "avatar": None,
        "channel_id": str(webhook.channel.id),
        "guild_id": str(guild.id) if guild else None,
        "application_id": str(webhook.application_id) if webhook.application_id else None,
        "user": user_payload(webhook.creator),
    }


def message_payload(
    message: Message, bot: User, *, reads_content: bool, with_reference: bool = True
) -> JsonObject:
    """A message as the bot may read it.

    Without the message content intent Discord blanks text, embeds, files and components, except in
    direct messages, in what mentions the bot, and in what the bot itself wrote.
    """
    readable = reads_content or _always_readable(message, bot)
    payload = _message_frame(message, bot) | {
        "content": message.content if readable else "",
        "embeds": message.embeds if readable else [],
        "components": message.components if readable else [],
        "attachments": [attachment_payload(one) for one in message.attachments] if readable else [],
    }
    if message.reference and with_reference:
        original = message.reference.message
        payload["referenced_message"] = (
            message_payload(original, bot, reads_content=reads_content, with_reference=False)
            if original and not original.deleted
            else None
        )
    return payload


def _always_readable(message: Message, bot: User) -> bool:
    return (
        message.channel.is_direct
        or message.author is bot
        or message.application_id == bot.id
        or bot.id in message.pings.user_ids
    )


def _message_frame(message: Message, bot: User) -> JsonObject:
    """Everything of a message that needs no intent to be read."""
    payload: JsonObject = {
        "id": str(message.id),
        "channel_id": str(message.channel.id),
        "author": user_payload(message.author),
        "timestamp": iso(message.created_at),
        "edited_timestamp": iso(message.edited_at),
        "type": int(message.kind),
        "flags": int(message.flags),
        "tts": False,
        "pinned": message.pinned,
        "mention_everyone": message.pings.everyone,
        "mentions": [user_payload(user) for user in message.mentioned],
        "mention_roles": [str(role_id) for role_id in sorted(message.pings.role_ids)],
    }
    if message.nonce is not None:
        payload["nonce"] = message.nonce
    if message.webhook_id is not None:
        payload["webhook_id"] = str(message.webhook_id)
    if message.application_id is not None:
        payload["application_id"] = str(message.application_id)
    if message.interaction is not None:
        payload["interaction_metadata"] = message.interaction
    if message.reactions:
        payload["reactions"] = [
            _reaction(name, people, bot) for name, people in message.reactions.items()
        ]
    if reference := message.reference:
        payload["message_reference"] = {
            "type": 0,
            "message_id": str(reference.message_id),
            "channel_id": str(reference.channel_id),
        } | ({"guild_id": str(reference.guild_id)} if reference.guild_id else {})
    return payload


def emoji_payload(emoji: str) -> JsonObject:
    """`name:id` is a custom emoji, everything else is one of Unicode."""
    name, _, emoji_id = emoji.rpartition(":")
    if name and emoji_id.isdigit():
        return {"id": emoji_id, "name": name, "animated": False}
    return {"id": None, "name": emoji}


def _reaction(emoji: str, people: list[int], bot: User) -> JsonObject:
    return {
        "emoji": emoji_payload(emoji),
        "count": len(people),
        "count_details": {"burst": 0, "normal": len(people)},
        "me": bot.id in people,
        "me_burst": False,
        "burst_colors": [],
    }


def message_event(message: Message, bot: User, *, reads_content: bool) -> JsonObject:
    """MESSAGE_CREATE and MESSAGE_UPDATE: the message with its guild and its author's membership.

    An ephemeral answer comes without its guild, as if it were a direct message.
    """
    payload = message_payload(message, bot, reads_content=reads_content)
    guild = message.guild
    if guild is None or message.is_ephemeral:
        return payload
    payload["guild_id"] = str(guild.id)
    if message.webhook_id is None and (member := guild.members.get(message.author.id)):
        payload["member"] = member_payload(member, with_user=False)
    for mentioned in payload["mentions"]:
        if member := guild.members.get(int(mentioned["id"])):
            mentioned["member"] = member_payload(member, with_user=False)
    return payload

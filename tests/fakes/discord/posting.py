"""Writing messages into the world: posted, edited, deleted, reacted to, and published."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.fakes.discord import wire
from tests.fakes.discord.events import Event
from tests.fakes.discord.mentions import pings_of
from tests.fakes.discord.message_rules import numbered
from tests.fakes.discord.records import (
    Attachment,
    Channel,
    Message,
    MessageFlag,
    MessageKind,
    MessageReference,
    User,
)
from tests.fakes.discord.snowflakes import created_at, snowflake_at
from tests.fakes.discord.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.fakes.discord.calls import UploadedFile
    from tests.fakes.discord.records import JsonObject

# What no edit takes away.
LASTING_FLAGS = MessageFlag.EPHEMERAL | MessageFlag.HAS_THREAD | MessageFlag.COMPONENTS_V2


class MessageWorld(World):
    """A world in which messages can be written; it knows the address files are served from."""

    def __init__(self) -> None:
        super().__init__()
        self.url = ""
        self.files: dict[str, Attachment] = {}

    def post(
        self,
        channel: Channel,
        author: User,
        content: str = "",
        *,
        reply_to: Message | None = None,
        allowed_mentions: JsonObject | None = None,
        files: Iterable[UploadedFile] = (),
        at: datetime | None = None,
        duplicate: int = 1,
        **fields: Any,
    ) -> Message:
        """Write a message and publish MESSAGE_CREATE, `duplicate` times.

        `at` backdates it, id and all. `fields` are fields of `Message`.
        """
        message = self._composed(
            channel, author, content, reply_to=reply_to, allowed=allowed_mentions, at=at, **fields
        )
        message.attachments += [self.attachment(file) for file in files]
        channel.messages[message.id] = message
        self._wake_thread(message)
        for _ in range(duplicate):
            self.message_event("MESSAGE_CREATE", message)
        return message

    def _composed(
        self,
        channel: Channel,
        author: User,
        content: str,
        *,
        reply_to: Message | None,
        allowed: JsonObject | None,
        at: datetime | None,
        **fields: Any,
    ) -> Message:
        message_id = self._unused_id(channel, at) if at else self.snowflakes.next()
        pings = pings_of(
            content,
            channel=channel,
            author=author,
            allowed=allowed,
            replied_to=reply_to.author if reply_to and reply_to.webhook_id is None else None,
        )
        message = Message(
            id=message_id,
            channel=channel,
            author=author,
            content=content,
            created_at=created_at(message_id),
            allowed_mentions=allowed,
            pings=pings,
            revisions=[content],
            **fields,
        )
        message.mentioned = self._users(pings.user_ids)
        message.components = numbered(copy.deepcopy(message.components))
        if reply_to:
            message.reference = reference_to(reply_to)
            if message.kind is MessageKind.DEFAULT:
                message.kind = MessageKind.REPLY
        return message

    def _users(self, ids: Iterable[int]) -> list[User]:
        return [self.users[one] for one in sorted(ids) if one in self.users]

    def _unused_id(self, channel: Channel, at: datetime) -> int:
        message_id = snowflake_at(at)
        while message_id in channel.messages:
            message_id += 1
        return message_id

    def _wake_thread(self, message: Message) -> None:
        """Writing in an archived thread opens it; the author and those it mentions join it."""
        channel, thread = message.channel, message.channel.thread
        if thread is None or channel.guild is None:
            return
        for user in (message.author, *message.mentioned):
            if user.id in channel.guild.members:
                self.join_thread(channel, user)
        if thread.archived:
            thread.archived = False
            self.channel_event("THREAD_UPDATE", channel)

    def attachment(self, file: UploadedFile) -> Attachment:
        """Keep a file and serve it under its address."""
        attachment_id = self.snowflakes.next()
        path = f"/cdn/{attachment_id}/{file.name}"
        attachment = Attachment(
            id=attachment_id,
            name=file.name,
            content=file.content,
            content_type=file.content_type,
            url=self.url + path,
        )
        self.files[path] = attachment
        return attachment

    def message_event(self, name: str, message: Message) -> None:
        self.publish(
            Event(name=name, message=message, guild=message.guild, channel=message.channel)
        )

    # --- changing

    def revise(
        self, message: Message, changes: JsonObject, *, files: Iterable[UploadedFile] = ()
    ) -> None:
        """Apply an edit (`content`, `embeds`, `components`, `flags`, files) and publish it."""
        if "content" in changes:
            message.content = changes["content"] or ""
            message.revisions.append(message.content)
            self._recount_mentions(message, changes.get("allowed_mentions"))
        if "embeds" in changes:
            message.embeds = changes["embeds"] or []
        if "components" in changes:
            message.components = numbered(copy.deepcopy(changes["components"] or []))
        if changes.get("flags") is not None:
            message.flags = MessageFlag(changes["flags"]) | (message.flags & LASTING_FLAGS)
        if changes.get("attachments") is not None:
            kept = {int(one["id"]) for one in changes["attachments"]}
            message.attachments = [one for one in message.attachments if one.id in kept]
        message.attachments += [self.attachment(file) for file in files]
        message.edited_at = datetime.now(UTC)
        self.message_event("MESSAGE_UPDATE", message)

    def _recount_mentions(self, message: Message, allowed: JsonObject | None) -> None:
        """An edit notifies nobody, but `mentions` follows the new text."""
        named = pings_of(
            message.content, channel=message.channel, author=message.author, allowed=allowed
        )
        message.mentioned = self._users(named.user_ids)

    def erase(self, messages: Iterable[Message], channel: Channel, *, bulk: bool = False) -> None:
        """Delete messages of one channel: one event each, or one for all."""
        gone = list(messages)
        for message in gone:
            message.deleted = True
            channel.messages.pop(message.id, None)
        if bulk:
            ids = [str(message.id) for message in gone]
            self._deleted("MESSAGE_DELETE_BULK", {"ids": ids}, channel)
            return
        for message in gone:
            self._deleted("MESSAGE_DELETE", {"id": str(message.id)}, channel)

    def _deleted(self, name: str, data: JsonObject, channel: Channel) -> None:
        data["channel_id"] = str(channel.id)
        if channel.guild:
            data["guild_id"] = str(channel.guild.id)
        self.publish(Event(name=name, data=data, guild=channel.guild, channel=channel))

    def add_reaction(self, message: Message, user: User, emoji: str) -> None:
        people = message.reactions.setdefault(emoji, [])
        if user.id not in people:
            people.append(user.id)
            self._reacted("MESSAGE_REACTION_ADD", message, user, emoji)

    def remove_reaction(self, message: Message, user: User, emoji: str) -> None:
        people = message.reactions.get(emoji, [])
        if user.id in people:
            people.remove(user.id)
            if not people:
                del message.reactions[emoji]
            self._reacted("MESSAGE_REACTION_REMOVE", message, user, emoji)

    def _reacted(self, name: str, message: Message, user: User, emoji: str) -> None:
        data: JsonObject = {
            "user_id": str(user.id),
            "channel_id": str(message.channel.id),
            "message_id": str(message.id),
            "message_author_id": str(message.author.id),
            "emoji": wire.emoji_payload(emoji),
            "burst": False,
            "type": 0,
        }
        guild = message.guild
        if guild:
            data["guild_id"] = str(guild.id)
            if name.endswith("ADD") and (member := guild.members.get(user.id)):
                data["member"] = wire.member_payload(member)
        self.publish(Event(name=name, data=data, guild=guild, channel=message.channel))


def reference_to(message: Message) -> MessageReference:
    return MessageReference(
        message_id=message.id,
        channel_id=message.channel.id,
        guild_id=message.guild.id if message.guild else None,
        message=message,
    )

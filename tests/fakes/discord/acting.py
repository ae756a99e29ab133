"""What people do on Discord: write, edit, delete, react, type, open posts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.fakes.discord.calls import UploadedFile
from tests.fakes.discord.events import Event
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.posting import MessageWorld
from tests.fakes.discord.records import (
    HOLD_NO_MESSAGES,
    ChannelKind,
    Message,
    MessageFlag,
    User,
)
from tests.fakes.discord.resolving import NotPossible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tests.fakes.discord.records import Channel, JsonObject, Webhook


class ActingWorld(MessageWorld):
    """Adds the people's side of Discord. They are held to their permissions too."""

    async def say(
        self,
        user: User,
        channel: Channel,
        text: str = "",
        *,
        mention_bot: bool = False,
        reply_to: Message | None = None,
        ping: bool = True,
        files: Mapping[str, bytes] | None = None,
        at: datetime | None = None,
        duplicate: int = 1,
        **fields: Any,
    ) -> Message:
        """Let somebody write a message.

        `mention_bot` puts the bot's mention first; `ping=False` replies without notifying;
        `files` are names with contents; `at` backdates; `duplicate=2` sends the event twice;
        `fields` are fields of `Message` (`kind=MessageKind.PIN_ADDED`, `embeds=[...]`).
        """
        sending = (
            Permission.SEND_MESSAGES_IN_THREADS if channel.thread else Permission.SEND_MESSAGES
        )
        if channel.kind in HOLD_NO_MESSAGES or not self.can(user, channel, sending):
            raise NotPossible(f"{user.name} may not write in {channel!r}")
        content = f"{self.bot.mention} {text}".rstrip() if mention_bot else text
        silenced: JsonObject = {"parse": ["users", "roles", "everyone"], "replied_user": False}
        return self.post(
            channel,
            user,
            content,
            reply_to=reply_to,
            allowed_mentions=None if ping else silenced,
            files=[_upload(name, data) for name, data in (files or {}).items()],
            at=at,
            duplicate=duplicate,
            **fields,
        )

    async def say_through(
        self, webhook: Webhook, text: str, *, username: str | None = None
    ) -> Message:
        """Let another program write through a webhook."""
        author = User(id=webhook.id, name=username or webhook.name, is_bot=True)
        return self.post(
            webhook.channel,
            author,
            text,
            webhook_id=webhook.id,
            application_id=webhook.application_id,
        )

    async def edit(self, message: Message, text: str) -> None:
        """Let the author change a message's text."""
        self.revise(message, {"content": text})

    async def delete(self, message: Message) -> None:
        self.erase([message], message.channel)

    async def bulk_delete(self, messages: Iterable[Message]) -> None:
        """Let a moderator delete messages of one channel at once: one event for all."""
        gone = list(messages)
        self.erase(gone, gone[0].channel, bulk=True)

    async def react(self, user: User, message: Message, emoji: str) -> None:
        self.add_reaction(message, user, emoji)

    async def unreact(self, user: User, message: Message, emoji: str) -> None:
        self.remove_reaction(message, user, emoji)

    async def type_in(self, user: User, channel: Channel) -> None:
        """Show that somebody is typing: TYPING_START."""
        now = self.snowflakes.next() >> 22
        data: JsonObject = {
            "channel_id": str(channel.id),
            "user_id": str(user.id),
            "timestamp": now // 1000,
        }
        if channel.guild:
            data["guild_id"] = str(channel.guild.id)
        self.publish(Event(name="TYPING_START", data=data, guild=channel.guild, channel=channel))

    async def forum_post(
        self, user: User, forum: Channel, title: str, text: str, *, mention_bot: bool = False
    ) -> Channel:
        """Open a post in a forum: a thread whose first message has the thread's own id."""
        if forum.kind is not ChannelKind.FORUM:
            raise ValueError(f"{forum.name} is no forum")
        post = self.thread(forum, title, owner=user)
        content = f"{self.bot.mention} {text}" if mention_bot else text
        first = self._first_message(post, user, content)
        self.message_event("MESSAGE_CREATE", first)
        return post

    def _first_message(self, post: Channel, user: User, content: str) -> Message:
        message = self._composed(post, user, content, reply_to=None, allowed=None, at=None)
        message.id = post.id
        post.messages[message.id] = message
        return message

    async def start_thread(self, user: User, message: Message, name: str = "thread") -> Channel:
        """Let somebody open a thread from a message; both have the same id."""
        message.flags |= MessageFlag.HAS_THREAD
        return self.thread(message.channel, name, owner=user, starter=message)


def _upload(name: str, content: bytes) -> UploadedFile:
    kinds = {"png": "image/png", "jpg": "image/jpeg", "txt": "text/plain; charset=utf-8"}
    content_type = kinds.get(name.rpartition(".")[2], "application/octet-stream")
    return UploadedFile(field="files[0]", name=name, content=content, content_type=content_type)

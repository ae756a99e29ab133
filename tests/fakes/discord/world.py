"""The world behind the wire: guilds, people and roles, channels, threads, direct messages.

Everything may be changed while a bot is connected: the change is published to the gateway.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.fakes.discord import wire
from tests.fakes.discord.events import Event
from tests.fakes.discord.people import PeopleWorld
from tests.fakes.discord.permissions import DIRECT_MESSAGE, Permission, channel_permissions
from tests.fakes.discord.records import Channel, ChannelKind, Overwrite, ThreadState, User, Webhook

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.fakes.discord.records import Guild, JsonObject, Message, Role


class World(PeopleWorld):
    """Starts with the guild `home`, its channel `general`, its `owner` and a member `alice`."""

    def __init__(self) -> None:
        self.channels: dict[int, Channel] = {}
        self.webhooks: dict[int, Webhook] = {}
        super().__init__()
        self.general = self.channel("general")
        self.alice = self.member("alice", display_name="Alice")

    # --- channels

    def channel(
        self,
        name: str,
        *,
        guild: Guild | None = None,
        kind: ChannelKind = ChannelKind.TEXT,
        category: Channel | None = None,
        topic: str | None = None,
        nsfw: bool = False,
    ) -> Channel:
        """A channel, category or forum; one in a category starts with the category's overwrites."""
        place = guild or self.home
        channel = Channel(
            id=self.snowflakes.next(),
            kind=kind,
            name=name,
            guild=place,
            parent=category,
            topic=topic,
            nsfw=nsfw,
            position=len(self.channels),
        )
        if category:
            channel.overwrites = {
                target: Overwrite(is_role=one.is_role, allow=one.allow, deny=one.deny)
                for target, one in category.overwrites.items()
            }
        self.channels[channel.id] = channel
        self.channel_event("CHANNEL_CREATE", channel)
        return channel

    def overwrite(
        self,
        channel: Channel,
        target: Role | User | Guild,
        *,
        allow: Permission = Permission.NONE,
        deny: Permission = Permission.NONE,
    ) -> None:
        """Set what a role, a member, or @everyone (the guild) may do in one channel."""
        is_role = not isinstance(target, User)
        channel.overwrites[target.id] = Overwrite(is_role=is_role, allow=allow, deny=deny)
        self.channel_event("CHANNEL_UPDATE", channel)

    def remove_overwrite(self, channel: Channel, target: Role | User | Guild) -> None:
        channel.overwrites.pop(target.id, None)
        self.channel_event("CHANNEL_UPDATE", channel)

    def hide(self, channel: Channel, *except_for: Role | User) -> None:
        """Close a channel to @everyone, and open it to some (name the bot's role to keep it in)."""
        if channel.guild is None:
            raise ValueError("a direct message cannot be hidden")
        self.overwrite(channel, channel.guild, deny=Permission.VIEW_CHANNEL)
        for target in except_for:
            self.overwrite(channel, target, allow=Permission.VIEW_CHANNEL)

    def delete_channel(self, channel: Channel) -> None:
        """A channel goes with its threads and messages."""
        for thread in [one for one in self.channels.values() if one.parent is channel]:
            if thread.thread:
                self.delete_channel(thread)
            else:
                thread.parent = None
        del self.channels[channel.id]
        for message in channel.messages.values():
            message.deleted = True
        for webhook in [one for one in self.webhooks.values() if one.channel is channel]:
            del self.webhooks[webhook.id]
        self.channel_event("THREAD_DELETE" if channel.thread else "CHANNEL_DELETE", channel)

    def channel_event(self, name: str, channel: Channel) -> None:
        data = (
            wire.thread_payload(channel, self.bot)
            if channel.thread
            else wire.channel_payload(channel)
        )
        if name == "THREAD_CREATE":
            data["newly_created"] = True
        self.publish(Event(name=name, data=data, guild=channel.guild, channel=channel))

    def direct(self, user: User) -> Channel:
        """The direct messages between a user and the bot; always the same channel."""
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        channel = Channel(id=self.snowflakes.next(), kind=ChannelKind.DIRECT, recipient=user)
        self.channels[channel.id] = channel
        return channel

    # --- webhooks

    def webhook(self, channel: Channel, name: str, *, creator: User | None = None) -> Webhook:
        """A webhook of a channel; one that the bot did not make belongs to a stranger."""
        creator = creator or self.owner
        webhook = Webhook(
            id=self.snowflakes.next(),
            token=secrets.token_urlsafe(32),
            name=name,
            channel=channel,
            creator=creator,
            application_id=self.bot.id if creator is self.bot else None,
        )
        self.webhooks[webhook.id] = webhook
        self._webhooks_changed(channel)
        return webhook

    def delete_webhook(self, webhook: Webhook) -> None:
        del self.webhooks[webhook.id]
        self._webhooks_changed(webhook.channel)

    def _webhooks_changed(self, channel: Channel) -> None:
        if channel.guild:
            data = {"guild_id": str(channel.guild.id), "channel_id": str(channel.id)}
            self.publish(
                Event(name="WEBHOOKS_UPDATE", data=data, guild=channel.guild, channel=channel)
            )

    # --- threads

    def thread(
        self,
        parent: Channel,
        name: str = "thread",
        *,
        owner: User | None = None,
        private: bool = False,
        members: Iterable[User] = (),
        starter: Message | None = None,
    ) -> Channel:
        """A thread under a channel or forum; one opened from `starter` shares that message's id."""
        owner = owner or self.alice
        kind = ChannelKind.PRIVATE_THREAD if private else ChannelKind.PUBLIC_THREAD
        if parent.kind is ChannelKind.ANNOUNCEMENT:
            kind = ChannelKind.ANNOUNCEMENT_THREAD
        thread = Channel(
            id=starter.id if starter else self.snowflakes.next(),
            kind=kind,
            name=name,
            guild=parent.guild,
            parent=parent,
            thread=ThreadState(
                owner_id=owner.id,
                created_at=datetime.now(UTC),
                member_ids={owner.id, *(user.id for user in members)},
            ),
        )
        self.channels[thread.id] = thread
        self.channel_event("THREAD_CREATE", thread)
        return thread

    def join_thread(self, thread: Channel, user: User) -> None:
        """Add a member to a thread; the bot is told of a private one only now."""
        if thread.thread is None or user.id in thread.thread.member_ids:
            return
        thread.thread.member_ids.add(user.id)
        if user is not self.bot:
            return
        if thread.is_private_thread:
            data = wire.thread_payload(thread, self.bot)
            self.publish(Event(name="THREAD_CREATE", data=data, guild=thread.guild, channel=thread))
        self._thread_members(thread, added=[wire.thread_member_payload(thread, user.id)])

    def leave_thread(self, thread: Channel, user: User) -> None:
        if thread.thread is None or user.id not in thread.thread.member_ids:
            return
        if user is self.bot:
            self._thread_members(thread, removed=[str(user.id)])
        thread.thread.member_ids.discard(user.id)

    def _thread_members(
        self, thread: Channel, *, added: Iterable[JsonObject] = (), removed: Iterable[str] = ()
    ) -> None:
        if thread.guild is None or thread.thread is None:
            return
        data: JsonObject = {
            "id": str(thread.id),
            "guild_id": str(thread.guild.id),
            "member_count": len(thread.thread.member_ids),
            "added_members": list(added),
            "removed_member_ids": list(removed),
        }
        self.publish(
            Event(name="THREAD_MEMBERS_UPDATE", data=data, guild=thread.guild, channel=thread)
        )

    def archive(self, thread: Channel, *, locked: bool = False) -> None:
        state = thread.thread
        if state is None:
            raise ValueError("only a thread can be archived")
        state.archived, state.locked = True, locked
        self.channel_event("THREAD_UPDATE", thread)

    # --- questions

    def permissions(self, user: User, channel: Channel) -> Permission:
        """What a user may do somewhere; nothing for those who are not in the guild."""
        if channel.guild is None:
            own = channel.recipient is user or user is self.bot
            return DIRECT_MESSAGE if own else Permission.NONE
        member = channel.guild.members.get(user.id)
        return channel_permissions(member, channel) if member else Permission.NONE

    def can(self, user: User, channel: Channel, permission: Permission) -> bool:
        return permission in self.permissions(user, channel)

    def visible_to(self, user: User, channel: Channel) -> list[Message]:
        """What a person can read in a channel now, oldest first; ephemeral answers if theirs."""
        if not self.can(user, channel, Permission.VIEW_CHANNEL):
            return []
        return [one for one in channel.history if one.visible_only_to in (None, user)]

    def bot_messages(self, channel: Channel) -> list[Message]:
        """What the bot said in a channel, also through its webhooks, oldest first."""
        return [
            one
            for one in channel.history
            if one.author is self.bot or one.application_id == self.bot.id
        ]

"""What the loopback Discord knows: people, places and what was said, as plain records.

Ids are integers here and strings on the wire (`wire.py` writes the payloads). Records compare by
identity, so they can be kept in sets and used as keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any

from tests.fakes.discord.permissions import Permission

if TYPE_CHECKING:
    from datetime import datetime

JsonObject = dict[str, Any]


class ChannelKind(IntEnum):
    TEXT = 0
    DIRECT = 1
    VOICE = 2
    CATEGORY = 4
    ANNOUNCEMENT = 5
    ANNOUNCEMENT_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


HOLD_NO_MESSAGES = (ChannelKind.CATEGORY, ChannelKind.FORUM)


class MessageKind(IntEnum):
    DEFAULT = 0
    PIN_ADDED = 6
    MEMBER_JOINED = 7
    BOOST = 8
    THREAD_CREATED = 18
    REPLY = 19
    CHAT_COMMAND = 20
    THREAD_STARTER = 21
    CONTEXT_MENU_COMMAND = 23


class MessageFlag(IntFlag):
    NONE = 0
    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    COMPONENTS_V2 = 1 << 15


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class User:
    """A person or bot. `locale` is the language of their Discord client, sent with interactions."""

    id: int
    name: str
    display_name: str | None = None
    is_bot: bool = False
    locale: str = "en-US"
    accepts_direct_messages: bool = True

    def __repr__(self) -> str:
        return f"<User {self.name}>"

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Role:
    id: int
    name: str
    permissions: Permission
    position: int
    mentionable: bool = False
    managed: bool = False

    def __repr__(self) -> str:
        return f"<Role {self.name}>"

    @property
    def mention(self) -> str:
        return f"<@&{self.id}>"


@dataclass(slots=True, kw_only=True)
class Overwrite:
    """What one role (or one member) is allowed and denied in one channel."""

    is_role: bool
    allow: Permission = Permission.NONE
    deny: Permission = Permission.NONE


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Guild:
    id: int
    name: str
    owner_id: int
    joined_at: datetime
    locale: str = "en-US"
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Guild {self.name}>"

    @property
    def everyone(self) -> Role:
        return self.roles[self.id]


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Member:
    user: User
    guild: Guild
    joined_at: datetime
    roles: list[Role] = field(default_factory=list)
    nick: str | None = None

    def __repr__(self) -> str:
        return f"<Member {self.user.name} of {self.guild.name}>"


@dataclass(slots=True, kw_only=True)
class ThreadState:
    """What a thread has beside a channel's own fields."""

    owner_id: int
    created_at: datetime
    member_ids: set[int] = field(default_factory=set)
    archived: bool = False
    locked: bool = False
    invitable: bool = True
    auto_archive_minutes: int = 1440


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Channel:
    """A channel, category, thread, forum or direct message."""

    id: int
    kind: ChannelKind
    name: str = ""
    guild: Guild | None = None
    parent: Channel | None = None
    topic: str | None = None
    nsfw: bool = False
    position: int = 0
    recipient: User | None = None
    thread: ThreadState | None = None
    overwrites: dict[int, Overwrite] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.name or self.recipient} {self.id}>"

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    @property
    def is_direct(self) -> bool:
        return self.kind is ChannelKind.DIRECT

    @property
    def is_private_thread(self) -> bool:
        return self.kind is ChannelKind.PRIVATE_THREAD

    @property
    def history(self) -> list[Message]:
        """Every message that still exists, oldest first, ephemeral ones included."""
        return [self.messages[key] for key in sorted(self.messages)]


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Attachment:
    id: int
    name: str
    content: bytes
    content_type: str
    url: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pings:
    """Who is notified by a message, after `allowed_mentions` and permissions."""

    everyone: bool = False
    user_ids: frozenset[int] = frozenset()
    role_ids: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return self.everyone or bool(self.user_ids) or bool(self.role_ids)


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class MessageReference:
    """The message a reply points at; `message` is None once that one is deleted."""

    message_id: int
    channel_id: int
    guild_id: int | None
    message: Message | None


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Message:
    """One message, as Discord keeps it.

    `allowed_mentions` is what the sender asked for (None: not sent); `pings` is what came of it.
    `visible_only_to` is set for ephemeral answers. `revisions` holds every content it ever had.
    """

    id: int
    channel: Channel
    author: User
    content: str
    created_at: datetime
    kind: MessageKind = MessageKind.DEFAULT
    flags: MessageFlag = MessageFlag.NONE
    edited_at: datetime | None = None
    embeds: list[JsonObject] = field(default_factory=list)
    components: list[JsonObject] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    reference: MessageReference | None = None
    nonce: str | int | None = None
    allowed_mentions: JsonObject | None = None
    pings: Pings = Pings()
    mentioned: list[User] = field(default_factory=list)
    reactions: dict[str, list[int]] = field(default_factory=dict)
    pinned: bool = False
    webhook_id: int | None = None
    application_id: int | None = None
    author_avatar: str | None = None
    interaction: JsonObject | None = None
    visible_only_to: User | None = None
    deleted: bool = False
    revisions: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self.author.name}: {self.content!r}>"

    @property
    def guild(self) -> Guild | None:
        return self.channel.guild

    @property
    def is_ephemeral(self) -> bool:
        return self.visible_only_to is not None

    @property
    def is_loading(self) -> bool:
        """Whether this is still the "is thinking ..." placeholder of a deferred answer."""
        return MessageFlag.LOADING in self.flags


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Webhook:
    id: int
    token: str
    name: str
    channel: Channel
    creator: User
    application_id: int | None

"""Discord's messages as the turn takes them, and what was said before them."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

import discord

from bot.audience import Place
from bot.discord_io.audience import place_of
from bot.discord_io.pacing import CALL_FAILED, persevere
from bot.errors import Unavailable
from bot.i18n import t
from bot.identifiers import MessageId, UserId
from bot.memory.references import reference_to, typed_text
from bot.turn.messages import IncomingMessage, Person

Named = discord.Role | discord.abc.GuildChannel | discord.Thread

SPOKEN_TYPES = frozenset((discord.MessageType.default, discord.MessageType.reply))
SEEN_MESSAGES = 10_000
LONGEST_NAME = 100

ROLE = re.compile(r"<@&(\d{1,20})>")
CHANNEL = re.compile(r"<#(\d{1,20})>")
EMOJI = re.compile(r"<a?(:\w+:)\d{1,20}>")
COMMAND = re.compile(r"<(/[^:<>]+):\d{1,20}>")


def to_incoming(
    message: discord.Message, *, us: discord.abc.User, default_locale: str
) -> IncomingMessage:
    """The message as it stands now; `us` is the bot's own user.

    `default_locale` is for direct messages. Whether a reply is to us is known only where Discord
    sent the other message along or it is in the cache.
    """
    locale = str(message.guild.preferred_locale) if message.guild else default_locale
    replied = _replied_to(message)
    is_reply = message.type is discord.MessageType.reply and message.reference is not None
    replies_to = message.reference.message_id if is_reply and message.reference else None
    return IncomingMessage(
        id=MessageId(message.id),
        place=place_of(message.channel),
        author=_person(message.author, message.guild, is_webhook=message.webhook_id is not None),
        text=_without_address(_text(message, locale), us),
        sent_at=message.created_at,
        locale=locale,
        people=tuple(_person(user, message.guild) for user in message.mentions),
        mentions_us=_mentions(message, us),
        replies_to=None if replies_to is None else MessageId(replies_to),
        replies_to_us=is_reply and replied is not None and replied.author.id == us.id,
        is_own=message.author.id == us.id,
        is_system=message.type not in SPOKEN_TYPES,
        may_answer=_may_answer(message),
    )


class SeenMessages:
    """Remembers the newest message ids, for Discord may send an event twice."""

    def __init__(self, size: int = SEEN_MESSAGES) -> None:
        self._size = size
        self._seen: OrderedDict[MessageId, None] = OrderedDict()

    def is_new(self, message: MessageId) -> bool:
        """Whether this id is asked about for the first time."""
        if message in self._seen:
            self._seen.move_to_end(message)
            return False
        self._seen[message] = None
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return True


class DiscordHistory:
    """Reads the past of a channel from Discord."""

    def __init__(self, client: discord.Client, *, default_locale: str) -> None:
        self._client = client
        self._default_locale = default_locale

    async def newest(self, place: Place, limit: int) -> tuple[IncomingMessage, ...]:
        """The newest messages, oldest first, and before them the message that a thread began with.

        Empty where the channel may not be read. Raises Unavailable where Discord does not answer.
        """
        us = self._client.user
        if us is None:
            raise Unavailable("discord_not_connected")
        try:
            messages = await persevere(lambda: self._read(place, limit))
        except (discord.Forbidden, discord.NotFound):
            return ()
        except CALL_FAILED as error:
            raise Unavailable("discord_history") from error
        return tuple(
            replace(to_incoming(message, us=us, default_locale=self._default_locale), place=place)
            for message in messages
        )

    async def _read(self, place: Place, limit: int) -> list[discord.Message]:
        channel = self._client.get_channel(place.channel_id)
        channel = channel or await self._client.fetch_channel(place.channel_id)
        if not isinstance(channel, discord.abc.Messageable):
            return []
        messages = [message async for message in channel.history(limit=limit)]
        messages.reverse()
        has_starter = any(message.id == channel.id for message in messages)
        if isinstance(channel, discord.Thread) and not has_starter:
            starter = await _starter(channel)
            messages[:0] = [starter] if starter else []
        return messages


async def _starter(thread: discord.Thread) -> discord.Message | None:
    """The message that a thread was opened from (they share their id), or a post's first one."""
    if thread.starter_message or thread.is_private():
        return thread.starter_message
    parent = thread.parent
    source = parent if isinstance(parent, discord.TextChannel) else thread
    try:
        return await source.fetch_message(thread.id)
    except (discord.Forbidden, discord.NotFound):
        return None


def other_names(user: discord.User | discord.Member) -> tuple[str, ...]:
    """What somebody is known as besides the name that is shown."""
    names = (user.global_name, user.name)
    return tuple(dict.fromkeys(name for name in names if name and name != user.display_name))


def _person(
    user: discord.User | discord.Member, guild: discord.Guild | None, *, is_webhook: bool = False
) -> Person:
    """A person. What is read from a server's past shows the account only, not the member."""
    is_member = isinstance(user, discord.Member)
    return Person(
        id=UserId(user.id),
        name=user.display_name,
        other_names=other_names(user),
        of_account=guild is not None and not is_member and not is_webhook,
        is_bot=user.bot or is_webhook,
        is_manager=is_member and user.guild_permissions.manage_guild,
    )


def _replied_to(message: discord.Message) -> discord.Message | None:
    reference = message.reference
    if reference is None:
        return None
    if isinstance(reference.resolved, discord.Message):
        return reference.resolved
    return reference.cached_message


def _mentions(message: discord.Message, us: discord.abc.User) -> bool:
    """Whether the text names us or our own role. A reply's ping is no mention."""
    own_role = message.guild.self_role if message.guild else None
    if own_role is not None and own_role in message.role_mentions:
        return True
    return us.id in message.raw_mentions and any(user.id == us.id for user in message.mentions)


def _may_answer(message: discord.Message) -> bool:
    """Whether we may write where it was said, by what is cached; yes where that is not known."""
    channel = message.channel
    us = message.guild.me if message.guild else None
    if us is None or isinstance(channel, discord.PartialMessageable):
        return True
    if not isinstance(channel, discord.Thread):
        return channel.permissions_for(us).send_messages
    if channel.parent is None:
        return True
    ours = channel.permissions_for(us)
    return ours.send_messages_in_threads and (ours.manage_threads or not channel.locked)


# --- text


def _text(message: discord.Message, locale: str) -> str:
    """What was written and shown, with persons as references and everything else as plain words.

    What looks like a reference but was typed is no reference: "{p:1}" becomes "{p :1}".
    """
    lines = [_plain(message.content, message.guild), *_marks(message, locale)]
    return typed_text("\n".join(line for line in lines if line))


def _without_address(text: str, us: discord.abc.User) -> str:
    """The text without the mention that only calls us; where nothing else was said, it stays."""
    address = reference_to(UserId(us.id))
    if not text.startswith(address):
        return text
    return text.removeprefix(address).lstrip(" ,:;\n") or text


def _plain(content: str, guild: discord.Guild | None) -> str:
    """The text with roles, channels, emoji and commands by their names, where those are known."""
    text = COMMAND.sub(r"\1", EMOJI.sub(r"\1", content))
    if guild is None:
        return text
    text = ROLE.sub(_named("@", guild.get_role), text)
    return CHANNEL.sub(_named("#", guild.get_channel_or_thread), text)


def _named(sign: str, find: Callable[[int], Named | None]) -> Callable[[re.Match[str]], str]:
    def name(match: re.Match[str]) -> str:
        found = find(int(match[1]))
        return match[0] if found is None else f"{sign}{found.name.removeprefix(sign)}"

    return name


def _marks(message: discord.Message, locale: str) -> Iterator[str]:
    """A short plain mark for each thing that is not text; previews only where nothing else is."""
    for attachment in message.attachments:
        yield _mark(_kind(attachment), attachment.filename, locale)
    for sticker in message.stickers:
        yield _mark("sticker", sticker.name, locale)
    if message.poll is not None:
        yield _mark("poll", str(message.poll.question), locale)
    if message.message_snapshots:
        yield t("ui.delivery.forwarded", locale)
    if not message.content and not message.attachments:
        for embed in message.embeds:
            kind = "embed" if embed.title else "untitled_embed"
            yield _mark(kind, embed.title or "", locale)


def _mark(kind: str, name: str, locale: str) -> str:
    return t(f"ui.delivery.{kind}", locale, name=" ".join(name.split())[:LONGEST_NAME])


def _kind(attachment: discord.Attachment) -> str:
    kind = (attachment.content_type or "").partition("/")[0]
    return kind if kind in {"image", "video", "audio"} else "file"

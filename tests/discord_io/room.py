"""A client that listens, and the channel in which the tests let the bot reply."""

from __future__ import annotations

import discord

from bot.config.sections import DeliveryConfig
from bot.discord_io.delivery import DiscordDelivery
from bot.discord_io.pacing import Pacing
from bot.discord_io.splitter import split
from tests.fakes import Channel, LoopbackDiscord, Message

SEND = r"/channels/\d+/messages$"
ONE = r"/channels/\d+/messages/\d+$"
QUICK = DeliveryConfig(edit_interval_ms=20, send_retries=0)
PATIENT = DeliveryConfig(edit_interval_ms=20, send_retries=1)


class Listener(discord.Client):
    """A client with the intents of the bot, that keeps the messages it hears."""

    def __init__(self) -> None:
        super().__init__(
            intents=discord.Intents(
                guilds=True, guild_messages=True, dm_messages=True, message_content=True
            ),
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
        )
        self.heard: dict[int, discord.Message] = {}

    @property
    def us(self) -> discord.ClientUser:
        assert self.user is not None
        return self.user

    async def on_message(self, message: discord.Message) -> None:
        self.heard[message.id] = message

    def place(self, channel: Channel) -> discord.TextChannel | discord.Thread:
        found = self.get_channel(channel.id)
        assert isinstance(found, discord.TextChannel | discord.Thread)
        return found


async def heard(server: LoopbackDiscord, client: Listener, message: Message) -> discord.Message:
    """A message of the loopback Discord as discord.py has it."""
    return await server.wait_for(lambda: client.heard.get(message.id))


class Room:
    """`general`, where Alice asked something and the bot replies."""

    def __init__(self, server: LoopbackDiscord, client: Listener) -> None:
        self.server = server
        self.client = client
        self.channel = server.general
        self.question: Message | None = None

    async def reply(
        self, config: DeliveryConfig = QUICK, *, pings_author: bool = False
    ) -> DiscordDelivery:
        self.question = await self.server.say(
            self.server.alice, self.channel, "hi", mention_bot=True
        )
        question = await heard(self.server, self.client, self.question)
        return DiscordDelivery(
            channel=question.channel,
            reply_to=question,
            locale="en-US",
            pacing=Pacing(config.edit_interval_ms / 1000),
            config=config,
            pings_author=pings_author,
        )

    @property
    def messages(self) -> list[Message]:
        return self.server.bot_messages(self.channel)

    @property
    def contents(self) -> list[str]:
        return [message.content for message in self.messages]

    @property
    def text(self) -> str:
        return "".join(self.contents)

    async def wait_for_text(self, text: str) -> None:
        await self.server.wait_for(lambda: self.text == text, what=lambda: f"for {text[:50]!r}")

    async def wait_until_idle(self, delivery: DiscordDelivery) -> None:
        """Wait until nothing is being written: the text is shown, or cannot be for now."""
        await self.server.wait_for(lambda: delivery._writer is None or delivery._writer.done())

    async def wait_until_called(self, method: str, pattern: str, times: int = 1) -> None:
        await self.server.wait_for(
            lambda: len([c for c in self.server.calls_to(method, pattern) if c.status]) >= times
        )


def long_text(messages: int) -> str:
    """Exactly that many full messages."""
    text = "".join(f"{n:05} words that fill the room.\n" for n in range(messages * 59))
    assert len(split(text)) == messages
    return text

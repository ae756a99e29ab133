"""The Discord client: what every cog works with, and what has to be done when it connects."""

import logging
from dataclasses import dataclass

import discord
from discord.ext import commands

from bot.background import TaskOwner
from bot.config import Config
from bot.discord_io.command_sync import sync_commands
from bot.discord_io.command_tree import MadeleineTree
from bot.discord_io.delivery import DiscordDelivery
from bot.discord_io.intake import DiscordHistory, SeenMessages, to_incoming
from bot.discord_io.pacing import Pacing
from bot.discord_io.rooms import DiscordRooms
from bot.discord_io.translation import CatalogueTranslator
from bot.identifiers import UserId
from bot.storage.state import ApplicationState
from bot.turn.messages import IncomingMessage
from bot.turn.reception import Receiver
from bot.turn.services import TurnServices
from bot.turn.turn_rows import TurnRows

log = logging.getLogger(__name__)

COGS = (
    "cogs.chat",
    "cogs.rooms",
    "cogs.rights",
    "cogs.memory",
    "cogs.reply_buttons",
    "cogs.features",
    "cogs.channel",
    "cogs.persona",
    "cogs.privacy",
)


@dataclass(slots=True)
class OwnIdentity:
    """The bot's user id, which is known only once it has logged in."""

    user: UserId | None = None

    def __call__(self) -> UserId | None:
        return self.user


def wanted_intents(config: Config) -> discord.Intents:
    """What we ask Discord to tell us: never members, never presences."""
    return discord.Intents(
        guilds=True,
        guild_messages=True,
        dm_messages=True,
        message_content=config.discord.message_content_intent,
    )


class MadeleineBot(commands.Bot):
    """discord.py's bot with our services on it; cogs take them from here."""

    def __init__(
        self,
        *,
        config: Config,
        services: TurnServices,
        receiver: Receiver,
        turn_rows: TurnRows,
        state: ApplicationState,
        background: TaskOwner,
        identity: OwnIdentity,
        rooms: DiscordRooms,
    ) -> None:
        super().__init__(
            command_prefix=commands.when_mentioned,  # asked for by the library; see on_message
            help_command=None,
            tree_cls=MadeleineTree,
            intents=wanted_intents(config),
            allowed_mentions=discord.AllowedMentions.none(),
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
        )
        self.config = config
        self.services = services
        self.receiver = receiver
        self.turn_rows = turn_rows
        self.background = background
        self.seen = SeenMessages()
        self.past = DiscordHistory(self, default_locale=config.locale.default)
        self._pacing = Pacing(config.delivery.edit_interval_ms / 1000)
        self._identity = identity
        self.rooms = rooms
        self._state = state

    @property
    def us(self) -> discord.ClientUser:
        """Our own user; there is one as soon as events arrive."""
        if self.user is None:
            raise RuntimeError("asked for our own user before the login")
        return self.user

    def incoming(self, message: discord.Message) -> IncomingMessage:
        """A message as the turn takes it."""
        return to_incoming(message, us=self.us, default_locale=self.config.locale.default)

    def delivery_for(self, message: discord.Message, locale: str) -> DiscordDelivery:
        """Where the reply to a message goes."""
        return DiscordDelivery(
            channel=message.channel,
            reply_to=message,
            locale=locale,
            pacing=self._pacing,
            config=self.config.delivery,
            pings_author=self.config.discord.reply_ping,
        )

    async def setup_hook(self) -> None:
        """Once logged in: load the cogs, and tell Discord of the commands if they changed."""
        self._identity.user = UserId(self.us.id)
        self.rooms.client = self
        for cog in COGS:
            await self.load_extension(cog)
        await self.tree.set_translator(CatalogueTranslator())
        if self.config.discord.sync_commands:
            await sync_commands(self.tree, self._state)

    async def on_message(self, message: discord.Message) -> None:
        """Nothing here: the chat cog listens, and there are no commands with a prefix."""

    async def on_connect(self) -> None:
        """A new session: what was said since the last one ended was not told to us."""
        self.services.rings.doubt_all()
        self.rooms.forget_all()

    async def on_ready(self) -> None:
        """All servers have been told to us."""
        log.info("connected", extra={"guilds": len(self.guilds), "user": self.us.id})

    async def on_resumed(self) -> None:
        """The same session goes on: Discord has told us what we missed."""
        log.info("resumed")

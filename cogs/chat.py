"""Event intake: messages as they come, change and go."""

import logging

import discord
from discord.ext import commands

from bot.background import Raised, report_bug, settle
from bot.discord_io.client import MadeleineBot
from bot.discord_io.pacing import CALL_FAILED
from bot.identifiers import MessageId
from bot.turn.messages import IncomingMessage

log = logging.getLogger(__name__)

BUSY = "\N{HOURGLASS WITH FLOWING SAND}"


class Chat(commands.Cog):
    """Brings every message event to the receiver."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @commands.Cog.listener()
    async def on_message(self, message: discord.Message) -> None:
        outcome = await settle(self._receive(message))
        if isinstance(outcome, Raised):
            report_bug("message_lost", outcome.error)

    @commands.Cog.listener()
    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        if event.message.edited_at is None or event.message.author.id == self._bot.us.id:
            return  # a link got its preview, or it is our own
        message = self._bot.incoming(event.message)
        await self._bot.receiver.edit_message(message.id, message.text)

    @commands.Cog.listener()
    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        await self._bot.receiver.forget_messages([MessageId(event.message_id)])

    @commands.Cog.listener()
    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        await self._bot.receiver.forget_messages([MessageId(i) for i in event.message_ids])

    async def _receive(self, message: discord.Message) -> None:
        if not self._bot.seen.is_new(MessageId(message.id)):
            return
        incoming = await self._with_reply_known(self._bot.incoming(message))
        admission = self._bot.receiver.receive(
            incoming,
            lambda: self._bot.delivery_for(message, incoming.locale),
            self._bot.past,
        )
        if admission == "busy":
            await self._say_busy(message)

    async def _with_reply_known(self, message: IncomingMessage) -> IncomingMessage:
        """A reply to a message of ours that Discord did not send along is one all the same."""
        replies_to = message.replies_to
        if replies_to is None or message.replies_to_us or message.is_own:
            return message
        return message.replying_to_us(ours=await self._bot.turn_rows.is_reply(replies_to))

    async def _say_busy(self, message: discord.Message) -> None:
        try:
            await message.add_reaction(BUSY)
        except CALL_FAILED as error:
            log.info("busy_reaction_failed", extra={"reason": repr(error)})


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(Chat(bot))

"""Shows one reply in Discord: typing, then messages that grow by edits, or a file when too long."""

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar, assert_never

import discord

from bot.background import report_bug
from bot.config.sections import DeliveryConfig
from bot.discord_io.pacing import CALL_FAILED, Pacing, persevere
from bot.discord_io.reply_buttons import footer_view
from bot.discord_io.splitter import cut
from bot.i18n import t
from bot.identifiers import ChannelId, MessageId
from bot.turn.messages import NO_FOOTER, Delivered, Footer, Undeliverable

if TYPE_CHECKING:
    from discord.abc import MessageableChannel

log = logging.getLogger(__name__)

TYPING_EVERY_S = 8.0
"""Discord shows typing for 10 s."""

ABANDON_GRACE_S = 0.5
"""How long a call under way may take to end, so that what it sent is known."""

FILE_NAME = "reply.md"
SERVER_FAULTS = 500
INVALID_FORM, CANNOT_READ_HISTORY = 50035, 160002
CANNOT_REFER = frozenset((INVALID_FORM, CANNOT_READ_HISTORY))
"""Discord's codes where the message we reply to cannot be referred to."""

T = TypeVar("T")
Step = Literal["edit", "send", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What one message shall show, and the stretch of the reply that this is."""

    content: str
    body: str
    is_file: bool = False
    footer: Footer = NO_FOOTER

    def files(self) -> list[discord.File]:
        """A new file object for each try: discord.py closes them."""
        data = io.BytesIO(self.body.encode("utf-8", "replace"))
        return [discord.File(data, FILE_NAME)] if self.is_file else []


@dataclass(slots=True, kw_only=True)
class _Shown:
    """A message that stands. It surely shows `content`, unless a call about it failed."""

    message: discord.Message
    content: _Content
    is_sure: bool


class DiscordDelivery:
    """One reply in one channel; `pacing` is shared by all of them.

    What shall stand is a list of contents; every step (edit, send, delete) brings what stands
    nearer to it. While the text streams, a step that fails is taken again with the next text; at
    the end, what cannot be edited is sent anew.
    """

    def __init__(
        self,
        *,
        channel: "MessageableChannel",
        reply_to: discord.Message | discord.PartialMessage,
        locale: str,
        pacing: Pacing,
        config: DeliveryConfig,
        pings_author: bool = False,
    ) -> None:
        self._channel = channel
        self._reply_to = reply_to
        self._locale = locale
        self._pacing = pacing
        self._config = config
        self._mentions = discord.AllowedMentions.none()
        self._mentions.replied_user = pings_author
        self._text = ""
        self._wanted: tuple[_Content, ...] = ()
        self._shown: list[_Shown] = []
        self._surplus: list[_Shown] = []
        self._sent = 0
        self._may_be_sent = False
        self._is_closing = False
        self._obstacle: Exception | None = None
        self._typing: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Show that a reply is being written, until `finish` or `abandon`."""
        if self._typing is None:
            self._typing = asyncio.create_task(self._keep_typing())

    async def show(self, text: str) -> None:
        """Show the reply so far; returns at once, and the latest text is shown at the pace."""
        self._text = text
        if self._is_closing or self._obstacle or not text.strip():
            return
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._stream())

    async def finish(self, text: str, *, footer: Footer = NO_FOOTER) -> Delivered:
        """Show the whole reply, with `footer` under it in small type.

        Where only a part of it could be sent, that part is what is returned. Raises Undeliverable
        where nothing of it could be.
        """
        self._is_closing = True
        messages = self._pieces(text)
        self._wanted = self._with_footer(self._as_file_if_long(messages, text), footer)
        try:
            if self._writer is not None:
                await self._writer
            await self._complete(self._with_footer(messages, footer))
        finally:
            await self._stop()
        delivered = self._delivered()
        if delivered is None:
            raise Undeliverable("nothing of the reply could be sent") from self._obstacle
        return delivered

    async def abandon(self) -> Delivered | None:
        """Stop where it is; returns what already stands, or None where nothing was sent."""
        self._is_closing = True
        try:
            if self._writer is not None:
                await asyncio.wait((self._writer,), timeout=ABANDON_GRACE_S)
        finally:
            await self._stop()
        return self._delivered()

    # --- towards what shall stand

    async def _stream(self) -> None:
        """Keep up with the text until it is shown; a fault leaves the rest to the next text.

        A refusal is not asked for twice: it leaves the rest to the end.
        """
        try:
            while not self._is_closing:
                self._want_latest()
                step = self._next_step()
                if step is None:
                    return
                await self._take(step)
        except CALL_FAILED as error:
            log.info("reply_update_failed", extra={"reason": repr(error)})
            if isinstance(error, discord.HTTPException) and error.status < SERVER_FAULTS:
                self._obstacle = error

    async def _complete(self, without_file: tuple[_Content, ...]) -> None:
        """Take every step to the whole reply, round what fails."""
        while (step := self._next_step()) is not None:
            try:
                await self._take(step)
            except CALL_FAILED as error:
                log.warning("reply_step_failed", extra={"step": step, "reason": repr(error)})
                if not self._go_round(step, error, without_file):
                    self._obstacle = error
                    return

    def _want_latest(self) -> None:
        if not self._is_closing:
            pieces = self._pieces(self._text)
            self._wanted = pieces[: self._config.max_messages]

    def _as_file_if_long(self, messages: tuple[_Content, ...], text: str) -> tuple[_Content, ...]:
        if len(messages) <= self._config.max_messages:
            return messages
        line = t("ui.delivery.as_file", self._locale)
        return (_Content(content=line, body=text, is_file=True),)

    def _with_footer(self, contents: tuple[_Content, ...], footer: Footer) -> tuple[_Content, ...]:
        """The footer belongs to the last message, or follows in one of its own."""
        if not footer or not contents:
            return contents
        limit = self._config.message_characters
        small = "\n".join(f"-# {line}" for line in footer.text.splitlines())[:limit]
        last = contents[-1]
        joined = f"{last.content}\n{small}"
        if len(joined) > limit:
            return (*contents, _Content(content=small, body="", footer=footer))
        return (*contents[:-1], replace(last, content=joined, footer=footer))

    def _pieces(self, text: str) -> tuple[_Content, ...]:
        pieces = cut(text, self._config.message_characters)
        return tuple(_Content(content=piece.content, body=piece.body) for piece in pieces)

    def _next_step(self) -> Step | None:
        if self._outdated() is not None:
            return "edit"
        if len(self._shown) < len(self._wanted):
            return "send"
        return "delete" if self._surplus or len(self._shown) > len(self._wanted) else None

    def _outdated(self) -> int | None:
        """The first message that does not show what it shall."""
        pairs = enumerate(zip(self._shown, self._wanted, strict=False))
        return next(
            (i for i, (one, wanted) in pairs if not one.is_sure or one.content != wanted), None
        )

    async def _take(self, step: Step) -> None:
        match step:
            case "edit":
                await self._edit()
            case "send":
                await self._send(self._wanted[len(self._shown)])
            case "delete":
                await self._delete(self._surplus or self._shown)
            case _:
                assert_never(step)

    def _go_round(self, step: Step, error: Exception, without_file: tuple[_Content, ...]) -> bool:
        """Find a way past a step that failed; False where there is none."""
        match step:
            case "edit":
                self._replace_from(self._outdated() or 0, error)
            case "send":
                if not self._wanted[0].is_file or not isinstance(error, discord.Forbidden):
                    return False
                self._wanted = without_file
            case "delete":
                (self._surplus or self._shown).pop()
            case _:
                assert_never(step)
        return True

    def _replace_from(self, index: int, error: Exception) -> None:
        """Send the rest anew: the messages from here on go, once their text stands elsewhere."""
        gone = 1 if isinstance(error, discord.NotFound) else 0
        self._surplus += self._shown[index + gone :]
        del self._shown[index:]

    # --- calls

    async def _edit(self) -> None:
        async with self._pacing.slot(ChannelId(self._channel.id)):
            self._want_latest()
            index = self._outdated()
            if index is None:
                return
            one, wanted = self._shown[index], self._wanted[index]
            one.is_sure = False
            one.message = await self._persevere(
                lambda: one.message.edit(
                    content=wanted.content,
                    attachments=wanted.files(),
                    view=self._button(wanted),
                    allowed_mentions=self._mentions,
                )
            )
            one.content, one.is_sure = wanted, True

    async def _send(self, wanted: _Content) -> None:
        """Send a message. Its nonce changes only when it was sent: no try makes a second one.

        Where an earlier try may have sent another text, Discord answers with that message.
        """
        is_first_try, self._may_be_sent = not self._may_be_sent, True
        message = await self._post(wanted)
        self._may_be_sent = False
        self._sent += 1
        self._shown.append(_Shown(message=message, content=wanted, is_sure=is_first_try))

    async def _post(self, wanted: _Content) -> discord.Message:
        nonce = f"{self._reply_to.id}-{self._sent}"
        reference = self._reply_to.to_reference(fail_if_not_exists=False)

        def plain() -> Awaitable[discord.Message]:
            return self._channel.send(
                wanted.content,
                files=wanted.files(),
                view=self._button(wanted),
                nonce=nonce,
                allowed_mentions=self._mentions,
            )

        def reply() -> Awaitable[discord.Message]:
            return self._channel.send(
                wanted.content,
                files=wanted.files(),
                view=self._button(wanted),
                nonce=nonce,
                allowed_mentions=self._mentions,
                reference=reference,
            )

        if self._shown:
            return await self._persevere(plain)
        try:
            return await self._persevere(reply)
        except discord.HTTPException as error:
            if error.code not in CANNOT_REFER:
                raise
        return await self._persevere(plain)

    async def _delete(self, among: list[_Shown]) -> None:
        one = among[-1]
        try:
            await self._persevere(one.message.delete)
        except discord.NotFound:
            log.debug("reply_message_gone", extra={"message_id": one.message.id})
        among.remove(one)

    async def _persevere(self, call: Callable[[], Awaitable[T]]) -> T:
        return await persevere(call, retries=self._config.send_retries)

    async def _keep_typing(self) -> None:
        while True:
            try:
                await self._channel.typing()
            except (discord.Forbidden, discord.NotFound):
                return
            except CALL_FAILED as error:
                log.debug("typing_failed", extra={"reason": repr(error)})
            await asyncio.sleep(TYPING_EVERY_S)

    def _button(self, wanted: _Content) -> discord.ui.View:
        """What stands under the message: buttons where something it tells can be acted upon."""
        return footer_view(wanted.footer, self._locale) or discord.utils.MISSING

    # --- the end

    async def _stop(self) -> None:
        """End both tasks, whatever they are doing."""
        tasks = [task for task in (self._typing, self._writer) if task is not None]
        self._typing = self._writer = None
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                report_bug("delivery_failed", outcome)

    def _delivered(self) -> Delivered | None:
        standing = sorted((*self._shown, *self._surplus), key=lambda one: one.message.id)
        if not standing:
            return None
        return Delivered(
            message_ids=tuple(MessageId(one.message.id) for one in standing),
            text="".join(one.content.body for one in standing),
            sent_at=standing[0].message.created_at,
        )

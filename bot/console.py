"""The terminal transport: the same turn, memory and database as in Discord, without Discord."""

import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from bot.audience import OriginKind, Place
from bot.clock import Clock, to_ms
from bot.console_commands import ConsoleCommands
from bot.console_script import ScriptLine, read_script
from bot.i18n import t
from bot.identifiers import ChannelId, GuildId, MessageId, UserId
from bot.memory.references import typed_text
from bot.privacy.levels import PrivacyLevel
from bot.turn.messages import (
    NO_FOOTER,
    Delivered,
    Footer,
    IncomingMessage,
    Person,
    TurnRequest,
)
from bot.turn.pipeline import run_turn
from bot.turn.reception import Receiver
from bot.turn.report import TurnReport
from bot.turn.services import TurnServices
from bot.turn.triggers import Triggers

HOME = GuildId(1)
"""The server that the terminal stands for."""
DISCORD_EPOCH_MS = 1_420_070_400_000


class ConsoleDelivery:
    """Shows one reply as it grows; with no `out` it only keeps it."""

    def __init__(self, ids: "MessageIds", clock: Clock, out: TextIO | None) -> None:
        self._ids = ids
        self._clock = clock
        self._out = out
        self._printed = ""

    async def start(self) -> None:
        """A terminal shows nothing until there is text."""

    async def show(self, text: str) -> None:
        """Print what is new; a reply that began anew stands on lines of its own."""
        if self._out is None:
            self._printed = text
            return
        if not text.startswith(self._printed):
            self._out.write("\n")
            self._printed = ""
        self._out.write(text[len(self._printed) :])
        self._out.flush()
        self._printed = text

    async def finish(self, text: str, *, footer: Footer = NO_FOOTER) -> Delivered:
        """Print the rest of it, and the footer on lines of its own."""
        await self.show(text)
        if self._out is not None:
            self._out.write("".join(f"\n  {line}" for line in footer.text.splitlines()) + "\n")
            self._out.flush()
        now = self._clock.now()
        return Delivered(message_ids=(self._ids.next(),), text=text, sent_at=now)

    async def abandon(self) -> Delivered | None:
        """What was printed stands."""
        if not self._printed:
            return None
        return Delivered(
            message_ids=(self._ids.next(),), text=self._printed, sent_at=self._clock.now()
        )


class NoHistory:
    """Nothing is said in a terminal while nobody listens."""

    async def newest(self, place: Place, limit: int) -> tuple[IncomingMessage, ...]:
        """Always empty."""
        del place, limit
        return ()


@dataclass(slots=True)
class MessageIds:
    """Makes ids in the manner of Discord: later ones are greater, also after a restart."""

    clock: Clock
    _last: int = field(default=0)

    def next(self) -> MessageId:
        """A new id."""
        self._last = max(self._last + 1, (to_ms(self.clock.now()) - DISCORD_EPOCH_MS) << 22)
        return MessageId(self._last)


class Console:
    """Turns typed or scripted lines into turns. The person at the terminal manages the server."""

    def __init__(
        self, services: TurnServices, receiver: Receiver, locale: str, *, out: TextIO | None
    ) -> None:
        self._services = services
        self._locale = locale
        self._out = out
        self._ids = MessageIds(services.clock)
        self._people: dict[str, Person] = {}
        self._triggers = Triggers(services.levels, answer_other_bots=False, bot_exchanges=0)
        self._commands = ConsoleCommands(services, receiver, locale)

    async def say(self, line: ScriptLine) -> TurnReport:
        """Take one turn."""
        message = self._message(line)
        if not self._triggers.starts_turn(message):
            level = self._services.levels.of(message.author.id, message.place.guild_key)
            is_full = level is PrivacyLevel.FULL
            return TurnReport(reply="", footer=t("console.full", self._locale) if is_full else "")
        self._services.rings.hear(message)
        delivery = ConsoleDelivery(self._ids, self._services.clock, self._out)
        request = TurnRequest(message=message, delivery=delivery, history=NoHistory())
        report = await run_turn(self._services, request) or TurnReport(reply="")
        if report.undoes is not None:
            self._commands.last_change = report.undoes
        if report.forgets is not None:
            self._commands.asked_to_forget = report.forgets
        return report

    async def chat(self, user: str) -> None:
        """Talk with the person at the terminal until they leave."""
        session: PromptSession[str] = PromptSession()
        while True:
            try:
                with patch_stdout(raw=True):
                    text = (await session.prompt_async(f"{user}> ")).strip()
            except (EOFError, KeyboardInterrupt):
                return
            if text == "/quit":
                return
            line = ScriptLine(user=user, text=text)
            if text.startswith("/"):
                self._print(await self._commands.run(text, self._message(line)))
            elif text:
                report = await self.say(line)
                if not report.reply and report.footer:
                    self._print(report.footer)

    async def play(self, path: Path, results: TextIO) -> None:
        """Play a script, one JSON object a line in, one a line out.

        The reply is what a person would read: what stands under it is part of it.
        """
        for line in read_script(path):
            report = await self.say(line)
            calls = [{"name": call.name, "outcome": call.outcome} for call in report.tool_calls]
            reply = "\n".join(filter(None, (report.reply, report.footer)))
            result = {"channel": line.channel, "reply": reply, "tool_calls": calls}
            results.write(json.dumps(result, ensure_ascii=False) + "\n")
            results.flush()

    def _print(self, text: str) -> None:
        print(text, file=self._out or sys.stdout)

    def _message(self, line: ScriptLine) -> IncomingMessage:
        return IncomingMessage(
            id=self._ids.next(),
            place=place_of(line.channel),
            author=Person(id=UserId(_number("user", line.user)), name=line.user, is_manager=True),
            text=typed_text(line.text),
            sent_at=self._services.clock.now(),
            locale=self._locale,
            mentions_us=True,
        )


def place_of(channel: str) -> Place:
    """The place that a channel's name stands for."""
    number = ChannelId(_number("channel", channel))
    if channel.startswith("@"):
        return Place(kind=OriginKind.DIRECT, guild_id=None, channel_id=number, name=channel)
    return Place(
        kind=OriginKind.CHANNEL,
        guild_id=HOME,
        channel_id=number,
        open_to_everyone=True,
        name=channel,
    )


def _number(kind: str, name: str) -> int:
    """The same positive number for the same name, on every start."""
    digest = hashlib.blake2b(f"{kind}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2 | 1

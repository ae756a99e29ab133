"""Madeleine on a loopback Discord: started as `madeleine run` starts her, watched from outside."""

import asyncio
import logging
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.config import Config, load_config
from bot.run import run_discord
from tests.fakes import Channel, LoopbackDiscord, LoopbackModel, Message, ModelRequest, User

ENDED = ("done", "failed")


@contextmanager
def _hearing(event: str) -> Iterator[list[logging.LogRecord]]:
    """Collects an event that her client logs."""
    heard: list[logging.LogRecord] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == event:
                heard.append(record)

    logger, ear = logging.getLogger("bot.discord_io.client"), Ear()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(ear)
    try:
        yield heard
    finally:
        logger.removeHandler(ear)
        logger.setLevel(before)


@dataclass
class Stage:
    """One Discord, one model, one database; she may be started on them again and again.

    `settings` are config keys as environment variables write them: `LLM__RETRIES="1"`; `tokens`
    are variables that replace the right ones.
    """

    discord: LoopbackDiscord
    model: LoopbackModel
    folder: Path
    settings: dict[str, str] = field(default_factory=dict[str, str])
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    # --- starting and ending

    @property
    def database(self) -> Path:
        return self.folder / "madeleine.db"

    @property
    def environment(self) -> dict[str, str]:
        keys = {
            "STORAGE__PATH": str(self.database),
            "LLM__CHAT__BASE_URL": self.model.base_url,
            "LLM__CHAT__MODEL": "loopback-model",
            "DELIVERY__EDIT_INTERVAL_MS": "20",
            "DISCORD__SHUTDOWN_TURNS_MS": "100",
            **self.settings,
        }
        named = {f"MADELEINE__{key}": value for key, value in keys.items()}
        return self.discord.environment(**named, **self.tokens)

    def config(self) -> Config:
        return load_config(None, self.environment)

    @asynccontextmanager
    async def madeleine(self) -> AsyncIterator[None]:
        """Madeleine in this process, connected; ended by cancelling her at the end."""
        with self.discord.patched(ready_timeout=0.01), _hearing("connected") as heard:
            running = asyncio.create_task(run_discord(self.config(), self.environment))
            try:
                await self.discord.wait_for(lambda: running.done() or heard, timeout=10)
                if running.done():
                    await running
                yield
            finally:
                running.cancel()
                await asyncio.wait({running})

    @asynccontextmanager
    async def process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Madeleine as a process of her own, connected; killed at the end if she still runs."""
        config_file = self.folder / "config.toml"
        config_file.write_text("", encoding="utf-8")
        with (self.folder / "stderr.txt").open("ab") as stderr:
            child = await asyncio.create_subprocess_exec(
                *self.discord.child_command("run", "--config", str(config_file)),
                env=self.environment,
                stderr=stderr,
            )
        try:
            await self.discord.wait_for(
                lambda: self.discord.gateway.is_connected or child.returncode is not None,
                timeout=20,
            )
            yield child
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()

    async def told_to_stop(
        self, child: asyncio.subprocess.Process, number: int = signal.SIGTERM
    ) -> int:
        """Send a process a signal; gives its exit code."""
        child.send_signal(number)
        return await asyncio.wait_for(child.wait(), timeout=10)

    # --- talking

    async def ask(
        self, text: str, *, by: User | None = None, channel: Channel | None = None
    ) -> Message:
        """Say something to Madeleine and wait for the end of the turn; gives her reply."""
        place = channel or self.discord.general
        question = await self.discord.say(
            by or self.discord.alice, place, text, mention_bot=not place.is_direct
        )
        return await self.reply_to(question)

    async def reply_to(self, question: Message) -> Message:
        """Her first message after the question, once its turn has ended."""
        await self.end_of_turn(question)
        after = [m for m in self.discord.bot_messages(question.channel) if m.id > question.id]
        assert after, "the turn ended without a reply"
        return after[0]

    async def end_of_turn(self, question: Message) -> str:
        """How the turn of a message ended, once it has."""
        return await self.discord.wait_for(
            lambda: self._ending(question), timeout=10, what=f"for the turn of {question!r}"
        )

    async def chatter(self, *texts: str, by: User, channel: Channel | None = None) -> list[Message]:
        """Let people talk without Madeleine."""
        place = channel or self.discord.general
        return [await self.discord.say(by, place, text) for text in texts]

    @property
    def prompt(self) -> ModelRequest:
        """What the model was asked last."""
        return self.model.last

    # --- looking

    def rows(self, sql: str, *params: object) -> list[dict[str, object]]:
        """What a query finds in the file."""
        if not self.database.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql, params)]

    def count(self, table: str) -> int:
        found = self.rows(f"SELECT count(*) AS n FROM {table}")
        return int(str(found[0]["n"]))

    def _ending(self, question: Message) -> str | None:
        found = self.rows("SELECT state FROM turns WHERE message_id = ?", question.id)
        states = [str(row["state"]) for row in found]
        return states[0] if states and states[0] in ENDED else None

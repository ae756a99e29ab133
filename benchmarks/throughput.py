"""Messages a second through the full stack, beside a bare echo bot in the same run.

    python -m benchmarks.throughput [--channels 40] [--each 10] [--json FILE]

Both bots are processes of their own, over loopback sockets; the model answers at once. Trust the
ratios, not the single figures.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes import Channel, LoopbackDiscord, LoopbackModel, Text
from tests.fakes.discord.events import Event

CONFIG = """
[llm.chat]
base_url = "{url}"
model = "instant"
[delivery]
edit_interval_ms = 0
"""


@asynccontextmanager
async def running(command: list[str], environ: dict[str, str]) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **environ})
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


class Ears:
    """Hears each answer at once; asking the loopback Discord again and again would cost more."""

    def __init__(self, discord: LoopbackDiscord) -> None:
        self._discord = discord
        self._heard: dict[int, asyncio.Event] = {}
        self._publish = discord.publish
        discord.publish = self._listen

    def _listen(self, event: Event) -> None:
        self._publish(event)
        if event.name == "MESSAGE_CREATE" and event.message and event.message.author.is_bot:
            self._heard[event.message.channel.id].set()

    async def round_trip(self, channel: Channel) -> float:
        """Seconds from a mention to the answer that follows it."""
        heard = self._heard[channel.id] = asyncio.Event()
        started = time.perf_counter()
        await self._discord.say(self._discord.alice, channel, "ping", mention_bot=True)
        async with asyncio.timeout(60):
            await heard.wait()
        return time.perf_counter() - started


async def measure(discord: LoopbackDiscord, channels: list[Channel], each: int) -> dict[str, float]:
    """Round trips one after another in one room, then all rooms at once."""
    await discord.wait_until_connected()
    ears = Ears(discord)
    for channel in channels:
        await ears.round_trip(channel)
    alone = [await ears.round_trip(channels[0]) for _ in range(100)]

    async def room(channel: Channel) -> None:
        for _ in range(each):
            await ears.round_trip(channel)

    started = time.perf_counter()
    await asyncio.gather(*(room(channel) for channel in channels))
    seconds = time.perf_counter() - started
    return {
        "messages_per_s": len(channels) * each / seconds,
        "p50_ms": statistics.median(alone) * 1000,
        "p95_ms": statistics.quantiles(alone, n=20)[-1] * 1000,
    }


async def of_echo(channels: int, each: int) -> dict[str, float]:
    async with LoopbackDiscord() as discord:
        rooms = [discord.channel(f"room-{number}") for number in range(channels)]
        where = [discord.api_url, discord.gateway.url, discord.token]
        command = [sys.executable, "-m", "benchmarks.echo_bot", *where]
        async with running(command, {}):
            return await measure(discord, rooms, each)


async def of_madeleine(channels: int, each: int, folder: Path) -> dict[str, float]:
    async with LoopbackDiscord() as discord, LoopbackModel() as model:
        model.on(lambda _: Text("pong"))
        rooms = [discord.channel(f"room-{number}") for number in range(channels)]
        config = folder / "config.toml"
        config.write_text(CONFIG.format(url=model.base_url), encoding="utf-8")
        command = discord.child_command("run", "--config", str(config))
        environ = {
            "DISCORD_TOKEN": discord.token,
            "MADELEINE__STORAGE__PATH": str(folder / "madeleine.db"),
            "MADELEINE__LOGGING__LEVEL": "ERROR",
        }
        async with running(list(command), environ):
            return await measure(discord, rooms, each)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=40)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    echo = await of_echo(arguments.channels, arguments.each)
    with tempfile.TemporaryDirectory() as folder:
        ours = await of_madeleine(arguments.channels, arguments.each, Path(folder))
    added = {
        "share_of_echo": ours["messages_per_s"] / echo["messages_per_s"],
        "added_p50_ms": ours["p50_ms"] - echo["p50_ms"],
        "added_p95_ms": ours["p95_ms"] - echo["p95_ms"],
    }
    print(f"{'':12}{'messages/s':>12}{'p50 ms':>10}{'p95 ms':>10}")
    for name, row in (("echo bot", echo), ("Madeleine", ours)):
        print(f"{name:12}{row['messages_per_s']:12.0f}{row['p50_ms']:10.2f}{row['p95_ms']:10.2f}")
    print(
        f"Madeleine handles {added['share_of_echo']:.2f} of the echo bot's messages and adds"
        f" {added['added_p50_ms']:.1f} ms (p50), {added['added_p95_ms']:.1f} ms (p95) to a turn."
    )
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"echo": echo, "madeleine": ours, "added": added}, indent=1),
            encoding="utf-8",
        )


if __name__ == "__main__":
    asyncio.run(main())

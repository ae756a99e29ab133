"""What it costs to know who hears what: 200 channels, 100 roles, whatever the number of members.

    python -m benchmarks.audience

Prints milliseconds: `rooms` is paid after a change of rights, `audience` for the first turn in a
room after one, `kept` for every other turn.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bot.audience import OriginKind, Place
from bot.discord_io.rooms import rooms_of
from bot.identifiers import ChannelId, GuildId
from bot.privacy.audiences import Audiences
from bot.privacy.hearing import NoRooms, ServerRooms
from tests.discord_io.test_rooms import GUILD, PAST, VIEW, guild_of
from tests.talk import open_talk

CHANNELS, ROLES, OVERWRITES = 200, 100, 6
ROUNDS = 50


def server(seed: int) -> dict[str, Any]:
    """A server as Discord describes one, with as many private channels as open ones."""
    chance = random.Random(seed)
    roles = [{"id": GUILD, "name": "@everyone", "permissions": str(VIEW | PAST), "position": 0}]
    roles += [
        {"id": 1_000 + n, "name": str(n), "permissions": str(VIEW), "position": n}
        for n in range(ROLES)
    ]
    channels: list[dict[str, Any]] = []
    for n in range(CHANNELS):
        granted = chance.sample(range(ROLES), OVERWRITES)
        overwrites = [
            {"id": 1_000 + role, "type": 0, "allow": str(VIEW | PAST), "deny": "0"}
            for role in granted
        ]
        if n % 2:
            closed = {"id": GUILD, "type": 0, "allow": "0", "deny": str(VIEW)}
            overwrites.append(closed)
        channels.append(
            {"id": 5_000 + n, "type": 0, "name": "c", "position": n, "nsfw": False}
            | {"permission_overwrites": overwrites}
        )
    empty = {"id": GUILD, "name": "server", "owner_id": 2, "members": [], "member_count": 10_000}
    return {**empty, "roles": roles, "channels": channels}


class Directory(NoRooms):
    """Knows the rooms that it was given last."""

    def __init__(self) -> None:
        self.now: ServerRooms | None = None

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        """What was given last."""
        del guild
        return self.now


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1_000


async def measure(folder: Path) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {"rooms": [], "audience": [], "kept": []}
    guild, directory = guild_of(server(1)), Directory()
    async with open_talk(folder, rooms=directory) as talk:
        origins = talk.app.services.origins
        places = [
            Place(kind=OriginKind.CHANNEL, guild_id=GuildId(GUILD), channel_id=ChannelId(5_000 + n))
            for n in range(CHANNELS)
        ]
        rooms = [await origins.of(place) for place in places]
        audiences = Audiences(origins, directory)
        await audiences.of_room(rooms[0])

        async def look() -> None:
            directory.now = await rooms_of(guild)

        for n in range(ROUNDS):
            spent["rooms"].append(await timed(look))
            here = rooms[n]
            spent["audience"].append(await timed(lambda: audiences.of_room(here)))  # noqa: B023
            spent["kept"].append(await timed(lambda: audiences.of_room(here)))  # noqa: B023
    return spent


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        spent = asyncio.run(measure(Path(folder)))
    print(f"{CHANNELS} channels, {ROLES} roles, {OVERWRITES} overwrites each; milliseconds")
    for name, values in spent.items():
        cuts = statistics.quantiles(values, n=20)
        print(f"  {name:10} p50 {statistics.median(values):8.3f}  p95 {cuts[18]:8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""When a call to Discord may go: edits at a pace, and again after a 503 or a lost connection."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
import discord

from bot.identifiers import ChannelId

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]

EDIT_INTERVAL_S = 1.0
RETRIES = 3
FIRST_PAUSE_S = 0.5
SERVICE_UNAVAILABLE = 503

CUT_OFF = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)
"""The connection was lost: the call may have had its effect or not."""

CALL_FAILED = (discord.HTTPException, discord.RateLimited, *CUT_OFF)
"""Every way in which a call to Discord ends without an answer that can be used."""


@dataclass(slots=True, kw_only=True)
class _Lane:
    free_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Pacing:
    """Lets one edit through in each channel and interval (seconds), over all its messages.

    Who waits for a slot decides inside it what to write, so the latest text wins.
    """

    def __init__(
        self,
        interval_s: float = EDIT_INTERVAL_S,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._sleep = sleep
        self._lanes: dict[ChannelId, _Lane] = {}

    @asynccontextmanager
    async def slot(self, channel_id: ChannelId) -> AsyncGenerator[None]:
        """Wait for the channel's next slot; the interval runs from its end, so slow calls count."""
        lane = self._lanes.get(channel_id) or self._new_lane(channel_id)
        async with lane.lock:
            while (wait_s := lane.free_at - self._monotonic()) > 0:
                await self._sleep(wait_s)
            try:
                yield
            finally:
                lane.free_at = self._monotonic() + self._interval_s

    def _new_lane(self, channel_id: ChannelId) -> _Lane:
        now = self._monotonic()
        self._lanes = {
            known: lane
            for known, lane in self._lanes.items()
            if lane.lock.locked() or lane.free_at > now
        }
        return self._lanes.setdefault(channel_id, _Lane(free_at=now))


async def persevere(
    call: Callable[[], Awaitable[T]], *, retries: int = RETRIES, sleep: Sleep = asyncio.sleep
) -> T:
    """What `call` gives, tried again where discord.py does not: after a 503 or a lost connection.

    `call` must be one that may safely take effect twice.
    """
    for number in range(retries):
        try:
            return await call()
        except discord.DiscordServerError as error:
            if error.status != SERVICE_UNAVAILABLE:
                raise
        except CUT_OFF:
            pass
        await sleep(FIRST_PAUSE_S * 2**number)
    return await call()

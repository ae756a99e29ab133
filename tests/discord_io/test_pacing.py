import asyncio

import aiohttp
import pytest

from bot.discord_io.pacing import Pacing, persevere
from bot.identifiers import ChannelId

GENERAL = ChannelId(1)
RANDOM = ChannelId(2)


class OwnTime:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds


@pytest.fixture
def time() -> OwnTime:
    return OwnTime()


@pytest.fixture
def pacing(time: OwnTime) -> Pacing:
    return Pacing(1.0, monotonic=time.monotonic, sleep=time.sleep)


async def test_the_first_edit_goes_at_once(pacing: Pacing, time: OwnTime) -> None:
    async with pacing.slot(GENERAL):
        assert time.now == 100.0


async def test_the_next_edit_goes_an_interval_after_the_last_one_ended(
    pacing: Pacing, time: OwnTime
) -> None:
    async with pacing.slot(GENERAL):
        time.now += 0.4
    async with pacing.slot(GENERAL):
        assert time.now == pytest.approx(101.4)


async def test_an_edit_after_the_interval_does_not_wait(pacing: Pacing, time: OwnTime) -> None:
    async with pacing.slot(GENERAL):
        pass
    time.now += 1.0
    async with pacing.slot(GENERAL):
        assert time.slept == []


async def test_channels_do_not_wait_for_each_other(pacing: Pacing, time: OwnTime) -> None:
    async with pacing.slot(GENERAL), pacing.slot(RANDOM):
        assert time.slept == []


async def test_all_messages_of_a_channel_share_its_pace(pacing: Pacing, time: OwnTime) -> None:
    moments: list[float] = []

    async def edit() -> None:
        async with pacing.slot(GENERAL):
            moments.append(time.now)

    await asyncio.gather(*(edit() for _ in range(4)))
    assert moments == pytest.approx([100.0, 101.0, 102.0, 103.0])


async def test_the_latest_text_wins(pacing: Pacing) -> None:
    written: list[str] = []
    text = "a"

    async def edit() -> None:
        async with pacing.slot(GENERAL):
            written.append(text)

    await edit()
    waiting = asyncio.create_task(edit())
    for text in ("ab", "abc", "abcd"):  # noqa: B007 - the waiting edit reads it
        pass
    await waiting
    assert written == ["a", "abcd"]


async def test_a_failing_edit_takes_its_interval_too(pacing: Pacing, time: OwnTime) -> None:
    with pytest.raises(aiohttp.ServerDisconnectedError):
        async with pacing.slot(GENERAL):
            raise aiohttp.ServerDisconnectedError
    async with pacing.slot(GENERAL):
        assert time.now == pytest.approx(101.0)


async def test_who_is_cancelled_while_waiting_blocks_nobody(pacing: Pacing) -> None:
    async def edit() -> None:
        async with pacing.slot(GENERAL):
            pass

    await edit()
    waiting = asyncio.create_task(edit())
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(1), pacing.slot(GENERAL):
        pass


async def test_a_sleep_that_ends_too_early_is_slept_again(time: OwnTime) -> None:
    async def short_sleep(seconds: float) -> None:
        await time.sleep(max(seconds / 2, 0.01))

    pacing = Pacing(1.0, monotonic=time.monotonic, sleep=short_sleep)
    async with pacing.slot(GENERAL):
        pass
    async with pacing.slot(GENERAL):
        assert time.now >= 101.0


async def test_channels_that_fell_silent_are_forgotten(pacing: Pacing, time: OwnTime) -> None:
    for number in range(1000):
        async with pacing.slot(ChannelId(number)):
            time.now += 2.0
    assert len(pacing._lanes) <= 2


class Flaky:
    """A call that loses its connection `failures` times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise aiohttp.ServerDisconnectedError
        return "done"


async def test_a_lost_connection_is_tried_again_after_growing_pauses(time: OwnTime) -> None:
    call = Flaky(3)
    assert await persevere(call, retries=3, sleep=time.sleep) == "done"
    assert time.slept == [0.5, 1.0, 2.0]


async def test_after_the_last_retry_the_failure_is_told(time: OwnTime) -> None:
    call = Flaky(4)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await persevere(call, retries=3, sleep=time.sleep)
    assert call.calls == 4


async def test_what_is_no_fault_of_the_line_is_not_tried_again(time: OwnTime) -> None:
    async def wrong() -> str:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await persevere(wrong, sleep=time.sleep)
    assert time.slept == []

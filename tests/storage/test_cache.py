"""The cache is never stale after an invalidation, whatever reads were under way."""

import asyncio
from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st

from bot.storage.cache import VersionedCache

KEYS = ("a", "b")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "return", "commit", "invalidate", "clear", "look"]),
        st.sampled_from(KEYS),
    ),
    max_size=25,
)


class Table:
    """What is on disk, and readers who saw it at one moment and bring it at another."""

    def __init__(self) -> None:
        self.cache: VersionedCache[str, int] = VersionedCache()
        self.committed = dict.fromkeys(KEYS, 0)
        self.announced = dict.fromkeys(KEYS, True)
        self.reading: list[tuple[asyncio.Event, asyncio.Task[int]]] = []

    async def read(self, key: str) -> None:
        gate = asyncio.Event()

        async def fill() -> int:
            seen = self.committed[key]
            await gate.wait()
            return seen

        self.reading.append((gate, asyncio.create_task(self.cache.get(key, fill))))
        await asyncio.sleep(0)

    async def return_oldest(self) -> None:
        if self.reading:
            gate, task = self.reading.pop(0)
            gate.set()
            await task

    async def look(self, key: str) -> int:
        async def fill() -> int:
            return self.committed[key]

        return await self.cache.get(key, fill)

    async def step(self, what: str, key: str) -> None:
        match what:
            case "read":
                await self.read(key)
            case "return":
                await self.return_oldest()
            case "commit":
                self.committed[key] += 1
                self.announced[key] = False
            case "invalidate":
                self.cache.invalidate(key)
                self.announced[key] = True
            case "clear":
                self.cache.clear()
                self.announced = dict.fromkeys(KEYS, True)
            case _:
                seen = await self.look(key)
                assert seen == self.committed[key] or not self.announced[key]


@given(STEPS)
def test_after_an_invalidation_nothing_older_is_seen(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        table = Table()
        for what, key in steps:
            await table.step(what, key)
        while table.reading:
            await table.return_oldest()
        for key in KEYS:
            await table.step("look", key)

    asyncio.run(run())


def reader(fills: list[int], key: int) -> Callable[[], Awaitable[int]]:
    async def fill() -> int:
        fills.append(key)
        return key

    return fill


async def test_a_fill_that_raises_is_not_kept() -> None:
    cache: VersionedCache[int, int] = VersionedCache()

    async def fails() -> int:
        raise ValueError("on purpose")

    fills: list[int] = []
    first = await asyncio.gather(cache.get(1, fails), return_exceptions=True)
    assert isinstance(first[0], ValueError)
    assert await cache.get(1, reader(fills, 1)) == 1
    assert fills == [1]


async def test_the_least_recently_used_value_goes_first() -> None:
    cache: VersionedCache[int, int] = VersionedCache(limit=2)
    fills: list[int] = []
    for key in (1, 2, 1, 3, 1, 2):
        await cache.get(key, reader(fills, key))
    assert fills == [1, 2, 3, 2]


async def test_a_value_that_is_nothing_is_cached_too() -> None:
    cache: VersionedCache[int, tuple[int, ...]] = VersionedCache()
    reads = 0

    async def nothing() -> tuple[int, ...]:
        nonlocal reads
        reads += 1
        return ()

    for _ in range(2):
        assert await cache.get(1, nothing) == ()
    assert reads == 1


async def test_one_key_is_forgotten_and_the_others_stay() -> None:
    cache: VersionedCache[int, int] = VersionedCache()
    fills: list[int] = []
    for key in (1, 2):
        await cache.get(key, reader(fills, key))
    cache.invalidate(1)
    for key in (1, 2):
        await cache.get(key, reader(fills, key))
    assert fills == [1, 2, 1]


async def test_everything_is_forgotten_at_once() -> None:
    cache: VersionedCache[int, int] = VersionedCache()
    fills: list[int] = []
    for _ in range(2):
        for key in (1, 2):
            await cache.get(key, reader(fills, key))
        cache.clear()
    assert fills == [1, 2, 1, 2]

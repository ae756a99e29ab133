"""A cache that a slow reader cannot make stale."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class VersionedCache(Generic[K, V]):
    """Least recently used values by key.

    A fill is kept only if nothing invalidated the cache while it ran: a reader that began before
    a commit can otherwise store what it read after the commit's invalidation.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._version = 0

    async def get(self, key: K, fill: Callable[[], Awaitable[V]]) -> V:
        """The cached value, or what `fill` reads now."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        version = self._version
        value = await fill()
        if version == self._version:
            self._values[key] = value
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value

    def invalidate(self, key: K) -> None:
        """Forget one key, and every fill that is under way."""
        self._version += 1
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._version += 1
        self._values.clear()

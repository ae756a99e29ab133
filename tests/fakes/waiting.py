"""Waiting for things to become true, woken by every change instead of sleeping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
POLL_SECONDS = 0.02


class Changes:
    """A bell that rings on every change.

    Predicates may also look at things that ring no bell (a database, a file), so they are asked
    again every 20 ms.
    """

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_for(
        self,
        predicate: Callable[[], T | None],
        *,
        timeout: float,  # noqa: ASYNC109
        what: str | Callable[[], str] = "",
    ) -> T:
        """The predicate's first truthy value; TimeoutError with `what` when none comes in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not (value := predicate()):
            if loop.time() >= deadline:
                said = what() if callable(what) else what
                raise TimeoutError(f"waited {timeout:g} s in vain {said}".rstrip())
            await self._next_ring()
        return value

    async def _next_ring(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=POLL_SECONDS)
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()

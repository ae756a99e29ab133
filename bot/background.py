"""The border for work that nobody awaits: each task has an owner, a failure is logged."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The work returned."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """The work raised; whoever owns the outcome decides what that means."""

    error: Exception


async def settle(work: Awaitable[T]) -> Done[T] | Raised:
    """What `work` came to, as a value. Cancellation is never caught."""
    try:
        return Done(await work)
    except Exception as error:  # noqa: BLE001 - a task runner hands every failure to its owner
        return Raised(error)


def run_all(callbacks: Iterable[Callable[[], None]]) -> None:
    """Run every callback; one that raises is logged and does not keep the next from running."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            log.exception("callback_failed", extra={"callback": repr(callback)})


def report_bug(event: str, error: BaseException) -> str:
    """Log an unexpected error with its traceback; returns the short id that the person is told."""
    bug_id = secrets.token_hex(3)
    log.error(event, exc_info=error, extra={"bug_id": bug_id})
    return bug_id


class TaskOwner:
    """Owns background tasks: keeps them referenced, logs failures, ends them at shutdown."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start `work`; it runs until it is done or `close` ends it."""
        task = asyncio.create_task(self._watch(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been ended before it began
        return task

    async def _watch(self, name: str, work: Coroutine[object, object, None]) -> None:
        outcome = await settle(work)
        if isinstance(outcome, Raised):
            report_bug(f"background_task_failed: {name}", outcome.error)

    async def close(self, *, grace_s: float, cancel_s: float = 1.0) -> None:
        """Wait `grace_s` for the tasks, then cancel the rest and wait `cancel_s` for them."""
        if self._tasks and grace_s > 0:
            await asyncio.wait(self._tasks, timeout=grace_s)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=cancel_s)

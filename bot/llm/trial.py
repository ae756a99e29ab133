"""The attempts of one request: who is asked next, and after which wait."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.clock import Clock
from bot.errors import FaultKind, ModelFault, ModelUnavailable
from bot.llm.client import ModelClient
from bot.llm.slots import Slots

# A stall has used up most of a turn's time; asking again changes nothing about the others.
_NOT_ASKED_AGAIN: frozenset[FaultKind] = frozenset(("stalled", "rejected", "auth"))
_HOPELESS: frozenset[FaultKind] = frozenset(("rejected", "auth"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """How patient a route is with each of its providers.

    The waits double from `back_off_s`; a Retry-After beyond `retry_after_max_s` is not waited for.
    `come_back_s` is what people are told to wait where no provider said it.
    """

    retries: int = 2
    back_off_s: float = 0.5
    retry_after_max_s: float = 30
    come_back_s: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A client, and the slots of its server."""

    client: ModelClient
    slots: Slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What waiting is made of: injected, so that tests own it. `jitter` gives 0 to 1."""

    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]


class Trial:
    """Gives the provider to ask, until one answers or none is left."""

    def __init__(
        self, providers: Sequence[Provider], settings: RetrySettings, patience: Patience
    ) -> None:
        self._providers = providers
        self._settings = settings
        self._patience = patience
        self._at = 0
        self._retries = 0
        self._last: ModelFault | None = None
        self._reasons: list[str] = []
        self._come_back: list[datetime] = []

    async def next(self) -> Provider:
        """The provider to ask now. Raises ModelUnavailable where every one has failed."""
        if self._last is not None:
            wait_s = self._wait_s(self._last)
            if wait_s is None:
                self._move_on()
            else:
                self._retries += 1
                await self._patience.sleep(wait_s)
        return self._providers[self._at]

    def failed(self, fault: ModelFault) -> None:
        """What came of the provider that was given last."""
        self._last = fault
        if fault.kind not in _HOPELESS:
            wait_s = fault.retry_after_s or self._settings.come_back_s
            self._come_back.append(self._patience.clock.now() + timedelta(seconds=wait_s))

    def _wait_s(self, fault: ModelFault) -> float | None:
        """How long to wait before asking the same provider again; None where that is no use."""
        told_s = fault.retry_after_s or 0.0
        used_up = self._retries >= self._settings.retries
        if used_up or fault.kind in _NOT_ASKED_AGAIN or told_s > self._settings.retry_after_max_s:
            return None
        back_off_s = self._settings.back_off_s * 2**self._retries
        return max(told_s, back_off_s * (0.5 + self._patience.jitter()))

    def _move_on(self) -> None:
        failed = self._providers[self._at].client.settings
        self._reasons.append(f"{failed.name}: {self._last.kind if self._last else ''}")
        self._at, self._retries = self._at + 1, 0
        if self._at == len(self._providers):
            reasons = ", ".join(self._reasons)
            raise ModelUnavailable(reasons, min(self._come_back, default=None)) from self._last

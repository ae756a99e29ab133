"""Faults a test orders in advance, and the rate-limit buckets."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to the next `times` requests that match.

    `drop` resets the connection: "before" the request has an effect, or "after" it had one.
    `status` answers with an error and without effect; for 429 with `retry_after` seconds, and, with
    `cloudflare`, as Discord's edge does it: HTML and no `Via` header. `delay` alone only waits.
    """

    method: str
    pattern: re.Pattern[str]
    times: int = 1
    status: int | None = None
    code: int = 0
    message: str = "an ordered fault"
    retry_after: float = 0.2
    is_global: bool = False
    cloudflare: bool = False
    delay: float = 0.0
    drop: Literal["before", "after"] | None = None
    hits: int = 0

    def matches(self, method: str, path: str) -> bool:
        wanted = self.method in ("*", method) and bool(self.pattern.search(path))
        return wanted and self.hits < self.times


@dataclass(slots=True, kw_only=True)
class Bucket:
    """At most `limit` requests in `window` seconds, counted for each channel, guild or webhook."""

    name: str
    method: str
    pattern: re.Pattern[str]
    limit: int
    window: float
    _spent: dict[str, list[float]] = field(default_factory=dict)

    def matches(self, method: str, path: str) -> bool:
        return self.method == method and bool(self.pattern.search(path))

    def take(self, path: str) -> BucketState:
        now = time.monotonic()
        spent = [one for one in self._spent.get(_major(path), []) if now - one < self.window]
        granted = len(spent) < self.limit
        if granted:
            spent.append(now)
        self._spent[_major(path)] = spent
        return BucketState(
            name=self.name,
            limit=self.limit,
            remaining=self.limit - len(spent),
            reset_after=spent[0] + self.window - now,
            granted=granted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    name: str
    limit: int
    remaining: int
    reset_after: float
    granted: bool

    @property
    def headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Bucket": self.name,
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset-After": f"{self.reset_after:.3f}",
            "X-RateLimit-Reset": f"{time.time() + self.reset_after:.3f}",
        }


def _major(path: str) -> str:
    """The first two parts of a path: a channel, guild or webhook with its id."""
    return "/".join(path.split("/")[:3])


def edit_bucket() -> Bucket:
    """Discord's limit on edits: five in five seconds in a channel."""
    return Bucket(
        name="edit-message",
        method="PATCH",
        pattern=re.compile(r"^/channels/\d+/messages/\d+$"),
        limit=5,
        window=5.0,
    )

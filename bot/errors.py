"""The error tree.

MadeleineError
 ├── UserError(key, **params)     shown to the person in their language; not an error for the log
 │    └── Denied(key, **params)   the person may not do that
 ├── Unavailable(retry_at)        something we need is busy or gone; try again at `retry_at`
 │    ├── StorageUnavailable      the database is busy, full, read-only or closed
 │    └── ModelUnavailable        no provider of a route gave an answer
 ├── ModelFault(kind)             one provider's answer failed; the route decides what comes next
 │    └── ContextTooLong          the prompt is larger than the model's window
 ├── ConfigError(faults)          every fault of the configuration at once
 └── StartupError(key, **params)  we cannot start; says what to mend

Anything else is a bug: it is logged with a short id, and the person is told that id.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Param = str | int | float


class MadeleineError(Exception):
    """Root of every error that Madeleine raises on purpose."""


class UserError(MadeleineError):
    """A person asked for something that cannot be done; `key` names the localised text."""

    def __init__(self, key: str, **params: Param) -> None:
        super().__init__(key)
        self.key = key
        self.params = params


class Denied(UserError):
    """The person has no right to do this."""


class Unavailable(MadeleineError):
    """A dependency cannot serve now. `retry_at` (aware UTC) is None where nobody knows."""

    def __init__(self, reason: str, retry_at: datetime | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_at = retry_at


class StorageUnavailable(Unavailable):
    """The database is busy, full, read-only or closed; nothing of the write was kept."""


class ModelUnavailable(Unavailable):
    """Every provider of the route failed."""


FaultKind = Literal[
    "rate_limited",
    "server",
    "timeout",
    "stalled",
    "connection",
    "malformed",
    "cut",
    "rejected",
    "auth",
]


class ModelFault(MadeleineError):
    """One request to one provider failed. `retry_after_s`: the provider's own word, if any."""

    def __init__(self, kind: FaultKind, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FaultKind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s


class ContextTooLong(ModelFault):
    """The prompt does not fit. `limit` and `asked` are the provider's counts, if it named them."""

    def __init__(self, detail: str, *, limit: int | None = None, asked: int | None = None) -> None:
        super().__init__("rejected", detail)
        self.limit = limit
        self.asked = asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One thing that is wrong in the configuration."""

    key: str
    value: str
    problem: str
    source: str


class ConfigError(MadeleineError):
    """The configuration cannot be used; carries every fault found, not only the first."""

    def __init__(self, faults: tuple[ConfigFault, ...]) -> None:
        super().__init__(f"{len(faults)} faults in the configuration")
        self.faults = faults


class StartupError(MadeleineError):
    """We cannot start. `key` names the localised text that says what to mend."""

    def __init__(self, key: str, **params: Param) -> None:
        super().__init__(key)
        self.key = key
        self.params = params

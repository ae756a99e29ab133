"""One line of what `madeleine check` found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bot.errors import Param

Verdict = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """What was looked at and what came of it; `key` names the localised text."""

    verdict: Verdict
    key: str
    params: Mapping[str, Param] = field(default_factory=dict[str, Param])

"""What one turn came to, for the transports."""

from dataclasses import dataclass

from bot.tools.port import OutcomeName


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """One call of a tool and how it ended."""

    name: str
    outcome: OutcomeName


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """The reply, the small line under it, and the tools that were called for it."""

    reply: str
    footer: str = ""
    tool_calls: tuple[ToolReport, ...] = ()

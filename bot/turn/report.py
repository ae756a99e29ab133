"""What one turn came to, for the transports."""

from dataclasses import dataclass

from bot.memory.changes import TurnKey
from bot.tools.port import OutcomeName
from bot.turn.messages import AskedToForget


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """One call of a tool and how it ended."""

    name: str
    outcome: OutcomeName


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """The reply, the small lines under it and what they undo or forget, and the tools called."""

    reply: str
    footer: str = ""
    undoes: TurnKey | None = None
    forgets: AskedToForget | None = None
    tool_calls: tuple[ToolReport, ...] = ()

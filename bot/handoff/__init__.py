"""Handoff: the older part of working memory becomes episodes of the ledger, or is forgotten."""

from bot.handoff.engine import HandoffEngine
from bot.handoff.selection import HandoffChunk, HandoffResult
from bot.handoff.trigger import (
    HandoffState,
    HandoffTrigger,
    TriggerReport,
    check_handoff_trigger,
    explain_handoff_trigger,
    memory_section_length,
)
from bot.handoff.watermark import Partition, partition_buffer

__all__ = [
    "HandoffChunk",
    "HandoffEngine",
    "HandoffResult",
    "HandoffState",
    "HandoffTrigger",
    "Partition",
    "TriggerReport",
    "check_handoff_trigger",
    "explain_handoff_trigger",
    "memory_section_length",
    "partition_buffer",
]

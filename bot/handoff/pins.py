"""Pinned entries that have been kept open for too long: candidates of the next pass again."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.config import HandoffConfig
from bot.identifiers import EntryId
from bot.memory.ledger import Matter
from bot.memory.working import Entry


def overdue_pins(
    entries: Sequence[Entry], matters: Sequence[Matter], now: datetime, config: HandoffConfig
) -> tuple[Entry, ...]:
    """The pinned entries of matters that are too old, or the oldest where there are too many.

    `matters` are in order of age, oldest first. An entry whose matter was erased is overdue.
    """
    surplus = max(0, len(matters) - config.max_matters)
    limit = timedelta(days=config.pin_days)
    held: set[EntryId] = set()
    for place, matter in enumerate(matters):
        if place >= surplus and now - matter.happened_from <= limit:
            held.update(matter.entries)
    return tuple(entry for entry in entries if entry.pinned and entry.id not in held)

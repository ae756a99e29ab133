"""Matters that have been kept open for too long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bot.config import HandoffConfig
from bot.handoff.pins import overdue_pins
from bot.memory.ledger import Matter
from tests.handoff.entries import NOW, entry, matter

CONFIG = HandoffConfig()
WEEK, SECOND = timedelta(days=7), timedelta(seconds=1)


def overdue(matters: Sequence[Matter], pinned: int = 20) -> list[int]:
    said = [entry(number, pinned=number <= pinned) for number in range(1, 21)]
    held = {number for one in matters for number in one.entries}
    said = [one for one in said if not one.pinned or one.id in held]
    return [one.id for one in overdue_pins(said, matters, NOW, CONFIG)]


def test_a_matter_is_overdue_after_seven_days() -> None:
    assert overdue([matter(1, ago=WEEK, held=[1, 2])]) == []
    assert overdue([matter(1, ago=WEEK + SECOND, held=[1, 2])]) == [1, 2]


def test_of_more_than_six_matters_the_oldest_are_overdue() -> None:
    seven = [matter(n, ago=timedelta(days=6) - n * SECOND, held=[n, n + 10]) for n in range(1, 8)]
    assert overdue(seven[1:]) == []
    assert overdue(seven) == [1, 11]
    assert overdue([matter(9, ago=timedelta(days=6), held=[9]), *seven]) == [1, 9, 11]


def test_only_pinned_entries_are_overdue() -> None:
    assert overdue([matter(1, ago=WEEK + SECOND, held=[1, 5])], pinned=3) == [1]


def test_an_entry_that_no_matter_holds_any_more_is_overdue() -> None:
    said = [entry(1, pinned=True), entry(2, pinned=True), entry(3)]
    held = [matter(1, held=[2])]
    assert overdue_pins(said, held, NOW, CONFIG) == (said[0],)


def test_nothing_pinned_nothing_overdue() -> None:
    assert overdue_pins([entry(1)], [], NOW, CONFIG) == ()

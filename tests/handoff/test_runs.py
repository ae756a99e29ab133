"""Runs as they are recorded, and how long to wait after one that failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.clock import to_ms
from bot.config import HandoffConfig
from bot.handoff.runs import Outcome, Run, back_off, may_try_again, record_run
from bot.handoff.trigger import HandoffTrigger, TriggerReason, TriggerReport
from bot.identifiers import LineageId, OriginId
from bot.memory.buffers import BufferKey
from bot.memory.working import Entry
from bot.storage.database import Database
from bot.storage.statements import Row, Transaction
from tests.handoff.entries import NOW, entries, entry

CONFIG = HandoffConfig()
KEY = BufferKey(origin=OriginId(1), lineage=LineageId(1))
REPORT = TriggerReport(trigger="involuntary", reason=TriggerReason.VELOCITY, value=21, limit=20)
MINUTE, MOMENT = timedelta(minutes=1), timedelta(milliseconds=1)


def run(said: list[Entry] | None = None, *, key: BufferKey = KEY) -> Run:
    return Run.over(key, entries(3) if said is None else said, REPORT, NOW)


# --- its id


def test_a_run_over_the_same_entries_is_the_same_run() -> None:
    again = Run.over(
        KEY, entries(3), TriggerReport(trigger="voluntary", reason=TriggerReason.IDLE), NOW + MINUTE
    )
    assert again.id == run().id
    assert len(run().id) == 16


def test_a_run_knows_what_it_took_and_why() -> None:
    assert (run().candidates, run().trigger, run().report) == (3, "involuntary", REPORT)


@pytest.mark.parametrize(
    "other",
    [
        run(entries(2)),
        run(entries(4)),
        run(entries(3, first=2)),
        run([*entries(2), entry(3, version=2)]),
        run(key=replace(KEY, origin=OriginId(2))),
        run(key=replace(KEY, lineage=LineageId(2))),
        run([entry(12), entry(3)]),
        run([entry(1), entry(23)]),
    ],
)
def test_a_run_over_anything_else_is_another(other: Run) -> None:
    assert other.id != run().id


def test_ids_do_not_run_into_each_other() -> None:
    assert run([entry(1, version=21)]).id != run([entry(12, version=1)]).id


# --- after failures


@pytest.mark.parametrize(
    ("trigger", "failures", "minutes"),
    [
        *(("voluntary", n, m) for n, m in enumerate((0, 1, 5, 25, 360, 360, 360))),
        *(("involuntary", n, m) for n, m in enumerate((0, 1, 5, 5, 5, 5))),
    ],
)
def test_every_failure_lengthens_the_wait(
    trigger: HandoffTrigger, failures: int, minutes: int
) -> None:
    wait = timedelta(minutes=minutes)
    assert back_off(trigger, failures, CONFIG) == wait
    assert may_try_again(trigger, failures, NOW - wait, NOW, CONFIG)
    if minutes:
        assert not may_try_again(trigger, failures, NOW - wait + MOMENT, NOW, CONFIG)


def test_a_failure_that_was_noted_while_the_clock_was_wrong_holds_nothing_up() -> None:
    assert may_try_again("voluntary", 3, NOW + timedelta(days=365), NOW, CONFIG)


def test_without_a_failure_there_is_no_wait() -> None:
    assert may_try_again("voluntary", 0, None, NOW, CONFIG)


# --- its row


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    await database.write(_make_room)
    yield database
    await database.close()


async def _make_room(tx: Transaction) -> None:
    await tx.execute(
        "INSERT INTO origins (id, kind, guild_id, channel_id, open_to_everyone)"
        " VALUES (1, 'channel', 500, 1, 0)"
    )


async def record(database: Database, outcome: Outcome, *, model: str | None = "tiny") -> Row:
    async def job(tx: Transaction) -> None:
        await record_run(tx, run(), outcome, model=model, now=NOW + MINUTE)

    await database.write(job)
    (row,) = await database.fetch_all("SELECT * FROM handoff_runs")
    return row


async def test_a_run_that_worked_leaves_its_numbers(database: Database) -> None:
    outcome = Outcome(run=run().id, episodes=2, promoted=5, forgotten=4, pinned=1)
    row = await record(database, outcome)
    assert (row["id"], row["origin_id"], row["lineage_id"]) == (run().id, 1, 1)
    assert (row["kind"], row["reason"], row["state"]) == ("involuntary", "velocity", "committed")
    assert (row["candidates"], row["model"], row["failure"]) == (3, "tiny", None)
    assert (row["episodes"], row["promoted"], row["forgotten"], row["pinned"]) == (2, 5, 4, 1)
    assert (row["started_at"], row["ended_at"]) == (to_ms(NOW), to_ms(NOW + MINUTE))


async def test_a_run_that_failed_and_then_worked_is_one_row(database: Database) -> None:
    failed = await record(database, Outcome(run=run().id, failure="malformed"), model=None)
    assert (failed["state"], failed["failure"], failed["model"]) == ("aborted", "malformed", None)
    row = await record(database, Outcome(run=run().id, episodes=1, promoted=3))
    assert (row["state"], row["failure"], row["model"]) == ("committed", None, "tiny")
    assert (row["episodes"], row["promoted"]) == (1, 3)

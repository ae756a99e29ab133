"""Undoing a run brings back what was, as long as that is kept."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.handoff.restore import drop_archive
from bot.handoff.runs import Outcome
from bot.identifiers import EntryId, RunId, UserId
from bot.privacy.levels import PrivacyLevel
from tests.fakes import HttpError
from tests.handoff.room import ANN, BEN, CARL, GUILD, Room, Tables, chunk, open_room
from tests.talk import FakeClock

MOMENT = timedelta(milliseconds=1)
KEPT = timedelta(days=14)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as room:
        yield room


async def a_debt(room: Room) -> tuple[list[EntryId], Outcome]:
    """A run that pins one entry, consumes one and forgets one."""
    said = await room.say("Ben owes me money", "I planted beans", "Hm", ago=timedelta(hours=2))
    said += await room.say("Good morning", by=BEN)
    debt = chunk("E1", content="Ben owes Ann money.", quotes=["owes me money"], retain=True)
    return said, await room.committed(debt, chunk("E2", content="Ann planted beans."))


async def later(room: Room, line: str, by: UserId = BEN) -> list[EntryId]:
    """An hour passes; something is said that is a candidate after Ben's good morning (E1)."""
    room.clock.pass_(hours=1)
    said = await room.say(line, by=by, ago=timedelta(minutes=40))
    await room.say("Good evening", by=None)
    return said


def with_raised_versions(before: Tables, after: Tables) -> Tables:
    """What was, with the versions that are there now, after all of them rose or stayed."""
    old = {row["id"]: row for row in before["buffer_entries"]}
    new = {row["id"]: row for row in after["buffer_entries"]}
    assert old.keys() == new.keys()
    assert all(0 <= new[key]["version"] - old[key]["version"] <= 2 for key in old)
    raised = [{**old[key], "version": new[key]["version"]} for key in old]
    return {**before, "buffer_entries": raised}


async def refused(room: Room, run: str) -> tuple[str, dict[str, object]]:
    """Why a run is not undone; nothing changes."""
    before = await room.tables(), await room.runs()
    with pytest.raises(UserError) as caught:
        await room.undo(RunId(run))
    assert (await room.tables(), await room.runs()) == before
    return caught.value.key, caught.value.params


# --- what comes back


async def test_everything_comes_back_as_it_was_with_raised_versions(room: Room) -> None:
    said = await room.say("Ben owes me money", "I planted beans", "Hm", ago=timedelta(hours=2))
    await room.say("Good morning", by=BEN)
    before = await room.tables()
    debt = chunk("E1", content="Ben owes Ann money.", quotes=["owes me money"], retain=True)
    outcome = await room.committed(debt, chunk("E2", content="Ann planted beans."))
    restored = await room.undo(outcome.run)
    assert (restored.entries, restored.episodes) == (2, 2)
    after = await room.tables()
    assert after == with_raised_versions(before, after)
    versions = {entry.id: entry.version for entry in await room.entries()}
    assert [versions[entry] for entry in said] == [3, 2, 2]
    (run,) = await room.runs()
    assert run["state"] == "undone"


async def test_vectors_of_its_episodes_go(tmp_path: Path) -> None:
    async with open_room(tmp_path, embedder=True) as room:
        _, outcome = await a_debt(room)
        assert len(await room.rows("SELECT * FROM embeddings")) == 2
        await room.undo(outcome.run)
        assert await room.rows("SELECT * FROM embeddings") == []


async def test_a_matter_told_as_before_has_no_vector_of_what_it_said_since(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path, embedder=True) as room:
        await a_debt(room)
        await later(room, "I paid half of the money")
        outcome = await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
        await room.undo(outcome.run)
        (matter,) = await room.matters()
        rows = await room.rows("SELECT id, embedding_model FROM ledger_entries ORDER BY id")
        assert {row["id"]: row["embedding_model"] for row in rows} == {
            matter.id: None,
            matter.id + 1: "embed-model",
        }
        (vector,) = await room.rows("SELECT item FROM embeddings")
        assert vector["item"] == str(matter.id + 1)


async def test_what_was_said_since_stays(room: Room) -> None:
    said, outcome = await a_debt(room)
    room.clock.pass_(minutes=5)
    said += await room.say("What about tomatoes?")
    await room.undo(outcome.run)
    assert await room.ids() == said


async def test_a_matter_that_went_on_is_told_as_before(room: Room) -> None:
    said, _ = await a_debt(room)
    new = await later(room, "I paid half", by=CARL)
    before = await room.tables()
    paid = chunk("P1", "E2", content="Carl paid half.", importance=9, retain=True)
    outcome = await room.committed({**paid, "quotes": ["paid half"]})
    changed = {name for name, rows in (await room.tables()).items() if rows != before[name]}
    assert changed >= {"ledger_entries", "ledger_quotes", "ledger_people", "ledger_sources"}
    restored = await room.undo(outcome.run)
    assert (restored.entries, restored.episodes) == (1, 0)
    after = await room.tables()
    assert after == with_raised_versions(before, after)
    assert await room.pinned() == said[:1]
    assert new[0] in await room.ids()


async def test_what_a_dropped_matter_held_comes_back_as_an_ordinary_line(room: Room) -> None:
    said = await room.say("Ben owes me money", "It is a lot", ago=timedelta(hours=2))
    await room.say("Good morning", by=BEN)
    await room.committed(chunk("E1", "E2", content="Ben owes Ann money.", retain=True))
    await later(room, "I paid the money")
    outcome = await room.committed(resolved=["P1"])
    await room.delete(said[0])
    await room.undo(outcome.run)
    assert said[1] in await room.ids()
    assert await room.pinned() == []


async def test_a_matter_that_was_settled_is_open_again(room: Room) -> None:
    said, _ = await a_debt(room)
    await later(room, "I paid the money")
    before = await room.tables()
    outcome = await room.committed(resolved=["P1"])
    assert await room.pinned() == []
    await room.undo(outcome.run)
    after = await room.tables()
    assert after == with_raised_versions(before, after)
    assert await room.pinned() == said[:1]


async def test_an_old_matter_that_was_left_out_is_open_again(room: Room) -> None:
    said, _ = await a_debt(room)
    room.clock.pass_(days=8)
    await room.say("Good night")
    before = await room.tables()
    outcome = await room.committed()
    assert await room.pinned() == []
    await room.undo(outcome.run)
    after = await room.tables()
    assert after == with_raised_versions(before, after)
    assert await room.pinned() == said[:1]


async def test_two_runs_are_undone_one_after_the_other(room: Room) -> None:
    said, first = await a_debt(room)
    new = await later(room, "I paid half of the money")
    second = await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
    await room.undo(second.run)
    await room.undo(first.run)
    assert await room.episodes() == ()
    assert await room.pinned() == []
    assert set(await room.ids()) > {*said, *new}
    assert await room.archived() == []


async def test_restored_entries_can_be_handed_over_by_a_new_run(room: Room) -> None:
    said, outcome = await a_debt(room)
    await room.undo(outcome.run)
    again = await room.committed(chunk("E1", "E2", content="Ben owes Ann money."))
    assert again.run != outcome.run
    assert await room.sources() == said[:2]
    assert [run["state"] for run in await room.runs()] == ["undone", "committed"]


# --- what does not come back


async def test_a_deleted_message_does_not_come_back(room: Room) -> None:
    said, outcome = await a_debt(room)
    await room.delete(said[1])
    assert (await room.undo(outcome.run)).entries == 1
    assert await room.ids() == [said[0], said[2], said[3]]


async def test_the_quote_of_a_deleted_message_does_not_come_back(room: Room) -> None:
    said, _ = await a_debt(room)
    await later(room, "I paid half of the money")
    second = await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
    await room.delete(said[0])
    await room.undo(second.run)
    assert await room.rows("SELECT * FROM ledger_quotes") == []


async def test_what_a_person_said_who_has_opted_out_does_not_come_back(room: Room) -> None:
    await room.say("I planted beans", by=ANN, ago=timedelta(hours=2))
    await room.say("I planted peas", by=BEN, ago=timedelta(hours=1))
    await room.say("Good evening", by=None)
    outcome = await room.committed()
    await room.levels.set(BEN, GUILD, PrivacyLevel.FULL)
    assert (await room.undo(outcome.run)).entries == 1
    assert BEN not in {entry.author for entry in await room.entries()}
    assert await room.archived() == []


async def test_a_matter_that_was_erased_since_stays_erased(room: Room) -> None:
    await a_debt(room)
    await later(room, "I paid half of the money")
    outcome = await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
    await room.database.write(lambda tx: tx.execute("DELETE FROM ledger_entries"))
    await room.undo(outcome.run)
    assert await room.episodes() == ()


# --- what cannot be undone


async def test_a_run_that_never_was_is_unknown(room: Room) -> None:
    assert await refused(room, "abc") == ("errors.restore.unknown", {"run": "abc"})


async def test_a_run_that_failed_is_unknown(room: Room) -> None:
    await room.say("I planted beans", ago=timedelta(hours=2))
    await room.say("Good evening")
    room.model.queue(HttpError(500))
    outcome = await room.run()
    assert outcome is not None
    assert (await refused(room, outcome.run))[0] == "errors.restore.unknown"


async def test_a_run_is_undone_once(room: Room) -> None:
    _, outcome = await a_debt(room)
    await room.undo(outcome.run)
    assert await refused(room, outcome.run) == ("errors.restore.undone", {"run": outcome.run})


async def test_a_run_is_not_undone_before_the_one_that_went_on_with_its_matter(room: Room) -> None:
    _, first = await a_debt(room)
    await later(room, "I paid half of the money")
    second = await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
    reason = ("errors.restore.later", {"run": first.run, "later": second.run})
    assert await refused(room, first.run) == reason


async def test_a_run_is_not_undone_before_the_one_that_settled_its_matter(room: Room) -> None:
    _, first = await a_debt(room)
    await later(room, "I paid the money")
    second = await room.committed(resolved=["P1"])
    reason = ("errors.restore.later", {"run": first.run, "later": second.run})
    assert await refused(room, first.run) == reason


async def test_a_later_run_that_only_read_the_matter_is_in_nobodys_way(room: Room) -> None:
    said, first = await a_debt(room)
    await later(room, "I like rain")
    await room.committed(chunk("E1", content="Ben said good morning."))
    await room.undo(first.run)
    assert set(await room.ids()) > set(said[:3])


@pytest.mark.parametrize(("age", "is_kept"), [(KEPT - MOMENT, True), (KEPT, False)])
async def test_a_run_can_be_undone_for_fourteen_days(
    room: Room, age: timedelta, *, is_kept: bool
) -> None:
    _, outcome = await a_debt(room)
    room.clock.time += age
    if is_kept:
        assert (await room.undo(outcome.run)).entries == 2
    else:
        reason = ("errors.restore.too_old", {"run": outcome.run})
        assert await refused(room, outcome.run) == reason


async def test_a_run_that_archived_nothing_can_be_undone_no_longer(room: Room) -> None:
    """Its episode may be all that is left of what it pinned."""
    await room.say("Ben owes me money", ago=timedelta(hours=2))
    await room.say("Good evening")
    outcome = await room.committed(chunk("E1", content="Ben owes Ann money.", retain=True))
    assert await room.archived() == []
    room.clock.time += KEPT
    assert (await refused(room, outcome.run))[0] == "errors.restore.too_old"


# --- the archive


@pytest.mark.parametrize(("age", "dropped"), [(KEPT - MOMENT, 0), (KEPT, 2)])
async def test_the_archive_is_kept_for_fourteen_days(
    room: Room, age: timedelta, dropped: int
) -> None:
    await a_debt(room)
    room.clock.time += age
    assert await drop_archive(room.database, room.clock, days=room.config.archive_days) == dropped
    assert len(await room.archived()) == 2 - dropped


@pytest.mark.parametrize(("age", "left"), [(KEPT - MOMENT, 1), (KEPT, 0)])
async def test_what_a_matter_said_before_is_kept_as_long(
    room: Room, age: timedelta, left: int
) -> None:
    await a_debt(room)
    await later(room, "I paid half of the money")
    await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
    room.clock.time += age
    await drop_archive(room.database, room.clock, days=room.config.archive_days)
    assert len(await room.rows("SELECT * FROM ledger_versions")) == left
    assert len(await room.episodes()) == 2


# --- the command


async def command(folder: Path, run: str, **settings: str) -> tuple[int | None, str]:
    """Exit code and what was said of `madeleine restore-run`."""
    kept = {key: value for key, value in os.environ.items() if "MADELEINE" not in key}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "restore-run", run, "--data", str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**kept, **{f"MADELEINE__{key}": value for key, value in settings.items()}},
    )
    told, _ = await asyncio.wait_for(child.communicate(), timeout=30)
    return child.returncode, told.decode()


@pytest.fixture
async def done(tmp_path: Path) -> tuple[list[EntryId], RunId]:
    """A run of today in a closed database."""
    clock = FakeClock(time=datetime.now(UTC) - timedelta(hours=1))
    async with open_room(tmp_path, clock=clock) as room:
        said, outcome = await a_debt(room)
    return said, outcome.run


async def test_the_command_undoes_a_run(tmp_path: Path, done: tuple[list[EntryId], RunId]) -> None:
    said, run = done
    code, told = await command(tmp_path, run)
    assert code == 0
    assert f"handoff_undone run={run} entries=2 episodes=2" in told
    async with open_room(tmp_path) as room:
        assert await room.ids() == said
        assert await room.episodes() == ()


async def test_the_command_says_why_it_refuses(
    tmp_path: Path, done: tuple[list[EntryId], RunId]
) -> None:
    _, run = done
    await command(tmp_path, run)
    code, told = await command(tmp_path, run, LOCALE__DEFAULT="pt-BR")
    assert (code, told.strip()) == (1, f"A passagem {run} já foi desfeita.")


async def test_where_there_is_no_database_the_command_makes_none(tmp_path: Path) -> None:
    code, told = await command(tmp_path, "abc")
    assert code == 1
    assert "abc" in told
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_beside_a_running_bot_the_command_does_nothing(
    tmp_path: Path, done: tuple[list[EntryId], RunId]
) -> None:
    async with open_room(tmp_path) as room:
        before = await room.tables()
        code, told = await command(tmp_path, done[1])
        assert code == 2
        assert "Traceback" not in told
        assert await room.tables() == before

"""What becomes of a matter: kept open, gone on with, settled, or open for too long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.handoff.trigger import HandoffState, explain_handoff_trigger, unpinned
from bot.identifiers import EntryId, LedgerId
from bot.memory.buffers import BufferKey
from bot.persona.personas import FIRST_LINEAGE
from bot.prompts import prompt
from tests.fakes import Vectors
from tests.handoff.room import ANN, BEN, Room, chunk, open_room, result, shown_lines
from tests.talk import open_talk

DEBT = chunk("E1", "E2", content="Ben owes Ann money.", importance=6, retain=True)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as room:
        yield room


async def a_debt(room: Room) -> tuple[LedgerId, list[EntryId]]:
    """A matter with two pinned entries, an hour old, and one entry after them."""
    said = await room.say("Ben owes me money", "Money for the garden", ago=timedelta(hours=1))
    await room.say("Good morning")
    await room.committed({**DEBT, "quotes": ["Money for the garden"]})
    (matter,) = await room.matters()
    return matter.id, said


async def later(room: Room, *lines: str, **span: float) -> list[EntryId]:
    """Time passes, and Ben says something that is a candidate, besides the good morning (E1)."""
    room.clock.pass_(**(span or {"hours": 1}))
    said = await room.say(*lines, by=BEN, ago=timedelta(minutes=40))
    await room.say("Good evening", by=None)
    return said


# --- kept open


async def test_what_is_retained_is_one_open_matter(room: Room) -> None:
    ledger, said = await a_debt(room)
    (matter,) = await room.matters()
    assert (matter.id, matter.entries) == (ledger, tuple(said))
    assert matter.content == f"Ben owes {{p:{ANN}}} money."
    assert matter.happened_from == room.clock.now() - timedelta(hours=1)
    assert await room.pinned() == said


async def test_pinned_entries_are_no_candidates_and_count_for_no_trigger(room: Room) -> None:
    _, said = await a_debt(room)
    await later(room, "I like rain")
    look = await room.watch.look(room.key, requested=True)
    assert look is not None
    assert not {entry.id for entry in look.candidates} & set(said)
    state, now = HandoffState(config=room.config), room.clock.now()
    entries = await room.entries()
    assert explain_handoff_trigger(state, entries, now) == explain_handoff_trigger(
        state, unpinned(entries), now
    )
    pins = [entry for entry in entries if entry.pinned]
    assert explain_handoff_trigger(state, pins, now).trigger == "none"


async def test_the_pass_sees_the_matter_and_not_its_lines(room: Room) -> None:
    await a_debt(room)
    await later(room, "I like rain")
    await room.committed(chunk("E2", content="Ben likes rain."))
    assert "P1 (a couple of hours ago): " in room.prompt
    assert "Ben owes Ann money." in room.prompt
    assert list(shown_lines(room.model.last).values()) == ["Good morning", "I like rain"]


async def test_a_matter_that_nobody_speaks_of_stays_as_it_is(room: Room) -> None:
    ledger, said = await a_debt(room)
    before = await room.tables("ledger_entries", "ledger_sources", "ledger_quotes")
    await later(room, "I like rain")
    await room.committed()
    assert await room.tables(*before) == before
    assert [matter.id for matter in await room.matters()] == [ledger]
    assert await room.pinned() == said


async def test_a_matter_stands_in_its_own_block_of_the_prompt(tmp_path: Path) -> None:
    owed = chunk("E1", content="Ben owes Ann money.", retain=True)
    async with open_talk(tmp_path) as talk:
        talk.keeper.clear()
        talk.keeper.queue(result(owed))
        for line in ("Ben owes me money", *("It rains",) * 8):
            await talk.say("Ann", line)
        talk.clock.pass_(hours=1)
        origin = await talk.app.services.origins.of(talk.place())
        key = BufferKey(origin=origin.id, lineage=FIRST_LINEAGE)
        await talk.app.services.handoff.run_now(key)
        await talk.say("Ann", "hello")
        assert prompt("blocks.matters") in talk.prompt.system
        assert talk.prompt.system.count("Ben owes Ann money.") == 1
        assert not [line for line in talk.lines if "Ben owes me money" in line]


# --- gone on with


async def test_a_matter_that_goes_on_is_the_same_episode_told_anew(room: Room) -> None:
    ledger, said = await a_debt(room)
    (before,) = await room.episodes()
    new = await later(room, "I paid half of the money")
    paid = chunk("P1", "E2", content="Ben paid half.", importance=8, retain=True)
    outcome = await room.committed({**paid, "quotes": ["half of the money"]})
    (episode,) = await room.episodes()
    assert (outcome.episodes, outcome.promoted, outcome.pinned) == (1, 1, 1)
    assert (episode.id, episode.importance) == (ledger, 8)
    assert episode.content == f"{{p:{BEN}}} paid half."
    assert episode.happened_from == before.happened_from
    assert episode.happened_until == room.clock.now() - timedelta(minutes=40)
    assert [quote.content for quote in episode.quotes] == [
        "Money for the garden",
        "half of the money",
    ]
    assert episode.people == {ANN, BEN}
    assert await room.sources(ledger) == [*said, *new]
    assert await room.pinned() == [*said, *new]


async def test_what_a_matter_said_before_is_kept(room: Room) -> None:
    ledger, _ = await a_debt(room)
    for share in ("half", "most"):
        await later(room, f"I paid {share} of the money")
        await room.committed(chunk("P1", "E2", content=f"Ben paid {share}.", retain=True))
    versions = await room.rows(
        "SELECT v.ledger_id, v.run_id, v.content FROM ledger_versions AS v"
        " JOIN handoff_runs AS r ON r.id = v.run_id ORDER BY v.ended_at"
    )
    runs = [run["id"] for run in await room.runs()]
    assert [tuple(row.values()) for row in versions] == [
        (ledger, runs[1], f"Ben owes {{p:{ANN}}} money."),
        (ledger, runs[2], f"{{p:{BEN}}} paid half."),
    ]
    assert len(await room.episodes()) == 1


async def test_of_a_matter_that_goes_on_for_long_the_newest_quotes_are_told(room: Room) -> None:
    await a_debt(room)
    for number in range(1, 8):
        await later(room, f"I paid {number} coins")
        paid = chunk("P1", "E2", content=f"Ben paid {number} coins.", retain=True)
        await room.committed({**paid, "quotes": [f"I paid {number} coins"]})
    (episode,) = await room.episodes()
    assert [quote.content for quote in episode.quotes] == [
        f"I paid {number} coins" for number in range(2, 8)
    ]
    assert len(await room.rows("SELECT * FROM ledger_quotes")) == 8


async def test_a_matter_that_goes_on_and_is_not_retained_is_settled(room: Room) -> None:
    ledger, said = await a_debt(room)
    new = await later(room, "I paid all the money")
    outcome = await room.committed(chunk("P1", "E2", content="Ben paid the money."))
    assert await room.matters() == ()
    assert await room.pinned() == []
    assert await room.sources(ledger) == [*said, *new]
    assert (outcome.promoted, outcome.forgotten) == (1, 1)
    assert set(await room.archived()) >= {*said, *new}


async def test_a_vector_is_that_of_what_is_told_now(tmp_path: Path) -> None:
    async with open_room(tmp_path, embedder=True) as room:
        ledger, _ = await a_debt(room)
        await later(room, "I paid half of the money")
        room.model.queue(Vectors([[0.0, 1.0]]), to="embeddings")
        await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
        (stored,) = await room.rows("SELECT item, length(vector) AS bytes FROM embeddings")
        assert stored == {"item": str(ledger), "bytes": 4}
        (row,) = await room.rows("SELECT embedding_dimension FROM ledger_entries")
        assert row == {"embedding_dimension": 2}


async def test_told_anew_without_an_embedder_a_matter_loses_its_old_vector(tmp_path: Path) -> None:
    async with open_room(tmp_path, embedder=True) as room:
        await a_debt(room)
        clock = room.clock
    async with open_room(tmp_path, clock=clock) as room:
        await later(room, "I paid half of the money")
        await room.committed(chunk("P1", "E2", content="Ben paid half.", retain=True))
        assert await room.rows("SELECT * FROM embeddings") == []
        (row,) = await room.rows("SELECT embedding_model, embedding_dimension FROM ledger_entries")
        assert row == {"embedding_model": None, "embedding_dimension": None}


# --- settled


async def test_a_settled_matter_lets_its_entries_go_and_stays_in_the_ledger(room: Room) -> None:
    ledger, said = await a_debt(room)
    before = await room.tables("ledger_entries", "ledger_sources", "ledger_quotes")
    await later(room, "I paid the money")
    outcome = await room.committed(resolved=["P1"])
    assert await room.matters() == ()
    assert not set(await room.ids()) & set(said)
    assert set(await room.archived()) >= set(said)
    assert await room.tables(*before) == before
    assert [episode.id for episode in await room.episodes()] == [ledger]
    assert (outcome.promoted, outcome.forgotten) == (0, 2)


async def test_of_two_matters_only_the_settled_one_goes(room: Room) -> None:
    _, said = await a_debt(room)
    new = await later(room, "The roof leaks")
    await room.committed(chunk("E2", content="The roof leaks.", retain=True))
    await later(room, "Here is the money")
    await room.committed(resolved=["P1"])
    assert await room.pinned() == new
    assert not set(await room.ids()) & set(said)


async def test_a_matter_whose_messages_are_deleted_is_no_longer_open(room: Room) -> None:
    _, said = await a_debt(room)
    await room.delete(said[0])
    assert await room.matters() == ()
    assert await room.episodes() == ()
    assert said[1] in await room.ids()


# --- open for too long


@pytest.mark.parametrize(
    ("age", "is_shown"),
    [(timedelta(days=7), False), (timedelta(days=7, milliseconds=1), True)],
)
async def test_after_seven_days_a_matters_lines_are_candidates_again(
    room: Room, age: timedelta, *, is_shown: bool
) -> None:
    await a_debt(room)
    await later(room, "I like rain", seconds=(age - timedelta(hours=1)).total_seconds())
    await room.committed(chunk("P1", content="Ben owes Ann money.", retain=True))
    noted = [line for line in room.prompt.splitlines() if "already noted" in line]
    assert len(noted) == (2 if is_shown else 0)


@pytest.mark.parametrize(
    ("count", "shown"), [(6, []), (7, ["Trouble 0"]), (8, ["Trouble 0", "Trouble 1"])]
)
async def test_beyond_six_matters_the_lines_of_the_oldest_are_candidates_again(
    room: Room, count: int, shown: list[str]
) -> None:
    ago = timedelta(hours=2)
    await room.say(*(f"Trouble {number}" for number in range(count)), ago=ago)
    await room.say("Good morning", ago=timedelta(hours=1))
    troubles = (
        chunk(f"E{number + 1}", content=f"Trouble {number}.", retain=True)
        for number in range(count)
    )
    await room.committed(*troubles)
    assert len(await room.matters()) == count
    await room.say("Good evening")
    await room.committed()
    assert [text for text in shown_lines(room.model.last).values() if "Trouble" in text] == shown
    assert len(await room.matters()) == count - len(shown)


async def test_an_old_matter_that_is_left_out_is_only_unpinned_and_gone(room: Room) -> None:
    ledger, said = await a_debt(room)
    before = await room.tables("ledger_entries", "ledger_sources", "ledger_quotes")
    await later(room, "I like rain", days=8)
    outcome = await room.committed()
    assert await room.matters() == ()
    assert await room.pinned() == []
    assert set(await room.archived()) >= set(said)
    assert await room.tables(*before) == before
    assert [episode.id for episode in await room.episodes()] == [ledger]
    assert outcome.forgotten == 2


async def test_an_old_matter_that_is_retained_again_is_still_one_episode(room: Room) -> None:
    ledger, said = await a_debt(room)
    await later(room, "I like rain", days=8)
    again = chunk("E1", "E2", content="Ben still owes Ann money.", retain=True)
    outcome = await room.committed(again)
    (episode,) = await room.episodes()
    assert (episode.id, episode.content) == (ledger, f"{{p:{BEN}}} still owes {{p:{ANN}}} money.")
    assert await room.sources() == said
    assert await room.pinned() == said
    assert (outcome.promoted, outcome.forgotten, outcome.pinned) == (0, 2, 0)


async def test_an_old_matter_that_goes_on_with_new_lines_is_still_one_episode(room: Room) -> None:
    ledger, said = await a_debt(room)
    new = await later(room, "I paid half of the money", days=8)
    await room.committed(chunk("E1", "E4", content="Ben paid half of the money.", retain=True))
    assert [episode.id for episode in await room.episodes()] == [ledger]
    assert await room.sources(ledger) == [*said, *new]
    assert await room.pinned() == [*said, *new]


async def test_an_old_matter_that_is_told_to_its_end_lets_its_lines_go(room: Room) -> None:
    ledger, said = await a_debt(room)
    await later(room, "I paid the money", days=8)
    await room.committed(chunk("E1", "E2", "E4", content="Ben paid the money."))
    assert [episode.id for episode in await room.episodes()] == [ledger]
    assert await room.matters() == ()
    assert not set(await room.ids()) & set(said)


async def test_a_pinned_entry_whose_matter_was_erased_becomes_an_episode_again(room: Room) -> None:
    _, said = await a_debt(room)
    await room.database.write(lambda tx: tx.execute("DELETE FROM ledger_entries"))
    await later(room, "I like rain")
    outcome = await room.committed(chunk("E1", "E2", content="Ben owes Ann money."))
    assert outcome.promoted == 2
    assert await room.sources() == said

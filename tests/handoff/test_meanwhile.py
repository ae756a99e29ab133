"""What happens to a room while the model works on its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.clock import to_ms
from bot.handoff.runs import Outcome
from bot.identifiers import EntryId
from bot.privacy.levels import PrivacyLevel
from bot.storage.statements import Transaction
from tests.handoff.room import ANN, BEN, GUILD, Room, chunk, open_room, tell_everything

LONG_AGO = timedelta(hours=2)
BEANS = chunk("E1", "E2", content="Ann planted beans.")
PEAS = chunk("E3", content="Ben planted peas.")


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as room:
        yield room


async def garden(room: Room) -> list[EntryId]:
    """Two candidates of Ann, two of Ben, and one entry that stays."""
    said = await room.say("I planted beans", "They need rain", by=ANN, ago=LONG_AGO)
    said += await room.say("I planted peas", "Hm, hm", by=BEN, ago=timedelta(hours=1))
    return said + await room.say("Good evening", by=None)


async def a_matter(room: Room) -> list[EntryId]:
    """A debt that is kept open by one pinned entry, and a new candidate after it."""
    said = await room.say("Ben owes me money", ago=timedelta(hours=5))
    await room.say("Good morning", ago=timedelta(hours=4))
    await room.committed(chunk("E1", content="Ben owes Ann money.", retain=True))
    said += await room.say("The money is here", by=BEN, ago=LONG_AGO)
    await room.say("Good evening", by=None)
    return said


def changed(outcome: Outcome | None) -> tuple[int, int, int, int]:
    assert outcome is not None
    assert outcome.failure is None
    return outcome.episodes, outcome.promoted, outcome.forgotten, outcome.pinned


# --- what is said, edited, deleted


async def test_an_edited_source_drops_its_episode_and_what_belongs_to_it_waits(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    outcome = await room.run_while(room.edit(said[1], "They need no rain"))
    assert changed(outcome) == (1, 1, 1, 0)
    assert [episode.content for episode in await room.episodes()] == [f"{{p:{BEN}}} planted peas."]
    assert await room.ids() == [said[0], said[1], said[4]]
    assert (await room.entries())[1].content == "They need no rain"


async def test_what_waits_is_handed_over_by_a_later_run(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    first = await room.run_while(room.edit(said[1], "They need no rain"))
    second = await room.committed(BEANS)
    assert first is not None
    assert second.run != first.run
    assert await room.sources() == said[:3]


async def test_an_edited_entry_that_the_model_left_out_stays(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    outcome = await room.run_while(room.edit(said[3], "Peas are better"))
    assert changed(outcome) == (2, 3, 0, 0)
    assert await room.ids() == [said[3], said[4]]


async def test_an_edit_to_the_same_words_is_none(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    outcome = await room.run_while(room.edit(said[0], "I planted beans"))
    assert changed(outcome) == (2, 3, 1, 0)


@pytest.mark.parametrize("place", [0, 2, 3])
async def test_where_a_line_that_was_shown_is_deleted_nothing_is_written(
    room: Room, place: int
) -> None:
    """Whatever was cited: any episode may tell what it said."""
    said = await garden(room)
    room.answer(BEANS, PEAS)
    outcome = await room.run_while(room.delete(said[place]))
    assert changed(outcome) == (0, 0, 0, 0)
    assert await room.ids() == [entry for entry in said if entry != said[place]]
    assert await room.archived() == []
    room.model.on(tell_everything)
    made = await room.run()
    assert made is not None
    assert made.episodes == 1


async def test_where_somebody_goes_full_nothing_is_written(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    outcome = await room.run_while(room.close_off(BEN))
    assert changed(outcome) == (0, 0, 0, 0)
    assert await room.sources() == []
    assert await room.ids() == [said[0], said[1], said[4]]
    assert await room.rows("SELECT author_id FROM entry_archive") == []


async def test_what_arrives_is_untouched_and_looked_at_when_the_room_goes_quiet(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)

    async def arrives() -> None:
        room.clock.pass_(minutes=1)
        said.extend(await room.say("What about tomatoes?", "And cress?"))

    assert changed(await room.run_while(arrives())) == (2, 3, 1, 0)
    assert await room.ids() == said[4:]
    quiet = room.clock.now() + timedelta(seconds=1, minutes=30)
    assert (await room.buffer())["due_at"] == to_ms(quiet)


async def test_a_crowded_room_is_looked_at_again_when_it_goes_quiet(tmp_path: Path) -> None:
    crowded = {"velocity_entries": 5, "velocity_candidates": 4, "crowded_entries": 5}
    async with open_room(tmp_path, **crowded, crowded_keep_entries=2) as room:
        lines = (f"rain {number}" for number in range(6))
        await room.say(*lines, ago=timedelta(seconds=10))
        before = (await room.buffer())["due_at"]
        room.model.on(tell_everything)
        look = await room.watch.look(room.key)
        assert look is not None
        assert len(look.candidates) == 4
        await room.handover.make(look)
        assert (await room.buffer())["due_at"] == before


async def test_entries_left_by_a_run_that_wrote_nothing_are_not_that_run_again(room: Room) -> None:
    """Else it would be taken for committed for ever, and asked for each time."""
    said = await room.say("I planted beans", "They need rain", by=BEN, ago=LONG_AGO)
    await room.say("Good evening")
    room.answer(BEANS)
    first = await room.run_while(room.levels.set(BEN, GUILD, PrivacyLevel.FULL))
    assert changed(first) == (0, 0, 0, 0)
    await room.levels.set(BEN, GUILD, PrivacyLevel.OPEN)
    assert changed(await room.committed(BEANS)) == (1, 2, 0, 0)
    assert await room.sources() == said


# --- matters


async def test_a_matter_that_is_deleted_meanwhile_is_not_gone_on_with(room: Room) -> None:
    said = await a_matter(room)
    room.answer(chunk("P1", "E2", content="Ben has the money.", retain=False))

    async def forget(tx: Transaction) -> None:
        await tx.execute("DELETE FROM ledger_entries")

    assert changed(await room.run_while(room.database.write(forget))) == (0, 0, 1, 0)
    assert await room.episodes() == ()
    assert said[1] in await room.ids()


async def test_a_settled_matter_that_is_deleted_meanwhile_leaves_its_entries(room: Room) -> None:
    said = await a_matter(room)
    room.answer(resolved=["P1"])

    async def forget(tx: Transaction) -> None:
        await tx.execute("DELETE FROM ledger_entries")

    await room.run_while(room.database.write(forget))
    assert said[0] in await room.pinned()
    room.clock.pass_(hours=1)
    await room.say("Good night")
    await room.committed(chunk("E1", content="Ben owes Ann money."))
    assert await room.sources() == [said[0]]


async def test_a_pinned_entry_that_is_edited_keeps_its_settled_matter_open(room: Room) -> None:
    said = await a_matter(room)
    room.answer(resolved=["P1"])
    await room.run_while(room.edit(said[0], "Ben owes me a lot of money"))
    assert await room.pinned() == [said[0]]
    assert len(await room.matters()) == 1


async def test_a_matter_is_not_told_anew_from_a_line_that_is_edited_meanwhile(room: Room) -> None:
    said = await a_matter(room)
    room.clock.pass_(days=8)
    await room.say("Good night", by=None)
    before = await room.episodes()
    room.answer(chunk("E1", content="Ben still owes Ann money.", retain=True))
    await room.run_while(room.edit(said[0], "Ben owes me nothing"))
    assert await room.episodes() == before
    assert await room.pinned() == [said[0]]


async def test_a_pinned_entry_that_is_deleted_meanwhile_stays_deleted(room: Room) -> None:
    said = await a_matter(room)
    room.answer(resolved=["P1"])
    await room.run_while(room.delete(said[0]))
    assert said[0] not in await room.ids()
    assert said[0] not in await room.archived()


# --- two at once


async def test_two_runs_of_one_buffer_never_overlap(room: Room) -> None:
    said = await garden(room)
    room.answer(BEANS, PEAS)
    room.model.gate.clear()
    both = [asyncio.create_task(room.run()) for _ in range(2)]
    await room.model.wait_for_requests(1)
    await room.engine.before_turn(room.key.origin, room.key.lineage, GUILD)
    third = asyncio.create_task(room.run())
    room.model.gate.set()
    outcomes = await asyncio.gather(*both, third)
    assert len({id(outcome) for outcome in outcomes}) == 1
    assert len(room.model.chats) == 1
    assert await room.sources() == said[:3]


async def test_a_run_over_a_room_as_it_was_before_another_run_changes_nothing(room: Room) -> None:
    await garden(room)
    old = await room.watch.look(room.key, requested=True)
    assert old is not None
    await room.say("I planted leeks", ago=timedelta(minutes=40))
    room.model.on(tell_everything)
    await room.run()
    after = await room.tables()
    await room.handover.make(old)
    assert await room.tables() == after

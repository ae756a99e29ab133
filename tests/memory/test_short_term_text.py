"""What was noted of a conversation lives as long as its row, whatever the cache does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from tests.memory.test_short_term import SMALL_CACHE, Notes, fill_the_disk
from tests.talk import open_talk


@pytest.fixture
async def notes(tmp_path: Path) -> AsyncIterator[Notes]:
    async with open_talk(tmp_path) as talk:
        yield Notes(talk)


async def test_a_turn_that_ends_after_the_day_is_over_keeps_what_was_noted(notes: Notes) -> None:
    await notes.note("tea talk")
    notes.talk.clock.pass_(hours=23, minutes=59)
    assert await notes.noted() == ("tea talk", {})
    notes.talk.clock.pass_(minutes=2)  # the turn runs
    await notes.capture([notes.said("Ann", "hello")])
    assert await notes.noted() == ("tea talk", {})
    assert await notes.turns() == ["hello"]


async def test_a_room_that_left_the_cache_keeps_what_was_noted(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=SMALL_CACHE) as talk:
        notes = Notes(talk)
        await notes.note("tea talk", "one")
        for room in ("two", "three"):
            await notes.capture([notes.said("Ann", "hello")], channel=room)
        await notes.capture([notes.said("Ann", "back again")], channel="one")
        assert await notes.noted("one") == ("tea talk", {})
        assert await notes.turns("one") == ["back again"]


async def test_a_category_noted_after_the_day_is_over_leaves_the_other_texts(notes: Notes) -> None:
    await notes.note("tea talk", mood="cheerful")
    notes.talk.clock.pass_(hours=23, minutes=59)
    await notes.noted()
    notes.talk.clock.pass_(minutes=2)
    await notes.note(topic="rain")
    expected = ("tea talk", {"mood": "cheerful", "topic": "rain"})
    assert await notes.noted() == expected
    assert await notes.rows() == [expected]


async def test_a_note_after_a_restart_leaves_the_other_texts(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await Notes(talk).note("tea talk", mood="cheerful")
    async with open_talk(tmp_path) as talk:
        notes = Notes(talk)
        await notes.note(topic="rain")
        expected = ("tea talk", {"mood": "cheerful", "topic": "rain"})
        assert await notes.noted() == expected
        assert await notes.rows() == [expected]


@pytest.mark.parametrize(("minutes", "left"), [(-1, "tea talk"), (0, "")])
async def test_talk_that_never_stops_does_not_keep_a_note_beyond_ninety_days(
    notes: Notes, minutes: int, left: str
) -> None:
    await notes.note("tea talk")
    notes.talk.clock.pass_(minutes=minutes)
    for _ in range(90 * 2):
        notes.talk.clock.pass_(hours=12)
        await notes.capture([notes.said("Ann", "still here")])
    assert (await notes.noted())[0] == left
    assert set(await notes.turns()) == {"still here"}


async def test_a_cleared_note_stays_cleared(notes: Notes) -> None:
    await notes.note("tea talk", mood="cheerful")
    await notes.note("", mood="")
    assert await notes.noted() == ("", {})
    await notes.capture([notes.said("Ann", "hello")])
    assert await notes.noted() == ("", {})


async def test_what_failed_is_not_written_by_whoever_comes_next(notes: Notes) -> None:
    await notes.note("tea talk")
    await fill_the_disk(notes)
    failing = asyncio.create_task(notes.note(topic="rain " * 20_000))
    await asyncio.sleep(0)
    written = asyncio.create_task(notes.note(mood="calm"))
    with pytest.raises(StorageUnavailable):
        await failing
    await written
    assert await notes.noted() == ("tea talk", {"mood": "calm"})
    assert await notes.rows() == [("tea talk", {"mood": "calm"})]


async def test_a_first_note_that_fails_leaves_nothing(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    await fill_the_disk(notes)
    with pytest.raises(StorageUnavailable):
        await notes.note("rain " * 20_000, mood="gloomy")
    assert await notes.noted() == ("", {})
    assert await notes.turns() == ["hello"]


async def test_a_note_that_fails_is_still_due(notes: Notes) -> None:
    for _ in range(5):
        await notes.capture([notes.said("Ann", "hello")])
    await fill_the_disk(notes)
    with pytest.raises(StorageUnavailable):
        await notes.note("rain " * 20_000)
    entry = await notes.live()
    assert entry is not None
    assert entry.turns_since_refresh == 5

"""Short-term memory: what stays of a conversation, how long, and that cache and row agree."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from bot.audience import Audience, Origin
from bot.errors import StorageUnavailable
from bot.identifiers import EntryId, MessageId
from bot.memory.short_term import ShortTermEntry, ShortTermMemory
from bot.memory.short_term_rows import ShortTermRows
from bot.memory.working import Entry, EntryKind
from bot.persona.personas import FIRST_LINEAGE
from bot.privacy.levels import PrivacyLevel
from tests.talk import GUILD, FakeClock, Talk, open_talk

SMALL_CACHE = {"MADELEINE__MEMORY__STM_MAX_ENTRIES": "2"}


@dataclass
class Notes:
    """Short-term memory as a test handles it."""

    talk: Talk

    @property
    def memory(self) -> ShortTermMemory:
        return self.talk.app.services.short_term

    async def room(self, channel: str = "general") -> tuple[Origin, Audience]:
        services = self.talk.app.services
        origin = await services.origins.of(self.talk.place(channel))
        return origin, await services.audiences.of_room(origin)

    def said(self, name: str | None, text: str) -> Entry:
        """An entry of a person, or of the persona."""
        number = self.talk.next_id()
        return Entry(
            id=EntryId(number),
            kind=EntryKind.DIALOGUE,
            author=None if name is None else self.talk.person(name).id,
            persona=None,
            content=text,
            message_id=MessageId(number),
            said_at=self.talk.clock.now(),
            scene=0,
            pinned=False,
            version=1,
            tokens=1,
        )

    async def capture(
        self, turns: Sequence[Entry], *, by: str = "Ann", channel: str = "general"
    ) -> bool:
        origin, _ = await self.room(channel)
        return self.memory.store(origin, FIRST_LINEAGE, turns, self.talk.person(by).id)

    async def note(
        self, summary: str | None = None, channel: str = "general", **categories: str
    ) -> None:
        origin, _ = await self.room(channel)
        await self.memory.update(origin, FIRST_LINEAGE, summary=summary, categories=categories)

    async def live(self, channel: str = "general") -> ShortTermEntry | None:
        _, audience = await self.room(channel)
        return await self.memory.of_room(audience, FIRST_LINEAGE)

    async def turns(self, channel: str = "general") -> list[str]:
        entry = await self.live(channel)
        return [turn.content for turn in entry.turns] if entry else []

    async def noted(self, channel: str = "general") -> tuple[str, dict[str, str]]:
        entry = await self.live(channel)
        text = entry.text if entry else None
        return (text.summary, dict(text.categories)) if text else ("", {})

    async def rows(self) -> list[tuple[object, object]]:
        rows = await self.talk.rows("SELECT summary, categories FROM short_term_memories")
        return [(row["summary"], json.loads(str(row["categories"]))) for row in rows]


@pytest.fixture
async def notes(tmp_path: Path) -> AsyncIterator[Notes]:
    async with open_talk(tmp_path) as talk:
        yield Notes(talk)


# --- what is kept


@pytest.mark.parametrize(("count", "first"), [(9, 0), (10, 0), (11, 1)])
async def test_the_last_ten_messages_stay(notes: Notes, count: int, first: int) -> None:
    await notes.capture([notes.said("Ann", f"line {n}") for n in range(count)])
    assert await notes.turns() == [f"line {n}" for n in range(first, count)]


async def test_a_turn_of_a_fully_private_person_stores_nothing(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "before")])
    await notes.talk.level("Bob", PrivacyLevel.FULL)
    assert not await notes.capture([notes.said("Ann", "after")], by="Bob")
    assert await notes.turns() == ["before"]


async def test_words_of_a_fully_private_person_are_left_out(notes: Notes) -> None:
    await notes.talk.level("Bob", PrivacyLevel.FULL)
    await notes.talk.level("Cleo", PrivacyLevel.PARTIAL)
    lines = [notes.said(who, f"{who} said") for who in ("Ann", "Bob", "Cleo", None)]
    assert await notes.capture(lines)
    assert await notes.turns() == ["Ann said", "Cleo said", "None said"]


async def test_a_capture_keeps_what_was_noted_and_counts_turns_since(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "one")])
    await notes.note("tea talk")
    await notes.capture([notes.said("Ann", "two")])
    await notes.capture([notes.said("Ann", "three")])
    entry = await notes.live()
    assert entry is not None
    assert (entry.summary, entry.turns_since_refresh) == ("tea talk", 2)


async def test_rooms_and_lineages_keep_apart(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "here")])
    assert await notes.turns("elsewhere") == []
    _, audience = await notes.room()
    other = type(FIRST_LINEAGE)(FIRST_LINEAGE + 1)
    assert await notes.memory.of_room(audience, other) is None


# --- how long


@pytest.mark.parametrize(("seconds", "left"), [(-1, ["hello"]), (0, [])])
async def test_bare_turns_live_for_twelve_hours(
    notes: Notes, seconds: int, left: list[str]
) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    notes.talk.clock.pass_(hours=12, seconds=seconds)
    assert await notes.turns() == left


@pytest.mark.parametrize(("seconds", "left"), [(-1, ["hello"]), (0, [])])
async def test_with_a_summary_turns_live_for_a_day(
    notes: Notes, seconds: int, left: list[str]
) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    await notes.note("tea talk")
    notes.talk.clock.pass_(hours=24, seconds=seconds)
    assert await notes.turns() == left


@pytest.mark.parametrize(("seconds", "left"), [(-1, ["hello"]), (0, [])])
async def test_categories_alone_lengthen_nothing(
    notes: Notes, seconds: int, left: list[str]
) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    await notes.note(mood="cheerful")
    notes.talk.clock.pass_(hours=12, seconds=seconds)
    assert await notes.turns() == left


async def test_time_counts_from_the_last_capture(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "one")])
    notes.talk.clock.pass_(hours=11)
    await notes.capture([notes.said("Ann", "two")])
    notes.talk.clock.pass_(hours=11)
    assert await notes.turns() == ["one", "two"]


async def test_a_sweep_drops_what_is_over_and_nothing_else(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "old")], channel="old")
    notes.talk.clock.pass_(hours=6)
    await notes.capture([notes.said("Ann", "new")], channel="new")
    notes.talk.clock.pass_(hours=6)
    notes.memory.sweep()
    assert len(notes.memory._entries) == 1
    assert await notes.turns("new") == ["new"]


async def test_the_least_recently_used_conversation_goes_first(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=SMALL_CACHE) as talk:
        notes = Notes(talk)
        await notes.capture([notes.said("Ann", "one")], channel="one")
        await notes.capture([notes.said("Ann", "two")], channel="two")
        assert await notes.turns("one") == ["one"]
        await notes.capture([notes.said("Ann", "three")], channel="three")
        rooms = ("one", "two", "three")
        assert [await notes.turns(room) for room in rooms] == [["one"], [], ["three"]]


# --- the row


async def test_a_row_exists_only_while_there_is_text(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    assert await notes.rows() == []
    await notes.note("tea talk", mood="cheerful", topic="tea")
    await notes.note(mood="", topic="rain")
    assert await notes.rows() == [("tea talk", {"topic": "rain"})]
    await notes.note("", topic="")
    assert await notes.rows() == []


async def test_what_was_noted_is_read_back_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await Notes(talk).note("tea talk", mood="cheerful")
    async with open_talk(tmp_path, clock=clock) as talk:
        assert await Notes(talk).noted() == ("tea talk", {"mood": "cheerful"})


@pytest.mark.parametrize(("seconds", "left"), [(-1, "tea talk"), (0, "")])
async def test_a_row_is_kept_for_ninety_days(notes: Notes, seconds: int, left: str) -> None:
    await notes.note("tea talk")
    notes.talk.clock.pass_(days=90, seconds=seconds)
    assert (await notes.noted())[0] == left
    services = notes.talk.app.services
    rows = ShortTermRows(services.database, services.clock, retention=timedelta(days=90))
    assert await rows.drop_expired() == (0 if left else 1)
    assert len(await notes.rows()) == (1 if left else 0)


async def test_a_capture_while_the_row_is_read_back_is_not_lost(notes: Notes) -> None:
    await notes.note("tea talk")
    notes.talk.clock.pass_(hours=25)
    reading = asyncio.create_task(notes.live())
    await asyncio.sleep(0)
    await notes.capture([notes.said("Ann", "hello")])
    await reading
    assert (await notes.turns(), await notes.noted()) == (["hello"], ("tea talk", {}))


async def test_a_note_while_the_row_is_read_back_is_not_lost(notes: Notes) -> None:
    await notes.note("tea talk")
    notes.talk.clock.pass_(hours=25)
    reading = asyncio.create_task(notes.live())
    await asyncio.sleep(0)
    await notes.note("rain talk")
    await reading
    assert (await notes.noted())[0] == "rain talk"


# --- a row that cannot be written


async def fill_the_disk(notes: Notes) -> None:
    """Let the file grow no more: a long text does not fit."""
    writing = notes.talk.app.services.database._writing
    pages = await writing.execute_fetchall("PRAGMA page_count")
    await writing.execute_fetchall(f"PRAGMA max_page_count = {next(iter(pages))[0]}")


async def test_a_note_that_cannot_be_written_is_put_back(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    await notes.note("tea talk", mood="cheerful")
    await fill_the_disk(notes)
    with pytest.raises(StorageUnavailable):
        await notes.note("rain " * 20_000, mood="gloomy", topic="rain")
    assert await notes.noted() == ("tea talk", {"mood": "cheerful"})
    assert await notes.rows() == [("tea talk", {"mood": "cheerful"})]
    assert await notes.turns() == ["hello"]


async def test_after_the_database_is_closed_a_note_is_put_back(notes: Notes) -> None:
    await notes.capture([notes.said("Ann", "hello")])
    await notes.note("tea talk", mood="cheerful")
    assert await notes.turns() == ["hello"]
    await notes.talk.app.services.database.close()
    with pytest.raises(StorageUnavailable):
        await notes.note("rain talk", topic="rain")
    assert await notes.noted() == ("tea talk", {"mood": "cheerful"})
    assert await notes.turns() == ["hello"]


async def test_a_field_that_another_wrote_meanwhile_stays(notes: Notes) -> None:
    await notes.note("tea talk", mood="cheerful")
    await fill_the_disk(notes)
    failing = asyncio.create_task(notes.note("rain " * 20_000))
    await asyncio.sleep(0)
    written = asyncio.create_task(notes.note("snow talk", mood="calm"))
    with pytest.raises(StorageUnavailable):
        await failing
    await written
    assert await notes.noted() == ("snow talk", {"mood": "calm"})
    assert await notes.rows() == [("snow talk", {"mood": "calm"})]


# --- forgetting and editing


async def test_a_deleted_message_leaves_every_conversation(notes: Notes) -> None:
    gone, stays = notes.said("Ann", "gone"), notes.said("Ann", "stays")
    for room in ("one", "two"):
        await notes.capture([gone, stays], channel=room)
    notes.memory.forget_messages([gone.message_id or MessageId(0)])
    assert [await notes.turns(room) for room in ("one", "two")] == [["stays"], ["stays"]]


async def test_an_edited_message_changes_in_every_conversation(notes: Notes) -> None:
    line, other = notes.said("Ann", "tee"), notes.said("Ann", "other")
    for room in ("one", "two"):
        await notes.capture([line, other], channel=room)
    notes.memory.edit_message(line.message_id or MessageId(0), "tea")
    rooms = [await notes.turns(room) for room in ("one", "two")]
    assert rooms == [["tea", "other"]] * 2


async def test_a_forgotten_author_leaves_every_conversation(notes: Notes) -> None:
    lines = [notes.said("Ann", "a"), notes.said("Bob", "b"), notes.said(None, "m")]
    await notes.capture(lines)
    notes.memory.forget_author(notes.talk.person("Bob").id, GUILD)
    assert await notes.turns() == ["a", "m"]


# --- other rooms


async def test_other_rooms_are_those_that_are_heard_newest_first(notes: Notes) -> None:
    for room in ("one", "two", "unheard", "here"):
        notes.talk.clock.pass_(minutes=1)
        await notes.capture([notes.said("Ann", room)], channel=room)
    here, one, two = [(await notes.room(name))[0].id for name in ("here", "one", "two")]
    audience = Audience(here=here, heard=frozenset({here, one, two}))
    others = await notes.memory.of_other_rooms(audience, FIRST_LINEAGE, 5)
    assert [entry.origin for entry in others] == [two, one]
    assert len(await notes.memory.of_other_rooms(audience, FIRST_LINEAGE, 1)) == 1


async def test_a_note_is_told_elsewhere_for_a_day_only(notes: Notes) -> None:
    here, one = [(await notes.room(name))[0].id for name in ("here", "one")]
    audience = Audience(here=here, heard=frozenset({here, one}))

    async def told() -> list[str]:
        await notes.capture([notes.said("Ann", "still talking")], channel="one")
        others = await notes.memory.of_other_rooms(audience, FIRST_LINEAGE, 5)
        return [entry.summary for entry in others]

    await notes.note("we talk of tea", channel="one")
    notes.talk.clock.pass_(hours=23, minutes=59)
    assert await told() == ["we talk of tea"]
    notes.talk.clock.pass_(minutes=1)
    assert await told() == [""]
    assert await notes.noted("one") == ("we talk of tea", {})

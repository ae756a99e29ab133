"""Short-term memory after a restart, and in a person's own words."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bot.audience import Audience, Origin
from bot.errors import StorageUnavailable
from bot.identifiers import GuildId
from bot.memory.listening import Actor
from bot.memory.refusals import MemoryRefused
from bot.memory.short_term import ShortTermEntry
from bot.persona.personas import FIRST_LINEAGE
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from tests.talk import GUILD, FakeClock, Talk, open_talk


async def room(talk: Talk, channel: str = "general") -> Origin:
    return await talk.app.services.origins.of(talk.place(channel))


async def own(talk: Talk, channel: str = "general") -> ShortTermEntry | None:
    origin = await room(talk, channel)
    audience = await talk.app.services.audiences.of_room(origin)
    return await talk.app.services.short_term.of_room(audience, FIRST_LINEAGE)


async def others(talk: Talk, *heard: str, here: str = "here") -> list[ShortTermEntry]:
    """What is remembered of rooms that are heard in another."""
    here_id = (await room(talk, here)).id
    ids = frozenset([here_id, *[(await room(talk, name)).id for name in heard]])
    audience = Audience(here=here_id, heard=ids)
    return list(await talk.app.services.short_term.of_other_rooms(audience, FIRST_LINEAGE, 5))


def said(entry: ShortTermEntry | None) -> list[str]:
    return [turn.content for turn in entry.turns] if entry else []


async def summary(talk: Talk, text: str, channel: str = "general", by: str | None = None) -> None:
    """Write a note as the model does, or as a person."""
    memory, origin = talk.app.services.short_term, await room(talk, channel)
    if by is None:
        await memory.update(origin, FIRST_LINEAGE, summary=text, categories={})
    else:
        await memory.edit(origin, FIRST_LINEAGE, summary=text, by=talk.person(by).id)


# --- after a restart


async def test_raw_turns_come_back_with_their_times_and_speakers(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await talk.say("Ann", "hello")
        before = await own(talk)
    async with open_talk(tmp_path, clock=clock) as talk:
        after = await own(talk)
        assert len(said(after)) == 2
        assert before is not None
        assert after is not None
        assert after.turns == before.turns


@pytest.mark.parametrize(("minutes", "back"), [(-1, True), (1, False)])
async def test_they_come_back_within_their_twelve_hours(
    tmp_path: Path, minutes: int, *, back: bool
) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await talk.say("Ann", "hello")
    clock.pass_(hours=12, minutes=minutes)
    async with open_talk(tmp_path, clock=clock) as talk:
        assert bool(said(await own(talk))) == back


async def test_at_most_ten_come_back_the_newest(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        for number in range(7):
            await talk.say("Ann", f"line {number}")
    async with open_talk(tmp_path, clock=clock) as talk:
        found = said(await own(talk))
        assert (len(found), found[0], found[-2]) == (10, "line 2", "line 6")


async def test_what_was_deleted_and_who_went_private_does_not_come_back(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await talk.say("Ann", "a secret")
        await talk.say("Bob", "an opinion")
        (row,) = await talk.rows("SELECT message_id FROM buffer_entries WHERE content = 'a secret'")
        await talk.app.receiver.forget_messages([row["message_id"]])
        await talk.level("Bob", PrivacyLevel.FULL)
    async with open_talk(tmp_path, clock=clock) as talk:
        assert len(said(await own(talk))) == 2
        assert not {"a secret", "an opinion"} & set(said(await own(talk)))


async def test_other_rooms_come_back_where_they_are_heard(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await talk.say("Ann", "about tea", "one")
        clock.pass_(minutes=1)
        await talk.say("Ann", "about rain", "two")
    async with open_talk(tmp_path, clock=clock) as talk:
        assert await others(talk) == []
        found = await others(talk, "one", "two")
        assert [said(entry)[0] for entry in found] == ["about rain", "about tea"]


@pytest.mark.parametrize(
    ("by", "hours", "told"),
    [(None, 23, True), (None, 25, False), ("Ann", 25, True), ("Ann", 24 * 89, True)],
)
async def test_a_note_of_another_room_is_read_back_for_a_day_a_persons_longer(
    tmp_path: Path, by: str | None, hours: int, *, told: bool
) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await summary(talk, "they talk of tea", "one", by)
    clock.pass_(hours=hours)
    async with open_talk(tmp_path, clock=clock) as talk:
        found = await others(talk, "one")
        assert [entry.summary for entry in found] == (["they talk of tea"] if told else [])
        entry = await own(talk, "one")
        assert entry is not None
        assert entry.summary == "they talk of tea"


async def test_what_is_not_there_is_looked_for_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await own(talk) is None
        await talk.app.services.database.close()  # asking again would fail
        assert await own(talk) is None


async def test_after_a_note_has_had_its_time_it_is_read_from_its_row_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await summary(talk, "they talk of tea")
        talk.clock.pass_(hours=30)
        entry = await own(talk)
        assert entry is not None
        assert entry.summary == "they talk of tea"


async def test_what_a_handoff_took_stays_among_the_last_ten(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for number in range(3):
            await talk.say("Ann", f"line {number}")
        await talk.app.services.database.write(
            lambda tx: tx.execute("DELETE FROM buffer_entries WHERE content LIKE 'line%'")
        )
        await talk.say("Ann", "line 3")
        found = said(await own(talk))
        lines = [text for text in found if text.startswith("line")]
        assert lines == ["line 0", "line 1", "line 2", "line 3"]


async def test_a_persons_level_in_one_server_leaves_the_others_alone(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        entry, ann = await own(talk), talk.person("Ann").id
        assert entry is not None
        talk.app.services.short_term.forget_author(ann, GuildId(entry.guild + 1))
        assert "hello" in said(await own(talk))
        talk.app.services.short_term.forget_author(ann, entry.guild)
        assert "hello" not in said(await own(talk))


# --- in a person's own words


async def test_a_person_rewrites_the_summary_and_the_model_may_write_it_again(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await summary(talk, "we plan a picnic", by="Ann")
        (row,) = await talk.rows("SELECT summary, written_by FROM short_term_memories")
        assert (row["summary"], row["written_by"]) == ("we plan a picnic", talk.person("Ann").id)
        await summary(talk, "they plan a feast")
        (row,) = await talk.rows("SELECT summary, written_by FROM short_term_memories")
        assert (row["summary"], row["written_by"]) == ("they plan a feast", None)


async def test_an_empty_text_of_a_person_clears_the_note(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await summary(talk, "they talk")
        await summary(talk, "", by="Ann")
        assert await talk.rows("SELECT * FROM short_term_memories") == []


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * 1_501, "too_long"), ("the key is ghp_" + "a1B2" * 9, "credential")],
)
async def test_what_no_note_may_hold_is_refused(tmp_path: Path, text: str, code: str) -> None:
    async with open_talk(tmp_path) as talk:
        memory, origin = talk.app.services.short_term, await room(talk)
        by = talk.person("Ann").id
        with pytest.raises(MemoryRefused) as caught:
            await summary(talk, text, by="Ann")
        assert caught.value.code == code
        with pytest.raises(MemoryRefused) as caught:
            await memory.edit(origin, FIRST_LINEAGE, categories={"Mood": text}, by=by)
        assert caught.value.code == code
        assert await talk.rows("SELECT * FROM short_term_memories") == []


async def test_where_it_cannot_be_written_the_former_note_stands(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        await summary(talk, "they talk")
        before = await own(talk)
        await talk.app.services.database.close()
        with pytest.raises(StorageUnavailable):
            await summary(talk, "mine", by="Ann")
        after = await own(talk)
        assert before is not None
        assert after is not None
        assert replace(after, captured_at=before.captured_at) == before


# --- what is deleted while it is read back


async def hold_the_reading(talk: Talk, go_on: threading.Event) -> asyncio.Event:
    """Make the next reader wait after it has read the newest entries; set once it does."""
    loop, held = asyncio.get_running_loop(), asyncio.Event()
    waiting = threading.Lock()

    def wait(sql: str) -> None:
        if "FROM short_term_memories" in sql and waiting.acquire(blocking=False):
            loop.call_soon_threadsafe(held.set)
            go_on.wait(10)

    for reader in talk.app.services.database._readers:
        await reader.set_trace_callback(wait)
    return held


@pytest.mark.parametrize("way", ["delete", "erase", "forget words", "edit"])
async def test_what_is_taken_away_while_it_is_read_back_does_not_come_back(
    tmp_path: Path, way: str
) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        message = talk.message("Ann", "my secret is the cellar")
        await talk.take(message)
    async with open_talk(tmp_path, clock=clock) as talk:
        go_on = threading.Event()
        held = await hold_the_reading(talk, go_on)
        reading = asyncio.create_task(own(talk))
        await held.wait()
        receiver, ann = talk.app.receiver, talk.person("Ann").id
        taking = {
            "delete": receiver.forget_messages([message.id]),
            "erase": receiver.erase(ann, EVERYWHERE),
            "forget words": receiver.forget_words(
                "cellar", GUILD, Actor(user=ann, is_manager=False)
            ),
            "edit": receiver.edit_message(message.id, "never mind"),
        }
        taken = asyncio.create_task(taking.pop(way))
        for other in taking.values():
            other.close()
        await asyncio.sleep(0.05)
        go_on.set()
        await asyncio.gather(taken, reading)
        assert "my secret is the cellar" not in said(await own(talk))

"""Who may change and forget memories, what then remains, and that every read is fresh."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import aiosqlite
import pytest

from tests.memory.shelf import Shelf
from tests.memory.test_long_term import refusal, stored
from tests.talk import open_talk


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with open_talk(tmp_path) as talk:
        yield Shelf(talk)


async def former(shelf: Shelf) -> list[object]:
    """The texts that memories had before."""
    rows = await shelf.talk.rows("SELECT content FROM memory_versions ORDER BY ended_at")
    return [row["content"] for row in rows]


async def hold_at_sources(
    connections: list[aiosqlite.Connection], go_on: threading.Event
) -> asyncio.Event:
    """Make the next reader wait where it reads a memory's sources; set once it does."""
    loop = asyncio.get_running_loop()
    held = asyncio.Event()
    waiting = threading.Lock()

    def wait(sql: str) -> None:
        if "FROM memory_sources" in sql and waiting.acquire(blocking=False):
            loop.call_soon_threadsafe(held.set)
            go_on.wait(10)

    for connection in connections:
        await connection.set_trace_callback(wait)
    return held


# --- rights


@pytest.mark.parametrize("who", ["Subject", "Author"])
async def test_a_personal_memory_is_its_subjects_and_its_authors(shelf: Shelf, who: str) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.change(kept, "likes rain", by=who)
    assert await shelf.about("Subject") == ["likes rain"]


async def test_whoever_said_it_too_puts_no_words_in_anothers_mouth(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Subject")
    await shelf.keep("likes tea", about="Subject", by="Sayer")
    assert await refusal(shelf.change(kept, "is a thief", by="Sayer")) == "not_yours"
    assert await shelf.about("Subject") == ["likes tea"]
    await shelf.forget(kept, by="Sayer")
    assert await shelf.about("Subject") == ["likes tea"]


async def test_a_changed_memory_is_the_word_of_whoever_changed_it(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.change(kept, "likes rain", by="Subject")
    here = await shelf.listening()
    subject = shelf.talk.person("Subject").id
    [memory] = await shelf.memory.personal_memories(subject, here)
    assert (memory.content, memory.author) == ("likes rain", subject)


async def test_who_told_it_elsewhere_and_when_is_not_known_here(shelf: Shelf) -> None:
    await shelf.keep("the launch is on Friday", by="Ann", channel="secret")
    shelf.talk.clock.pass_(days=20)
    await shelf.keep("the launch is on Friday", by="Bob", channel="general")
    [memory] = await shelf.memory.server_memories(await shelf.listening("general"))
    assert memory.author == shelf.talk.person("Bob").id
    assert memory.updated_at == shelf.talk.clock.now()
    assert len(memory.sources) == 1


@pytest.mark.parametrize("manager", [False, True])
async def test_strangers_and_managers_leave_personal_memories_alone(
    shelf: Shelf, manager: bool
) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    changed = shelf.change(kept, "likes rain", by="Stranger", manager=manager)
    assert await refusal(changed) == "not_yours"
    assert await refusal(shelf.forget(kept, by="Stranger", manager=manager)) == "not_yours"
    assert await stored(shelf) == ["likes tea"]


async def test_a_server_memory_is_its_authors_and_the_managers(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains", by="Author")
    assert await refusal(shelf.change(kept, "it snows", by="Stranger")) == "not_yours"
    assert await refusal(shelf.forget(kept, by="Stranger")) == "not_yours"
    await shelf.change(kept, "it snows", by="Author")
    await shelf.change(kept, "it pours", by="Zoe", manager=True)
    assert await shelf.of_server() == ["it pours"]


async def test_without_member_teaching_only_managers_touch_server_memories(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains", by="Author")
    assert await refusal(shelf.keep("it snows", by="Author", may_teach=False)) == "managers_only"
    changed = shelf.change(kept, "it snows", by="Author", may_teach=False)
    assert await refusal(changed) == "managers_only"
    forgotten = shelf.forget(kept, by="Author", may_teach=False)
    assert await refusal(forgotten) == "managers_only"
    await shelf.change(kept, "it snows", by="Zoe", manager=True, may_teach=False)
    await shelf.keep("it pours", by="Zoe", manager=True, may_teach=False)
    assert await shelf.of_server() == ["it pours", "it snows"]


async def test_without_member_teaching_people_still_keep_personal_memories(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann", may_teach=False)
    await shelf.change(kept, "likes rain", may_teach=False)
    assert await shelf.about("Ann") == ["likes rain"]


# --- change


async def test_a_change_keeps_the_former_text_and_who_ended_it(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann", by="Bob")
    shelf.talk.clock.pass_(days=1)
    was = await shelf.change(kept, "likes rain", by="Ann")
    shelf.talk.clock.pass_(days=1)
    await shelf.change(kept, "likes snow", by="Ann")
    assert was.content == "likes tea"
    assert await former(shelf) == ["likes tea", "likes rain"]
    rows = await shelf.talk.rows("SELECT DISTINCT changed_by FROM memory_versions")
    assert rows == [{"changed_by": shelf.talk.person("Ann").id}]


async def test_the_former_text_goes_with_its_memory(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    await shelf.change(kept, "likes rain")
    await shelf.forget(kept)
    assert await former(shelf) == []


async def test_a_changed_memory_is_heard_where_it_was_changed_only(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann", channel="one")
    await shelf.keep("likes tea", about="Ann", channel="two")
    await shelf.change(kept, "likes rain", channel="two")
    assert await shelf.about("Ann", "one") == []
    assert await shelf.about("Ann", "two") == ["likes rain"]


async def test_a_change_into_a_text_that_exists_makes_the_two_one(shelf: Shelf) -> None:
    one = await shelf.keep("likes tea", about="Ann", channel="one")
    two = await shelf.keep("likes rain", about="Ann", channel="two")
    await shelf.change(one, "likes rain", channel="one")
    assert await shelf.about("Ann", "one") == ["likes rain"]
    assert await shelf.about("Ann", "two") == ["likes rain"]
    assert await shelf.talk.rows("SELECT id FROM memories") == [{"id": two.id}]


async def test_the_same_text_in_other_writing_is_a_change_of_writing(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    await shelf.change(kept, "Likes tea.")
    assert await shelf.about("Ann") == ["Likes tea."]


# --- forget


async def test_whoever_forgets_takes_only_their_own_sources(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author", channel="one")
    await shelf.keep("likes tea", about="Subject", by="Sayer", channel="two")
    await shelf.forget(kept, by="Author", channel="one")
    assert await shelf.about("Subject", "one") == []
    assert await shelf.about("Subject", "two") == ["likes tea"]


async def test_a_memory_goes_with_its_last_source(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.keep("likes tea", about="Subject", by="Sayer")
    await shelf.forget(kept, by="Author")
    assert await stored(shelf) == ["likes tea"]
    await shelf.forget(kept, by="Sayer")
    assert await stored(shelf) == []
    for table in ("memories", "memory_sources"):
        assert await shelf.talk.rows(f"SELECT * FROM {table}") == []


async def test_the_subject_takes_every_source(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author", channel="one")
    await shelf.keep("likes tea", about="Subject", by="Sayer", channel="two")
    await shelf.forget(kept, by="Subject", channel="one")
    assert await stored(shelf) == []


async def test_a_manager_takes_every_source_of_a_server_memory(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains", by="Author")
    await shelf.keep("it rains", by="Sayer")
    await shelf.forget(kept, by="Zoe", manager=True)
    assert await stored(shelf) == []


# --- two at once


async def test_a_change_of_what_is_forgotten_meanwhile_is_refused(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    go_on = threading.Event()
    held = await hold_at_sources(shelf.talk.app.services.database._readers, go_on)
    changing = asyncio.create_task(refusal(shelf.change(kept, "likes rain")))
    await held.wait()
    await shelf.forget(kept)
    go_on.set()
    assert await changing == "not_found"
    assert await stored(shelf) == []


async def test_a_change_meanwhile_is_kept_as_the_former_text(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    go_on = threading.Event()
    held = await hold_at_sources(shelf.talk.app.services.database._readers, go_on)
    changing = asyncio.create_task(shelf.change(kept, "likes rain"))
    await held.wait()
    await shelf.change(kept, "likes snow")
    shelf.talk.clock.pass_(seconds=1)
    go_on.set()
    assert (await changing).content == "likes snow"
    assert await former(shelf) == ["likes tea", "likes snow"]


# --- fresh reads


async def test_every_read_after_a_write_is_fresh(shelf: Shelf) -> None:
    assert (await shelf.about("Ann"), await shelf.of_server()) == ([], [])
    personal = await shelf.keep("likes tea", about="Ann")
    of_server = await shelf.keep("it rains")
    assert (await shelf.about("Ann"), await shelf.of_server()) == (["likes tea"], ["it rains"])
    await shelf.change(personal, "likes rain")
    await shelf.change(of_server, "it snows")
    assert (await shelf.about("Ann"), await shelf.of_server()) == (["likes rain"], ["it snows"])
    await shelf.forget(personal)
    await shelf.forget(of_server)
    assert (await shelf.about("Ann"), await shelf.of_server()) == ([], [])


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("INSERT INTO personal_memories", ["likes rain", "likes tea"]),
        ("UPDATE personal_memories", ["likes snow"]),
        ("DELETE FROM memory_sources", []),
    ],
)
async def test_a_caller_who_is_cancelled_while_it_is_written_leaves_no_stale_read(
    shelf: Shelf, statement: str, text: list[str]
) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    assert await shelf.about("Ann") == ["likes tea"]
    verb = statement.split()[0]
    coming = {
        "INSERT": lambda: shelf.keep("likes rain", about="Ann"),
        "UPDATE": lambda: shelf.change(kept, "likes snow"),
        "DELETE": lambda: shelf.forget(kept),
    }[verb]
    loop = asyncio.get_running_loop()
    task: asyncio.Task[object] = asyncio.ensure_future(coming())

    def cancel_at(sql: str) -> None:
        if sql.startswith(statement):
            loop.call_soon_threadsafe(task.cancel)

    writing = shelf.talk.app.services.database._writing
    await writing.set_trace_callback(cancel_at)
    with pytest.raises(asyncio.CancelledError):
        await task
    await shelf.written()
    assert await shelf.about("Ann") == text


async def test_a_slow_reader_does_not_bring_the_past_back(shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann")
    go_on = threading.Event()
    database = shelf.talk.app.services.database
    held = await hold_at_sources(database._readers, go_on)
    slow = asyncio.create_task(shelf.about("Ann"))
    await held.wait()
    await shelf.keep("likes rain", about="Ann")
    go_on.set()
    assert await slow == ["likes tea"]
    assert await shelf.about("Ann") == ["likes rain", "likes tea"]


async def test_the_wording_of_another_room_is_not_learned_by_saying_the_same(shelf: Shelf) -> None:
    await shelf.keep("the vault is hUnTeR2", channel="secret")
    kept = await shelf.keep("the vault is hunter2", by="Bob", channel="general")
    assert not kept.known_before
    here = await shelf.memory.server_memories(await shelf.listening("general"))
    assert [memory.content for memory in here] == ["the vault is hunter2"]


async def test_a_person_may_always_have_what_speaks_of_them_deleted(shelf: Shelf) -> None:
    alice = shelf.talk.person("Alice").id
    kept = await shelf.keep(f"{{p:{alice}}} is a thief", by="Bob")
    assert await refusal(shelf.forget(kept, by="Stranger")) == "not_yours"
    await shelf.forget(kept, by="Alice", may_teach=False)
    assert await stored(shelf) == []


async def test_who_is_only_spoken_of_in_anothers_memory_has_no_right_to_it(shelf: Shelf) -> None:
    eve = shelf.talk.person("Eve").id
    kept = await shelf.keep(f"dances with {{p:{eve}}}", about="Alice", by="Alice")
    assert await refusal(shelf.forget(kept, by="Eve")) == "not_yours"
    assert await refusal(shelf.change(kept, "dances alone", by="Eve")) == "not_yours"
    assert await shelf.about("Alice") == [f"dances with {{p:{eve}}}"]


async def test_forgetting_ones_own_word_leaves_what_another_said_elsewhere(shelf: Shelf) -> None:
    kept = await shelf.keep("raid night is Friday", by="Alice", channel="secret")
    await shelf.keep("raid night is Friday", by="Bob", channel="general")
    await shelf.forget(kept, by="Alice", channel="secret")
    here = await shelf.memory.server_memories(await shelf.listening("general"))
    assert [memory.content for memory in here] == ["raid night is Friday"]

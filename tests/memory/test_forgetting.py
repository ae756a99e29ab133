"""Forgetting by words: a manager takes a value out of a server, a member their own words."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.identifiers import GuildId
from bot.memory.buffers import BufferKey
from bot.memory.forgetting import Traces
from bot.memory.refusals import MemoryRefused
from tests.fakes import Text, ToolCalls
from tests.handoff.room import chunk, result
from tests.memory.shelf import Shelf
from tests.talk import GUILD, Talk, open_talk

VALUE = "xylophone-44"
OTHER = GuildId(600)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as talk:
        yield talk


@pytest.fixture
def shelf(talk: Talk) -> Shelf:
    return Shelf(talk)


async def forget(talk: Talk, shelf: Shelf, by: str = "Boss", value: str = VALUE) -> Traces:
    receiver = talk.app.receiver
    return await receiver.forget_words(value, GUILD, shelf.actor(by, manager=by == "Boss"))


def in_files(talk: Talk, value: str = VALUE) -> bool:
    path = talk.app.services.database.path
    files = [path, path.with_name(f"{path.name}-wal")]
    return any(value.encode() in file.read_bytes() for file in files if file.exists())


async def test_a_manager_takes_a_value_out_of_everything(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep(f"the code is {VALUE}", by="Ann")
    await shelf.keep(f"told me {VALUE}", about="Ben", by="Ann")
    kept = await shelf.keep(f"it was {VALUE}", by="Ben")
    await shelf.change(kept, "it was something", by="Ben")
    note = {"summary": f"they speak of {VALUE}"}
    talk.model.queue(ToolCalls([("update_short_term_memory", note)]), Text(f"oh, {VALUE}!"))
    await talk.say("Ann", f"the code is {VALUE.upper()}")
    await talk.say("Ben", "what a day")
    found = await forget(talk, shelf)
    assert (len(found.memories), len(found.entries), len(found.notes)) == (2, 2, 1)
    assert not in_files(talk)
    assert not in_files(talk, VALUE.upper())
    assert await shelf.of_server() == ["it was something"]
    entries = await talk.rows("SELECT content FROM buffer_entries WHERE author_id > 0")
    assert [row["content"] for row in entries] == ["what a day"]
    talk.model.queue(Text("hm"))
    await talk.say("Ben", "what was the code?")
    assert VALUE not in talk.prompt.text


async def test_an_episode_made_of_it_goes(talk: Talk, shelf: Shelf) -> None:
    for n in range(8):
        await talk.say("Ann", f"row {n} of the {VALUE if n == 0 else 'garden'}")
    await talk.handoffs()
    talk.clock.pass_(minutes=40)
    episode = chunk("E1", "E3", content="Row 1 of the garden")
    talk.keeper.queue(result(episode))
    here = await shelf.listening()
    key = BufferKey(origin=here.audience.here, lineage=here.lineage)
    await talk.app.services.handoff.run_now(key)
    assert len(await talk.rows("SELECT * FROM ledger_entries")) == 1
    found = await forget(talk, shelf)
    assert len(found.episodes) == 1
    assert not in_files(talk)
    assert await talk.rows("SELECT * FROM ledger_entries") == []


async def test_it_is_kept_out_from_then_on(talk: Talk, shelf: Shelf) -> None:
    await forget(talk, shelf)
    talk.model.queue(Text(f"I hear {VALUE}"))
    await talk.say("Ann", f"again: {VALUE}")
    assert VALUE in talk.prompt.text  # what is said now is answered
    assert not in_files(talk)
    with pytest.raises(MemoryRefused) as refused:
        await shelf.keep(f"the code is {VALUE}", by="Ann")
    assert refused.value.code == "forgotten"
    await talk.say("Ann", "and now?")
    assert VALUE not in talk.prompt.text


async def test_the_model_is_told_that_it_is_not_kept(talk: Talk, shelf: Shelf) -> None:
    await forget(talk, shelf)
    note = {"summary": f"about {VALUE}"}
    talk.model.queue(ToolCalls([("update_short_term_memory", note)]), Text("ok"))
    await talk.say("Ann", "hello")
    assert "Not kept" in talk.prompt.tool_results[0]


async def test_an_edit_that_says_it_takes_the_message_out(talk: Talk, shelf: Shelf) -> None:
    await forget(talk, shelf)
    message = talk.message("Ann", "hello")
    await talk.take(message)
    await talk.app.receiver.edit_message(message.id, f"hello {VALUE}")
    rows = await talk.rows("SELECT content FROM buffer_entries WHERE author_id > 0")
    assert rows == []


async def test_a_manager_may_teach_it_again(talk: Talk, shelf: Shelf) -> None:
    await forget(talk, shelf)
    await shelf.keep(f"the code is {VALUE}", by="Boss", by_person=True, manager=True)
    assert await shelf.of_server() == [f"the code is {VALUE}"]
    await talk.say("Ann", f"again: {VALUE}")
    assert in_files(talk)


async def test_a_member_forgets_their_own_words_alone(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep(f"knows {VALUE}", about="Ann", by="Ben")
    await shelf.keep(f"knows {VALUE}", about="Ben", by="Ben")
    await shelf.keep(f"the code is {VALUE}", by="Ann")
    await talk.say("Ann", f"my {VALUE}")
    await talk.say("Ben", f"your {VALUE}")
    found = await forget(talk, shelf, by="Ann")
    assert len(found.entries) == 1
    assert await shelf.about("Ann") == []
    assert await shelf.about("Ben") == [f"knows {VALUE}"]
    assert await shelf.of_server() == []
    await talk.say("Ann", f"again {VALUE}")
    rows = await talk.rows("SELECT content FROM buffer_entries WHERE author_id > 0")
    assert [row["content"] for row in rows] == [f"your {VALUE}", f"again {VALUE}"]


async def test_another_members_copy_stays_when_one_forgets(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep(f"the code is {VALUE}", by="Ann")
    await shelf.keep(f"the code is {VALUE}", by="Ben", channel="lounge")
    await forget(talk, shelf, by="Ann")
    assert await shelf.of_server() == []
    assert await shelf.of_server("lounge") == [f"the code is {VALUE}"]


async def test_another_server_knows_it_still(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep(f"the code is {VALUE}", by="Ann", guild=OTHER, channel="far")
    await forget(talk, shelf)
    assert await shelf.of_server("far", guild=OTHER) == [f"the code is {VALUE}"]


async def test_what_only_contains_it_within_a_word_stays(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep(f"the code is x{VALUE}", by="Ann")
    await forget(talk, shelf)
    assert await shelf.of_server() == [f"the code is x{VALUE}"]


async def test_a_member_forgets_what_they_said_before_it_was_changed(
    talk: Talk, shelf: Shelf
) -> None:
    kept = await shelf.keep(f"it was {VALUE}", by="Ann")
    await shelf.change(kept, "it was something", by="Ann")
    await forget(talk, shelf, by="Ben")
    assert len(await talk.rows("SELECT * FROM memory_versions")) == 1
    await forget(talk, shelf, by="Ann")
    assert await talk.rows("SELECT * FROM memory_versions") == []


async def test_what_could_be_undone_goes_too_but_not_in_another_server(
    talk: Talk, shelf: Shelf
) -> None:
    update = "update_long_term_memory"
    await shelf.keep(f"likes {VALUE}", about="Ann", by="Ann")
    talk.model.queue(ToolCalls([(update, {"id": "M1", "content": ""})]), Text("ok"))
    await talk.say("Ann", "I no longer like it")
    changes = "SELECT * FROM memory_changes WHERE former IS NOT NULL"
    assert len(await talk.rows(changes)) == 1
    boss = shelf.actor("Boss", manager=True)
    await talk.app.receiver.forget_words(VALUE, OTHER, boss)
    assert len(await talk.rows(changes)) == 1
    await forget(talk, shelf, by="Ann")
    assert await talk.rows(changes) == []

"""What people are called in Discord, and whom a name means when something is remembered."""

import pytest

from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_memory import UPDATE, keeps, memories, set_level, teach
from tests.fakes import ToolCalls

REFUSED = "does not want to be remembered"


def shown_names(stage: Stage) -> set[str]:
    return {str(row["display_name"]) for row in stage.rows("SELECT display_name FROM people")}


async def test_a_nickname_stays_when_the_past_shows_only_the_account(stage: Stage) -> None:
    bob = stage.discord.member("bob", nick="Captain", display_name="Bob")
    await set_level(stage, bob, "PARTIAL")
    await stage.chatter("I will be late today", by=bob)
    stage.model.queue(keeps("Captain stole the cake", scope="server_wide"), "ok.")
    await stage.ask("who stole the cake?")
    assert REFUSED in stage.prompt.tool_results[0]
    assert "Captain: I will be late today" in stage.prompt.text
    assert shown_names(stage) == {"Alice", "Captain"}


async def test_a_message_that_was_heard_keeps_its_authors_nickname(stage: Stage) -> None:
    bob = stage.discord.member("bob", nick="Captain")
    await stage.ask("hello", by=bob)
    await stage.ask("hello")
    assert "Captain: hello" in stage.prompt.text
    assert shown_names(stage) == {"Alice", "Captain"}


@pytest.mark.parametrize("name", ["Captain", "captain", "Bobby", "bob", "@Bob", "Admiral"])
async def test_a_private_person_is_known_by_every_name_they_have_and_had(
    stage: Stage, name: str
) -> None:
    bob = stage.discord.member("bob", nick="Admiral", display_name="Bobby")
    await stage.ask("hello", by=bob)
    stage.discord.rename(bob, "Captain")
    await set_level(stage, bob, "PARTIAL")
    stage.model.queue(keeps(f"{name} stole the cake", scope="server_wide"), "ok.")
    await stage.ask("who stole the cake?")
    assert REFUSED in stage.prompt.tool_results[0]
    assert memories(stage) == []


async def test_whoever_only_set_a_level_is_known_by_their_account_too(stage: Stage) -> None:
    bob = stage.discord.member("bob", nick="Captain")
    await set_level(stage, bob, "PARTIAL")
    stage.model.queue(keeps("Bob stole the cake", scope="server_wide"), "ok.")
    await stage.ask("who stole the cake?")
    assert REFUSED in stage.prompt.tool_results[0]


@pytest.mark.parametrize("name", ["rain", "tea"])
async def test_a_nickname_that_is_a_word_changes_nobodys_memories(stage: Stage, name: str) -> None:
    eve = stage.discord.member("eve", nick=name)
    await stage.ask("hello", by=eve)
    await stage.ask("hello again", by=eve)
    await teach(stage, f"Alice enjoys {name} in the evening")
    alice = stage.discord.alice.id
    assert memories(stage) == [f"{{p:{alice}}} enjoys {name} in the evening"]
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), "no")
    await stage.ask("forget it", by=eve)
    assert len(memories(stage)) == 1


async def test_whoever_calls_themselves_by_a_small_name_is_found_by_it(stage: Stage) -> None:
    bob = stage.discord.member("bob")
    stage.model.queue(keeps("bob likes green tea"), "ok.")
    await stage.ask("please remember that I like green tea", by=bob)
    assert memories(stage) == [f"{{p:{bob.id}}} likes green tea"]
    await stage.ask("what do I like?", by=bob)
    assert 'M1 "@bob likes green tea"' in stage.prompt.system


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("is", "Alice is from Rome"),
        ("the", "Alice plays the piano"),
        ("an", "Alice has an iguana"),
        ("adores", "Alice adores mangos"),
    ],
)
async def test_nobody_switches_memory_off_by_calling_themselves_a_word(
    stage: Stage, name: str, text: str
) -> None:
    bob = stage.discord.member("bob", nick=name)
    await set_level(stage, bob, "PARTIAL")
    await teach(stage, text)
    assert len(memories(stage)) == 1

"""What went wrong with such memories elsewhere, played here: who said it, and what is true now."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.memory.refusals import MemoryRefused
from tests.fakes import Text, ToolCalls
from tests.memory.shelf import Shelf
from tests.talk import Talk, open_talk

CREATE, UPDATE = "create_long_term_memory", "update_long_term_memory"


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as talk:
        yield talk


async def saves(talk: Talk, by: str, said: str, content: str, target: str = "") -> None:
    """Somebody says something, and the model keeps a fact."""
    call = {"content": content, "scope": "target_user", "target": target}
    talk.model.queue(ToolCalls([(CREATE, call)]), Text("ok"))
    await talk.say(by, said)


def block_of(talk: Talk, name: str) -> str:
    """What the prompt says under somebody's name."""
    lines = talk.prompt.system.splitlines()
    start = next(
        place
        for place, line in enumerate(lines)
        if line.startswith("U") and line.split(" ", 1)[-1].split(",")[0] == name
    )
    found: list[str] = []
    for line in lines[start + 1 :]:
        if not line.startswith("- M"):
            break
        found.append(line)
    return "\n".join(found)


# --- attribution


async def test_everybody_has_their_own_facts_under_their_own_name(talk: Talk) -> None:
    await saves(talk, "Ann", "I'm allergic to nuts", "Ann is allergic to nuts", "Ann")
    await saves(talk, "Ben", "I love peanut butter", "Ben loves peanut butter", "Ben")
    await talk.say("Cy", "who can't eat nuts?")
    assert "allergic" in block_of(talk, "Ann")
    assert "allergic" not in block_of(talk, "Ben")
    assert block_of(talk, "Cy") == ""


async def test_what_another_said_is_not_kept_as_ones_own(talk: Talk) -> None:
    await talk.say("Ben", "I like JavaScript")
    await saves(talk, "Alice", "remember what we like", "Ben likes JavaScript", "Ben")
    await talk.say("Alice", "what do you know about me?")
    assert "JavaScript" not in block_of(talk, "Alice")
    assert '"Ben likes JavaScript" (said by Alice' in block_of(talk, "Ben")


async def test_nobody_else_is_given_what_one_person_told(talk: Talk) -> None:
    await saves(talk, "Ann", "I play basketball", "Ann plays basketball", "Ann")
    await talk.say("Ben", "what is my hobby?", "elsewhere")
    assert "basketball" not in talk.prompt.system


async def test_a_fact_about_somebody_outside_is_kept_as_said_and_by_whom(talk: Talk) -> None:
    await saves(talk, "Ann", "you know my sister Mia is a pilot", "Ann's sister Mia is a pilot")
    (row,) = await talk.rows("SELECT user_id, author_id, content FROM personal_memories")
    ann = talk.person("Ann").id
    assert (row["user_id"], row["author_id"]) == (ann, ann)
    assert "sister Mia is a pilot" in str(row["content"])


async def test_whom_the_model_does_not_know_it_has_to_name_better(talk: Talk) -> None:
    talk.model.queue(
        ToolCalls([(CREATE, {"content": "Nolan's last name is Gregory", "target": "Nolan"})]),
        Text("who is Nolan?"),
    )
    await talk.say("Bob", "nolan's last name is gregory")
    assert await talk.rows("SELECT * FROM memories") == []
    assert "nobody here is called Nolan" in talk.prompt.tool_results[-1]


async def test_what_was_told_in_one_server_is_not_known_in_another(talk: Talk) -> None:
    shelf = Shelf(talk)
    await shelf.keep("Ann has a secret", about="Ann")
    assert await shelf.about("Ann") != []
    other = type(talk.person("Ann").id)(501)
    assert await shelf.about("Ann", guild=other) == []  # type: ignore[arg-type]


# --- truth


async def test_what_is_said_now_stands_before_what_was_said_then(talk: Talk) -> None:
    await saves(talk, "Ann", "I love Chinese food", "Ann loves Chinese food", "Ann")
    talk.clock.pass_(hours=24 * 40)
    change = {"id": "M1", "content": "Ann hates Chinese food"}
    talk.model.queue(ToolCalls([(UPDATE, change)]), Text("ok"))
    await talk.say("Ann", "I hate Chinese food")
    await talk.say("Ann", "what do I think of Chinese food?")
    known = block_of(talk, "Ann")
    assert known.startswith('- M1 "Ann hates Chinese food" (just now) (until just now it was: ')
    assert known.endswith('"Ann loves Chinese food")')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We use PostgreSQL 16", "We use PostgreSQL 18"),
        ("Ann works at Google", "Ann works at Microsoft"),
        ("It was tested with qwen 3b", "It was tested with qwen 7b"),
        ("Ann was on Payments in January", "Ann was on Payments in March"),
        ("私は猫を2匹飼っています", "私は猫を3匹飼っています"),
    ],
)
async def test_what_differs_in_a_number_or_a_name_is_another_fact(
    talk: Talk, old: str, new: str
) -> None:
    shelf = Shelf(talk)
    await shelf.keep(old)
    talk.clock.pass_(hours=1)
    await shelf.keep(new)
    known = await shelf.memory.server_memories(await shelf.listening())
    assert [memory.content for memory in known] == [new, old]  # the newest first


async def test_the_same_in_other_dress_is_kept_once(talk: Talk) -> None:
    shelf = Shelf(talk)
    facts = ["Ann likes green tea", "Ann lives by the sea", "Ann has two cats", "Ann plays chess"]
    for fact in facts:
        await shelf.keep(fact)
        for dress in (fact.upper(), f" {fact}. ", fact.replace("Ann ", "Ann  ")):
            assert (await shelf.keep(dress)).known_before
        with pytest.raises(MemoryRefused, match="similar"):
            await shelf.keep(f"{fact}s")
    assert sorted(await shelf.of_server()) == sorted(facts)


async def test_small_talk_leaves_nothing(talk: Talk) -> None:
    for number in range(30):
        await talk.say("Ann", f"hm {number}")
    assert await talk.rows("SELECT * FROM memories") == []

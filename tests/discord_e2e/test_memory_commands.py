"""What people see of her memory by command, and how they mend it."""

from __future__ import annotations

import re

import pytest

from bot.discord_io import paging
from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_commands import newest_number, use
from tests.discord_e2e.test_memory import UPDATE, memories, teach
from tests.fakes import ToolCalls

# --- show


async def test_a_memory_is_shown_with_a_link_to_what_was_said(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    shown = await use(stage, "memory show")
    home, general = stage.discord.home.id, stage.discord.general.id
    (link,) = re.findall(r"\[source\]\(https://discord.com/channels/(\d+)/(\d+)/(\d+)\)", shown)
    asked = [m for m in stage.discord.general.messages.values() if "please remember" in m.content]
    assert link == (str(home), str(general), str(asked[0].id))


async def test_what_a_memory_said_before_is_shown_too(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": "Alice likes coffee"})]), "ok")
    await stage.ask("no, please remember that I like coffee")
    shown = await use(stage, "memory show", what="me")
    assert "likes coffee" in shown
    assert "(until just now: <@" in shown


@pytest.mark.parametrize(
    ("tier", "there", "missing"),
    [
        ("me", "green tea", "chess"),
        ("server", "chess", "green tea"),
        ("note", "they talk of tea", "chess"),
        ("working", "please remember", "I do not say this"),
    ],
)
async def test_one_tier_is_shown_alone(stage: Stage, tier: str, there: str, missing: str) -> None:
    note = ("update_short_term_memory", {"summary": "they talk of tea"})
    stage.model.queue(ToolCalls([note]), "ok")
    await stage.ask("good morning")
    await teach(stage, "Alice likes green tea")
    await use(stage, "memory teach", text="chess is on Fridays", about="server")
    shown = await use(stage, "memory show", what=tier)
    assert there in shown
    assert missing not in shown


async def test_long_answers_have_pages_that_are_turned(stage: Stage) -> None:
    for number in range(6):
        distinct = chr(ord("a") + number) * 900
        await use(stage, "memory teach", text=f"{number} {distinct}", about="me")
    used = await stage.discord.slash(stage.discord.alice, stage.discord.general, "memory show")
    answer = await used.reply()
    first = answer.content
    assert "5 fffff" in first
    assert len(first) <= 2_000
    seen = [first]
    for _ in range(2):
        pressed = await stage.discord.click(stage.discord.alice, answer, "Next")
        await pressed.answered()
        await stage.discord.wait_for(lambda: answer.content not in seen)
        seen.append(answer.content)
    assert all(any(f"{number} " in page for page in seen) for number in range(6))
    pressed = await stage.discord.click(stage.discord.alice, answer, "Back")
    await pressed.answered()
    await stage.discord.wait_for(lambda: answer.content == seen[1])


async def test_the_buttons_go_when_nobody_turns_the_pages(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "TURNED_FOR_S", 0.05)
    for sign in "abc":
        await use(stage, "memory teach", text=f"{sign * 900}", about="me")
    used = await stage.discord.slash(stage.discord.alice, stage.discord.general, "memory show")
    answer = await used.reply()
    await stage.discord.wait_for(lambda: not answer.components)
    assert "ccc" in answer.content


# --- search


async def test_search_finds_words_in_every_tier_and_nothing_else(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    await use(stage, "memory teach", text="chess is on Fridays", about="server")
    assert "green tea" in await use(stage, "memory search", words="teas green")
    assert "chess" in await use(stage, "memory search", words="CHESS")
    assert "nothing here" in await use(stage, "memory search", words="source discord.com")
    answer = await use(stage, "memory search", words="zebra")
    assert answer == "I remember nothing here about “zebra”."


async def test_search_hears_only_what_is_known_here(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    await use(stage, "memory teach", text="I am getting married", channel=direct)
    assert "nothing here" in await use(stage, "memory search", words="married")


# --- edit


async def test_a_person_gives_a_memory_other_words(stage: Stage) -> None:
    number = newest_number(stage, await use(stage, "memory teach", text="I like tea"))
    answer = await use(stage, "memory edit", memory=str(number), text="I like coffee")
    assert answer == "It says now: I like coffee"
    assert memories(stage) == ["I like coffee"]
    assert "(until just now: I like tea)" in await use(stage, "memory show")


async def test_without_a_text_a_form_holds_what_it_says(stage: Stage) -> None:
    number = newest_number(stage, await use(stage, "memory teach", text="I like tea"))
    used = await stage.discord.slash(
        stage.discord.alice, stage.discord.general, "memory edit", memory=str(number)
    )
    form = await used.modal()
    assert "I like tea" in str(form)
    sent = await stage.discord.submit_modal(used, {"Change this memory": "I like coffee"})
    assert (await sent.reply()).content == "It says now: I like coffee"
    assert memories(stage) == ["I like coffee"]


async def test_the_note_on_the_conversation_is_rewritten(stage: Stage) -> None:
    answer = await use(stage, "memory edit", memory="note", text="we plan a picnic")
    assert answer == "My note on this conversation is changed."
    await stage.ask("and now?")
    assert "we plan a picnic" in stage.prompt.system


async def test_what_is_not_theirs_is_not_changed(stage: Stage) -> None:
    number = newest_number(stage, await use(stage, "memory teach", text="I like tea"))
    bob = stage.discord.member("bob")
    answer = await use(stage, "memory edit", memory=str(number), text="I like mud", by=bob)
    assert answer.startswith("Only the person it is about")
    assert memories(stage) == ["I like tea"]


async def test_what_was_told_in_one_room_stays_there_when_it_is_edited(stage: Stage) -> None:
    den, alice = stage.discord.channel("den"), stage.discord.alice
    stage.discord.hide(den, stage.discord.bot_role(), alice)
    await teach(stage, "Alice likes green tea", channel=den)
    (row,) = stage.rows("SELECT id FROM memories")
    text = {"memory": str(row["id"]), "text": "Alice likes white tea"}
    await use(stage, "memory edit", channel=den, **text)
    await stage.ask("what do I like?")
    assert "white tea" not in stage.prompt.text
    await stage.ask("what do I like?", channel=den)
    assert "white tea" in stage.prompt.text


@pytest.mark.parametrize("typed", ["tea", "-1", "1.5", "9" * 16, "１２"])
async def test_what_is_no_number_is_told(stage: Stage, typed: str) -> None:
    assert "is none" in await use(stage, "memory edit", memory=typed, text="x")


# --- forget


async def test_several_are_forgotten_once_it_is_confirmed(stage: Stage) -> None:
    numbers = [
        newest_number(stage, await use(stage, "memory teach", text=text))
        for text in ("I like tea", "I play go", "I sing")
    ]
    used = await stage.discord.slash(
        stage.discord.alice,
        stage.discord.general,
        "memory forget",
        memories=f"{numbers[0]}, {numbers[2]}",
    )
    question = await used.reply()
    assert question.content.startswith("Shall I forget these 2?")
    assert len(memories(stage)) == 3
    pressed = await stage.discord.click(stage.discord.alice, question, "Forget them")
    done = await pressed.reply(containing="Forgotten")
    assert done.content == "Forgotten: I like tea\nForgotten: I sing"
    assert memories(stage) == ["I play go"]


async def test_of_several_none_goes_where_one_may_not(stage: Stage) -> None:
    mine = newest_number(stage, await use(stage, "memory teach", text="I like tea"))
    bob = stage.discord.member("bob")
    theirs = newest_number(stage, await use(stage, "memory teach", text="I am Bob", by=bob))
    answer = await use(stage, "memory forget", memories=f"{mine} {theirs}")
    assert answer.startswith("Only the person it is about")
    assert len(memories(stage)) == 2


async def test_memories_are_offered_by_what_they_say(stage: Stage) -> None:
    for text in ("I like tea", "I play go"):
        await use(stage, "memory teach", text=text)
    bob = stage.discord.member("bob")
    await use(stage, "memory teach", text="I like tea too, says Bob", by=bob)
    asked = await stage.discord.autocomplete(
        stage.discord.alice, stage.discord.general, "memory forget", "memories", memories="tea"
    )
    choices = await asked.choices()
    assert [choice["name"].partition(" ")[2] for choice in choices] == ["I like tea"]


# --- categories


async def test_a_manager_defines_headings_under_which_she_notes(stage: Stage) -> None:
    owner = stage.discord.owner
    assert (await use(stage, "memory categories")).startswith("There are no categories here yet")
    options = {"action": "define", "label": "Mood", "about": "how people feel"}
    answer = await use(stage, "memory categories", by=owner, **options)
    assert answer.splitlines() == [
        "I note conversations under Mood now.",
        "- **Mood**: how people feel",
    ]
    note = ("update_short_term_memory", {"categories": {"Mood": "cheerful"}})
    stage.model.queue(ToolCalls([note]), "ok")
    await stage.ask("good morning")
    await stage.ask("and now?")
    assert '- Mood: "cheerful"' in stage.prompt.system
    answer = await use(stage, "memory categories", by=owner, action="remove", label="mood")
    assert answer.startswith("Mood is gone.")


async def test_only_managers_change_them(stage: Stage) -> None:
    answer = await use(stage, "memory categories", action="define", label="Mood", about="x")
    assert answer == "Only those who may manage the server can do this."


# --- pin


async def test_a_matter_is_kept_in_sight_by_hand_until_it_is_closed(stage: Stage) -> None:
    owner = stage.discord.owner
    assert await use(stage, "memory pin", by=owner) == "Nothing is open here."
    stage.model.queue("ok")
    await stage.ask("Bob owes me five euros")
    answer = await use(stage, "memory pin", by=owner, matter="Bob owes Alice money", lines=2)
    kept, line = answer.splitlines()
    assert kept == "I keep this in sight until it is closed."
    number = int(line.split("`")[1])
    pinned = stage.rows("SELECT content FROM buffer_entries WHERE pinned = 1")
    assert [row["content"] for row in pinned] == ["Bob owes me five euros", "ok"]
    await stage.ask("and now?")
    assert "Bob owes Alice money" in stage.prompt.system
    answer = await use(stage, "memory pin", by=owner, close=number)
    assert answer.startswith("Closed: Bob owes")
    assert answer.endswith("Nothing is open here.")
    assert stage.rows("SELECT * FROM buffer_entries WHERE pinned = 1") == []
    assert stage.count("ledger_entries") == 1


async def test_what_cannot_be_pinned_or_closed_is_told(stage: Stage) -> None:
    owner = stage.discord.owner
    nothing = "Nothing was said here lately that I could keep in sight."
    assert await use(stage, "memory pin", by=owner, matter="something") == nothing
    await stage.ask("hello")
    assert (await use(stage, "memory pin", by=owner, close=99)).startswith(
        "There is no open matter"
    )
    assert (await use(stage, "memory pin", by=owner, matter="   ")) == "There is no text to keep."
    refused = await use(stage, "memory pin", matter="something")
    assert refused == "Only those who may manage the server can do this."


async def test_words_are_forgotten_once_it_is_confirmed(stage: Stage) -> None:
    await teach(stage, "Alice keeps the key under the blue pot")
    used = await stage.discord.slash(
        stage.discord.alice, stage.discord.general, "memory forget", memories="blue pot"
    )
    question = await used.reply()
    assert question.content.startswith("Shall I forget what you said with “blue pot”")
    assert "memories: 1\n- messages: 1" in question.content
    assert len(memories(stage)) == 1
    pressed = await stage.discord.click(stage.discord.alice, question, "Forget them")
    await pressed.reply(containing="Forgotten:")
    assert memories(stage) == []
    await stage.ask("where is my key?")
    assert "blue pot" not in stage.prompt.text


async def test_a_manager_forgets_everybodys_and_it_stays_out(stage: Stage) -> None:
    await teach(stage, "Alice keeps the key under the blue pot")
    owner = stage.discord.owner
    used = await stage.discord.slash(
        owner, stage.discord.general, "memory forget", memories="blue pot"
    )
    question = await used.reply()
    pressed = await stage.discord.click(owner, question, "Forget them")
    await pressed.reply(containing="Forgotten:")
    await teach(stage, "Alice has a blue pot")
    assert memories(stage) == []


@pytest.mark.parametrize(("typed", "expected"), [("no", "at least 3"), ("a zebra", "zebra")])
async def test_words_that_stand_nowhere_are_told(stage: Stage, typed: str, expected: str) -> None:
    assert expected in await use(stage, "memory forget", memories=typed)


@pytest.mark.parametrize("value", ["01512345678", "\u6771\u4eac"])
async def test_a_long_number_and_two_signs_are_words(stage: Stage, value: str) -> None:
    await teach(stage, f"Alice says {value} is it")
    used = await stage.discord.slash(
        stage.discord.alice, stage.discord.general, "memory forget", memories=value
    )
    assert "memories: 1" in (await used.reply()).content

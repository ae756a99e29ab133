"""The buttons under a reply, in Discord."""

from __future__ import annotations

from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_memory import CREATE, UPDATE, memories
from tests.fakes import Message, ToolCalls


async def teach(stage: Stage) -> Message:
    target = {"content": "Alice likes green tea", "scope": "target_user", "target": "Alice"}
    stage.model.queue(ToolCalls([(CREATE, target)]), "Noted.")
    return await stage.ask("please remember that I like green tea")


async def test_who_was_answered_takes_back_what_was_saved(stage: Stage) -> None:
    reply = await teach(stage)
    used = await stage.discord.click(stage.discord.alice, reply, "Undo")
    answer = await used.reply()
    assert answer.is_ephemeral
    assert answer.content == f"No longer kept: <@{stage.discord.alice.id}> likes green tea"
    assert memories(stage) == []
    await stage.discord.wait_for(lambda: not reply.components)
    assert reply.content == "Noted.\n-# ~~Saved: Alice likes green tea~~"


async def test_it_works_after_a_restart(empty_stage: Stage) -> None:
    stage = empty_stage
    async with stage.madeleine():
        reply = await teach(stage)
    async with stage.madeleine():
        used = await stage.discord.click(stage.discord.alice, reply, "Undo")
        assert (await used.reply()).content.startswith("No longer kept")
        assert memories(stage) == []


async def test_a_stranger_is_told_kindly_and_nothing_changes(stage: Stage) -> None:
    reply = await teach(stage)
    used = await stage.discord.click(stage.discord.member("bob"), reply, "Undo")
    answer = await used.reply()
    assert answer.is_ephemeral
    assert "Only the person it is about" in answer.content
    assert len(memories(stage)) == 1
    assert reply.components


async def test_a_change_since_is_told(stage: Stage) -> None:
    reply = await teach(stage)
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": "Alice likes coffee"})]), "ok")
    await stage.ask("no, please remember that I like coffee")
    used = await stage.discord.click(stage.discord.alice, reply, "Undo")
    assert "changed again since" in (await used.reply()).content
    assert len(memories(stage)) == 1


# --- what somebody asks to forget


async def asked_to_forget(stage: Stage) -> Message:
    await teach(stage)
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), "Is it this one?")
    return await stage.ask("please forget that I like green tea")


async def test_what_is_asked_for_is_shown_and_goes_with_the_button(stage: Stage) -> None:
    reply = await asked_to_forget(stage)
    assert reply.content.endswith("-# Shall I forget this? Alice likes green tea")
    assert len(memories(stage)) == 1
    used = await stage.discord.click(stage.discord.alice, reply, "Forget them")
    answer = await used.reply()
    assert answer.content == f"Forgotten: <@{stage.discord.alice.id}> likes green tea"
    assert memories(stage) == []
    await stage.discord.wait_for(lambda: not reply.components)
    assert reply.content == "Is it this one?"


async def test_whoever_may_not_forget_it_presses_in_vain(stage: Stage) -> None:
    reply = await asked_to_forget(stage)
    used = await stage.discord.click(stage.discord.member("bob"), reply, "Forget them")
    assert (await used.reply()).content.startswith("Only the person it is about")
    assert len(memories(stage)) == 1


async def test_each_button_does_its_own_and_leaves_the_other(stage: Stage) -> None:
    await teach(stage)
    coffee = {"content": "Alice likes coffee", "scope": "target_user", "target": "Alice"}
    calls = [(UPDATE, {"id": "M1", "content": ""}), (CREATE, coffee)]
    stage.model.queue(ToolCalls(calls), "Well.")
    reply = await stage.ask("please forget that I like green tea, and remember I like coffee")
    assert reply.content.splitlines()[1:] == [
        "-# Saved: Alice likes coffee",
        "-# Shall I forget this? Alice likes green tea",
    ]
    await (await stage.discord.click(stage.discord.alice, reply, "Undo")).reply()
    await stage.discord.wait_for(lambda: "~~Saved" in reply.content)
    await (await stage.discord.click(stage.discord.alice, reply, "Forget them")).reply()
    await stage.discord.wait_for(lambda: not reply.components)
    assert reply.content == "Well.\n-# ~~Saved: Alice likes coffee~~"
    assert memories(stage) == []


async def test_what_is_asked_for_twice_is_shown_once(stage: Stage) -> None:
    await teach(stage)
    call = (UPDATE, {"id": "M1", "content": ""})
    stage.model.queue(ToolCalls([call, call]), "This one?")
    reply = await stage.ask("please forget that I like green tea")
    assert reply.content.count("Shall I forget this?") == 1

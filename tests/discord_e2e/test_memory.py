"""What Madeleine remembers of a talk in Discord, where it is heard, and where it must not be."""

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import Channel, Json, Message, Stall, Text, ToolCalls, User

CREATE, UPDATE, NOTE = (
    "create_long_term_memory",
    "update_long_term_memory",
    "update_short_term_memory",
)
NOT_SAVED = "-# I have not saved this."


def keeps(content: str, *, scope: str = "target_user", target: str = "") -> ToolCalls:
    """The model keeps a fact."""
    return ToolCalls([(CREATE, {"content": content, "scope": scope, "target": target})])


async def teach(
    stage: Stage, content: str, *, channel: Channel | None = None, by: User | None = None
) -> Message:
    """Somebody has a fact about themselves remembered."""
    stage.model.queue(keeps(content), "I will remember that.")
    return await stage.ask(f"please remember that {content}", channel=channel, by=by)


def memories(stage: Stage) -> list[str]:
    """The text of every memory in the file."""
    sql = "SELECT content FROM {} ORDER BY id"
    tables = ("server_memories", "personal_memories")
    return [str(row["content"]) for table in tables for row in stage.rows(sql.format(table))]


async def set_level(stage: Stage, user: User, level: str, **options: object) -> None:
    used = await stage.discord.slash(
        user, stage.discord.general, "privacy level", level=level, **options
    )
    await used.reply()


# --- remembering


async def test_remember_that_writes_a_row_which_is_in_the_next_prompt(stage: Stage) -> None:
    reply = await teach(stage, "Alice likes green tea")
    first, second = stage.model.chats
    assert NOTE not in first.tool_names
    assert CREATE in first.tool_names
    assert second.tool_results == ["Saved."]
    assert reply.content == "I will remember that.\n-# Saved: Alice likes green tea"
    [row] = stage.rows("SELECT * FROM personal_memories")
    alice = stage.discord.alice.id
    assert (row["user_id"], row["server_id"]) == (alice, stage.discord.home.id)
    assert row["content"] == f"{{p:{alice}}} likes green tea"
    await stage.ask("what do I like?")
    assert 'M1 "Alice likes green tea"' in stage.prompt.system


async def test_an_ordinary_message_is_offered_the_notes_tool(stage: Stage) -> None:
    await stage.ask("good morning")
    assert {CREATE, NOTE} <= set(stage.prompt.tool_names)


async def test_the_footer_is_no_part_of_what_she_said(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    await stage.ask("what did you say?")
    assert stage.prompt.texts_of("assistant") == ["I will remember that."]


async def test_a_memory_is_shown_under_the_name_of_the_day(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    stage.discord.rename(stage.discord.alice, "Alicia")
    await stage.ask("what do I like?")
    assert "Alicia likes green tea" in stage.prompt.system


async def test_a_memory_can_be_changed_by_the_model(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": "Alice likes coffee"})]), "ok")
    reply = await stage.ask("no, please remember that I like coffee")
    assert reply.content == "ok\n-# Changed: Alice likes coffee"
    await stage.ask("what do I like?")
    former = '(until just now it was: "Alice likes green tea")'
    assert f'M1 "Alice likes coffee" (just now) {former}' in stage.prompt.system


async def test_a_memory_can_be_forgotten_by_the_model(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), "gone")
    reply = await stage.ask("forget that please")
    assert reply.content == "gone\n-# Forgotten: Alice likes green tea"
    assert memories(stage) == []


async def test_a_memory_of_somebody_else_is_not_theirs_to_change(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    stage.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": "Alice hates tea"})]), "hm")
    await stage.ask("Alice hates tea", by=stage.discord.member("bob"))
    assert "Not changed" in stage.prompt.tool_results[0]
    assert "likes green tea" in memories(stage)[0]


async def test_the_note_on_the_conversation_is_in_the_next_prompt(stage: Stage) -> None:
    stage.model.queue(ToolCalls([(NOTE, {"summary": "They plan a tea party."})]), "nice")
    await stage.ask("let us plan a tea party")
    assert stage.prompt.tool_results == ["Noted."]
    assert stage.count("short_term_memories") == 1
    await stage.ask("and cake")
    assert "They plan a tea party." in stage.prompt.system


async def test_the_notes_tool_is_refused_where_a_lasting_memory_was_asked_for(
    stage: Stage,
) -> None:
    stage.model.queue(
        ToolCalls([(NOTE, {"summary": "Alice likes tea."})]), keeps("Alice likes tea"), "done"
    )
    await stage.ask("please remember that I like tea")
    assert stage.prompt.tool_results[0].startswith("Not noted: they asked for a lasting memory")
    assert stage.count("short_term_memories") == 0
    assert len(memories(stage)) == 1


async def test_the_second_reading_of_the_intent_takes_joined_messages_in(stage: Stage) -> None:
    first = await stage.discord.say(
        stage.discord.owner, stage.discord.general, "slow", mention_bot=True
    )
    stage.model.queue(Text("slow", delay=0.3))
    await stage.model.wait_for_requests(1)
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "one thing", mention_bot=True
    )
    await stage.chatter("please remember that I like tea", by=stage.discord.alice)
    stage.model.queue(keeps("Alice likes tea"), "done")
    await stage.reply_to(first)
    await stage.reply_to(question)
    assert NOTE not in stage.model.chats[1].tool_names
    assert len(memories(stage)) == 1


# --- where it is heard


@pytest.mark.parametrize("elsewhere", ["general", "back"])
async def test_a_secret_of_one_room_is_not_heard_elsewhere(stage: Stage, elsewhere: str) -> None:
    discord = stage.discord
    den, back = discord.channel("den"), discord.channel("back")
    discord.hide(den, discord.bot_role(), discord.alice)
    discord.hide(back, discord.bot_role(), discord.alice, discord.member("bob"))
    await teach(stage, "Alice keeps the key under the blue pot", channel=den)
    stage.model.queue(ToolCalls([(NOTE, {"summary": "A blue pot hides a key."})]), "noted")
    await stage.ask("what a day", channel=den)
    other = {"general": discord.general, "back": back}[elsewhere]
    await stage.ask("where is my key?", channel=other)
    assert "blue pot" not in stage.prompt.text
    await stage.ask("where is my key?", channel=den)
    assert "blue pot" in stage.prompt.text


async def test_a_secret_of_a_direct_message_is_heard_only_there(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    await teach(stage, "Alice is getting married", channel=direct)
    await stage.ask("any news?")
    assert "married" not in stage.prompt.text
    bobs = stage.discord.direct(stage.discord.member("bob"))
    await stage.ask("any news of Alice?", channel=bobs, by=bobs.recipient)
    assert "married" not in stage.prompt.text
    await stage.ask("what is new?", channel=direct)
    assert "married" in stage.prompt.text


async def test_in_a_direct_message_only_the_person_can_be_remembered(stage: Stage) -> None:
    stage.model.queue(keeps("tea is good", scope="server_wide"), "hm")
    direct = stage.discord.direct(stage.discord.alice)
    await stage.ask("tea is good", channel=direct)
    assert stage.prompt.tool_results[0].startswith("Not saved")
    schema = next(tool for tool in stage.prompt.tools if tool["name"] == CREATE)
    assert schema["parameters"]["properties"]["scope"]["enum"] == ["target_user"]
    assert memories(stage) == []


# --- privacy


@pytest.mark.parametrize("scope", ["target_user", "server_wide"])
async def test_nothing_is_kept_about_a_person_at_partial(stage: Stage, scope: str) -> None:
    bob = stage.discord.member("bob", display_name="Bob")
    await set_level(stage, bob, "PARTIAL")
    await stage.chatter("hello", by=bob)
    stage.model.queue(keeps("Bob likes tea", scope=scope, target="Bob"), "I may not.")
    reply = await stage.ask("please remember that Bob likes tea")
    assert stage.prompt.tool_results[0].startswith("Not saved: somebody it is about")
    assert memories(stage) == []
    assert reply.content.endswith(NOT_SAVED)


async def test_a_person_at_partial_is_named_in_no_text_even_before_they_spoke(
    stage: Stage,
) -> None:
    bob = stage.discord.member("bob", display_name="Bobby")
    await set_level(stage, bob, "PARTIAL")
    stage.model.queue(keeps("bobby snores", scope="server_wide"), "I may not.")
    await stage.ask("please remember that bobby snores")
    assert memories(stage) == []


async def test_a_person_at_partial_is_answered_but_not_with_their_memories(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    await set_level(stage, stage.discord.alice, "PARTIAL")
    assert "what do I like?" in (await stage.ask("what do I like?")).content
    assert "green tea" not in stage.prompt.system
    await set_level(stage, stage.discord.alice, "OPEN")
    await stage.ask("and now?")
    assert "green tea" in stage.prompt.system


async def test_a_person_at_full_is_neither_answered_nor_heard(stage: Stage) -> None:
    alice, bob = stage.discord.alice, stage.discord.member("bob")
    stage.model.on(lambda _: Text("I see"))
    await stage.chatter("my secret", by=bob)
    await stage.ask("hello")
    assert "my secret" in stage.prompt.text
    await set_level(stage, bob, "FULL")
    await stage.discord.say(bob, stage.discord.general, "are you there?", mention_bot=True)
    await stage.discord.say(bob, stage.discord.direct(bob), "are you there?")
    await stage.ask("who is here?", by=alice)
    assert [chat.last_user for chat in stage.model.chats][-1].endswith("Alice: who is here?")
    assert len(stage.model.chats) == 2
    assert "my secret" not in stage.prompt.text
    assert "are you there" not in stage.prompt.text
    assert stage.rows("SELECT 1 FROM buffer_entries WHERE author_id = ?", bob.id) == []


async def test_full_in_one_server_leaves_the_others_alone(stage: Stage) -> None:
    second = stage.discord.guild("second")
    stage.discord.member(stage.discord.alice, guild=second)
    await set_level(stage, stage.discord.alice, "FULL", where="server")
    await stage.discord.say(
        stage.discord.alice, stage.discord.general, "not answered", mention_bot=True
    )
    lounge = stage.discord.channel("lounge", guild=second)
    assert "hello" in (await stage.ask("hello", channel=lounge)).content
    assert len(stage.model.chats) == 1


# --- switches


async def test_with_self_teaching_off_nothing_reaches_the_database(stage: Stage) -> None:
    used = await stage.discord.slash(
        *(stage.discord.owner, stage.discord.general, "features set"),
        feature="self_teaching_enabled",
        state="off",
    )
    await used.reply()
    stage.model.queue(keeps("Alice likes tea"), "I cannot.")
    reply = await stage.ask("please remember that I like tea")
    first = stage.model.chats[0]
    assert CREATE not in first.tool_names
    assert UPDATE not in first.tool_names
    assert memories(stage) == []
    assert stage.count("memory_sources") == 0
    assert "/features set" in reply.content.splitlines()[-1]


async def test_with_notes_off_the_tool_is_not_offered_and_the_old_note_still_shown(
    stage: Stage,
) -> None:
    stage.model.queue(ToolCalls([(NOTE, {"summary": "They plan a tea party."})]), "nice")
    await stage.ask("let us plan a tea party")
    used = await stage.discord.slash(
        *(stage.discord.owner, stage.discord.general, "features set"),
        feature="short_term_memory_enabled",
        state="off",
    )
    await used.reply()
    await stage.ask("and cake")
    assert NOTE not in stage.prompt.tool_names
    assert "They plan a tea party." in stage.prompt.system


async def test_only_managers_change_server_memories_where_members_may_not_teach(
    stage: Stage,
) -> None:
    used = await stage.discord.slash(
        *(stage.discord.owner, stage.discord.general, "features set"),
        feature="member_teaching_enabled",
        state="off",
    )
    await used.reply()
    stage.model.queue(keeps("tea is at five", scope="server_wide"), "I may not.")
    await stage.ask("tea is at five")
    assert memories(stage) == []
    stage.model.queue(keeps("tea is at five", scope="server_wide"), "done")
    await stage.ask("tea is at five", by=stage.discord.owner)
    assert memories(stage) == ["tea is at five"]


# --- saved means saved


async def test_a_model_that_saves_nothing_is_asked_once_more(stage: Stage) -> None:
    decision = {
        "action": CREATE,
        "content": "Alice likes tea",
        "scope": "target_user",
        "target": "",
    }
    stage.model.queue("I will remember it!", Json(decision))
    reply = await stage.ask("please remember that I like tea")
    assert reply.content == "I will remember it!\n-# Saved: Alice likes tea"
    assert stage.prompt.schema is not None
    assert len(memories(stage)) == 1


async def test_a_model_that_saves_nothing_twice_is_contradicted(stage: Stage) -> None:
    stage.model.queue("I will remember it!", "of course!")
    reply = await stage.ask("please remember that I like tea")
    assert reply.content == f"I will remember it!\n{NOT_SAVED}"
    assert memories(stage) == []


async def test_the_footer_speaks_the_servers_language(stage: Stage) -> None:
    lisbon = stage.discord.guild("lisboa", locale="pt-BR")
    stage.discord.member(stage.discord.alice, guild=lisbon)
    room = stage.discord.channel("geral", guild=lisbon)
    stage.model.queue(keeps("Alice gosta de chá"), "Combinado!")
    reply = await stage.ask("lembre que eu gosto de chá", channel=room)
    assert reply.content.splitlines()[-1].endswith("Alice gosta de chá")
    assert "Saved" not in reply.content


async def test_a_refusal_by_discord_does_not_undo_what_was_saved(stage: Stage) -> None:
    stage.discord.fault("POST", "/messages$", status=403, code=50013, times=9)
    stage.model.queue(keeps("Alice likes green tea"), "I will remember that.")
    question = await stage.discord.say(
        *(stage.discord.alice, stage.discord.general, "please remember that I like green tea"),
        mention_bot=True,
    )
    assert await stage.end_of_turn(question) == "failed"
    assert len(memories(stage)) == 1
    stage.discord.faults.clear()
    await stage.ask("what do I like?")
    assert "Alice likes green tea" in stage.prompt.system


async def test_a_turn_that_is_taken_back_after_it_saved_leaves_no_stale_memory(
    stage: Stage,
) -> None:
    await stage.ask("what do I like?")
    stage.model.queue(keeps("Alice likes green tea"), Text("done", breaks=Stall(seconds=30)))
    question = await stage.discord.say(
        *(stage.discord.alice, stage.discord.general, "please remember that I like green tea"),
        mention_bot=True,
    )
    await stage.model.wait_for_requests(3)
    await stage.discord.delete(question)
    assert await stage.end_of_turn(question) == "failed"
    await stage.ask("what do I like?")
    assert "Alice likes green tea" in stage.prompt.system

"""When somebody asks for a lasting memory, nothing else will do, and "saved" means saved."""

from pathlib import Path

import pytest

from bot.features import Flag
from bot.llm.client import ToolsMode
from bot.privacy.levels import PrivacyLevel
from bot.prompts import prompt
from tests.fakes import ContextTooLong, Cut, HttpError, Json, Reply, Text, ToolCalls
from tests.talk import Talk, open_talk

CREATE, UPDATE, NOTE = (
    "create_long_term_memory",
    "update_long_term_memory",
    "update_short_term_memory",
)
PLEASE = "please remember that I like green tea"
FACT = {"content": "Ann likes green tea", "scope": "target_user", "target": ""}
DECIDED = Json({"action": CREATE, **FACT})
SAVED, NOT_SAVED = "Saved: Ann likes green tea", "I have not saved this."
MUST_SAVE = prompt("generation.must_save")
NO_RETRIES = {"MADELEINE__LLM__RETRIES": "0"}


async def kept(talk: Talk) -> int:
    [row] = await talk.rows("SELECT count(*) AS n FROM memories")
    return int(str(row["n"]))


def decisions(talk: Talk) -> list[list[str]]:
    """For each request that demanded a decision: what could be chosen."""
    return [
        [
            option["properties"]["action"]["enum"][0]
            for option in chat.schema.get("anyOf", [chat.schema])
        ]
        for chat in talk.model.chats
        if chat.schema is not None and chat.last_user == MUST_SAVE
    ]


async def test_the_tool_for_notes_is_not_offered(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "I like green tea")
        assert NOTE in talk.prompt.tool_names
        assert "update_short_term_memory" in talk.prompt.system
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("done"))
        await talk.say("Ann", PLEASE)
        assert NOTE not in talk.prompt.tool_names
        assert "update_short_term_memory" not in talk.prompt.system


async def test_a_direct_call_of_the_tool_for_notes_is_refused(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([(NOTE, {"summary": "Ann likes tea"})]),
            ToolCalls([(CREATE, FACT)]),
            Text("done"),
        )
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert [call.outcome for call in report.tool_calls] == ["failed", "ok"]
        assert talk.prompt.tool_results[0].startswith("Not noted: they asked for a lasting memory.")
        assert await talk.rows("SELECT * FROM short_term_memories") == []


async def test_what_is_saved_stands_in_the_footer(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I will!"))
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I will!", SAVED)
        assert talk.last is not None
        assert talk.last.footer == SAVED
        assert decisions(talk) == []


async def test_without_a_call_the_model_is_asked_once_more_among_the_lasting_tools(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings.", about="Ann")
        talk.model.queue(Text("I will remember!"), DECIDED)
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I will remember!", SAVED)
        assert decisions(talk) == [[CREATE, UPDATE]]
        assert talk.prompt.messages[-2] == {"role": "assistant", "content": "I will remember!"}
        assert await kept(talk) == 2


async def test_the_same_with_a_structured_route(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(Json({"action": "reply", "reply": "I will remember!"}), DECIDED)
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I will remember!", SAVED)
        assert decisions(talk) == [[CREATE]]


@pytest.mark.parametrize(
    "missed",
    [
        Text("I would rather not."),
        Json({"action": "reply", "reply": "No."}),
        Json({"action": NOTE, "summary": "Ann likes tea"}),
        Json({"action": CREATE, "content": ""}),
        Text(""),
        ContextTooLong(),
        HttpError(500),
        HttpError(400, "no json_schema here"),
    ],
)
@pytest.mark.parametrize("tools", ["native", "structured"])
async def test_missed_again_the_answer_stands_with_a_plain_line(
    tmp_path: Path, missed: Reply, tools: ToolsMode
) -> None:
    async with open_talk(tmp_path, tools=tools, environ=NO_RETRIES) as talk:
        first = (
            Text("I will!") if tools == "native" else Json({"action": "reply", "reply": "I will!"})
        )
        talk.model.queue(first, missed)
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I will!", NOT_SAVED)
        assert len(talk.model.chats) == 2
        assert await kept(talk) == 0
        [turn] = await talk.rows("SELECT state FROM turns")
        assert turn["state"] == "done"


async def test_a_decision_that_has_to_begin_anew_does_not_touch_the_answer(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        cut = Json({"action": CREATE, **FACT}, chunk_size=9, breaks=Cut(after=3))
        talk.model.queue(Text("I will!"), cut, DECIDED)
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I will!", SAVED)
        assert talk.last is not None
        assert set(talk.last.shown) == {"I ", "I will!"}


async def test_a_refused_save_ends_in_the_plain_line_and_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ann", PrivacyLevel.PARTIAL)
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I am sorry."))
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I am sorry.", NOT_SAVED)
        assert len(talk.model.chats) == 2
        assert await kept(talk) == 0


async def test_what_was_known_already_is_as_good_as_saved(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            *[ToolCalls([(CREATE, FACT)]), Text("I will!")],
            *[ToolCalls([(CREATE, FACT)]), Text("I know!")],
        )
        await talk.say("Ann", PLEASE)
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I know!", "")
        assert await kept(talk) == 1


async def test_where_teaching_is_off_nothing_is_asked_and_the_line_says_who_can_switch_it_on(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.SELF_TEACHING, on=False)
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I cannot."))
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert report.reply == "I cannot."
        assert "A manager can switch it on with /features set" in report.footer
        assert [call.outcome for call in report.tool_calls] == ["failed"]
        assert CREATE not in talk.model.chats[0].tool_names
        assert len(talk.model.chats) == 2
        for table in ("memories", "server_memories", "personal_memories", "memory_sources"):
            assert await talk.rows(f"SELECT * FROM {table}") == []


async def test_a_joined_message_is_read_by_the_gate_too(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("hm"), DECIDED)
        first = talk.message("Ann", "I like green tea")
        report = await talk.take(first, joined=[talk.message("Ann", "please remember that")])
        assert report is not None
        assert report.footer == SAVED
        assert NOTE not in talk.model.chats[0].tool_names


async def test_a_message_that_was_only_overheard_is_not_read_by_the_gate(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        talk.overhear("Ben", PLEASE)
        talk.model.queue(Text("hm"))
        report = await talk.say("Ann", "how are you?")
        assert report is not None
        assert report.footer == ""
        assert NOTE in talk.prompt.tool_names


async def test_without_a_wish_nothing_is_asked_and_no_line_is_added(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("I do not know."))
        report = await talk.say("Ann", "do you remember what I like?")
        assert report is not None
        assert (report.reply, report.footer) == ("I do not know.", "")
        assert len(talk.model.chats) == 1


async def test_with_notices_off_a_saved_memory_has_no_line(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.NOTICES, on=False)
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I will!"))
        report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert report.footer == ""


@pytest.mark.parametrize(
    ("locale", "line"), [("pt-BR", "Eu não guardei isto."), ("ja", "これは保存していません。")]
)
async def test_the_plain_line_is_in_the_language_of_the_person(
    tmp_path: Path, locale: str, line: str
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("hm"), Text("no"))
        report = await talk.say("Ann", PLEASE, locale=locale)
        assert report is not None
        assert report.footer == line

"""What a person sees in Discord when the model does not do what it should."""

from collections.abc import AsyncIterator

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import (
    BadJson,
    ContextTooLong,
    CorruptEvent,
    Cut,
    Disconnect,
    ErrorEvent,
    Hang,
    Html,
    HttpError,
    Json,
    Reply,
    Reset,
    Stall,
    Text,
    ToolCalls,
)

CREATE = "create_long_term_memory"
FACT = {"content": "Alice likes green tea", "scope": "target_user", "target": ""}
PLEASE = "please remember that I like green tea"
SAVED = "\n-# Saved: Alice likes green tea"
NOT_SAVED = "\n-# I have not saved this."
IN_A_MINUTE = "I cannot answer right now. Please try again in a minute."
NO_ANSWER = (
    "I cannot answer right now: my model does not respond. Please try again later, or ask whoever"
    " runs me to have a look."
)
TOO_LONG = "This conversation is too long for my model. Please send a shorter message."


async def goes_on(stage: Stage) -> bool:
    """Whether the next message is answered as if nothing had been."""
    stage.model.clear()
    return (await stage.ask("are you well?")).content.endswith("are you well?")


# --- tools


async def test_the_name_of_an_unknown_tool_is_corrected(stage: Stage) -> None:
    stage.model.queue(ToolCalls([("create_longterm_memory", FACT)]), ToolCalls([(CREATE, FACT)]))
    stage.model.queue("I will remember that.")
    assert (await stage.ask(PLEASE)).content == f"I will remember that.{SAVED}"
    assert "Did you mean create_long_term_memory?" in stage.prompt.tool_results[0]


@pytest.mark.parametrize(
    "arguments", ['{"content": "Alice likes gr', "not json at all", "[]", '{"content": 5}', "{}"]
)
async def test_a_call_that_is_broken_is_made_again(stage: Stage, arguments: str) -> None:
    stage.model.queue(ToolCalls([(CREATE, arguments)]), ToolCalls([(CREATE, FACT)]))
    stage.model.queue("I will remember that.")
    assert (await stage.ask(PLEASE)).content == f"I will remember that.{SAVED}"
    assert stage.prompt.tool_results[0].startswith("The arguments do not fit")
    assert stage.count("personal_memories") == 1


async def test_a_call_that_stays_broken_saves_nothing_and_says_so(stage: Stage) -> None:
    stage.model.queue(*[ToolCalls([(CREATE, "{")])] * 3, "I will remember that.")
    assert (await stage.ask(PLEASE)).content == f"I will remember that.{NOT_SAVED}"
    assert stage.prompt.tools == []
    assert stage.count("personal_memories") == 0


async def test_a_model_that_only_ever_calls_tools_is_stopped(stage: Stage) -> None:
    stage.model.on(lambda _: ToolCalls([("search_the_web", {"query": "tea"})]))
    assert (await stage.ask("what is tea?")).content == NO_ANSWER
    assert len(stage.model.chats) <= 8
    assert await goes_on(stage)


async def test_what_is_said_before_a_call_is_not_said_twice(stage: Stage) -> None:
    stage.model.queue(ToolCalls([(CREATE, FACT)], text="Let me write that down."))
    stage.model.queue(Text("Let me write that down. Done!", chunk_delay=0.03))
    reply = await stage.ask(PLEASE)
    assert reply.content == f"Let me write that down.\n\nDone!{SAVED}"
    assert max(shown.count("Let") for shown in reply.revisions) == 1


async def test_a_call_written_into_the_text_saves_nothing_and_says_so(stage: Stage) -> None:
    stage.model.on(lambda _: Text('create_long_term_memory(content="Alice likes green tea")'))
    assert (await stage.ask(PLEASE)).content.endswith(NOT_SAVED)
    assert stage.count("personal_memories") == 0


async def test_the_same_call_twice_in_one_answer_saves_once(stage: Stage) -> None:
    stage.model.queue(ToolCalls([(CREATE, FACT), (CREATE, FACT)]), "Done.")
    assert (await stage.ask(PLEASE)).content == f"Done.{SAVED}"
    assert stage.count("personal_memories") == 1


async def test_an_id_that_was_not_shown_is_refused(stage: Stage) -> None:
    stage.model.queue(ToolCalls([(CREATE, FACT)]), "Done.")
    await stage.ask(PLEASE)
    stage.model.queue(ToolCalls([("update_long_term_memory", {"id": "M7", "content": "x"})]), "hm")
    await stage.ask("that is wrong")
    assert "The ids are: M1" in stage.prompt.tool_results[0]


# --- answers


@pytest.mark.parametrize("times", [1, 2])
async def test_an_empty_answer_is_asked_for_again(stage: Stage, times: int) -> None:
    stage.model.queue(*[Text("")] * times, "Here I am.")
    assert (await stage.ask("hello")).content == "Here I am."


async def test_a_third_empty_answer_is_told_in_plain_words(stage: Stage) -> None:
    stage.model.on(lambda _: Text(""))
    assert (await stage.ask("hello")).content == NO_ANSWER
    assert len(stage.model.chats) == 3
    assert await goes_on(stage)


async def test_an_apology_is_no_part_of_the_talk(stage: Stage) -> None:
    stage.model.on(lambda _: Text(""))
    await stage.ask("hello")
    assert await goes_on(stage)
    assert "my model does not respond" not in stage.prompt.text
    assert "Alice: hello" in stage.prompt.text


async def test_what_the_model_thinks_is_not_shown(stage: Stage) -> None:
    stage.model.queue(Text("Hello!", reasoning="She is a bore.", reasoning_style="tags"))
    reply = await stage.ask("hello")
    assert reply.revisions[-1] == "Hello!"
    assert not any("bore" in shown for shown in reply.revisions)


async def test_a_name_in_front_of_the_answer_is_taken_away(stage: Stage) -> None:
    stage.model.queue("Madeleine: Hello!")
    assert (await stage.ask("hello")).content == "Hello!"


async def test_an_answer_that_was_cut_for_length_goes_on_once(stage: Stage) -> None:
    stage.model.queue(Text("one two", finish_reason="length"), " three four")
    assert (await stage.ask("count")).content == "one two three four"


async def test_an_answer_that_is_cut_twice_is_marked(stage: Stage) -> None:
    stage.model.queue(Text("one two", finish_reason="length"))
    stage.model.queue(Text(" three four", finish_reason="length"))
    assert (await stage.ask("count")).content == "one two three four […]"


# --- faults


@pytest.mark.parametrize(
    "fault",
    [
        Html(),
        BadJson(),
        Reset(),
        HttpError(500),
        HttpError(503),
        HttpError(429, retry_after=0.1),
        Cut(after=2),
        Disconnect(after=2),
        CorruptEvent(after=2),
        ErrorEvent(after=2),
    ],
    ids=lambda fault: f"{type(fault).__name__} {getattr(fault, 'status', '')}",
)
async def test_a_fault_that_passes_is_not_seen(stage: Stage, fault: Reply) -> None:
    stage.model.queue(fault, "Here I am.")
    assert (await stage.ask("hello")).content == "Here I am."
    assert len(stage.model.chats) == 2


@pytest.fixture
def impatient(empty_stage: Stage) -> Stage:
    """Not started yet; she asks a model once, and waits a second for it."""
    empty_stage.settings |= {
        "LLM__RETRIES": "0",
        "LLM__STREAM_STALL_S": "1",
        "LLM__CHAT__TIMEOUT_S": "1",
    }
    return empty_stage


@pytest.mark.parametrize(
    "fault",
    [Html(), BadJson(), Reset(), Hang(), HttpError(500), HttpError(429), Cut(after=2), Stall()],
    ids=lambda fault: f"{type(fault).__name__} {getattr(fault, 'status', '')}",
)
async def test_a_fault_that_stays_is_told_with_a_time(impatient: Stage, fault: Reply) -> None:
    async with impatient.madeleine():
        impatient.model.on(lambda _: fault)
        reply = await impatient.ask("hello")
        assert reply.content == IN_A_MINUTE
        assert await goes_on(impatient)
        assert "Alice: hello" in impatient.prompt.text


async def test_the_time_that_the_provider_names_is_passed_on(impatient: Stage) -> None:
    impatient.model.queue(HttpError(429, retry_after=170))
    async with impatient.madeleine():
        reply = await impatient.ask("hello")
    assert reply.content == "I cannot answer right now. Please try again in 3 minutes."


async def test_a_key_that_is_refused_is_not_answered_with_a_time(impatient: Stage) -> None:
    impatient.model.queue(HttpError(401))
    async with impatient.madeleine():
        assert (await impatient.ask("hello")).content == NO_ANSWER


async def test_a_turn_that_takes_too_long_is_ended(empty_stage: Stage) -> None:
    empty_stage.settings |= {"TURN__TIMEOUT_S": "1", "TURN__TOOL_TIMEOUT_S": "1"}
    empty_stage.model.queue(Text("one two three four five six", chunk_delay=0.5))
    async with empty_stage.madeleine():
        reply = await empty_stage.ask("hello")
        assert reply.content == "That took me too long. Please try again."
        assert await goes_on(empty_stage)


@pytest.mark.parametrize("style", ["openai", "llama.cpp"])
async def test_a_prompt_that_is_too_long_is_halved_once(stage: Stage, style: str) -> None:
    stage.model.queue(ContextTooLong(style=style), "Here I am.")  # type: ignore[arg-type]
    assert (await stage.ask("hello")).content == "Here I am."


async def test_a_prompt_that_stays_too_long_is_told_in_plain_words(stage: Stage) -> None:
    stage.model.on(lambda _: ContextTooLong())
    assert (await stage.ask("hello")).content == TOO_LONG
    assert len(stage.model.chats) == 2
    assert await goes_on(stage)


async def test_what_was_saved_before_a_fault_is_told_and_stays_saved(impatient: Stage) -> None:
    impatient.model.queue(ToolCalls([(CREATE, FACT)]), HttpError(500))
    async with impatient.madeleine():
        assert (await impatient.ask(PLEASE)).content == "Saved: Alice likes green tea"
        assert impatient.count("personal_memories") == 1
        await impatient.ask("what do I like?")
    assert "Alice likes green tea" in impatient.prompt.system


# --- a model without tool calls


@pytest.fixture
async def structured(empty_stage: Stage) -> AsyncIterator[Stage]:
    empty_stage.settings["LLM__CHAT__TOOLS"] = "structured"
    async with empty_stage.madeleine():
        yield empty_stage


def _reply(text: str) -> Json:
    return Json({"action": "reply", "reply": text})


async def test_a_model_without_tools_saves_by_decisions(structured: Stage) -> None:
    structured.model.queue(Json({"action": CREATE, **FACT}), _reply("I will remember that."))
    assert (await structured.ask(PLEASE)).content == f"I will remember that.{SAVED}"
    assert all(chat.tools == [] for chat in structured.model.chats)


@pytest.mark.parametrize(
    "broken", ['{"action": "reply", "reply": "Hel', "Hello there!", '{"action": "dance"}', "{}"]
)
async def test_a_decision_that_is_broken_is_made_again(structured: Stage, broken: str) -> None:
    structured.model.queue(Text(broken), _reply("Hello!"))
    assert (await structured.ask("hello")).content == "Hello!"


async def test_a_small_model_cannot_save_what_nobody_said(structured: Stage) -> None:
    invented = {**FACT, "content": "Robin collects old radios"}
    structured.model.queue(Json({"action": CREATE, **invented}), _reply("Done."))
    await structured.ask(PLEASE)
    assert structured.count("personal_memories") == 0

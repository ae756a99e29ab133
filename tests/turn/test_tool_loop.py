"""Native tool calls: how the loop runs, where it stops, what people see of it."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bot.llm.chat import JsonSchema, ToolSpec
from bot.tools.port import Ok, Outcome, ToolContext, TypedTool
from bot.tools.registry import ToolRegistry
from bot.turn.report import ToolReport
from tests.fakes import ContextTooLong, Cut, Text, ToolCalls
from tests.talk import Talk, open_talk

CREATE, UPDATE, NOTE = (
    "create_long_term_memory",
    "update_long_term_memory",
    "update_short_term_memory",
)
EMPTY_IN_THE_END = "I cannot answer right now"


def fact(text: str, **more: str) -> tuple[str, Mapping[str, Any]]:
    return CREATE, {"content": text, **more}


def outcomes(calls: tuple[ToolReport, ...]) -> list[str]:
    return [call.outcome for call in calls]


class Nothing(BaseModel):
    """No arguments."""


class Probe(TypedTool[Nothing]):
    """A tool that does what a test says."""

    name = "probe"
    arguments = Nothing

    def spec(self, context: ToolContext) -> ToolSpec:
        return ToolSpec(name="probe", description="", parameters=self.parameters(context))

    def is_available(self, context: ToolContext) -> bool:
        return True

    def parameters(self, context: ToolContext) -> JsonSchema:
        return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

    async def execute(self, context: ToolContext, arguments: Nothing) -> Outcome:
        return Ok("probed")


class Raising(Probe):
    async def execute(self, context: ToolContext, arguments: Nothing) -> Outcome:
        raise ZeroDivisionError("a bug in a tool")


class Endless(Probe):
    async def execute(self, context: ToolContext, arguments: Nothing) -> Outcome:
        await asyncio.Event().wait()
        return Ok("never")


def give(talk: Talk, tool: Probe, *, timeout_s: float = 30) -> None:
    """Have the application know one more tool."""
    tools = talk.app.services.tools
    known = [*tools._tools.values(), tool]
    object.__setattr__(talk.app.services, "tools", ToolRegistry(known, timeout_s=timeout_s))


# --- order and limits


async def test_the_calls_of_one_pass_run_in_order(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        texts = ["Ann likes tea", "Ann plays chess", "Ann sings"]
        talk.model.queue(ToolCalls([fact(text) for text in texts]), Text("done"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        rows = await talk.rows("SELECT content FROM personal_memories ORDER BY id")
        assert [str(row["content"]).split("} ")[1] for row in rows] == [
            "likes tea",
            "plays chess",
            "sings",
        ]
        assert outcomes(report.tool_calls) == ["ok"] * 3
        assert report.footer.splitlines() == [f"Saved: {text}" for text in texts]
        assert talk.prompt.tool_results == ["Saved."] * 3


async def test_a_result_answers_the_call_it_belongs_to(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([fact("Ann sings"), fact("")]), Text("done"))
        await talk.say("Ann", "hello")
        made = [call["id"] for m in talk.prompt.messages for call in m.get("tool_calls", [])]
        answered = [m["tool_call_id"] for m in talk.prompt.messages if m["role"] == "tool"]
        assert made == answered
        assert talk.prompt.tool_results[1].startswith("Not saved: the content is empty")


async def test_after_eight_passes_the_loop_ends(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        give(talk, Probe())
        talk.model.on(lambda _: ToolCalls([("probe", {})], text="once more"))
        await talk.say("Ann", "hello")
        assert len(talk.model.chats) == 8
        assert [bool(chat.tools) for chat in talk.model.chats] == [True] * 7 + [False]


async def test_a_loop_of_eight_passes_can_still_answer_in_the_last(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        give(talk, Probe())
        talk.model.queue(*[ToolCalls([("probe", {})])] * 7, Text("at last"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "at last"
        assert outcomes(report.tool_calls) == ["ok"] * 7


@pytest.mark.parametrize(("asked", "run"), [(16, 16), (17, 16)])
async def test_sixteen_calls_a_turn_are_run(tmp_path: Path, asked: int, run: int) -> None:
    async with open_talk(tmp_path) as talk:
        give(talk, Probe())
        talk.model.queue(ToolCalls([("probe", {})] * asked), Text("done"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert len(report.tool_calls) == run
        assert talk.prompt.tool_results.count("probed") == run
        assert talk.prompt.tools == []
        assert talk.prompt.tool_results[16:] == ["No more tools in this turn. Answer now."] * (
            asked - run
        )


async def test_three_failures_in_a_row_end_the_tools(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(*[ToolCalls([fact("")])] * 3, Text("I could not"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "I could not"
        assert [bool(chat.tools) for chat in talk.model.chats] == [True] * 3 + [False]


async def test_two_failures_and_a_success_do_not_end_the_tools(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            *[ToolCalls([fact("")])] * 2,
            ToolCalls([fact("Ann sings")]),
            *[ToolCalls([fact("")])] * 2,
            Text("well"),
        )
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["retry", "retry", "ok", "retry", "retry"]
        assert talk.prompt.tools


async def test_of_many_failing_calls_in_one_pass_only_three_are_run(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([fact("")] * 6), Text("I could not"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert len(report.tool_calls) == 3


async def test_calls_after_three_failures_are_not_run_though_the_model_insists(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(*[ToolCalls([fact("")])] * 3, ToolCalls([fact("Ann sings")]), Text("well"))
        await talk.say("Ann", "hello")
        assert await talk.rows("SELECT * FROM personal_memories") == []


# --- what can be wrong with a call


async def test_an_unknown_tool_is_told_the_nearest_name(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([("remember_long_term_memory", {})]), Text("done"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["retry"]
        assert "Did you mean create_long_term_memory?" in talk.prompt.tool_results[0]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"content": "Ann li', "Invalid JSON"),
        ("not json", "Invalid JSON"),
        ("[1]", "object"),
        ("", "content"),
        ('{"content": 7}', "content"),
        ('{"content": "x", "scope": "everywhere"}', "scope"),
    ],
)
async def test_bad_arguments_are_a_retry_with_the_reason(
    tmp_path: Path, arguments: str, reason: str
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([(CREATE, arguments)]), Text("done"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["retry"]
        [told] = talk.prompt.tool_results
        assert told.startswith("The arguments do not fit:")
        assert reason in told


async def test_a_tool_that_raises_has_failed_and_the_bug_is_logged_with_its_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_talk(tmp_path) as talk:
        give(talk, Raising())
        talk.model.queue(ToolCalls([("probe", {})]), Text("it did not work"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["failed"]
        assert report.reply == "it did not work"
        [bug] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert bug.exc_info is not None
        assert len(bug.__dict__["bug_id"]) == 6


async def test_a_tool_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        give(talk, Endless(), timeout_s=0.05)
        talk.model.queue(ToolCalls([("probe", {})]), Text("never mind"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["failed"]
        assert talk.prompt.tool_results == ["The tool took too long. Answer without it."]


# --- what people see


async def test_text_before_a_call_stays_and_is_not_said_twice(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([fact("Ann sings")], text="Let me write that down."),
            Text("Let me write that down. Done!"),
        )
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "Let me write that down.\n\nDone!"


async def test_a_word_that_only_begins_like_what_was_said_stays_whole(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([fact("Ann sings")], text="So"), Text("Someone sings!"))
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "So\n\nSomeone sings!"


async def test_each_pass_is_shown_to_the_model_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([fact("Ann sings")], text="First."),
            ToolCalls([fact("Ann dances")], text="Second."),
            Text("Third."),
        )
        report = await talk.say("Ann", "I sing and dance")
        assert report is not None
        assert report.reply == "First.\n\nSecond.\n\nThird."
        said = [m["content"] for m in talk.prompt.messages if m["role"] == "assistant"]
        assert said == ["First.", "Second."]


@pytest.mark.parametrize(
    "prefix", ["Madeleine: ", "madeleine:", "**Madeleine:** ", "**Madeleine**: "]
)
async def test_the_own_name_in_front_is_taken_away_in_every_pass(
    tmp_path: Path, prefix: str
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([fact("Ann sings")], text=f"{prefix}One moment."), Text(f"{prefix}Done.")
        )
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "One moment.\n\nDone."


async def test_a_name_in_the_middle_stays(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("My name is Madeleine: like the cake."))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "My name is Madeleine: like the cake."


async def test_hidden_signs_are_taken_out_of_the_reply(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("a\u200b \u202eb\u2066"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "a b"


async def test_the_reply_is_shown_while_it_grows(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("one two three"))
        await talk.say("Ann", "hello")
        assert talk.last is not None
        assert talk.last.shown == ["one ", "one two ", "one two three"]


async def test_reasoning_is_never_shown(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("Hello!", reasoning="Ann is odd", reasoning_style="tags"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Hello!"
        assert talk.last is not None
        assert not [text for text in talk.last.shown if "odd" in text]


# --- empty, cut off, begun anew


async def test_an_empty_answer_is_asked_for_twice_more_and_then_told_plainly(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text(""))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply.startswith(EMPTY_IN_THE_END)
        assert len(talk.model.chats) == 3
        [turn] = await talk.rows("SELECT state FROM turns")
        assert turn["state"] == "failed"


async def test_the_second_repetition_of_an_empty_answer_may_succeed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text(""), Text(" \n"), Text("here I am"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "here I am"


async def test_a_name_alone_is_an_empty_answer(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("Madeleine:"), Text("here I am"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "here I am"


async def test_an_answer_cut_for_length_goes_on_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("The first half ", finish_reason="length"), Text("and the second."))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "The first half and the second."
        assert talk.prompt.messages[-2:] == [
            {"role": "assistant", "content": "The first half "},
            {
                "role": "user",
                "content": "Go on exactly where you stopped, without repeating anything.",
            },
        ]


async def test_an_answer_cut_twice_is_marked(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(*[Text(f"part {n} ", finish_reason="length") for n in range(3)])
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "part 0 part 1  […]"
        assert len(talk.model.chats) == 2


async def test_an_answer_that_begins_anew_forgets_what_it_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("wrong words here", breaks=Cut(after=2)), Text("right words"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "right words"
        assert talk.last is not None
        assert talk.last.shown[-1] == "right words"


async def test_what_was_said_before_a_call_survives_a_new_beginning(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([fact("Ann sings")], text="One moment."),
            Text("wrong words here", breaks=Cut(after=2)),
            Text("Done."),
        )
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "One moment.\n\nDone."


# --- too long


async def test_what_was_done_before_the_prompt_was_too_long_still_counts(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([fact("Ann sings")], text="One moment."), ContextTooLong(), Text("Done.")
        )
        report = await talk.say("Ann", "please remember that I sing")
        assert report is not None
        assert report.reply == "One moment.\n\nDone."
        assert report.footer == "Saved: Ann sings"
        assert outcomes(report.tool_calls) == ["ok"]
        assert talk.prompt.tool_results == ["Saved."]
        assert len(talk.model.chats) == 3


async def test_once_a_turn_holds_over_a_prompt_that_was_too_long(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([(NOTE, {"summary": "first"})]),
            ContextTooLong(),
            ToolCalls([(NOTE, {"summary": "second"})]),
            Text("done"),
        )
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["ok", "failed"]
        assert NOTE not in talk.model.chats[2].tool_names
        [row] = await talk.rows("SELECT summary FROM short_term_memories")
        assert row["summary"] == "first"


# --- ids


async def test_only_a_memory_that_is_shown_can_be_changed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings.", about="Ann")
        talk.model.queue(
            ToolCalls([(UPDATE, {"id": "M7", "content": "Ann dances."})]), Text("done")
        )
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert outcomes(report.tool_calls) == ["retry"]
        assert talk.prompt.tool_results == ["There is no such memory here. The ids are: M1."]


async def test_a_block_that_gave_way_takes_its_ids_along(tmp_path: Path) -> None:
    async with open_talk(tmp_path, window=800) as talk:
        await talk.teach("Ann sings.", about="Ann")
        await talk.say("Ann", "word " * 400)
        assert "Ann sings" not in talk.prompt.system
        assert UPDATE not in talk.prompt.tool_names

"""Markup that a model writes as text: its calls are run, and people see only what is said."""

import json
from pathlib import Path

import pytest

from tests.fakes import Text
from tests.talk import Talk, open_talk

CREATE = "create_long_term_memory"
FACT = {"content": "Ann sings"}
CALL = json.dumps({"name": CREATE, "arguments": FACT})
HARMONY = (
    "<|channel|>analysis<|message|>Ann is odd.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Hello, Ann!<|return|>"
)


async def memories(talk: Talk) -> list[str]:
    rows = await talk.rows("SELECT content FROM personal_memories")
    return [str(row["content"]).split("} ")[1] for row in rows]


def shown(talk: Talk) -> str:
    assert talk.last is not None
    return "\n".join((*talk.last.shown, talk.last.text))


@pytest.mark.parametrize("chunk_size", [1, 7, None])
@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"<function={CREATE}>{json.dumps(FACT)}</function>",
        f"[TOOL_CALLS] [{CALL}]",
        CALL,
    ],
)
async def test_a_call_written_as_text_is_run_and_not_seen(
    tmp_path: Path, written: str, chunk_size: int | None
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            Text(f"One moment.\n{written}", chunk_size=chunk_size),
            Text("Noted!", chunk_size=chunk_size),
        )
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "One moment.\n\nNoted!"
        assert [call.outcome for call in report.tool_calls] == ["ok"]
        assert await memories(talk) == ["sings"]
        assert talk.prompt.tool_results == ["Saved."]
        assert not [sign for sign in "<[{" if sign in shown(talk)]


async def test_a_call_written_as_text_has_no_way_around_a_guard(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        secret = {"name": CREATE, "arguments": {"content": ""}}
        other = {"name": "update_short_term_memory", "arguments": {"summary": "a secret"}}
        talk.model.queue(
            Text(f"<tool_call>{json.dumps(secret)}</tool_call>"),
            Text(f"<tool_call>{json.dumps(other)}</tool_call>Noted!"),
        )
        report = await talk.say("Ann", "remember that I sing")
        assert report is not None
        assert report.reply == "Noted!"
        assert [call.outcome for call in report.tool_calls] == ["retry"]
        assert await memories(talk) == []


async def test_of_a_cut_call_the_model_is_told_what_is_wrong(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            Text(f"<tool_call>{CALL[:-5]}"),
            Text(f"<tool_call>{CALL}"),
            Text("Noted!"),
        )
        report = await talk.say("Ann", "I sing")
        assert report is not None
        assert report.reply == "Noted!"
        assert [call.outcome for call in report.tool_calls] == ["retry", "ok"]
        assert talk.prompt.tool_results[0].startswith("The arguments do not fit:")


async def test_an_answer_of_nothing_but_markup_is_asked_for_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text('<tool_call>{"name": "browse"}</tool_call>'), Text("Hello!"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Hello!"
        assert report.tool_calls == ()


async def test_where_tools_are_off_a_written_call_is_only_left_out(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="none") as talk:
        talk.model.queue(Text(f"Hello!<tool_call>{CALL}</tool_call>"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Hello!"
        assert await memories(talk) == []


@pytest.mark.parametrize("chunk_size", [1, 7, None])
async def test_of_channels_only_the_final_one_is_seen(
    tmp_path: Path, chunk_size: int | None
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text(HARMONY, chunk_size=chunk_size))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Hello, Ann!"
        assert not [word for word in ("odd", "<", "|", "final") if word in shown(talk)]


async def test_the_reply_of_a_structured_decision_is_cleaned_too(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        reply = f"Hello!<|im_end|> <tool_call>{CALL}</tool_call>"
        written = json.dumps({"action": "reply", "reply": reply})
        talk.model.queue(Text(written, chunk_size=3))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Hello!"
        assert "<" not in shown(talk)
        assert await memories(talk) == []


async def test_markup_in_code_is_talk_about_markup(tmp_path: Path) -> None:
    reply = f"Models write:\n```\n<tool_call>{CALL}</tool_call>\n```\nor `<|im_end|>`."
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text(reply, chunk_size=5))
        report = await talk.say("Ann", "what is a tool call?")
        assert report is not None
        assert report.reply == reply
        assert report.tool_calls == ()


async def test_handles_of_memories_and_references_are_never_seen(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        ann = talk.person("Ann").id
        talk.model.queue(Text(f"{{p:{ann}}} sings (M1), says {{p:9}} [M1].", chunk_size=1))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "Ann sings, says someone."
        assert not [sign for sign in "{}[](M" if sign in shown(talk)]


async def test_what_people_call_m1_stays(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(Text("The motorway (M1) is long."))
        report = await talk.say("Ann", "how long is the M1?")
        assert report is not None
        assert report.reply == "The motorway (M1) is long."

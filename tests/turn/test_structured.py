"""The same tools through one strict schema, for a model without tool calls."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.features import Flag
from bot.prompts import prompt
from tests.fakes import Cut, HttpError, Json, ModelRequest, Reply, Text
from tests.talk import Talk, open_talk

CREATE, UPDATE, NOTE = (
    "create_long_term_memory",
    "update_long_term_memory",
    "update_short_term_memory",
)
EXAMPLE = json.loads(prompt("examples.teach_assistant"))
NOT_SAVED = "I have not saved this."


def reply(text: str) -> Json:
    return Json({"action": "reply", "reply": text})


def create(content: str, target: str = "") -> Json:
    fields = {"content": content, "scope": "target_user", "target": target}
    return Json({"action": CREATE, **fields})


def choices(request: ModelRequest) -> dict[str, dict[str, Any]]:
    """What the schema lets the model choose: the properties of each action."""
    assert request.schema is not None
    options = request.schema.get("anyOf", [request.schema])
    return {option["properties"]["action"]["enum"][0]: option for option in options}


async def kept(talk: Talk) -> list[str]:
    rows = await talk.rows("SELECT content FROM personal_memories ORDER BY id")
    return [str(row["content"]).replace(f"{{p:{talk.person('Ann').id}}}", "Ann") for row in rows]


# --- the schema


async def test_action_comes_first_and_names_exactly_what_is_offered_now(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(reply("hello"))
        await talk.say("Ann", "hello")
        assert list(choices(talk.prompt)) == ["reply", CREATE, NOTE]
        for option in choices(talk.prompt).values():
            assert next(iter(option["properties"])) == "action"
            assert option["required"][0] == "action"
            assert option["additionalProperties"] is False


async def test_the_ids_are_those_that_are_shown(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        await talk.teach("Ann sings.", about="Ann")
        await talk.teach("The server plays chess.")
        talk.model.queue(reply("hello"))
        await talk.say("Ann", "hello")
        assert choices(talk.prompt)[UPDATE]["properties"]["id"]["enum"] == ["M1", "M2"]


async def test_a_direct_message_has_one_scope(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(reply("hello"), reply("hello"))
        await talk.say("Ann", "hello")
        assert choices(talk.prompt)[CREATE]["properties"]["scope"]["enum"] == [
            "target_user",
            "server_wide",
        ]
        await talk.say("Ann", "hello", "@ann")
        assert choices(talk.prompt)[CREATE]["properties"]["scope"]["enum"] == ["target_user"]


async def test_after_a_note_was_taken_it_is_offered_no_more(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(Json({"action": NOTE, "summary": "they greet"}), reply("hello"))
        await talk.say("Ann", "hello")
        assert NOTE in choices(talk.model.chats[0])
        assert NOTE not in choices(talk.model.chats[1])


async def test_with_the_feature_off_only_a_reply_can_be_chosen(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        await talk.switch(Flag.SELF_TEACHING, on=False)
        await talk.switch(Flag.SHORT_TERM_MEMORY, on=False)
        talk.model.queue(reply("hello"))
        await talk.say("Ann", "hello")
        assert list(choices(talk.prompt)) == ["reply"]


async def test_no_native_tools_are_sent(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(reply("hello"))
        await talk.say("Ann", "hello")
        assert "tools" not in talk.prompt.body


# --- the answer


async def test_the_reply_is_streamed_out_of_the_growing_json(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(Json({"action": "reply", "reply": 'say "hi"\nAnn'}, chunk_size=4))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == 'say "hi"\nAnn'
        assert talk.last is not None
        assert len(talk.last.shown) > 3
        assert all(report.reply.startswith(text) for text in talk.last.shown)


async def test_a_tool_is_run_and_the_model_is_told_what_came_of_it(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(create("Ann likes green tea"), reply("Noted!"))
        report = await talk.say("Ann", "remember that I like green tea")
        assert report is not None
        assert (report.reply, report.footer) == ("Noted!", "Saved: Ann likes green tea")
        assert await kept(talk) == ["Ann likes green tea"]
        assert talk.prompt.last_user == f"Result of {CREATE}: Saved."
        made = json.loads(talk.prompt.texts_of("assistant")[-1])
        assert made["action"] == CREATE
        assert made["content"] == "Ann likes green tea"


async def test_nothing_of_a_call_is_shown_to_people(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        lax = {"action": CREATE, "content": "Ann likes green tea", "reply": "I saved it"}
        talk.model.queue(Json(lax), reply("Noted!"))
        report = await talk.say("Ann", "remember that I like green tea")
        assert report is not None
        assert report.reply == "Noted!"


@pytest.mark.parametrize(
    "broken",
    [
        Text("just prose"),
        Text('{"action": "reply", "reply": "cut o'),
        Text('{"action": "dance"}'),
        Text('{"action": ["reply"]}'),
        Text('{"action": {"name": "reply"}}'),
        Text('{"action": null}'),
        Text("[]"),
        Text('{"action": "create_long_term_memory" "content"}'),
    ],
)
async def test_a_malformed_answer_is_asked_for_again_with_the_reason(
    tmp_path: Path, broken: Reply
) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(broken, reply("there"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "there"
        assert talk.prompt.last_user.startswith("That was not valid: ")
        assert "Your answer was empty" not in talk.prompt.text


async def test_three_malformed_answers_end_in_a_plain_sentence(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.on(lambda _: Text("just prose"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply.startswith("I cannot answer right now")
        assert len(talk.model.chats) == 3


async def test_an_empty_reply_is_asked_for_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(reply(""), reply("there"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "there"
        assert talk.prompt.last_user == "Your answer was empty. Answer now."


async def test_a_reply_cut_for_length_goes_on_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        cut = Text('{"action": "reply", "reply": "the first half ', finish_reason="length")
        talk.model.queue(cut, reply("and the second"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "the first half and the second"


async def test_a_restarted_answer_is_read_from_its_beginning(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        begun = '{"action": "reply", "reply": "wrong words"}'
        talk.model.queue(Text(begun, chunk_size=30, breaks=Cut(after=1)), reply("right words"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "right words"


async def test_reasoning_before_the_json_is_left_out(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        text = json.dumps({"action": "reply", "reply": "hello"})
        talk.model.queue(Text(text, reasoning='maybe {"reply": "no"}', reasoning_style="tags"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "hello"


# --- invented texts


@pytest.mark.parametrize(
    ("said", "content", "is_kept"),
    [
        ("remember that I like green tea", "Ann likes green tea", True),
        ("remember that I like green tea", "Ann was born in Rome", False),
        ("remember that I like green tea", "Ann", False),
        ("私は緑茶が好きだと覚えておいて", "Annは緑茶が好き", True),
        ("私は緑茶が好きだと覚えておいて", "Annは犬を飼う", False),
    ],
)
async def test_only_a_text_that_shares_words_with_the_message_is_saved(
    tmp_path: Path, said: str, content: str, is_kept: bool
) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(create(content), reply("hm"), reply("hm"))
        report = await talk.say("Ann", said)
        assert report is not None
        assert await kept(talk) == ([content] if is_kept else [])
        assert (report.footer == NOT_SAVED) != is_kept


async def test_a_part_of_a_name_is_no_word_that_was_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(create("Mia lives in Rome"), reply("hm"))
        await talk.say("Mia Rossi", "please remember: Mia likes tea")
        assert await kept(talk) == []


async def test_a_joined_message_counts_as_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(create("Ann likes green tea"), reply("hm"))
        first = talk.message("Ann", "please remember")
        await talk.take(first, joined=[talk.message("Ann", "that I like green tea")])
        assert await kept(talk) == ["Ann likes green tea"]


@pytest.mark.parametrize(
    "said",
    [
        "remember that I love old trains",
        "remember that I repair radios for a living, and that I love old things",
        "remember to collect me on Fridays",
        "remember that Robin is my brother",
    ],
)
async def test_the_text_of_the_example_is_never_saved(tmp_path: Path, said: str) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        ann = EXAMPLE["content"].replace("Robin", "Ann")
        talk.model.queue(Json(EXAMPLE), create(EXAMPLE["content"]), create(ann), reply("hm"))
        await talk.say("Ann", said)
        assert await kept(talk) == []


async def test_who_really_says_what_the_example_says_is_heard(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(create("Ann collects old radios."), reply("How nice!"))
        await talk.say("Ann", "please remember that I collect old radios")
        assert await kept(talk) == ["Ann collects old radios."]


async def test_a_changed_memory_must_share_words_too(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        await talk.teach("Ann likes green tea", about="Ann")
        change = {"action": UPDATE, "id": "M1", "content": EXAMPLE["content"]}
        talk.model.queue(Json(change), reply("hm"))
        await talk.say("Ann", "I like black tea now, and old things")
        assert await kept(talk) == ["Ann likes green tea"]


async def test_the_text_of_the_example_is_never_noted(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="structured") as talk:
        talk.model.queue(Json({"action": NOTE, "summary": EXAMPLE["content"]}), reply("hm"))
        await talk.say("Ann", "hello")
        assert await talk.rows("SELECT * FROM short_term_memories") == []


# --- no tools at all


async def test_a_route_without_tools_answers_in_plain_text(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="none") as talk:
        talk.model.queue(Text("hello Ann"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "hello Ann"
        assert talk.prompt.schema is None
        assert talk.prompt.tools == []
        assert CREATE not in talk.prompt.system


async def test_a_route_without_tools_says_plainly_that_it_cannot_save(tmp_path: Path) -> None:
    async with open_talk(tmp_path, tools="none") as talk:
        talk.model.queue(Text("I will!"))
        report = await talk.say("Ann", "please remember that I sing")
        assert report is not None
        assert (report.reply, report.footer) == ("I will!", NOT_SAVED)
        assert len(talk.model.chats) == 1


async def test_a_model_that_is_down_is_told_as_everywhere(tmp_path: Path) -> None:
    async with open_talk(
        tmp_path, tools="structured", environ={"MADELEINE__LLM__RETRIES": "0"}
    ) as talk:
        talk.model.on(lambda _: HttpError(500))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "I cannot answer right now. Please try again in a minute."

"""JSON answers: what is asked of servers, what is read from models, and the one repair."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from bot.clock import SystemClock
from bot.errors import ModelFault, ModelUnavailable
from bot.llm.chat import ChatMessage
from bot.llm.client import ProviderSettings
from bot.llm.routing import Route, Router, RouterSettings
from bot.llm.structured import ask_structured, extract_object, parse_answer, strict_schema
from bot.llm.surrogates import without_surrogates
from tests.fakes.model.replies import Cut, Html, HttpError, Json, Text
from tests.fakes.model.server import LoopbackModel


class Quote(BaseModel):
    """Somebody's words."""

    words: str = Field(max_length=500, pattern="^.+$")


class Chunk(BaseModel):
    """One beat."""

    model_config = ConfigDict(extra="forbid")

    content: str
    importance: int = Field(ge=1, le=10)
    quotes: list[Quote] = []
    mood: Literal["calm", "tense"] | None = None


class Result(BaseModel):
    chunks: list[Chunk]
    resolved: list[str] = []


class Node(BaseModel):
    name: str
    inner: list[Node] = []


class Reply(BaseModel):
    kind: Literal["reply"]


class Call(BaseModel):
    kind: Literal["call"]


class Held(BaseModel):
    quote: Annotated[Quote, Field(description="The best words.")]


class Choice(BaseModel):
    one: Annotated[Reply | Call, Field(discriminator="kind")]


GOOD: dict[str, Any] = {"chunks": [{"content": "tea", "importance": 3}]}


# --- reading


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": "b"}',
        '  {"a": "b"}\n',
        '```json\n{"a": "b"}\n```',
        '```\n{"a": "b"}\n```\nThat is all {there} is.',
        'Here it is, {name}: {"a": "b"} - good?',
        '<think>{"a": "no"}</think>{"a": "b"}',
        'hm, {"a": "no"}\n</think>\n{"a": "b"}',
        '{"a": "b"} {"a": "second"}',
        '{"a": "b\ud83d"}',
        '{"a": "b\\ud83d"}',
    ],
)
def test_the_object_is_found_in_what_surrounds_it(answer: str) -> None:
    assert json.loads(extract_object(answer)) == {"a": "b"}


def test_raw_line_ends_in_strings_are_mended() -> None:
    assert json.loads(extract_object('{"a": "one\ntwo\t"}')) == {"a": "one\ntwo\t"}


def test_pairs_of_escaped_surrogates_are_kept() -> None:
    assert extract_object('{"a": "\\ud83d\\ude00 \\\\ud83d"}') == '{"a": "😀 \\\\ud83d"}'


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("<think>hm</think>", "it is empty"),
        ("I would rather talk.", "there is no JSON object in it"),
        ("[1, 2]", "there is no JSON object in it"),
        ("{name}", "there is no JSON object in it"),
        ('{"a": "b', "the JSON object is cut off before its end"),
        ('{"a": "b"', "the JSON object is cut off before its end"),
        ('{"a": [{"b": 1}, {"c"', "the JSON object is cut off before its end"),
        ('{"a": "\\u12', "the JSON object is cut off before its end"),
        ('{"a": tru', "the JSON object is cut off before its end"),
        ('{"a": 1 "b": 2}', "the JSON is broken at character 9: Expecting ',' delimiter"),
        ('so: {"a": 1,}', "the JSON is broken at character 9: "),
        ('{"a": ' + "[" * 100_000, "the JSON is nested too deep"),
    ],
)
def test_what_is_wrong_is_said_plainly(answer: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".*") as caught:
        extract_object(answer)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 5000])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"compliant|digits"):
        extract_object(f'{{"a": {number}}}')


objects = st.dictionaries(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=[]) | st.sampled_from('"\\{}[]\ud83d\ude00')),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    min_size=1,
)


@given(objects, st.booleans())
def test_any_object_is_read_as_it_was_meant(value: dict[str, object], ascii_only: bool) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only)
    clean = json.loads(without_surrogates(json.dumps(value, ensure_ascii=False)))
    assert json.loads(extract_object(f"```json\n{written}\n```")) == clean


@given(objects, st.data())
def test_any_cut_object_is_called_cut(value: dict[str, object], data: st.DataObject) -> None:
    written = json.dumps(value)
    cut = written[: data.draw(st.integers(2, len(written) - 1))]
    with pytest.raises(ValueError, match="cut off"):
        extract_object(cut)


def test_an_answer_becomes_the_model() -> None:
    result = parse_answer(json.dumps(GOOD), Result)
    assert result == Result(chunks=[Chunk(content="tea", importance=3)])


@pytest.mark.parametrize("importance", [0, 11])
def test_every_problem_is_named_with_its_place(importance: int) -> None:
    answer = {"chunks": [{"importance": importance, "extra": "secret words"}]}
    with pytest.raises(ValueError, match=r".*") as caught:
        parse_answer(json.dumps(answer), Result)
    problems = str(caught.value)
    assert "chunks.0.content: Field required; chunks.0.importance: Input should be" in problems
    assert "chunks.0.extra: Extra inputs" in problems
    assert "secret" not in problems


def test_at_most_eight_problems_are_named() -> None:
    with pytest.raises(ValueError, match=r".*") as caught:
        parse_answer(json.dumps({"chunks": [1] * 11}), Result)
    assert str(caught.value).count("chunks.") == 8
    assert str(caught.value).endswith("; and 3 more")


# --- the schema


def test_a_schema_is_strict_all_the_way_down() -> None:
    quote = {
        "description": "Somebody's words.",
        "type": "object",
        "properties": {"words": {"type": "string"}},
        "required": ["words"],
        "additionalProperties": False,
    }
    assert strict_schema(Chunk) == {
        "description": "One beat.",
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "importance": {"type": "integer", "minimum": 1, "maximum": 10},
            "quotes": {"type": "array", "items": quote},
            "mood": {"anyOf": [{"type": "string", "enum": ["calm", "tense"]}, {"type": "null"}]},
        },
        "required": ["content", "importance", "quotes", "mood"],
        "additionalProperties": False,
    }


def test_the_order_of_the_properties_is_kept() -> None:
    properties = strict_schema(Chunk)["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["content", "importance", "quotes", "mood"]


def test_a_field_may_describe_the_model_it_holds() -> None:
    properties: Any = strict_schema(Held)["properties"]
    assert properties["quote"]["description"] == "The best words."
    assert properties["quote"]["required"] == ["words"]


def test_a_choice_between_models_is_any_of_them() -> None:
    written = json.dumps(strict_schema(Choice))
    assert '"anyOf"' in written
    assert not any(word in written for word in ("oneOf", "discriminator", "$ref", "$defs"))


def test_a_model_that_holds_itself_keeps_a_reference() -> None:
    schema = strict_schema(Node)
    inner = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "inner": inner},
        "required": ["name", "inner"],
        "additionalProperties": False,
    }
    assert schema == node | {"$defs": {"Node": node}}


# --- asking


ASKED = (ChatMessage(role="user", content="Sum it up."),)


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as server:
        yield server


@pytest.fixture
async def route(model: LoopbackModel) -> AsyncIterator[Route]:
    provider = ProviderSettings(
        name="loopback", base_url=model.base_url, model="tiny", max_context=8192
    )

    async def no_sleep(_: float) -> None:
        return

    router = Router(RouterSettings(chat=(provider,)), clock=SystemClock(), sleep=no_sleep)
    yield router.chat
    await router.close()


async def test_a_good_answer_takes_one_call(model: LoopbackModel, route: Route) -> None:
    model.queue(Json(GOOD))
    assert (await ask_structured(route, ASKED, Result, max_tokens=100)).chunks[0].content == "tea"
    assert len(model.chats) == 1
    assert model.last.schema == strict_schema(Result)
    assert model.last.body["max_tokens"] == 100


async def test_a_bad_answer_is_sent_back_with_the_reasons(
    model: LoopbackModel, route: Route
) -> None:
    bad = json.dumps({"chunks": [{"content": "tea", "importance": 11}]})
    model.queue(bad, Json(GOOD))
    assert (await ask_structured(route, ASKED, Result, max_tokens=100)).chunks[0].importance == 3
    assert [message["role"] for message in model.last.messages] == ["user", "assistant", "user"]
    assert model.last.messages[1]["content"] == bad
    assert "chunks.0.importance: Input should be less than" in model.last.last_user


async def test_an_empty_answer_is_not_quoted_back(model: LoopbackModel, route: Route) -> None:
    model.queue(Text(""), Json(GOOD))
    await ask_structured(route, ASKED, Result, max_tokens=100)
    assert [message["role"] for message in model.last.messages] == ["user", "user"]
    assert "it is empty" in model.last.last_user


@pytest.mark.parametrize(
    "bad", ["", "I would rather talk.", '{"chunks": [{"content": "te', '{"chunks": 1}']
)
async def test_two_bad_answers_are_a_fault(model: LoopbackModel, route: Route, bad: str) -> None:
    model.queue(Text(bad), Text(bad))
    with pytest.raises(ModelFault) as caught:
        await ask_structured(route, ASKED, Result, max_tokens=100)
    assert caught.value.kind == "malformed"
    assert len(model.chats) == 2


async def test_without_repair_one_bad_answer_is_a_fault(model: LoopbackModel, route: Route) -> None:
    model.queue("no")
    with pytest.raises(ModelFault) as caught:
        await ask_structured(route, ASKED, Result, max_tokens=100, repairs=0)
    assert (caught.value.kind, caught.value.detail) == (
        "malformed",
        "there is no JSON object in it",
    )
    assert len(model.chats) == 1


async def test_the_caller_may_refuse_an_answer_too(model: LoopbackModel, route: Route) -> None:
    def check(result: Result) -> None:
        if not result.chunks:
            raise ValueError("name at least one chunk")

    model.queue(Json({"chunks": []}), Json(GOOD))
    result = await ask_structured(route, ASKED, Result, max_tokens=100, check=check)
    assert result.chunks
    assert "name at least one chunk" in model.last.last_user


async def test_an_answer_that_began_anew_is_read_from_its_new_beginning(
    model: LoopbackModel, route: Route
) -> None:
    model.queue(Json({"chunks": []}, breaks=Cut(after=1)), Json(GOOD))
    assert (await ask_structured(route, ASKED, Result, max_tokens=100)).chunks
    assert len(model.chats) == 2


async def test_a_route_without_an_answer_is_not_repaired(
    model: LoopbackModel, route: Route
) -> None:
    model.queue(*[HttpError(500)] * 3, Html())
    with pytest.raises(ModelUnavailable):
        await ask_structured(route, ASKED, Result, max_tokens=100)
    assert model.queued == 1

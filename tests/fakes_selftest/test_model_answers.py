"""The loopback model server: what it answers, and what it keeps for the test to look at."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from tests.fakes import Json, LoopbackModel, ModelRequest, Text, ToolCalls, Vectors, embed

TOOL = {
    "type": "function",
    "function": {"name": "search_memory", "parameters": {"type": "object", "properties": {}}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"enum": ["reply", "remember"]},
        "reply": {"type": "string"},
        "score": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "minItems": 1},
        "target": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    },
    "$defs": {"Tag": {"type": "object", "properties": {"sure": {"type": "boolean"}}}},
}


async def chat(ai: openai.AsyncOpenAI, text: str = "ping", **options: object) -> object:
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": text},
    ]
    return await ai.chat.completions.create(model="m", messages=messages, **options)


async def streamed(ai: openai.AsyncOpenAI, text: str = "ping", **options: object) -> list[object]:
    return [chunk async for chunk in await chat(ai, text, stream=True, **options)]


def joined(chunks: list[object]) -> str:
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    return "".join(choice.delta.content or "" for choice in choices)


async def test_without_a_script_it_says_the_last_message_back(ai: openai.AsyncOpenAI) -> None:
    answer = await chat(ai, "hello there")
    assert answer.choices[0].message.content == "echo: hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens > 0


async def test_the_queue_is_answered_in_order(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue("first", Text("second", finish_reason="length"))
    answers = [(await chat(ai)).choices[0] for _ in range(3)]
    assert [one.message.content for one in answers] == ["first", "second", "echo: ping"]
    assert answers[1].finish_reason == "length"
    assert model.queued == 0


async def test_a_rule_comes_before_the_queue(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue("from the queue")
    model.on(lambda request: Text("pong") if "ping" in request.last_user else None)
    assert (await chat(ai, "ping")).choices[0].message.content == "pong"
    assert (await chat(ai, "other")).choices[0].message.content == "from the queue"


async def test_a_stream_comes_word_by_word_with_its_usage_last(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Text("one two  three", prompt_tokens=70, completion_tokens=3))
    chunks = await streamed(ai, stream_options={"include_usage": True})
    assert joined(chunks) == "one two  three"
    assert len(chunks) == 1 + 3 + 1 + 1
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (70, 3)


async def test_a_stream_can_come_in_pieces_of_a_size(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Text("日本語です", chunk_size=2))
    chunks = await streamed(ai)
    assert [chunk.choices[0].delta.content for chunk in chunks[1:-1]] == ["日本", "語で", "す"]


async def test_an_empty_answer(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Text(""), Text(""))
    assert (await chat(ai)).choices[0].message.content is None
    assert joined(await streamed(ai)) == ""


async def test_tools_are_called_after_a_text(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(
        ToolCalls([("search_memory", {"query": "tea"}), ("other", '{"cut": ')], text="let me see")
    )
    message = (await chat(ai, tools=[TOOL])).choices[0].message
    assert message.content == "let me see"
    assert [call.function.name for call in message.tool_calls] == ["search_memory", "other"]
    assert json.loads(message.tool_calls[0].function.arguments) == {"query": "tea"}
    assert message.tool_calls[1].function.arguments == '{"cut": '


async def test_tool_calls_are_streamed_in_pieces(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(ToolCalls([("search_memory", {"query": "green tea"}), ("other", {})]))
    chunks = await streamed(ai, tools=[TOOL])
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for piece in chunk.choices[0].delta.tool_calls or []:
            calls.setdefault(piece.index, []).append(piece.function.arguments)
    assert json.loads("".join(calls[0])) == {"query": "green tea"}
    assert len(calls[0]) > 2
    assert json.loads("".join(calls[1])) == {}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("style", ["field", "tags"])
async def test_reasoning_comes_in_a_field_or_in_tags(
    model: LoopbackModel, ai: openai.AsyncOpenAI, style: str
) -> None:
    reply = Text("tea", reasoning="they like tea", reasoning_style=style)
    model.queue(reply, reply)
    message = (await chat(ai)).choices[0].message
    chunks = await streamed(ai)
    thought = "".join(
        getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks
    )
    if style == "field":
        assert (message.content, message.reasoning_content) == ("tea", "they like tea")
        assert (joined(chunks), thought) == ("tea", "they like tea")
    else:
        assert message.content == "<think>they like tea</think>tea"
        assert (joined(chunks), thought) == (message.content, "")


async def test_a_schema_is_answered_with_a_sample_of_it(ai: openai.AsyncOpenAI) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": SCHEMA}}
    answer = await chat(ai, response_format=wanted)
    assert json.loads(answer.choices[0].message.content) == {
        "action": "reply",
        "reply": "x",
        "score": 1,
        "tags": [{"sure": True}],
        "target": None,
    }


async def test_an_object_is_answered_as_json(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Json({"reply": "日本"}))
    assert joined(await streamed(ai)) == '{"reply": "日本"}'


async def test_a_request_is_kept_with_what_tests_look_at(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    await ai.chat.completions.create(
        model="m",
        messages=[
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "tool", "tool_call_id": "1", "content": "found"},
            {"role": "user", "content": "and now?"},
        ],
        tools=[TOOL],
        max_completion_tokens=7,
    )
    request = model.last
    assert request.system == "be kind"
    assert request.last_user == "and now?"
    assert request.tool_results == ["found"]
    assert request.text == "be kind\nlook\nfound\nand now?"
    assert request.tool_names == ["search_memory"]
    assert request.schema is None
    assert request.body["max_completion_tokens"] == 7
    assert request.headers["Authorization"] == "Bearer key"
    assert (request.model, request.streams, request.kind) == ("m", False, "chat")
    assert (request.finished, request.aborted) == (True, False)


async def test_waiting_for_requests(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Text("slow", delay=0.1), Text("slow", delay=0.1))
    both = asyncio.gather(chat(ai, "a"), chat(ai, "b"))
    requests = await model.wait_for_requests(2)
    assert {request.last_user for request in requests} == {"a", "b"}
    assert model.most_at_once == 2
    await both
    with pytest.raises(TimeoutError, match="3 chat requests"):
        await model.wait_for_requests(3, timeout=0.05)


async def test_a_client_that_goes_away_is_noticed(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Text("a long story that is never heard to its end", chunk_delay=0.05))
    stream = await chat(ai, stream=True)
    async for _ in stream:
        break
    await stream.close()
    await model.wait_for(lambda: model.last.aborted)
    assert not model.last.finished


async def test_embeddings_of_similar_texts_are_near(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    texts = ["Ann likes green tea", "green tea is what Ann likes", "the train was late"]
    answer = await ai.embeddings.create(model="e", input=texts)
    first, near, far = (one.embedding for one in answer.data)

    def likeness(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert likeness(first, near) > 0.8 > 0.3 > likeness(first, far)
    assert first == pytest.approx(embed(texts[0]), abs=1e-6)
    assert model.embeddings[0].inputs == texts


@pytest.mark.parametrize("form", ["float", "base64"])
async def test_embeddings_have_the_asked_form_and_size(ai: openai.AsyncOpenAI, form: str) -> None:
    answer = await ai.embeddings.create(model="e", input="tea", dimensions=32, encoding_format=form)
    assert len(answer.data[0].embedding) == (32 if form == "float" else 172)


async def test_embeddings_can_be_given(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Vectors([[1.0, 0.0]]), to="embeddings")
    answer = await ai.embeddings.create(model="e", input="tea")
    assert answer.data[0].embedding == [1.0, 0.0]


async def test_models_are_listed(ai: openai.AsyncOpenAI, model: LoopbackModel) -> None:
    model.models.append("nomic-embed-text")
    assert [one.id async for one in ai.models.list()] == ["loopback-model", "nomic-embed-text"]


async def test_a_rule_sees_the_request(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    seen: list[ModelRequest] = []
    model.on(seen.append)
    await chat(ai)
    assert seen == [model.last]
    model.clear()
    await chat(ai)
    assert len(seen) == 1

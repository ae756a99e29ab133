"""What is sent to a provider and what is read, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from bot.errors import ModelFault
from bot.llm.chat import (
    ChatMessage,
    ChatRequest,
    Finished,
    Restarted,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from bot.llm.client import ModelClient, ProviderSettings
from tests.fakes.model.replies import (
    Hang,
    Stall,
    Text,
)
from tests.fakes.model.server import LoopbackModel
from tests.llm.asking import HELLO, answer_of, answer_to, client_of, end_of, text_of
from tests.llm.wire_server import JSON, Wire, WireServer, delta, events

SEARCH = ToolSpec(name="search", description="Looks.", parameters={"type": "object"})


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as server:
        yield server


@pytest.fixture
async def client(model: LoopbackModel) -> AsyncIterator[ModelClient]:
    async with client_of(model.base_url, timeout_s=5, stall_s=5) as client:
        yield client


# --- what is sent


async def test_a_request_is_sent_in_the_words_of_the_protocol(
    model: LoopbackModel, client: ModelClient
) -> None:
    call = ToolCall(id="c1", name="search", arguments='{"query": "tea"}')
    request = ChatRequest(
        messages=(
            ChatMessage(role="system", content="Be kind."),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="nothing", tool_call_id="c1"),
        ),
        tools=(SEARCH,),
        max_tokens=50,
        temperature=0.5,
    )
    await answer_of(client, request)
    function = {"name": "search", "arguments": '{"query": "tea"}'}
    assert model.last.body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "nothing", "tool_call_id": "c1"},
        ],
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "Looks.",
                    "parameters": {"type": "object"},
                },
            }
        ],
    }


async def test_a_schema_is_asked_for_strictly(model: LoopbackModel, client: ModelClient) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = ChatRequest(messages=HELLO.messages, schema=schema, max_tokens=50)
    assert json.loads(text_of(await answer_of(client, request))) == {"n": 1}
    assert model.last.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize(("key", "sent"), [("secret", "Bearer secret"), (None, "Bearer none")])
async def test_the_key_is_sent(model: LoopbackModel, key: str | None, sent: str) -> None:
    async with client_of(model.base_url, api_key=key) as client:
        await answer_of(client)
    assert model.last.headers["Authorization"] == sent


def test_the_key_is_not_shown_by_the_settings() -> None:
    settings = ProviderSettings(
        name="a", base_url="http://x/v1", model="m", max_context=1024, api_key="secret"
    )
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("arguments", ['{"a": ', "", "[1]", "[" * 10_000])
async def test_broken_arguments_are_not_sent_back(
    model: LoopbackModel, client: ModelClient, arguments: str
) -> None:
    call = ToolCall(id="c1", name="search", arguments=arguments)
    message = ChatMessage(role="assistant", content="wait", tool_calls=(call,))
    await answer_of(client, ChatRequest(messages=(message,), max_tokens=50))
    assert model.last.messages[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert model.last.messages[0]["content"] == "wait"


async def test_lone_surrogates_are_not_sent(model: LoopbackModel, client: ModelClient) -> None:
    message = ChatMessage(role="user", content="a\ud83db")
    await answer_of(client, ChatRequest(messages=(message,), max_tokens=50))
    assert model.last.last_user == "ab"


async def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    model: LoopbackModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with client_of(model.base_url) as client:
        assert text_of(await answer_of(client)) == "echo: hello"


async def test_no_connection_is_kept_to_a_server_on_this_machine(
    model: LoopbackModel, client: ModelClient
) -> None:
    await answer_of(client)
    assert model.last.headers["Connection"] == "close"


# --- what is read


async def test_text_comes_in_pieces_and_the_end_tells_the_usage(
    model: LoopbackModel, client: ModelClient
) -> None:
    model.queue(Text("one two three", prompt_tokens=12, completion_tokens=3))
    assert await answer_of(client) == [
        TextDelta(text="one "),
        TextDelta(text="two "),
        TextDelta(text="three"),
        Finished(
            reason="stop",
            tool_calls=(),
            usage=Usage(prompt_tokens=12, completion_tokens=3),
            provider="loopback",
            model="tiny",
        ),
    ]


async def test_an_answer_that_was_cut_at_its_length_says_so(
    model: LoopbackModel, client: ModelClient
) -> None:
    model.queue(Text("one two", finish_reason="length"))
    assert end_of(await answer_of(client)).reason == "length"


async def test_an_empty_answer_is_an_answer(model: LoopbackModel, client: ModelClient) -> None:
    model.queue(Text(""))
    assert [type(event) for event in await answer_of(client)] == [Finished]


@pytest.mark.parametrize("style", ["field", "tags"])
async def test_reasoning_is_not_part_of_the_text(
    model: LoopbackModel, client: ModelClient, style: Any
) -> None:
    model.queue(Text("tea", reasoning="hm, what <b>", reasoning_style=style, chunk_size=1))
    assert text_of(await answer_of(client)) == "tea"


async def test_reasoning_without_an_opening_tag_is_taken_back() -> None:
    answer = await answer_to(
        events(delta(content="hm\n"), delta(content="</think>\ntea"), delta("stop"))
    )
    assert answer[:-1] == [TextDelta(text="hm\n"), Restarted(), TextDelta(text="tea")]


async def test_a_pair_of_surrogates_may_come_in_two_events() -> None:
    answer = await answer_to(
        events(delta(content="a\ud83d"), delta(content="\ude00b\ud83d"), delta("stop", content="c"))
    )
    assert text_of(answer) == "a😀bc"


async def test_text_that_looked_like_a_tag_is_given_at_the_end() -> None:
    assert text_of(await answer_to(events(delta(content="1 <"), delta("stop")))) == "1 <"


async def test_content_in_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "tea"}]
    assert text_of(await answer_to(events(delta("stop", content=parts)))) == "tea"


async def test_a_server_that_does_not_stream_is_understood() -> None:
    choice = {"index": 0, "message": {"content": "tea"}, "finish_reason": "stop"}
    body = {"choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": 1}}
    answer = await answer_to(Wire(body=json.dumps(body).encode(), content_type=JSON))
    assert text_of(answer) == "tea"
    assert end_of(answer).usage == Usage(prompt_tokens=4, completion_tokens=1)


@pytest.mark.parametrize(
    "strange",
    [
        {"choices": None},
        {"choices": []},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"choices": [], "usage": {"prompt_tokens": None}},
        {"unknown": 1},
    ],
)
async def test_events_without_text_do_no_harm(strange: dict[str, Any]) -> None:
    answer = await answer_to(events(strange, delta(content="tea"), strange, delta("stop"), strange))
    assert text_of(answer) == "tea"


async def test_no_usage_is_told_as_none() -> None:
    assert end_of(await answer_to(events(delta("stop", content="tea")))).usage is None


# --- embeddings


def vectors(*data: tuple[int | None, object]) -> Wire:
    told = [{"index": index, "embedding": vector} for index, vector in data]
    return Wire(body=json.dumps({"data": told}).encode())


async def embedded(wire: Wire, count: int = 2) -> list[list[float]]:
    async with WireServer(wire) as server, client_of(server.base_url) as client:
        return await client.embed(["tea"] * count)


async def test_texts_are_sent_to_be_embedded_as_plain_numbers(
    model: LoopbackModel, client: ModelClient
) -> None:
    assert len(await client.embed(["tea", "a\ud83db"])) == 2
    assert model.embeddings[0].body == {
        "model": "tiny",
        "input": ["tea", "ab"],
        "encoding_format": "float",
    }


@pytest.mark.parametrize(
    "wire",
    [
        vectors((0, [1, 0]), (1, [0, 1])),
        vectors((1, [0, 1]), (0, [1, 0])),
        vectors((None, [1, 0]), (None, [0, 1])),
    ],
)
async def test_vectors_are_put_in_the_order_of_their_texts(wire: Wire) -> None:
    assert await embedded(wire) == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (vectors((0, [1, 0])), "malformed"),
        (vectors((0, [1, 0]), (1, [0, 1]), (2, [1, 1])), "malformed"),
        (vectors((0, [1, 0]), (0, [0, 1])), "malformed"),
        (vectors((1, [1, 0]), (2, [0, 1])), "malformed"),
        (vectors((0, [1, 0]), (None, [0, 1])), "malformed"),
        (vectors((0, [1, 0]), (1, [1])), "malformed"),
        (vectors((0, []), (1, [])), "malformed"),
        (vectors((0, [1, float("nan")]), (1, [0, 1])), "malformed"),
        (vectors((0, "packed"), (1, "packed")), "malformed"),
        (Wire(body=b"{"), "malformed"),
        (Wire(body=b"<html>", content_type="text/html"), "malformed"),
        (Wire(body=b'{"error": {"message": "no", "code": 429}}'), "rate_limited"),
        (Wire(status=500, body=b"{}"), "server"),
    ],
)
async def test_embeddings_that_cannot_be_used_are_a_fault(wire: Wire, kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await embedded(wire)
    assert caught.value.kind == kind


async def test_embeddings_have_a_time_limit(model: LoopbackModel) -> None:
    model.queue(Hang(), to="embeddings")
    async with client_of(model.base_url, timeout_s=0.1) as client:
        with pytest.raises(ModelFault) as caught:
            await client.embed(["tea"])
    assert caught.value.kind == "timeout"


# --- going away


async def test_cancelling_the_reader_aborts_the_request(
    model: LoopbackModel, client: ModelClient
) -> None:
    model.queue(Text("one two", breaks=Stall(after=1)))
    reading = asyncio.create_task(answer_of(client))
    await model.wait_for_requests(1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await model.wait_for(lambda: model.last.aborted)


async def test_closing_the_stream_aborts_the_request(
    model: LoopbackModel, client: ModelClient
) -> None:
    model.queue(Text("one two three", breaks=Stall(after=1)))
    async with aclosing(client.stream(HELLO)) as stream:
        assert await anext(stream) == TextDelta(text="one ")
        assert not model.last.aborted
    await model.wait_for(lambda: model.last.aborted)


async def test_cancelling_before_the_answer_begins_aborts_the_request(
    model: LoopbackModel, client: ModelClient
) -> None:
    model.queue(Hang())
    reading = asyncio.create_task(answer_of(client))
    await model.wait_for_requests(1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await model.wait_for(lambda: model.last.aborted)

"""Tool calls are put together however a server sends them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.llm.chat import (
    ChatMessage,
    ChatRequest,
    ToolCall,
)
from bot.llm.client import ModelClient
from tests.fakes.model.replies import (
    ToolCalls,
)
from tests.fakes.model.server import LoopbackModel
from tests.llm.asking import answer_of, answer_to, client_of, end_of, text_of
from tests.llm.wire_server import WireServer, delta, events


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as server:
        yield server


@pytest.fixture
async def client(model: LoopbackModel) -> AsyncIterator[ModelClient]:
    async with client_of(model.base_url, timeout_s=5, stall_s=5) as client:
        yield client


async def test_tool_calls_are_put_together(model: LoopbackModel, client: ModelClient) -> None:
    model.queue(ToolCalls([("search", {"query": "green tea"}), ("search", '{"query')], text="Hm."))
    answer = await answer_of(client)
    assert text_of(answer) == "Hm."
    assert end_of(answer).reason == "tool_calls"
    assert end_of(answer).tool_calls == (
        ToolCall(id="call_1_0", name="search", arguments='{"query": "green tea"}'),
        ToolCall(id="call_1_1", name="search", arguments='{"query'),
    )


def call(
    name: str | None = None, arguments: object = None, call_id: str | None = None, *, at: Any = None
) -> dict[str, Any]:
    return {"index": at, "id": call_id, "function": {"name": name, "arguments": arguments}}


A, B = '{"n": 1}', '{"n": 2}'
ODD_CALLS = {
    "whole calls without an index": [[call("a", A, "x")], [call("b", B, "y")]],
    "whole calls in one event": [[call("a", A, "x"), call("b", B, "y")]],
    "index 0 for every call": [[call("a", A, "x", at=0)], [call("b", B, "y", at=0)]],
    "index 0 for fragments too": [
        [call("a", '{"n"', "x", at=0)],
        [call(None, ": 1}", at=0)],
        [call("b", '{"n"', "y", at=0)],
        [call(None, ": 2}", at=0)],
    ],
    "fragments named by id alone": [
        [call("a", '{"n"', "x"), call("b", '{"n"', "y")],
        [call(None, ": 1}", "x"), call(None, ": 2}", "y")],
    ],
    "id and name in every fragment": [
        [call("a", '{"n"', "x", at=0)],
        [call("a", ": 1}", "x", at=0)],
        [call("a", "", "x", at=0)],
        [call("b", B, "y", at=1)],
    ],
    "arguments as an object": [[call("a", {"n": 1}, "x", at=0)], [call("b", {"n": 2}, "y", at=1)]],
    "the id late": [[call("a", at=0)], [call(None, A, "x", at=0)], [call("b", B, "y", at=1)]],
}


@pytest.mark.parametrize("deltas", ODD_CALLS.values(), ids=ODD_CALLS.keys())
async def test_calls_are_told_apart_however_they_are_sent(deltas: list[Any]) -> None:
    answer = await answer_to(events(*(delta(tool_calls=one) for one in deltas), delta("stop")))
    assert end_of(answer).reason == "tool_calls"
    assert end_of(answer).tool_calls == (
        ToolCall(id="x", name="a", arguments=A),
        ToolCall(id="y", name="b", arguments=B),
    )


@pytest.mark.parametrize(
    "deltas",
    [
        [[call("a", A)], [call("a", B)]],
        [[call("a", A, at=0)], [call("a", B, at=0)]],
        [[call("a", A, "", at=0)], [call("a", B, "", at=1)]],
        [[call("a", A, at=0), call("a", B, at=1)]],
        [
            [call("a", '{"n"', at=0), call("a", '{"n"', at=1)],
            [call(None, ": 1}", at=0), call(None, ": 2}", at=1)],
        ],
    ],
)
async def test_calls_without_an_id_get_one(deltas: list[Any]) -> None:
    answer = await answer_to(events(*(delta(tool_calls=one) for one in deltas), delta("stop")))
    assert end_of(answer).tool_calls == (
        ToolCall(id="call_1", name="a", arguments=A),
        ToolCall(id="call_2", name="a", arguments=B),
    )


async def test_calls_without_arguments_are_told_apart_by_name() -> None:
    end = end_of(await answer_to(events(delta("stop", tool_calls=[call("a"), call("b")]))))
    assert [(one.name, one.arguments) for one in end.tool_calls] == [("a", ""), ("b", "")]


async def test_lone_surrogates_are_taken_out_of_arguments() -> None:
    deltas = [
        delta(tool_calls=[call("a", '{"n": "\ud83d', "x")]),
        delta(tool_calls=[call(None, '"}')]),
    ]
    end = end_of(await answer_to(events(*deltas, delta("stop"))))
    assert end.tool_calls[0].arguments == '{"n": ""}'


async def test_an_id_that_is_used_twice_is_given_once() -> None:
    calls = [call("a", A, "x", at=0), call("b", B, "x", at=1)]
    ids = [
        one.id
        for one in end_of(await answer_to(events(delta("stop", tool_calls=calls)))).tool_calls
    ]
    assert ids == ["x", "call_2"]


async def test_ids_are_new_in_the_conversation() -> None:
    earlier = ChatMessage(
        role="assistant", content="", tool_calls=(ToolCall(id="call_1", name="a", arguments=A),)
    )
    request = ChatRequest(messages=(earlier,), max_tokens=50)
    wire = events(delta("stop", tool_calls=[call("a", B)]))
    async with WireServer(wire) as server, client_of(server.base_url) as client:
        answer = await answer_of(client, request)
    assert end_of(answer).tool_calls[0].id == "call_2"


async def test_calls_of_an_answer_cut_at_its_length_say_length() -> None:
    answer = await answer_to(events(delta("length", tool_calls=[call("a", '{"n', "x")])))
    assert end_of(answer).reason == "length"
    assert end_of(answer).tool_calls == (ToolCall(id="x", name="a", arguments='{"n'),)

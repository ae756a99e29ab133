"""Each misbehaviour of a provider has its name; what is refused although optional is left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.errors import ModelFault
from bot.llm.chat import (
    ChatRequest,
)
from bot.llm.client import ModelClient
from tests.fakes.model.replies import (
    BadJson,
    CorruptEvent,
    Cut,
    Disconnect,
    ErrorEvent,
    Hang,
    Html,
    HttpError,
    Reply,
    Reset,
    Stall,
    Text,
)
from tests.fakes.model.server import LoopbackModel
from tests.llm.asking import HELLO, answer_of, answer_to, client_of, fault_of, text_of
from tests.llm.wire_server import Wire, WireServer, delta, error, events


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as server:
        yield server


@pytest.fixture
async def client(model: LoopbackModel) -> AsyncIterator[ModelClient]:
    async with client_of(model.base_url, timeout_s=5, stall_s=5) as client:
        yield client


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(400), "rejected"),
        (HttpError(401), "auth"),
        (HttpError(402), "auth"),
        (HttpError(403), "auth"),
        (HttpError(404), "rejected"),
        (HttpError(408), "timeout"),
        (HttpError(409), "server"),
        (HttpError(422), "rejected"),
        (HttpError(429), "rate_limited"),
        (HttpError(429, code="insufficient_quota"), "auth"),
        (HttpError(500), "server"),
        (HttpError(503), "server"),
        (HttpError(529), "server"),
        (Reset(), "connection"),
        (Html(), "malformed"),
        (BadJson(), "malformed"),
        (Cut(), "cut"),
        (Cut(after=0), "cut"),
        (Cut(after=99), "cut"),
        (Disconnect(), "connection"),
        (CorruptEvent(), "malformed"),
        (ErrorEvent(), "server"),
        (Text("no", finish_reason="content_filter"), "rejected"),
    ],
)
async def test_each_fault_has_its_name(
    model: LoopbackModel, client: ModelClient, reply: Reply, kind: str
) -> None:
    model.queue(reply)
    fault = await fault_of(client)
    assert (type(fault), fault.kind) == (ModelFault, kind)
    assert len(model.requests) == 1
    assert text_of(await answer_of(client)) == "echo: hello"


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (events("5"), "malformed"),
        (events("[]"), "malformed"),
        (events({"choices": "x"}), "malformed"),
        (events("[" * 100_000), "malformed"),
        (Wire(body=b"data: \xff\n\n", content_type="text/event-stream"), "malformed"),
        (events({"error": {"message": "slow down", "code": 429}}), "rate_limited"),
        (
            events({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
            "rate_limited",
        ),
        (events({"error": {"message": "bad gateway", "code": "502"}}), "server"),
        (events({"error": "it broke"}), "server"),
        (events(delta("error", content="hm")), "server"),
        (Wire(body=b'{"error": {"message": "no", "code": 401}}'), "auth"),
        (Wire(body=b"{}"), "cut"),
        (Wire(status=500, body=b"<html>oh</html>", content_type="text/html"), "server"),
        (Wire(status=500, body=b""), "server"),
    ],
)
async def test_what_stranger_servers_do_has_a_name_too(wire: Wire, kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await answer_to(wire)
    assert caught.value.kind == kind


async def test_nobody_listening_is_a_connection_fault(unused_tcp_port: int) -> None:
    async with client_of(f"http://127.0.0.1:{unused_tcp_port}/v1") as client:
        assert (await fault_of(client)).kind == "connection"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"error": {"message": "no such model"}}, "400: no such model"),
        ({"error": "no such model"}, "400: no such model"),
        ({"message": "no such model"}, "400: no such model"),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "extra", "input": "a secret text"}]},
            "400: ['body', 'n'] extra",
        ),
        ({"input": "a secret text"}, "400: no reason given"),
        ("<html>a proxy</html>", "400: a web page instead of a reason"),
        ({"error": {"message": "x" * 1000}}, "400: " + "x" * 295),
    ],
)
async def test_the_detail_is_the_servers_own_sentence(body: object, detail: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await answer_to(error(400, body))
    assert caught.value.detail == detail


async def test_an_answer_that_does_not_begin_in_time_is_a_timeout(model: LoopbackModel) -> None:
    model.queue(Hang())
    async with client_of(model.base_url, timeout_s=0.1) as client:
        assert (await fault_of(client)).kind == "timeout"
    await model.wait_for(lambda: model.last.aborted)


async def test_a_stream_that_pauses_too_long_is_stalled(model: LoopbackModel) -> None:
    model.queue(Stall())
    async with client_of(model.base_url, stall_s=0.1) as client:
        assert (await fault_of(client)).kind == "stalled"
        await model.wait_for(lambda: model.last.aborted)


@pytest.mark.parametrize("reasoning", ["", "one two three four five"])
async def test_a_slow_stream_that_goes_on_is_not_stalled(
    model: LoopbackModel, reasoning: str
) -> None:
    text = Text("six seven eight nine ten", reasoning=reasoning, chunk_delay=0.08)
    model.queue(text)
    async with client_of(model.base_url, stall_s=0.3) as client:
        assert text_of(await answer_of(client)) == text.text


@pytest.mark.parametrize(
    "after", [Wire(), Wire(stays_open=True), Wire(body=b"data: {\n\n"), Wire(resets=True)]
)
async def test_a_whole_answer_stands_however_its_stream_ends(
    after: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.llm.client.USAGE_WAIT_S", 0.05)
    whole = events(delta("stop", content="tea"), done=False)
    wire = replace(after, body=whole.body + after.body, content_type=whole.content_type)
    assert text_of(await answer_to(wire)) == "tea"


def moment_in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        (7, 7, 7),
        (0, 0, 0),
        (0.5, 0.5, 0.5),
        (moment_in(3600), 3400, 3600),
        (moment_in(-3600), 0, 0),
    ],
)
async def test_the_providers_retry_time_is_passed_on(
    model: LoopbackModel, client: ModelClient, retry_after: Any, least: float, most: float
) -> None:
    model.queue(HttpError(429, retry_after=retry_after))
    told = (await fault_of(client)).retry_after_s
    assert told is not None
    assert least <= told <= most


async def test_a_retry_date_without_a_zone_is_utc() -> None:
    with pytest.raises(ModelFault) as caught:
        await answer_to(error(429, {}, Retry_After="Wed, 01 Jan 2020 00:00:00 -0000"))
    assert caught.value.retry_after_s == 0


@pytest.mark.parametrize("told", ["", "soon", "nan", "inf"])
async def test_a_retry_time_that_makes_no_sense_is_none(told: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await answer_to(error(429, {"error": "wait"}, Retry_After=told))
    assert caught.value.retry_after_s is None


# --- what a server refuses although it is optional


@pytest.mark.parametrize(
    ("refusal", "left_out"),
    [
        (
            error(400, {"error": {"message": "Unrecognized request argument: stream_options"}}),
            "stream_options",
        ),
        (
            error(422, {"detail": [{"loc": ["body", "stream_options"], "msg": "extra forbidden"}]}),
            "stream_options",
        ),
        (
            error(
                400,
                {
                    "error": {
                        "message": "Unsupported parameter: 'max_tokens' is not supported with this "
                        "model. Use 'max_completion_tokens' instead.",
                        "code": "unsupported_parameter",
                    }
                },
            ),
            "max_tokens",
        ),
        (
            error(400, {"error": {"message": "'temperature' does not support 0.5"}}),
            "temperature",
        ),
    ],
)
async def test_what_is_refused_is_left_out_from_then_on(refusal: Wire, left_out: str) -> None:
    request = ChatRequest(messages=HELLO.messages, max_tokens=50, temperature=0.5)
    good = events(delta("stop", content="tea"))
    async with WireServer(refusal, good, good) as server, client_of(server.base_url) as client:
        assert text_of(await answer_of(client, request)) == "tea"
        assert text_of(await answer_of(client, request)) == "tea"
    assert [left_out in body for body in server.bodies] == [True, False, False]
    if left_out == "max_tokens":
        assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 50, 50]


async def test_two_things_may_be_refused_one_after_the_other() -> None:
    refusals = [
        error(400, {"error": {"message": f"unknown field {name}"}})
        for name in ("stream_options", "max_tokens, use max_completion_tokens")
    ]
    async with (
        WireServer(*refusals, events(delta("stop", content="tea"))) as server,
        client_of(server.base_url) as client,
    ):
        assert text_of(await answer_of(client)) == "tea"
    assert "stream_options" not in server.bodies[2]
    assert server.bodies[2]["max_completion_tokens"] == 50


async def test_a_thing_that_is_refused_again_is_a_fault() -> None:
    refusal = error(400, {"error": {"message": "stream_options?"}})
    with pytest.raises(ModelFault) as caught:
        await answer_to(refusal, refusal)
    assert caught.value.kind == "rejected"


async def test_requests_at_the_same_time_both_do_without_it(model: LoopbackModel) -> None:
    def refuse(request: Any) -> Reply | None:
        if "stream_options" in request.body:
            return HttpError(400, "stream_options is not known")
        return Text("tea")

    model.on(refuse)
    async with client_of(model.base_url) as client:
        answers = await asyncio.gather(answer_of(client), answer_of(client))
    assert [text_of(answer) for answer in answers] == ["tea", "tea"]


@pytest.mark.parametrize("what", ["tools", "response_format"])
async def test_other_refusals_say_what_was_refused(
    model: LoopbackModel, client: ModelClient, what: str
) -> None:
    model.queue(HttpError(400, f"tiny does not support {what}"))
    fault = await fault_of(client)
    assert (fault.kind, fault.detail) == ("rejected", f"400: tiny does not support {what}")
    assert len(model.requests) == 1

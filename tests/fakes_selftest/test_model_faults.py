"""The ways in which a model server misbehaves, and what the openai client makes of them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import openai
import pytest

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
    LoopbackModel,
    Reset,
    Stall,
    Text,
)
from tests.fakes_selftest.test_model_answers import chat, joined, streamed


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, openai.AuthenticationError),
        (402, openai.APIStatusError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_an_error_status(
    model: LoopbackModel, ai: openai.AsyncOpenAI, status: int, error: type[Exception]
) -> None:
    model.queue(HttpError(status, "no credit"))
    with pytest.raises(error, match="no credit") as refused:
        await chat(ai)
    assert refused.value.status_code == status


async def test_retry_after_in_seconds(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(HttpError(429, retry_after=1.5))
    with pytest.raises(openai.RateLimitError) as refused:
        await chat(ai)
    assert refused.value.response.headers["Retry-After"] == "1.5"


async def test_retry_after_as_a_date(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    moment = (datetime.now(UTC) + timedelta(minutes=2)).replace(microsecond=0)
    model.queue(HttpError(429, retry_after=moment))
    with pytest.raises(openai.RateLimitError) as refused:
        await chat(ai)
    assert parsedate_to_datetime(refused.value.response.headers["Retry-After"]) == moment


async def test_the_clients_own_retry_meets_the_next_answer(model: LoopbackModel) -> None:
    model.queue(HttpError(429, retry_after=0.01), "at last")
    async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k", max_retries=1) as ai:
        assert (await chat(ai)).choices[0].message.content == "at last"
    assert len(model.chats) == 2


async def test_too_long_in_the_words_of_openai(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(ContextTooLong(prompt_tokens=9001, context=8192))
    with pytest.raises(openai.BadRequestError, match="9001 tokens") as refused:
        await chat(ai)
    assert refused.value.code == "context_length_exceeded"


async def test_too_long_in_the_words_of_llama_cpp(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(ContextTooLong("llama.cpp", prompt_tokens=9001, context=4096))
    with pytest.raises(openai.BadRequestError, match="available context size") as refused:
        await chat(ai)
    assert refused.value.body["type"] == "exceed_context_size_error"
    assert (refused.value.body["n_prompt_tokens"], refused.value.body["n_ctx"]) == (9001, 4096)


async def test_a_reset_connection(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Reset())
    with pytest.raises(openai.APIConnectionError):
        await chat(ai)


async def test_a_hanging_server_sees_the_client_leave(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Hang())
    with pytest.raises(openai.APITimeoutError):
        await chat(ai, timeout=0.1)
    await model.wait_for(lambda: model.last.aborted)


async def test_a_web_page_with_200_is_returned_as_text(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Html())
    assert "<html>" in await chat(ai)


async def test_bad_json_is_no_api_error(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(BadJson())
    with pytest.raises(json.JSONDecodeError):
        await chat(ai)


async def test_a_cut_stream_ends_without_a_finish_reason(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Text("one two three", breaks=Cut(after=2)))
    chunks = await streamed(ai)
    assert joined(chunks) == "one two "
    assert {chunk.choices[0].finish_reason for chunk in chunks} == {None}


async def test_a_stream_can_be_cut_after_its_last_word(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Text("one two", breaks=Cut(after=2)))
    chunks = await streamed(ai)
    assert (joined(chunks), chunks[-1].choices[0].finish_reason) == ("one two", None)


async def test_a_connection_lost_in_the_middle(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Disconnect(after=2))
    heard: list[str] = []

    async def listen() -> None:
        async for chunk in await chat(ai, stream=True):
            heard.append(chunk.choices[0].delta.content)

    with pytest.raises(openai.APIConnectionError):
        await listen()
    assert "".join(heard) == "one two "


async def test_a_corrupt_event_is_no_api_error(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(CorruptEvent())
    with pytest.raises(json.JSONDecodeError):
        await streamed(ai)


async def test_an_error_within_a_stream(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(ErrorEvent(message="overloaded"))
    with pytest.raises(openai.APIError, match="overloaded"):
        await streamed(ai)


async def test_a_stalled_stream_goes_on_later(model: LoopbackModel, ai: openai.AsyncOpenAI) -> None:
    model.queue(Stall(after=1, seconds=0.1), Stall(after=1, seconds=60))
    assert joined(await streamed(ai)) == "one two three four five six"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(streamed(ai), 0.2)
    await model.wait_for(lambda: model.last.aborted)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Disconnect(), openai.APIConnectionError),
        (CorruptEvent(), json.JSONDecodeError),
        (ErrorEvent(), openai.InternalServerError),
    ],
)
async def test_a_request_that_does_not_stream_meets_the_same_faults(
    model: LoopbackModel, ai: openai.AsyncOpenAI, fault: object, error: type[Exception]
) -> None:
    model.queue(fault)
    with pytest.raises(error):
        await chat(ai)


async def test_a_cut_answer_that_does_not_stream_has_no_finish_reason(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(Cut())
    assert (await chat(ai)).choices[0].finish_reason is None


async def test_embeddings_and_the_list_of_models_fail_too(
    model: LoopbackModel, ai: openai.AsyncOpenAI
) -> None:
    model.queue(HttpError(500), to="embeddings").queue(HttpError(503), to="models")
    with pytest.raises(openai.InternalServerError):
        await ai.embeddings.create(model="e", input="tea")
    with pytest.raises(openai.InternalServerError):
        await ai.models.list()
    assert (await chat(ai)).choices[0].message.content == "echo: ping"


async def test_what_is_not_served_is_404(ai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not served"):
        await ai.files.list()

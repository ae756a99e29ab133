"""A prompt that does not fit is recognised in every server's words, with the numbers it names."""

from __future__ import annotations

from typing import Any

import pytest

from bot.errors import ContextTooLong, ModelFault
from tests.llm.asking import answer_to
from tests.llm.wire_server import Wire, delta, error, events

LLAMA_CPP = {
    "code": 400,
    "message": "request (9000 tokens) exceeds the available context size (8192 tokens), try"
    " increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 9000,
    "n_ctx": 8192,
}


async def too_long(wire: Wire) -> ContextTooLong:
    with pytest.raises(ContextTooLong) as caught:
        await answer_to(wire)
    return caught.value


@pytest.mark.parametrize(
    ("message", "limit", "asked"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in"
            " 9000 tokens. Please reduce the length of the messages.",
            8192,
            9000,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens"
            " (9000 in the messages, 500 in the completion).",
            8192,
            9000,
        ),
        (
            "You passed 9000 input tokens and requested 500 output tokens. However, the model's"
            " context length is only 8192 tokens.",
            8192,
            9000,
        ),
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about"
            " 9500 tokens (9000 of text input, 500 in the output).",
            8192,
            9000,
        ),
        ("This model's maximum context length is 8192 tokens. You requested 9000.", 8192, 9000),
        ("Input tokens exceed the configured limit of 8192 tokens.", 8192, None),
        ("max_tokens must be at least 1, got -186.", None, None),
        ("prompt is too long: 9000 tokens > 8192 maximum", 8192, 9000),
        (
            "The input token count (9000) exceeds the maximum number of tokens allowed (8192)",
            8192,
            9000,
        ),
        (
            "Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
            8192,
            9000,
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given:"
            " 9000 `inputs` tokens and 200 `max_new_tokens`",
            8192,
            9000,
        ),
        ("prompt too long; exceeded max context length by 42 tokens", None, None),
        ("exceeded model token limit: 8192 (requested: 9000)", 8192, 9000),
        (
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is"
            " loaded with context length of only 8192 tokens",
            8192,
            9000,
        ),
        ("Context size has been exceeded.", None, None),
        ("Your input exceeds the context window of this model.", None, None),
    ],
)
@pytest.mark.parametrize("status", [400, 500])
async def test_a_prompt_too_long_is_told_from_other_refusals(
    status: int, message: str, limit: int | None, asked: int | None
) -> None:
    fault = await too_long(error(status, {"error": {"message": message}}))
    assert (fault.limit, fault.asked) == (limit, asked)
    assert fault.kind == "rejected"


@pytest.mark.parametrize(
    ("body", "limit", "asked"),
    [
        ({"error": LLAMA_CPP}, 8192, 9000),
        ({"error": LLAMA_CPP | {"message": "the request is too large"}}, 8192, 9000),
        ({"error": {"message": "no", "code": "context_length_exceeded"}}, None, None),
        ({"object": "error", "message": "prompt is too long: 9 > 8 maximum"}, 8, 9),
        ({"error": "input is too long"}, None, None),
    ],
)
async def test_the_code_or_type_is_enough(body: Any, limit: int | None, asked: int | None) -> None:
    fault = await too_long(error(400, body))
    assert (fault.limit, fault.asked) == (limit, asked)


async def test_a_payload_too_large_is_a_prompt_too_long() -> None:
    told = "Request too large on tokens per minute (TPM): Limit 6000, Requested 7245"
    fault = await too_long(error(413, {"error": {"message": told}}))
    assert (fault.limit, fault.asked) == (6000, 7245)


async def test_it_may_be_told_within_the_stream() -> None:
    fault = await too_long(events({"error": LLAMA_CPP}))
    assert (fault.limit, fault.asked) == (8192, 9000)


async def test_it_may_be_told_as_the_finish_reason() -> None:
    await too_long(events(delta("model_context_window_exceeded", content="hm")))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large"),
        (400, "unknown model"),
        (401, "no access to the context window of this account"),
        (429, "tokens per minute: limit 10000, requested 12000; reduce the length of the messages"),
        (503, "no context size left on this node"),
    ],
)
async def test_other_refusals_are_not_taken_for_it(status: int, message: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await answer_to(error(status, {"error": {"message": message}}))
    assert type(caught.value) is ModelFault


async def test_a_hint_at_another_field_does_not_make_us_ask_again() -> None:
    told = "'max_completion_tokens' is too large: this model's context length is 8192 tokens"
    await too_long(error(400, {"error": {"message": told}}))

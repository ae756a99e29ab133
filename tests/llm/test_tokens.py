"""The token estimate, script by script, and the ratio that is learned from what providers count."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.chat import ChatMessage, ChatRequest, ToolCall, ToolSpec
from bot.llm.tokens import (
    RatioSettings,
    TokenRatios,
    estimate_message_tokens,
    estimate_prompt_tokens,
    estimate_tokens,
    estimate_tool_tokens,
)

PROVIDER, MODEL = "local", "qwen"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abc", 1),
        ("abcd", 2),
        ("a" * 18, 5),
        ("a" * 19, 6),
        ("a" * 36, 10),
        ("é" * 36, 10),
        ("Ωж" * 18, 10),
        ("日", 1),
        ("日本語", 3),
        ("かなカナ", 4),
        ("한글", 2),
        ("𠮷", 1),
        ("กข", 1),
        ("กขค", 2),
        ("שלום", 2),
        ("سلام", 2),
        ("नमसत", 2),
        ("தமழ", 2),
        ("😀", 2),
        ("😀" * 3, 4),
        ("…", 1),
        ("日" + "a" * 18 + "กข", 7),
    ],
)
def test_each_script_has_its_own_price(text: str, tokens: int) -> None:
    assert estimate_tokens(text, 1.0) == tokens


@pytest.mark.parametrize(
    ("ratio", "tokens"), [(0.6, 6), (1.0, 10), (1.1, 11), (1.11, 12), (1.8, 18)]
)
def test_the_ratio_multiplies_the_estimate(ratio: float, tokens: int) -> None:
    assert estimate_tokens("a" * 36, ratio) == tokens


@given(st.text(), st.text(), st.floats(0.6, 1.8))
def test_joining_texts_never_costs_more_than_both_apart(a: str, b: str, ratio: float) -> None:
    whole = estimate_tokens(a + b, ratio)
    assert max(estimate_tokens(a, ratio), estimate_tokens(b, ratio)) <= whole
    assert whole <= estimate_tokens(a, ratio) + estimate_tokens(b, ratio)


def test_lone_surrogates_are_counted_without_failing() -> None:
    assert estimate_tokens("\ud800", 1.0) == 1


@pytest.mark.parametrize("text", ["plain words ", "日本語とkana ", "สวัสดีครับ ", "ok 😀 "])
def test_two_thousand_characters_are_estimated_fast(text: str) -> None:
    text = (text * 400)[:2000]
    fastest = min(_seconds_to_estimate(text) for _ in range(50))
    assert fastest < 100e-6


def _seconds_to_estimate(text: str) -> float:
    start = time.perf_counter()
    estimate_tokens(text, 1.1)
    return time.perf_counter() - start


def test_a_message_costs_four_tokens_more_than_its_text() -> None:
    message = ChatMessage(role="user", content="a" * 36)
    assert estimate_message_tokens(message, 1.0) == 14
    assert estimate_message_tokens(message, 1.5) == 21


def test_tool_calls_count_with_their_message() -> None:
    call = ToolCall(id="c1", name="a" * 18, arguments="a" * 18)
    message = ChatMessage(role="assistant", content="", tool_calls=(call,))
    assert estimate_message_tokens(message, 1.0) == 14


def test_a_prompt_costs_its_messages_and_tools() -> None:
    message = ChatMessage(role="user", content="日本")
    tool = ToolSpec(name="note", description="日" * 10, parameters={"type": "object"})
    request = ChatRequest(messages=(message, message), tools=(tool,), max_tokens=10)
    assert estimate_tool_tokens(tool, 1.0) > 14
    together = 2 * estimate_message_tokens(message, 1.0) + estimate_tool_tokens(tool, 1.0)
    assert estimate_prompt_tokens(request, 1.0) == together


def ratios() -> TokenRatios:
    return TokenRatios(RatioSettings())


def test_a_ratio_starts_at_1_1_for_every_model() -> None:
    assert ratios().ratio(PROVIDER, MODEL) == 1.1


def test_a_ratio_moves_a_fifth_of_the_way_to_what_was_counted() -> None:
    learned = ratios()
    learned.learn(PROVIDER, MODEL, estimated=100, reported=160)
    assert learned.ratio(PROVIDER, MODEL) == pytest.approx(1.2)


def test_a_ratio_belongs_to_one_provider_and_one_model() -> None:
    learned = ratios()
    learned.learn(PROVIDER, MODEL, estimated=100, reported=160)
    assert learned.ratio(PROVIDER, "other") == 1.1
    assert learned.ratio("other", MODEL) == 1.1


@pytest.mark.parametrize(("reported", "end"), [(1, 0.6), (10_000, 1.8), (130, 1.3)])
def test_a_ratio_settles_within_its_bounds(reported: int, end: float) -> None:
    learned = ratios()
    for _ in range(100):
        learned.learn(PROVIDER, MODEL, estimated=100, reported=reported)
    assert learned.ratio(PROVIDER, MODEL) == pytest.approx(end)


@pytest.mark.parametrize(("estimated", "reported"), [(0, 10), (10, 0)])
def test_nothing_is_learned_from_an_empty_count(estimated: int, reported: int) -> None:
    learned = ratios()
    learned.learn(PROVIDER, MODEL, estimated=estimated, reported=reported)
    assert learned.ratio(PROVIDER, MODEL) == 1.1


@pytest.mark.parametrize(
    ("limit", "asked", "ratio"),
    [
        (4096, 1500, 1.5),
        (None, 1500, 1.5),
        (None, 9000, 1.8),
        (None, 100, 0.6),
        (1500, None, 1.5),
        (1000, None, 1.21),
        (None, None, 1.375),
    ],
)
def test_a_refused_prompt_corrects_the_ratio_at_once(
    limit: int | None, asked: int | None, ratio: float
) -> None:
    learned = ratios()
    learned.correct_too_long(PROVIDER, MODEL, estimated=1000, limit=limit, asked=asked)
    assert learned.ratio(PROVIDER, MODEL) == pytest.approx(ratio)

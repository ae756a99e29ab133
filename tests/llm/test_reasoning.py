"""Reasoning between <think> tags is never seen, wherever the pieces of a stream are cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.chat import Restarted, TextDelta
from bot.llm.reasoning import ReasoningFilter, without_reasoning
from bot.llm.surrogates import SurrogateFilter, without_surrogates

fragments = st.sampled_from(
    ["<think>", "</think>", "<thinking>", "</THINKING>", "<thi", "</", "<", "`", "\n", " ", "tea"]
)
answers = st.lists(fragments | st.text(max_size=3), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ("hello", "hello"),
        (" hello\n", " hello\n"),
        ("<think>hm</think>hello", "hello"),
        ("<think>hm</think>\n\nhello\n", "hello\n"),
        ("\n<think>hm</think> hello", "\nhello"),
        ("<Thinking>hm</THINKING>hello", "hello"),
        ("<think></think>", ""),
        ("<think>a</think><think>b</think>c", "c"),
        ("a <think>b</think> c", "a  c"),
        ("<think>a <think> b</think>c", "c"),
        ("<think>cut off", ""),
        ("\n<think>cut off", "\n"),
        ("<think>cut off</thi", ""),
        ("1 < 2", "1 < 2"),
        ("a <", "a <"),
        ("a <thin", "a <thin"),
        ("a <thinker>", "a <thinker>"),
        ("write `<think>` and `</think>`", "write `<think>` and `</think>`"),
        ("the tag <think> opens it", "the tag <think> opens it"),
        ("hm, tea\n</think>\n\nhello", "hello"),
        ("</think>hello", "hello"),
        ("a </think> b", "a </think> b"),
    ],
)
def test_only_what_is_meant_to_be_seen_is_left(answer: str, seen: str) -> None:
    assert without_reasoning(answer) == seen


@given(answers, st.data())
def test_the_cuts_between_pieces_make_no_difference(answer: str, data: st.DataObject) -> None:
    reasoning = ReasoningFilter()
    seen = ""
    for piece in (*cut(answer, data), None):
        for event in reasoning.finish() if piece is None else reasoning.feed(piece):
            seen = "" if isinstance(event, Restarted) else seen + event.text
    assert seen == without_reasoning(answer)


@given(st.text(alphabet="ab <\n"), st.text(alphabet="cd >/<\n"), st.text(alphabet="ef \n"))
def test_a_block_leaves_nothing_behind(before: str, inside: str, after: str) -> None:
    seen = without_reasoning(f"{before}<think>{inside}</think>{after}")
    assert re.sub(r"\s", "", seen) == re.sub(r"\s", "", before + after)


@given(st.text().filter(lambda text: "think" not in text.lower()))
def test_an_answer_without_tags_is_left_alone(answer: str) -> None:
    assert without_reasoning(answer) == answer


def test_text_is_let_through_as_soon_as_it_cannot_be_a_tag() -> None:
    reasoning = ReasoningFilter()
    pieces = [list(reasoning.feed(piece)) for piece in ("hi ", "<", "t", "ea>")]
    assert pieces == [[TextDelta(text="hi ")], [], [], [TextDelta(text="<tea>")]]


def test_reasoning_that_was_let_through_is_taken_back() -> None:
    reasoning = ReasoningFilter()
    events = [event for piece in ("hm\n", "</think>", "hi") for event in reasoning.feed(piece)]
    assert events == [TextDelta(text="hm\n"), Restarted(), TextDelta(text="hi")]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db", "ab"),
        ("b\ude00c", "bc"),
        ("\ude00\ud83d", ""),
        ("😀\ud83d", "😀"),
    ],
)
def test_lone_surrogates_go_and_pairs_are_joined(text: str, clean: str) -> None:
    assert without_surrogates(text) == clean


@given(st.text(alphabet="a\ud83d\ude00\U0001f600", max_size=10), st.data())
def test_surrogates_may_be_cut_anywhere(text: str, data: st.DataObject) -> None:
    surrogates = SurrogateFilter()
    clean = "".join(surrogates.feed(piece) for piece in cut(text, data))
    assert clean == without_surrogates(text)
    clean.encode()


def cut(text: str, data: st.DataObject) -> list[str]:
    """The text in pieces, some of them empty."""
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]

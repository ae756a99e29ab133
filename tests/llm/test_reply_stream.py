"""The reply is read out of growing JSON, wherever the pieces of the stream are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.reply_stream import ReplyStream
from bot.llm.surrogates import without_surrogates

# With characters that JSON escapes, and surrogates, alone and in pairs.
texts = st.text(st.sampled_from('ab"\\/\n\t\x00{}[]:,é日😀\ud83d\ude00')) | st.text()
names = st.sampled_from(["reply", "action", "content"]) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
others = names.filter(lambda name: name not in {"reply", "action"})


@given(
    reply=texts,
    action=texts,
    before=st.dictionaries(others, values, max_size=2),
    after=st.dictionaries(others, values, max_size=2),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
    prose=st.sampled_from(["", "```json\n", 'Here is the "object": ', "[see: "]),
    data=st.data(),
)
def test_any_reply_is_read_from_any_pieces(
    reply: str,
    action: str,
    before: dict[str, object],
    after: dict[str, object],
    ascii_only: bool,
    indent: int | None,
    prose: str,
    data: st.DataObject,
) -> None:
    answer = {**before, "action": action, "reply": reply, **after}
    written = prose + json.dumps(answer, ensure_ascii=ascii_only, indent=indent) + "\n```"
    places = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=12)))
    stream = ReplyStream()
    read = "".join(
        stream.feed(written[a:b])
        for a, b in zip([0, *places], [*places, len(written)], strict=True)
    )
    assert read == without_surrogates(reply)
    assert stream.action == without_surrogates(action)


@given(st.text(st.sampled_from('{}[]",:\\u0dr eply"action')))
def test_no_garbage_makes_it_fail(garbage: str) -> None:
    ReplyStream().feed(garbage)


def test_the_text_is_given_as_soon_as_it_is_written() -> None:
    stream = ReplyStream()
    pieces = ['{"reply": "He', "llo", "\\", "n\\u00e", "9 \\ud83d", "\\ude00", '!"', "}"]
    assert [stream.feed(piece) for piece in pieces] == ["He", "llo", "", "\n", "é ", "😀", "!", ""]


def test_the_action_is_known_when_its_string_closes() -> None:
    stream = ReplyStream()
    known: list[str | None] = []
    for piece in ('{"action"', ': "re', "ply", '"', ', "reply": "Hi"}'):
        stream.feed(piece)
        known.append(stream.action)
    assert known == [None, None, None, "reply", "reply"]


@pytest.mark.parametrize(
    "written",
    [
        "",
        "no object",
        '{"content": "reply"}',
        '{"reply": null}',
        '{"reply": {"reply": "inner"}}',
        '{"reply": ["inner"]}',
        '{"arguments": {"action": "inner", "reply": "inner"}}',
    ],
)
def test_only_a_string_of_the_outermost_object_is_the_reply(written: str) -> None:
    stream = ReplyStream()
    assert (stream.feed(written), stream.action) == ("", None)


def test_what_follows_the_object_is_not_read() -> None:
    stream = ReplyStream()
    assert stream.feed('{"reply": "first"} {"reply": "second", "action": "no"}') == "first"
    assert stream.action is None


def test_raw_line_ends_and_broken_escapes_are_taken_as_they_are() -> None:
    assert ReplyStream().feed('{"reply": "a\nb\\qc\\uZZZZd"}') == "a\nbqcd"


def test_the_fields_may_have_other_names() -> None:
    stream = ReplyStream(text_field="text", action_field="tool")
    assert stream.feed('{"tool": "say", "reply": "no", "text": "yes"}') == "yes"
    assert stream.action == "say"

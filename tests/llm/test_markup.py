"""Markup that a model writes as text is never seen, and its calls are read, however it streams."""

import json
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bot.errors import ModelFault
from bot.llm.answer import Answer
from bot.llm.bare_decision import DecisionFilter
from bot.llm.chat import ChatMessage, ChatRequest, Finished, Restarted, TextDelta, ToolSpec
from bot.llm.markup import MarkupFilter, without_markup
from bot.llm.reasoning import ReasoningFilter
from bot.llm.wire import Chunk

ARGUMENTS = {"content": "Ann likes <b>tea</b> {hot} [a lot]"}
CALL = json.dumps({"name": "keep", "arguments": ARGUMENTS})
KEPT = [("keep", ARGUMENTS)]
JSON = json.dumps(ARGUMENTS)
ASKED = ChatMessage(role="user", content="hello")
KEEP = ToolSpec(name="keep", description="", parameters={"type": "object"})


def read(*pieces: str, tools: tuple[ToolSpec, ...] = (KEEP,)) -> tuple[str, Finished]:
    """What people see of an answer in these pieces, and its end."""
    answer = Answer(ChatRequest(messages=(ASKED,), tools=tools, max_tokens=50))
    seen: list[str] = []
    for event in events(answer, pieces):
        match event:
            case TextDelta(text=text):
                seen.append(text)
            case Restarted():
                seen.clear()
            case Finished():
                return "".join(seen), event
    raise AssertionError


def events(answer: Answer, pieces: tuple[str, ...]) -> Iterator[TextDelta | Restarted | Finished]:
    for piece in pieces:
        yield from answer.take(chunk(piece))
    tuple(answer.take(chunk("", "stop")))
    finished = answer.finished("here", "tiny")
    yield from answer.end()
    yield finished


def chunk(text: str, finish_reason: str | None = None) -> Chunk:
    choice = {"delta": {"content": text}, "finish_reason": finish_reason}
    return Chunk.model_validate({"choices": [choice]})


def calls_of(finished: Finished) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in finished.tool_calls]


CALLS = {
    "tool_call": f"<tool_call>{CALL}</tool_call>",
    "tool_call on lines": f"<tool_call>\n{CALL}\n</tool_call>",
    "tool_call in capitals": f"<TOOL_CALL>{CALL}</TOOL_CALL>",
    "tool_call never closed": f"<tool_call>{CALL}",
    "tool_calls": f"<tool_calls>[{CALL}]</tool_calls>",
    "tool_calls around tool_call": f"<tool_calls><tool_call>{CALL}</tool_call></tool_calls>",
    "wrapped in a function": f'<tool_call>{{"type": "function", "function": {CALL}}}</tool_call>',
    "arguments as text": (
        f'<tool_call>{{"name": "keep", "arguments": {json.dumps(JSON)}}}</tool_call>'
    ),
    "function_call": f"<function_call>{CALL}</function_call>",
    "function_call, the name in front": f"<function_call>keep {JSON}</function_call>",
    "function=name": f"<function=keep>{JSON}</function>",
    "function=name never closed": f"<function=keep>{JSON}",
    "function with a name": f'<function name="keep">{JSON}</function>',
    "function with parameters": (
        "<tool_call>\n<function=keep>\n<parameter=content>\n"
        f"{ARGUMENTS['content']}\n</parameter>\n</function>\n</tool_call>"
    ),
    "invoke": (
        '<function_calls><invoke name="keep"><parameter name="content">'
        f"{ARGUMENTS['content']}</parameter></invoke></function_calls>"
    ),
    "invoke, marked": (
        '<｜DSML｜function_calls><｜DSML｜invoke name="keep">'
        '<｜DSML｜parameter name="content" string="true">'
        f"{ARGUMENTS['content']}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>"
    ),
    "arg_key": (
        "<tool_call>keep\n<arg_key>content</arg_key>\n"
        f"<arg_value>{ARGUMENTS['content']}</arg_value>\n</tool_call>"
    ),
    "brackets": f"[TOOL_CALLS] [{CALL}]",
    "brackets and an end": f"[TOOL_CALLS] [{CALL}]</s>",
    "brackets, the name in front": f"[TOOL_CALLS]keep[ARGS]{JSON}",
    "python_tag": f'<|python_tag|>{{"name": "keep", "parameters": {JSON}}}<|eom_id|>',
    "DeepSeek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>keep\n"
        f"```json\n{JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
    ),
    "DeepSeek, the name in front": (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>keep<｜tool▁sep｜>{JSON}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.keep:0"
        f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "harmony": (
        "<|channel|>analysis<|message|>They like tea.<|end|><|start|>assistant<|channel|>commentary"
        f" to=functions.keep <|constrain|>json<|message|>{JSON}<|call|>"
    ),
    "bare": CALL,
    "bare, on lines": json.dumps({"name": "keep", "arguments": ARGUMENTS}, indent=2),
    "bare, in a list": f"[{CALL}]",
    "bare, as a decision": json.dumps({"action": "keep", **ARGUMENTS}),
    "bare, after the beginning of a turn": f"<|im_start|>assistant\n{CALL}<|im_end|>",
}


@pytest.mark.parametrize("written", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("before", ["", "One moment!\n"])
def test_a_call_written_as_text_is_a_call(written: str, before: str) -> None:
    for pieces in ((before + written,), tuple(before + written)):
        seen, finished = read(*pieces)
        assert seen.strip() == before.strip()
        assert calls_of(finished) == KEPT
        assert finished.reason == "tool_calls"


@pytest.mark.parametrize("written", CALLS.values(), ids=CALLS.keys())
def test_a_call_of_what_was_not_offered_is_left_out(written: str) -> None:
    for pieces in ((written,), tuple(written)):
        seen, finished = read(*pieces, tools=())
        assert seen.strip() == ""
        assert finished.tool_calls == ()
        assert finished.reason == "stop"


WITHOUT_A_FENCE = {name: written for name, written in CALLS.items() if "```" not in written}


@pytest.mark.parametrize("written", WITHOUT_A_FENCE.values(), ids=WITHOUT_A_FENCE.keys())
def test_in_a_fence_it_stays(written: str) -> None:
    answer = f"So:\n```\n{written}\n```\nGood?"
    for pieces in ((answer,), tuple(answer)):
        seen, finished = read(*pieces)
        assert seen == answer
        assert finished.tool_calls == ()


def test_several_calls_are_read_in_order() -> None:
    answer = f"Hm. <tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call> Done."
    seen, finished = read(answer)
    assert seen == "Hm. \n Done."
    assert calls_of(finished) == KEPT * 2
    assert [call.id for call in finished.tool_calls] == ["call_1", "call_2"]
    seen, finished = read(f"{CALL}; {CALL}\nDone.")
    assert (seen, calls_of(finished)) == ("Done.", KEPT * 2)


@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "keep", "arguments": {"content": "Ann li',
        '{"name": "keep", "arguments": {"content": "Ann li',
        "<tool_call>{'name': 'keep'}</tool_call>",
    ],
)
def test_a_broken_call_is_one_all_the_same(written: str) -> None:
    """The tool then tells the model what is wrong with it."""
    seen, finished = read(f"Well.\n{written}")
    assert seen == "Well.\n"
    [call] = finished.tool_calls
    assert call.name == "keep"
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)


def test_beside_calls_that_the_server_read_itself_written_ones_are_left_out() -> None:
    answer = Answer(ChatRequest(messages=(ASKED,), tools=(KEEP,), max_tokens=50))
    delta = {"tool_calls": [{"id": "x", "function": {"name": "keep", "arguments": JSON}}]}
    chunks = [Chunk.model_validate({"choices": [{"delta": delta}]}), chunk(CALL, "stop")]
    seen = [event for one in chunks for event in answer.take(one)]
    assert seen == []
    assert [call.id for call in answer.finished("here", "tiny").tool_calls] == ["x"]


SEEN = {
    "<|im_start|>assistant\nHello!<|im_end|>": "Hello!",
    "<|im_start|>assistantHello": "",
    "Hello!<|im_end|>\n<|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\nFine.": (
        "Hello!\nFine."
    ),
    "Hello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd you?": "Hello!",
    "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>": "Hello!",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
    "Hello!<|return|>": "Hello!",
    "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Hello!": "Hello!",
    "<|channel|>commentary<|message|>Let me see.<|end|>": "",
    "<|channel|>analysis<|message|>The final answer is": "",
    "<|channel|>final<|message|>Hello!": "Hello!",
    "<|start|>assistant<|message|>Hello!<|end|>": "Hello!",
    "<s>Hello!</s>": "Hello!",
    "<s> [INST] Hello? [/INST] Hello!</s>": "Hello!",
    "Hello! [INST] And you?": "Hello! ",
    "[INST] <<SYS>> Be kind. <</SYS>> Hello? [/INST] Hello!": "Hello!",
    "<start_of_turn>model\nHello!<end_of_turn>\n": "Hello!\n",
    "<|user|>\nHello?<|assistant|>\nHello!": "Hello!",
    "<｜Assistant｜>Hello!<｜end▁of▁sentence｜>": "Hello!",
    "Hello!<|endoftext|>": "Hello!",
    "Hello!</tool_call>": "Hello!",
    "Hello!<|DSML|><|-|>": "Hello!",
    "[THINK]Hm.[/THINK]Hello!": "Hello!",
    "<tool_response>{}</tool_response>Hello!": "Hello!",
    "<reasoning>Hm.</reasoning>\nHello!": "Hello!",
    "<thought>Hm.</thought>Hello!": "Hello!",
    "<reflection>Hm, <b>.</reflection>Hello!": "Hello!",
    "<think>a <reflection>b</reflection> c</think>Hello!": "Hello!",
    "the tag <tool_call> opens one": "the tag  opens one",
    "it`s <tool_call>{}</tool_call>done": "it`s done",
    '{"action": "reply", "text": "Hello!"}': "Hello!",
    '{"action": "reply", "reply": "Hel\\nlo!"}': "Hel\nlo!",
    '{"action": "reply", "reply": "Hel': "Hel",
    '{"action": "reply"}': "",
    '{"action": "reply", "text": "<think_hard> Hello!<|im_end|>"}': "<think_hard> Hello!",
    '{"name": "other", "arguments": {}}': "",
    '{"name": "other", "arguments": {"a': "",
}


@pytest.mark.parametrize(("answer", "seen"), SEEN.items())
def test_only_what_is_said_to_people_is_left(answer: str, seen: str) -> None:
    for pieces in ((answer,), tuple(answer)):
        shown, finished = read(*pieces)
        assert shown == seen
        assert finished.tool_calls == ()


TALK = [
    "a < b and b > c, <b>bold</b>, <3, <-, <<, <:smile:12>, <@123>, <function>, <invoke>, <sup>",
    "write `<tool_call>` and `</tool_call>`, or ``<|im_end|>`` then",
    "```xml\n<tool_call>{}</tool_call>\n```\nis how <i>it</i> looks",
    "[link](https://example.org), [INS], [inst], [1], [x] done\n[ ] open\n{curly} a[0]",
    '{"name": "Ann", "age": 3}',
    '{\n  "name": "keep",\n  "kind": [1, {"a": "}"}]\n}\nis yours',
    '{"type": "fruit"',
    "x |> f <| y |> z, a <| b",
    "<script>alert(1)</script> <thinker> <system> <tool>",
    "see M1 and {x}\n\n\n  - [a]\n",
]


@pytest.mark.parametrize("answer", TALK)
def test_ordinary_talk_is_left_alone(answer: str) -> None:
    for pieces in ((answer,), tuple(answer)):
        seen, finished = read(*pieces)
        assert seen == answer
        assert finished.tool_calls == ()


# --- however it is cut

fragments = st.sampled_from(
    [
        *(
            "<tool_call>",
            "</tool_call>",
            CALL,
            '{"name": "keep", "arguments": {',
            "}",
            "{",
            '"',
            "[",
        ),
        *("<function=keep>", "</function>", "[TOOL_CALLS]", "[INST]", "[/INST]", "<s>", "</s>"),
        *("<|im_start|>", "assistant", "user", "<|im_end|>", "<|channel|>", "analysis", "final"),
        *("<|message|>", "<|end|>", "<|start|>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        *("<think>", "</think>", "<reasoning>", "</reasoning>", "<parameter=a>", "</parameter>"),
        *("<｜DSML｜", "</｜DSML｜", "<", "invoke", ' name="keep">', "function_calls>", "|>"),
        *("`", "``", "```", "\n", " ", "<", "</", "<|", "<tool", "[TOOL", ";", "tea"),
        *('{"action": "reply", "text": "tea"}', '{"action": ', '"reply"', '{"name": "x"}'),
    ]
)
answers = st.lists(fragments | st.text(max_size=3), max_size=14).map("".join)


@given(answers, st.data())
def test_the_cuts_between_pieces_make_no_difference(answer: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    pieces = [answer[a:b] for a, b in zip([0, *places], [*places, len(answer)], strict=True)]
    whole = read(answer)
    assert read(*pieces) == whole
    assert read(*answer) == whole


@given(st.text().filter(lambda text: not set(text) & set("<[{")))
def test_text_without_markup_comes_at_once(text: str) -> None:
    answer = Answer(ChatRequest(messages=(ASKED,), tools=(KEEP,), max_tokens=50))
    for sign in text:
        seen = [event.text for event in answer.take(chunk(sign)) if isinstance(event, TextDelta)]
        assert seen == [sign]


@given(st.text(alphabet="ab <[{`\n|/>", max_size=60))
@example("a <|b a|> <||> < |a|>")
def test_what_is_no_markup_is_unchanged(text: str) -> None:
    assume(not re.search(r"<\|[ab/]+\|>", text))  # has the shape of a special token
    assert read(text)[0] == text


def test_what_may_become_a_tag_is_held_back_no_longer_than_needed() -> None:
    answer = Answer(ChatRequest(messages=(ASKED,), max_tokens=50))
    pieces = ["a <", "tool", "box> b <", "|im", " c [", "TOOL", "S] <function=" + "x" * 200]
    assert ["".join(getattr(e, "text", "") for e in answer.take(chunk(one))) for one in pieces] == [
        "a ",
        "",
        "<toolbox> b ",
        "",
        "<|im c ",
        "",
        "[TOOLS] <function=" + "x" * 200,
    ]


def test_an_object_that_never_ends_is_let_through() -> None:
    text = '{"name": "' + "x" * 20_000
    assert read(text)[0] == text
    assert read(*text)[0] == text


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<",
            "{",
            "<tool_call>{",
            '{"name":\n',
            "[{",
            "<|im_start|>",
            "<|channel|>",
            "[TOOL_CALLS]",
        ),
        *("<tool_call><parameter=a>", "`<s>", "```\n", "\n[{\n", "<function=a", "</think>\n"),
    ],
)
def test_a_long_answer_takes_no_longer_than_its_length(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    for pieces in ((text,), tuple(text)):
        for one in (ReasoningFilter(), MarkupFilter({"keep"}), DecisionFilter({"keep"})):
            for piece in pieces:
                tuple(one.feed(piece))
            tuple(one.finish())
    assert time.process_time() - started < 10  # measured: about 1 s; quadratic takes minutes


def test_a_broken_off_answer_is_a_fault_as_before() -> None:
    answer = Answer(ChatRequest(messages=(ASKED,), tools=(KEEP,), max_tokens=50))
    assert list(answer.take(chunk("<tool_call>"))) == []
    with pytest.raises(ModelFault):
        answer.finished("here", "tiny")


def test_the_text_of_a_decision_is_cleaned_as_a_whole() -> None:
    assert without_markup("Hello!<tool_call>{}</tool_call> <b>") == "Hello! <b>"


def test_an_answer_that_follows_a_schema_is_left_whole() -> None:
    answer = Answer(ChatRequest(messages=(ASKED,), schema={}, max_tokens=50))
    written = '{"action": "reply", "reply": "<tool_call>"}'
    assert list(answer.take(chunk(written))) == [TextDelta(text=written)]

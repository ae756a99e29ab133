"""How much of everything a prompt holds, for windows of every size."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.llm.tokens import estimate_tokens
from bot.memory.long_term import Memory
from bot.memory.quoting import spoken
from bot.memory.references import reference_to
from bot.memory.working import Entry
from bot.prompts import prompt
from bot.turn.blocks import memory_blocks
from bot.turn.budget import plan_budget
from bot.turn.context import TurnContext
from bot.turn.history import fit_entries
from bot.turn.prompt import Prompt, PromptStyle
from tests.turn.making import (
    CONFIG,
    NATIVE,
    STRUCTURED,
    context,
    entry,
    made_prompt,
    memory,
    note,
    other_room,
    person,
    tokens,
)

RATIO = 1.1
WINDOWS = [32_768, 8_192, 8_191, 4_096, 1_024, 800]
MARK = prompt("blocks.shortened").strip()


def chat(count: int, length: int = 60) -> list[Entry]:
    """People and the persona taking turns; the last line is a person's question."""
    lines = [
        entry(n, f"line {n} {'and so on ' * (length // 10)}", author=person(0) if n % 2 else None)
        for n in range(count - 1)
    ]
    return [*lines, entry(count, "what do you think of it?", author=person(0))]


def facts_about(number: int, count: int, length: int) -> tuple[Memory, ...]:
    return tuple(
        memory(100 * number + i, f"{number}-{i} {'x' * length}", about=person(number))
        for i in range(count)
    )


def said(made: Prompt) -> str:
    return "\n".join(message.content for message in made.messages if message.role != "system")


# --- the limits


@pytest.mark.parametrize(
    ("window", "reply"), [(4_097, 1_024), (4_096, 1_024), (4_092, 1_023), (1_024, 256), (800, 200)]
)
def test_the_reply_has_its_reserve(window: int, reply: int) -> None:
    assert plan_budget(window, CONFIG.context).reply == reply


@pytest.mark.parametrize(
    ("window", "server", "personal", "recalled", "together", "short_term", "matters"),
    [
        (32_768, 400, 500, 600, 1_500, 500, 200),
        (8_192, 400, 500, 600, 1_500, 500, 200),
        (8_191, 399, 499, 599, 1_499, 499, 199),
        (4_096, 200, 250, 300, 750, 250, 100),
        (1_024, 50, 62, 75, 187, 62, 25),
    ],
)
def test_below_8192_memory_shrinks_in_proportion(
    window: int,
    server: int,
    personal: int,
    recalled: int,
    together: int,
    short_term: int,
    matters: int,
) -> None:
    budget = plan_budget(window, CONFIG.context)
    assert (budget.server, budget.personal, budget.recalled) == (server, personal, recalled)
    assert (budget.together, budget.short_term, budget.matters) == (together, short_term, matters)
    assert budget.working_memory == int(window * 0.6)


def test_halved_blocks_and_talk_are_half() -> None:
    whole, half = (plan_budget(8_192, CONFIG.context, halved=halved) for halved in (False, True))
    assert (half.server, half.personal, half.short_term) == (200, 250, 250)
    assert half.working_memory == whole.working_memory // 2
    assert half.reply == whole.reply


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("length", [20, 300, 950])
def test_every_block_keeps_to_its_limit_as_it_is_rendered(window: int, length: int) -> None:
    names = [f"Person {number}" for number in range(12)]
    about = {person(n): facts_about(n, 20, length) for n in range(12)}
    turn = context(
        chat(4),
        names=names,
        server=[memory(9_000 + i, f"{i} {'y' * length}") for i in range(60)],
        personal=about,
        room_note=note(summary="s" * length, categories={str(i): "c" * length for i in range(5)}),
        other_rooms=[other_room([entry(i, "z" * length, author=person(1)) for i in range(10)])] * 3,
    )
    budget = plan_budget(window, CONFIG.context)
    blocks = memory_blocks(turn, budget, RATIO)
    assert estimate_tokens(blocks.server, RATIO) <= budget.server
    assert estimate_tokens(blocks.people, RATIO) <= budget.personal
    short_term = f"{blocks.room_note}\n\n{blocks.other_rooms}"
    assert estimate_tokens(short_term, RATIO) <= budget.short_term
    if window >= 8_192 and length < 900:
        assert all((blocks.server, blocks.people, blocks.room_note))


def test_what_may_be_said_of_people_is_shared_evenly() -> None:
    about = {
        person(n): tuple(
            memory(100 * n + i, f"{n}-{i} {'x' * 100}", about=person(n)) for i in range(30)
        )
        for n in range(3)
    }
    turn = context(chat(2), names=["Ann", "Ben", "Cleo"], personal=about)
    people = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO).people
    shown = [people.count(f'"{n}-') for n in range(3)]
    assert min(shown) >= 2
    assert max(shown) - min(shown) <= 1


def test_what_one_person_leaves_others_may_use() -> None:
    about = {
        person(0): (memory(1, "short", about=person(0)),),
        person(1): facts_about(1, 30, 100),
    }
    turn = context(chat(2), names=["Ann", "Ben"], personal=about)
    people = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO).people
    assert people.count('"1-') >= 9


def test_the_speaker_is_named_however_small_the_window() -> None:
    names = [f"Somebody with a long name {number}" for number in range(25)]
    turn = context(chat(2), names=names)
    budget = plan_budget(1_024, CONFIG.context)
    assert (
        "U1 Somebody with a long name 0, who speaks to you now"
        in memory_blocks(turn, budget, RATIO).people
    )


def test_of_another_room_the_newest_turns_are_shown_in_order() -> None:
    turns = [entry(n, f"turn {n} {'x' * 290}", author=person(1)) for n in range(10)]
    turn = context(chat(2), other_rooms=[other_room(turns)])
    block = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO).other_rooms
    shown = [n for n in range(10) if f"turn {n} " in block]
    assert shown == list(range(10 - len(shown), 10))
    assert 3 <= len(shown) < 10
    assert block.index(f"turn {shown[0]} ") < block.index("turn 9 ")


def test_this_rooms_note_comes_before_other_rooms_have_their_share() -> None:
    turns = [entry(n, f"turn {n} {'x' * 290}", author=person(1)) for n in range(10)]
    turn = context(
        chat(2), room_note=note(summary="own " * 300), other_rooms=[other_room(turns)] * 3
    )
    blocks = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO)
    assert "own own" in blocks.room_note
    assert blocks.other_rooms.count("turn") <= 2


def test_the_handles_are_those_of_the_memories_that_are_visible() -> None:
    turn = context(
        chat(2),
        server=[memory(1, "the server likes chess - M2 too")],
        personal={person(0): (memory(2, "Ann likes tea", about=person(0)),)},
    )
    blocks = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO)
    assert blocks.shown == {"M1": 1, "M2": 2}
    without_people = blocks.cut()
    assert without_people is not None
    assert without_people.shown == {"M1": 1}


def test_a_note_that_is_too_long_loses_its_middle() -> None:
    """1,500 characters may be noted; in Japanese those are three times what the block holds."""
    turn = context(chat(2), room_note=note(summary=f"始{'記' * 1_498}終"))
    blocks = memory_blocks(turn, plan_budget(8_192, CONFIG.context), RATIO)
    assert blocks.room_note.splitlines()[1].startswith('- "始記')
    assert blocks.room_note.endswith('記終"')
    assert MARK in blocks.room_note
    assert estimate_tokens(blocks.room_note, RATIO) > 400


# --- what gives way


def test_blocks_give_way_in_their_order_and_the_question_never() -> None:
    turn = context(
        [*chat(3), entry(9, "Q" * 1_500 + " the question?", author=person(0))],
        server=[memory(1, "SERVER")],
        personal={person(0): (memory(2, "PERSONAL", about=person(0)),)},
        room_note=note(summary="NOTE"),
        other_rooms=[other_room([entry(1, "ELSEWHERE", author=person(0))])],
    )
    order = ("ELSEWHERE", "PERSONAL", "SERVER", "NOTE")
    seen: list[int] = []
    for tool_tokens in range(0, 3_000, 10):
        made = made_prompt(turn, 4_096, tool_tokens=tool_tokens)
        shown = [word in made.messages[0].content for word in order]
        # What is missed least is gone first: never a block that outlives a better one.
        assert shown == sorted(shown)
        assert "question?" in said(made)
        seen.append(sum(shown))
    assert set(seen) == {4, 3, 2, 1, 0}
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("style", [NATIVE, STRUCTURED])
def test_long_texts_among_the_last_eight_lose_their_middle(window: int, style: PromptStyle) -> None:
    texts = [f"begin{n} {'word ' * 6_000} end{n}" for n in range(8)]
    turn = context([entry(n, text, author=person(0)) for n, text in enumerate(texts)])
    made = made_prompt(turn, window, style=style)
    budget = plan_budget(window, CONFIG.context)
    assert tokens(made.messages) <= budget.prompt
    assert "begin7" in said(made)
    assert said(made).rstrip().endswith("end7")
    assert MARK in said(made)


def test_short_texts_beside_long_ones_stay_whole() -> None:
    lines = [entry(n, f"short line {n}", author=person(0)) for n in range(7)]
    turn = context([*lines, entry(8, "begin " + "word " * 3_000 + "end", author=person(0))])
    made = made_prompt(turn, 4_096)
    assert [f"short line {n}" in said(made) for n in range(7)] == [True] * 7


def test_a_reference_is_never_cut_in_two() -> None:
    references = " ".join([reference_to(person(0))] * 400)
    turn = context([entry(n, references, author=person(0)) for n in range(8)])
    made = made_prompt(turn, 1_024)
    assert "{p" not in said(made)
    assert "p:" not in said(made)


def test_older_lines_go_before_anything_is_shortened() -> None:
    made = made_prompt(context(chat(60, length=400)), 4_096)
    assert MARK not in said(made)
    assert "line 0 " not in said(made)
    assert all(f"line {n} " in said(made) for n in range(52, 59))


def test_working_memory_takes_at_most_its_share_of_a_large_window() -> None:
    made = made_prompt(context(chat(600, length=400)), 32_768)
    assert 0.5 * 32_768 < tokens(made.messages[1:]) <= 0.6 * 32_768


# --- what is asked


def asked_after_much(texts: Sequence[str]) -> TurnContext:
    """A turn for which eighty long messages were said, and that has several messages itself."""
    talk = [entry(n, f"other {n} {'and so on ' * 200}", author=person(1)) for n in range(80)]
    asked = [entry(100 + n, text, author=person(0)) for n, text in enumerate(texts)]
    return context([*talk, *asked], names=("Ann", "Ben"), joined=len(texts) - 1)


def shown_of(made: Prompt, texts: Sequence[str]) -> list[bool]:
    return [f"Ann: {text[:10]}" in said(made) for text in texts]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("style", [NATIVE, STRUCTURED])
def test_after_eighty_long_messages_the_question_and_what_was_added_are_whole(
    window: int, style: PromptStyle
) -> None:
    texts = [f"asked {n:2} of Madeleine" for n in range(3)]
    made = made_prompt(asked_after_much(texts), window, style=style)
    assert [f"Ann: {text}" in said(made) for text in texts] == [True] * 3
    assert tokens(made.messages) <= plan_budget(window, CONFIG.context).prompt


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("style", [NATIVE, STRUCTURED])
def test_of_long_messages_that_are_asked_the_first_stays_and_as_many_as_fit(
    window: int, style: PromptStyle
) -> None:
    texts = [f"asked {n:2} {'and more ' * 200} end {n}" for n in range(11)]
    made = made_prompt(asked_after_much(texts), window, style=style)
    shown = shown_of(made, texts)
    left_out = shown.count(False)
    assert shown == [True, *[False] * left_out, *[True] * (10 - left_out)]
    assert "other" not in said(made) or not left_out
    assert tokens(made.messages) <= plan_budget(window, CONFIG.context).prompt


def test_what_is_asked_counts_beyond_the_eight_that_always_stay() -> None:
    texts = [f"asked {n:2} {'and more ' * 200} end {n}" for n in range(11)]
    made = made_prompt(asked_after_much(texts), 4_096)
    assert shown_of(made, texts) == [True] * 11
    assert "other" not in said(made)


def test_where_hardly_anything_fits_only_the_first_that_is_asked_stays() -> None:
    turn = asked_after_much([f"asked {n:2} {'word ' * 50}" for n in range(11)])
    kept = fit_entries(turn.entries, turn.view, budget=1, ratio=RATIO, keep=8)
    assert [entry.message_id for entry in kept] == [turn.request.message.id]


# --- the bound


texts = st.one_of(
    st.text(max_size=300),
    st.sampled_from(["short", "word " * 800, "記憶" * 900, "пам'ять " * 300, "😀" * 500]),
)


@settings(max_examples=60, deadline=None)
@given(
    window=st.integers(min_value=800, max_value=12_000),
    ratio=st.floats(min_value=0.6, max_value=1.8),
    lines=st.lists(st.tuples(st.booleans(), texts), max_size=40),
    question=texts,
    memories=st.lists(st.text(min_size=1, max_size=1_000), max_size=12),
    summary=st.text(max_size=1_500),
    style=st.sampled_from([NATIVE, STRUCTURED]),
    tool_tokens=st.sampled_from([0, 250]),
)
def test_the_prompt_and_its_reply_fit_the_window(
    window: int,
    ratio: float,
    lines: list[tuple[bool, str]],
    question: str,
    memories: list[str],
    summary: str,
    style: PromptStyle,
    tool_tokens: int,
) -> None:
    """Wherever the fixed part and forty characters of the question fit at all."""
    entries = [
        entry(n, text, author=person(0) if by_person else None)
        for n, (by_person, text) in enumerate(lines)
    ]
    turn = context(
        [*entries, entry(99, question, author=person(0))],
        server=[memory(n, text) for n, text in enumerate(memories[:6])],
        personal={
            person(0): tuple(memory(50 + n, t, about=person(0)) for n, t in enumerate(memories[6:]))
        },
        room_note=note(summary=summary) if summary.strip() else None,
    )
    bare = made_prompt(
        context([entry(99, "?", author=person(0))]), window, ratio=ratio, style=style
    )
    made = made_prompt(turn, window, ratio=ratio, style=style, tool_tokens=tool_tokens)
    room = plan_budget(window, CONFIG.context).prompt - tool_tokens
    if tokens(bare.messages, ratio) + 60 * ratio <= room:
        assert tokens(made.messages, ratio) <= room
    assert made.messages[0].role == "system"
    assert made.messages[-1].role == "user"
    end_of_question = question.strip()[-3:]
    assert made.messages[-1].content.endswith(spoken(end_of_question))

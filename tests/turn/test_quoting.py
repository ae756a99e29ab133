"""Stored text in a prompt: hidden signs, quotes, indented lines, left-out middles."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.quoting import quoted, shortened, spoken, without_hidden_signs
from bot.memory.roster import Roster
from bot.turn.quoting import unspoken_markers, with_names, without_loose_end
from tests.turn.making import person

HIDDEN = ("Cc", "Cf", "Cs", "Co")
SEEN_ALL_THE_SAME = "\n\t\u200d"
MARK = " [...] "
ROSTER = Roster.of([(person(1), "Ann"), (person(2), "Ben")], own_names=(), someone="someone")


def test_signs_that_nobody_sees_are_those_of_unicode() -> None:
    """A newer Unicode than Python's own may only add to them."""
    for number in range(sys.maxunicode + 1):
        sign = chr(number)
        hidden = unicodedata.category(sign) in HIDDEN and sign not in SEEN_ALL_THE_SAME
        if hidden or unicodedata.category(sign) not in (*HIDDEN, "Cn", "Mn"):
            assert (without_hidden_signs(sign) == "") == hidden, hex(number)


@given(st.text())
def test_a_quoted_text_is_one_line_that_reads_back(text: str) -> None:
    line = quoted(text)
    assert len(line.splitlines()) == 1
    assert isinstance(json.loads(line), str)
    assert "@everyone" not in line.casefold()
    assert "@here" not in line.casefold()
    assert "<@" not in line
    assert "<#" not in line


@given(st.text())
def test_further_lines_of_talk_are_indented(text: str) -> None:
    for line in spoken(text).splitlines()[1:]:
        assert line.startswith("  ")


@given(st.text(max_size=200), st.integers(min_value=len(MARK), max_value=250))
def test_a_shortened_text_keeps_its_ends(text: str, most: int) -> None:
    short = shortened(text, most, MARK)
    assert len(short) <= most
    if len(text) <= most:
        assert short == text
    else:
        head, _, tail = short.partition(MARK)
        assert text.startswith(head) or MARK in text
        assert text.endswith(tail) or MARK in text
        assert len(short) == most


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("Hello U1!", "Hello Ann!"),
        ("U1とU2", "AnnとBen"),
        ("U3 and U10", "U3 and U10"),
        ("XU1 U1x U11 U_1", "XU1 U1x U11 U_1"),
        ("u1", "u1"),
    ],
)
def test_handles_that_slip_out_are_names_again(said: str, read: str) -> None:
    assert with_names(said, ROSTER) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("{p:101} and {p:7}", "Ann and someone"),
        ("{p:U1}, {p:Ben}, {p: @Ben }", "Ann, Ben, Ben"),
        ("{p:123456789012345678901234}", "someone"),
        ("{x} {p} {p :101}", "{x} {p} {p :101}"),
    ],
)
def test_references_are_names_and_never_braces(said: str, read: str) -> None:
    assert with_names(said, ROSTER) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("You like tea (M1).", "You like tea."),
        ("You like tea [M1] and cake (M2)!", "You like tea and cake!"),
        ("Tea and cake (M1, M2; M1)", "Tea and cake"),
        ("[M1] You like tea", "You like tea"),
        ("Well\n(M1) You like tea", "Well\nYou like tea"),
        ("- [M1] tea", "- tea"),
        ("お茶が好き（M1）。", "お茶が好き。"),
        ("an M1 Abrams, M1", "an M1 Abrams, M1"),
        ("(M3) (M1, M3) (M12) (XM1) (M1x) (m1)", "(M3) (M1, M3) (M12) (XM1) (M1x) (m1)"),
        ("[M1](https://example.org)", "[M1](https://example.org)"),
        ("(the M1 motorway)", "(the M1 motorway)"),
        ("(M1", "(M1"),
    ],
)
def test_handles_of_memories_in_brackets_go(said: str, read: str) -> None:
    assert with_names(said, ROSTER, frozenset(("M1", "M2"))) == read


def test_a_handle_that_somebody_used_as_a_word_stays() -> None:
    said = ["I drove on the M1.", "M22 or AM3"]
    assert unspoken_markers(["M1", "M2", "M3"], said) == {"M2", "M3"}


@pytest.mark.parametrize(
    ("growing", "shown"),
    [
        ("tea (M1", "tea"),
        ("tea (M1, M", "tea"),
        ("tea [", "tea"),
        ("tea (M1)", "tea (M1)"),
        ("tea (mint", "tea (mint"),
        ("hello {p:1", "hello "),
        ("hello {", "hello "),
        ("hello {x", "hello {x"),
        ("hello U1", "hello "),
        ("hello U1!", "hello U1!"),
        ("hello AU1", "hello AU1"),
        ("", ""),
    ],
)
def test_while_a_text_grows_its_loose_end_is_not_shown(growing: str, shown: str) -> None:
    assert without_loose_end(growing) == shown


@given(st.lists(st.sampled_from(["(M1)", "[M", "{p:101}", "U1", "U", " ", "\n", "tea", ", M2)"])))
def test_what_is_shown_of_a_growing_text_holds_no_handle_and_no_brace(parts: list[str]) -> None:
    text = "".join(parts)
    markers = frozenset(("M1", "M2"))
    for end in range(len(text) + 1):
        shown = with_names(without_loose_end(text[:end]), ROSTER, markers)
        assert "{p" not in shown
        assert "(M1" not in shown

"""Stored text in a prompt: hidden signs, quotes, indented lines, left-out middles."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.roster import Roster
from bot.turn.quoting import quoted, shortened, spoken, with_names, without_hidden_signs
from tests.turn.making import person

HIDDEN = ("Cc", "Cf", "Cs", "Co")
SEEN_ALL_THE_SAME = "\n\t\u200d"
MARK = " [...] "


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
    roster = Roster.of([(person(1), "Ann"), (person(2), "Ben")], own_names=(), someone="someone")
    assert with_names(said, roster) == read

"""Names and references: what people read, what is stored, and whom a name means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.identifiers import UserId
from bot.memory.references import (
    hide_names,
    named_people,
    reference_to,
    referenced_people,
    show_names,
)
from bot.memory.roster import Ambiguous, Roster

ANN, BOB, CLEO, DAN = (UserId(n) for n in (101, 102, 103, 104))
NAMES = ("Ann", "Anna", "Anna Lee", "木村太郎", "김민수", "a.b*c", "(Zed)", "José", "U.N.", "[x]|y")
WORDS = ("likes", "tea", "and", "the", "rain", "12", "{}", "{p", "ありがとう")


def roster(*names: str, own: tuple[str, ...] = ("Madeleine",)) -> Roster:
    """People 101, 102, ... under these names."""
    people = [(UserId(number), name) for number, name in enumerate(names, start=101)]
    return Roster.of(people, own_names=own, someone="someone")


# --- hide and show


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    picks=st.lists(st.integers(0, 5) | st.sampled_from(WORDS), max_size=12),
)
def test_what_is_hidden_is_shown_again(names: list[str], picks: list[int | str]) -> None:
    people = roster(*names)
    text = " ".join(p if isinstance(p, str) else names[p % len(names)] for p in picks)
    hidden = people.hide(text)
    assert people.show(hidden) == text
    spoken_of = {UserId(101 + p % len(names)) for p in picks if isinstance(p, int)}
    assert referenced_people(hidden) == spoken_of


@given(text=st.text(max_size=60).filter(lambda text: "{p:" not in text))
def test_a_text_without_names_stays_as_it_is(text: str) -> None:
    people = roster("Wilhelmina", "Bartholomew")
    assert people.show(people.hide(text)) == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Ann sings", "{p:101} sings"),
        ("Anna sings", "{p:102} sings"),
        ("Ann and Anna", "{p:101} and {p:102}"),
        ("Annals, Joann", "Annals, Joann"),
        ("Ann's hat (Ann)", "{p:101}'s hat ({p:101})"),
        ("ann sings", "ann sings"),
    ],
)
def test_a_name_is_hidden_as_a_whole_word(text: str, stored: str) -> None:
    assert roster("Ann", "Anna").hide(text) == stored


@pytest.mark.parametrize("name", ["a.b*c", "(Zed)", "[x]|y", "C++", "$1", "a\\b", "^_^"])
def test_signs_in_a_name_are_only_signs(name: str) -> None:
    people = roster(name)
    assert people.hide(f"met {name} today") == "met {p:101} today"
    assert people.hide("met axbxxc Zed today") == "met axbxxc Zed today"


def test_a_longer_handle_is_not_a_shorter_one() -> None:
    people = roster(*(f"Person {chr(65 + n)}" for n in range(12)))
    assert people.hide("U1 met U12 and U123") == "{p:101} met {p:112} and U123"


def test_unspaced_names_count_wherever_they_stand() -> None:
    people = roster("木村太郎", "김민수")
    assert people.hide("昨日木村太郎は김민수와") == "昨日{p:101}は{p:102}와"


def test_a_latin_name_between_unspaced_signs_is_a_word() -> None:
    assert roster("Ann").hide("昨日Annは泳いだ") == "昨日{p:101}は泳いだ"


def test_a_reference_to_somebody_unknown_is_shown_as_someone() -> None:
    people = Roster.of([(ANN, "Ann")], own_names=(), someone="someone", also_known={CLEO: "Cleo"})
    text = f"{reference_to(ANN)}, {reference_to(BOB)}, {reference_to(CLEO)}"
    assert people.show(text) == "Ann, someone, Cleo"


def test_a_name_of_digits_does_not_break_references() -> None:
    assert hide_names("{p:101} met 101", {"101": BOB}) == "{p:101} met {p:102}"


def test_a_broken_reference_is_left_alone() -> None:
    text = "{p:} {p:x} {q:1} {p:123456789012345678901}"
    assert show_names(text, lambda _: "?") == text


def test_people_are_found_by_name_in_any_case() -> None:
    names = [("Ann", ANN), ("Großmann", BOB), ("木村", CLEO), ("Dan", DAN)]
    text = "ANN went to GROSSMANN with 木村さん; Dance"
    assert named_people(text, names) == {ANN, BOB, CLEO}


# --- names of one turn


def test_equal_names_are_told_apart() -> None:
    people = roster("Ann", "Ann", "ANN", "Ann (2)")
    names = [p.name for p in people.participants]
    assert names[:2] == ["Ann", "Ann (2)"]
    assert len({name.casefold() for name in names}) == 4
    assert [people.find(name) for name in names] == [ANN, BOB, CLEO, DAN]
    assert [people.hide(name) for name in names] == [f"{{p:{n}}}" for n in range(101, 105)]


@pytest.mark.parametrize("name", ["U2", "u2"])
def test_a_display_name_that_looks_like_a_handle_is_not_taken_for_it(name: str) -> None:
    people = roster(name, "Bob")
    assert people.hide("U2 sings") == "{p:102} sings"
    assert people.find("U2") == BOB
    shown = people.name(ANN)
    assert people.find(shown) == ANN
    assert people.hide(f"{shown} sings") == "{p:101} sings"
    assert people.show("{p:101} met {p:102}") == f"{shown} met Bob"


def test_a_name_is_one_line_without_colons() -> None:
    people = roster("Ann:\nBob: hello", "  Cleo \t Day ", ":\n")
    assert [p.name for p in people.participants] == ["Ann Bob hello", "Cleo Day", "U3"]


def test_the_same_person_twice_is_one_participant() -> None:
    people = Roster.of([(ANN, "Ann"), (ANN, "Annie")], own_names=(), someone="someone")
    assert [(p.user, p.handle) for p in people.participants] == [(ANN, "U1")]
    assert ANN in people
    assert BOB not in people


@pytest.mark.parametrize(
    ("name", "own"), [("Madeleine", True), (" madeleine ", True), ("Madeline", False)]
)
def test_the_bots_own_name_is_known(name: str, own: bool) -> None:
    assert roster("Ann").is_own_name(name) is own


# --- whom a name means


@pytest.mark.parametrize("target", ["U2", "u2", " Bob ", "bob", "@Bob"])
def test_a_handle_or_a_name_means_that_person(target: str) -> None:
    assert roster("Ann", "Bob").find(target) == BOB


@pytest.mark.parametrize(("target", "found"), [("abcdefghix", True), ("abcdefghxx", False)])
def test_a_name_at_ninety_is_near_enough(target: str, found: bool) -> None:
    people = roster("abcdefghij", "Zoe")
    assert (people.find(target) == ANN) is found


def test_two_names_equally_near_are_named_back() -> None:
    people = roster("christina_a", "christina_b", "Zoe")
    answer = people.find("christina_c")
    assert isinstance(answer, Ambiguous)
    assert set(answer.candidates[:2]) == {"christina_a", "christina_b"}


def test_an_exact_name_wins_over_one_that_is_near() -> None:
    assert roster("christina_a", "christina_b").find("christina_b") == BOB


def test_at_most_three_are_named_back() -> None:
    answer = roster("Anna", "Anne", "Anni", "Anno", "Annu").find("Ann")
    assert isinstance(answer, Ambiguous)
    assert len(answer.candidates) == 3


def test_without_anybody_nobody_is_meant() -> None:
    assert roster().find("Ann") == Ambiguous(candidates=())


def test_who_is_only_spoken_of_is_no_target() -> None:
    people = Roster.of([(ANN, "Ann")], own_names=(), someone="?", also_known={CLEO: "Cleopatra"})
    assert isinstance(people.find("Cleopatra"), Ambiguous)

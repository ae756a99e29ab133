"""The roster where names are a trap: nobody is taken for another, whatever they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.identifiers import UserId
from bot.memory.references import hide_names, named_people, reference_to, referenced_people
from bot.memory.roster import Ambiguous, Roster

ANN, BOB, CLEO = UserId(101), UserId(102), UserId(103)
TRICKY = st.sampled_from(
    [
        *("Ann", "ann", "ANN", "Ann (2)", "Anna", "Ann Lee", "U1", "u2", "U12", "Madeleine"),
        *("madeleine", "MADELEINE (2)", "", " ", ":", "a\nb", "Bob: hi", "{p:101}", "p:102", "101"),
        *("someone", "Someone", "太郎", "桃太郎", "花", "(Zed)", "C++", "\\1", "@Ann", "<@102>"),
    ]
)
NAMES = TRICKY | st.text(max_size=6)


def roster(*names: str, also_known: dict[UserId, str] | None = None) -> Roster:
    people = [(UserId(number), name) for number, name in enumerate(names, start=101)]
    return Roster.of(
        people, own_names=("Madeleine",), someone="someone", also_known=also_known or {}
    )


@given(st.lists(NAMES, min_size=1, max_size=14))
def test_every_participant_has_a_name_that_is_theirs_alone(names: list[str]) -> None:
    people = roster(*names)
    shown = [p.name.casefold() for p in people.participants]
    assert len(set(shown)) == len(names)
    assert all(p.name and "\n" not in p.name and ":" not in p.name for p in people.participants)
    assert not any(people.is_own_name(p.name) for p in people.participants)


@given(st.lists(NAMES, min_size=1, max_size=14))
def test_every_participant_is_found_by_handle_and_by_name(names: list[str]) -> None:
    people = roster(*names)
    for participant in people.participants:
        assert people.find(participant.handle) == participant.user
        assert people.find(participant.name) == participant.user


@given(st.lists(NAMES, min_size=1, max_size=14))
def test_what_a_handle_stands_for_is_stored_and_shown_as_that_person(names: list[str]) -> None:
    people = roster(*names)
    for participant in people.participants:
        stored = people.hide(f"met {participant.handle} today")
        assert stored == f"met {reference_to(participant.user)} today"
        assert people.show(stored) in (
            f"met {participant.name} today",
            f"met @{participant.name} today",
        )
        if len(participant.name) > 1:
            assert people.hide(people.show(stored)) == stored


@given(st.lists(NAMES, min_size=1, max_size=8), st.data())
def test_a_stored_text_that_is_shown_and_stored_again_is_the_same(
    names: list[str], data: st.DataObject
) -> None:
    also_known = {UserId(900 + n): name for n, name in enumerate(data.draw(st.lists(NAMES)))}
    people = roster(*names, also_known=also_known)
    everybody = [*(p.user for p in people.participants), *people.also_known]
    of_more_signs = [
        user
        for user in everybody
        if len(people.name(user)) > 1 and not people.is_own_name(people.name(user))
    ]
    spoken_of = data.draw(st.lists(st.sampled_from(of_more_signs))) if of_more_signs else []
    text = " ; ".join(f"and {reference_to(user)} too" for user in spoken_of)
    assert people.hide(people.show(text)) == text


# --- the bot's own name


@pytest.mark.parametrize("name", ["Madeleine", "madeleine", "MADELEINE", " Madeleine "])
def test_a_member_who_is_called_like_the_bot_is_not_the_bot(name: str) -> None:
    people = roster(name)
    shown = people.name(ANN)
    assert not people.is_own_name(shown)
    assert people.find(shown) == ANN
    assert people.is_own_name("Madeleine")


# --- those who are only spoken of


def test_somebody_who_is_spoken_of_is_not_taken_for_a_participant() -> None:
    people = roster("Ann", also_known={CLEO: "Ann"})
    shown = people.show(f"{reference_to(ANN)} knows {reference_to(CLEO)}")
    assert people.hide(shown) == f"{reference_to(ANN)} knows {reference_to(CLEO)}"


def test_two_who_are_spoken_of_are_told_apart() -> None:
    people = roster("Bob", also_known={BOB: "Zoe", CLEO: "zoe"})
    text = f"{reference_to(CLEO)} and {reference_to(BOB)}"
    assert people.name(BOB) != people.name(CLEO)
    assert people.hide(people.show(text)) == text


def test_the_bot_itself_is_spoken_of_by_its_own_name() -> None:
    people = roster("Ann", also_known={CLEO: "Madeleine"})
    assert people.show(reference_to(CLEO)) == "Madeleine"


def test_a_member_who_is_called_someone_is_not_somebody_unknown() -> None:
    people = roster("Someone")
    stored = f"{reference_to(CLEO)} likes tea"
    assert people.hide(people.show(stored)) == "someone likes tea"
    assert people.name(ANN) == "Someone (2)"


def test_a_name_that_is_nothing_is_someone() -> None:
    people = roster("Ann", also_known={CLEO: " :\n"})
    assert people.show(reference_to(CLEO)) == "someone"


# --- what a model writes


@pytest.mark.parametrize("written", ["{p:102}", "{p:999}", "{p:102", "x{p:102}y"])
def test_a_model_cannot_write_a_reference_to_whom_it_was_not_shown(written: str) -> None:
    people = roster("Ann", "Bob")
    stored = people.hide(f"Ann met {written}")
    assert referenced_people(stored) == {ANN}
    assert stored.startswith("{p:101} met ")


# --- overlapping names


@pytest.mark.parametrize(
    ("names", "text", "people"),
    [
        (("Ann", "Anna"), "Anna and Ann", "102 101"),
        (("Ann", "Ann Lee"), "Ann Lee and Ann", "102 101"),
        (("Ann", "Lee", "Ann Lee"), "Ann Lee, Lee, Ann", "103 102 101"),
        (("太郎", "桃太郎"), "桃太郎と太郎", "102 101"),
        (("Jo", "Jo-Ann"), "Jo-Ann and Jo", "102 101"),
    ],
)
def test_the_longest_name_counts(names: tuple[str, ...], text: str, people: str) -> None:
    stored = roster(*names).hide(text)
    assert [found for found in people.split() if f"{{p:{found}}}" in stored] == people.split()
    positions = [stored.index(f"{{p:{number}}}") for number in people.split()]
    assert positions == sorted(positions)


def test_names_are_not_looked_for_inside_references() -> None:
    assert hide_names("{p:101}", {"101": BOB, "01": CLEO, "10": CLEO}) == "{p:101}"


# --- names that could be words


@pytest.mark.parametrize(
    ("name", "text", "stored"),
    [
        # In small letters it could be a word: only with an @.
        ("rain", "dances in the rain", "dances in the rain"),
        ("rain", "dances with @rain", "dances with {p:101}"),
        ("rain", "写真は@rainのもの", "写真は{p:101}のもの"),
        ("rain", "writes to mail@rain.org", "writes to mail@rain.org"),
        ("bob", "knows bob", "knows bob"),
        ("élan", "full of e\u0301lan, élan", "full of e\u0301lan, élan"),
        ("дождь", "любит дождь", "любит дождь"),
        ("don't", "says don't", "says don't"),
        ("in the", "lives in the woods", "lives in the woods"),
        ("in the", "lives with @in the", "lives with {p:101}"),
        # What no word looks like is the person.
        ("Rain", "knows Rain and the rain", "knows {p:101} and the rain"),
        ("rain99", "knows rain99", "knows {p:101}"),
        ("_rain_", "knows _rain_", "knows {p:101}"),
        ("kind stranger", "met a kind stranger", "met a {p:101}"),
        ("木村太郎", "昨日木村太郎と", "昨日{p:101}と"),
        # A capital at the beginning of a sentence proves nothing for a word that says nothing.
        ("Will", "I met Will", "I met {p:101}"),
        ("Will", "Will it rain? Will you come?", "Will it rain? Will you come?"),
        ("Rain", "Rain sings", "{p:101} sings"),
    ],
)
def test_a_name_that_could_be_a_word_is_the_person_only_where_it_is_written_so(
    name: str, text: str, stored: str
) -> None:
    assert roster(name).hide(text) == stored
    assert roster("Ann", also_known={ANN: "Ann", BOB: name}).hide(text) == stored.replace(
        "{p:101}", "{p:102}"
    )


@pytest.mark.parametrize(
    ("name", "talk", "means"),
    [
        ("bob", ["good morning"], True),
        ("bob", ["what would Bob say to bobsleigh?"], True),
        ("drizzle", ["I like the drizzle"], False),
        ("rain", ["good morning"], False),  # a frequent word, whether it was said or not
        ("the", ["good morning"], False),
    ],
)
def test_whoever_speaks_now_is_meant_by_a_plain_name_that_nobody_used_as_a_word(
    name: str, talk: list[str], *, means: bool
) -> None:
    people = roster(name, "Ann").with_at_hand([ANN], talk)
    assert people.hide(f"it is {name} who sings") == (
        "it is {p:101} who sings" if means else f"it is {name} who sings"
    )


def test_whoever_only_spoke_before_is_meant_by_their_plain_name_with_an_at() -> None:
    people = roster("bob", "Ann").with_at_hand([BOB], ["good morning"])
    assert people.hide("bob met @bob") == "bob met {p:101}"


@pytest.mark.parametrize(
    ("name", "shown"), [("bob", "@bob"), ("rain", "@rain"), ("Bob", "Bob"), ("bob7", "bob7")]
)
def test_a_name_that_could_be_a_word_is_shown_with_an_at(name: str, shown: str) -> None:
    assert roster(name).show(f"met {reference_to(ANN)}") == f"met {shown}"
    assert roster(name).name(ANN) == name


def test_nobody_is_called_with_an_at_and_so_taken_for_another() -> None:
    people = roster("rain", "@rain")
    assert people.hide("met @rain") == f"met {reference_to(ANN)}"
    assert people.name(BOB) == "rain (2)"


# --- near names


@pytest.mark.parametrize(
    ("one", "other", "clear"),
    [
        ("abcdefghijklmnopqrsx", "abcdefghijklmnopqryx", True),  # 95 and 90
        ("abcdefghijklmnopqrstx", "abcdefghijklmnopqrsyx", False),  # 95.2 and 90.5
    ],
)
def test_the_nearest_name_must_be_nearer_by_five(one: str, other: str, clear: bool) -> None:
    target = "abcdefghijklmnopqrstuvwxyz"[: len(one)]
    found = roster(one, other).find(target)
    assert (found == ANN) is clear
    assert isinstance(found, Ambiguous) is not clear


# --- names in a text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dan!", True),
        ("(dan)", True),
        ("DAN's", True),
        ("dan_the_man", False),
        ("Jordan", False),
        ("Danny", False),
        ("昨日Danは", True),
        ("d a n", False),
    ],
)
def test_a_name_counts_as_a_whole_word_in_any_case(text: str, found: bool) -> None:
    assert (named_people(text, [("Dan", ANN)]) == {ANN}) is found


@given(st.text(max_size=40), st.lists(st.text(max_size=8), max_size=5))
def test_any_name_and_any_text_can_be_looked_at(text: str, names: list[str]) -> None:
    people = [(name, UserId(number)) for number, name in enumerate(names)]
    assert named_people(text, people) <= {user for _, user in people}

"""Quotes are the true words of a line of dialogue, or they are none."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.handoff.quotes import LONGEST_QUOTE, true_quotes
from bot.memory.ledger import Quote
from bot.memory.working import Entry, EntryKind
from tests.handoff.entries import ANN, BEN, OTHER_PERSONA, entry, material

LINE = "I will never forget the day we met in Lisbon"


def quotes(claims: list[str], *said: Entry | str) -> tuple[Quote, ...]:
    entries = [
        one if isinstance(one, Entry) else entry(number, one) for number, one in enumerate(said, 1)
    ]
    return true_quotes(claims, entries, material(entries))


def quoted(claim: str, *said: Entry | str) -> str | None:
    found = quotes([claim], *said)
    return found[0].content if found else None


# --- what counts as said


@pytest.mark.parametrize(
    "claim",
    [
        "never forget the day we met",
        "Never forget the DAY we met",
        "never  forget\nthe day   we met",
        '"never forget the day we met"',
        "\u201cnever forget the day we met\u201d",
        "\u00ab never forget the day we met \u00bb",
        "Ann: never forget the day we met",
        'Ann: "never forget the day we met"',
        "\uff4eever forget the day we met",
    ],
)
def test_case_marks_space_width_and_the_speakers_name_are_nothing(claim: str) -> None:
    assert quoted(claim, LINE) == "never forget the day we met"


@pytest.mark.parametrize(
    ("line", "claim"),
    [
        ("it\u2019s a \u201cgreat\u201d day", 'it\'s a "great" day'),
        ("it`s a 'great' day", "it\u2019s a \u00abgreat\u00bb day"),
        ("das war´s für heute", "das war's für heute"),
        ("彼は「行く」と言った", "彼は『行く』と言った"),
        ("wait\u2026 really\u2026?!", "wait... really...?!"),
        ("本当に！？ｗｗ", "本当に!?ww"),
        ("ﾊﾞｽ停で待ってる", "バス停で待ってる"),
        ("cafe\u0301 at nine", "caf\u00e9 at nine"),
        ("the area is 5 m² large", "the area is 5 m2 large"),
        ("STRASSE und Straße", "straße und strasse"),
    ],
)
def test_what_was_said_is_quoted_as_it_was_written(line: str, claim: str) -> None:
    found = quoted(claim, line)
    assert found in {line, line.replace("e\u0301", "\u00e9")}


def test_a_quote_of_several_lines_is_one_line() -> None:
    assert quoted("one two", "one\n  two\tthree") == "one two"


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ("I will never forget that day we met in Lisbon", LINE),
        ("I will never forget the day we met in Lisbon.", LINE),
        ("I will never forget the day we met in Lisbon!!", LINE),
        ("will never forget teh day", "will never forget the day"),
        ("I shall always remember the day we met in Lisbon", None),
        ("never again", None),
        ("Lisbon is lovely", None),
        ("", None),
        (' "" ', None),
        ("Ann:", None),
    ],
)
def test_a_near_miss_becomes_the_true_words_and_an_invention_is_dropped(
    claim: str, found: str | None
) -> None:
    assert quoted(claim, LINE) == found


@pytest.mark.parametrize(
    ("claim", "line", "found"),
    [
        ("no", "I know", None),
        ("no", "I know, no.", "no"),
        ("forget the da", LINE, "forget the day"),
        ("楽しかった", "今日は本当に楽しかったです", "楽しかった"),
        ("오늘 정말", "오늘 정말로 좋았어", "오늘 정말"),
        ("real", "that is unreal and real", "real"),
        ("known", "that is unknown", None),
    ],
)
def test_words_are_quoted_whole(claim: str, line: str, found: str | None) -> None:
    assert quoted(claim, line) == found


texts = st.text(st.characters(exclude_characters="{"), max_size=60)


@given(texts, texts, texts)
def test_whatever_is_quoted_stands_in_the_line(claim: str, before: str, after: str) -> None:
    said = entry(1, f"{before} {claim} {after}")
    found = quoted(claim, said)
    line = " ".join(material([said]).shown(said).split())
    assert found is None or found in normalize("NFC", line)


# --- who said it


def test_a_quote_has_its_speaker_and_its_message() -> None:
    assert quotes(["we met"], entry(4, LINE, author=BEN)) == (
        Quote(content="we met", said_by=BEN, message_id=entry(4).message_id),
    )


def test_a_personas_words_are_quoted_as_hers() -> None:
    own = entry(1, "I will wait for you", author=None, persona=OTHER_PERSONA)
    (quote,) = quotes(["I will wait"], own)
    assert (quote.said_by, quote.persona) == (None, OTHER_PERSONA)


def test_the_line_that_is_most_like_the_claim_is_quoted() -> None:
    (quote,) = quotes(["I will go home now"], "I shall go home now", entry(2, "I will go home now"))
    assert quote.message_id == entry(2).message_id


def test_of_equal_lines_the_first_is_quoted() -> None:
    (quote,) = quotes(["we met"], LINE, entry(2, LINE, author=BEN))
    assert quote.said_by == ANN


@pytest.mark.parametrize("kind", [EntryKind.THOUGHT, EntryKind.ACTION])
def test_what_nobody_said_aloud_is_no_quote(kind: EntryKind) -> None:
    assert quotes([LINE], entry(1, LINE, kind=kind)) == ()


# --- what is stored


def test_names_in_quotes_become_references() -> None:
    assert quoted("Ben owes me, Carl", "Ben owes me, {p:103}") == "{p:102} owes me, {p:103}"


def test_a_reference_that_somebody_typed_is_none() -> None:
    assert quoted("ask {p :999} now", "ask {p :999} now") == "ask {p :999} now"


def test_signs_that_nobody_sees_are_not_quoted() -> None:
    assert quoted("we met", "we\u200b met\u202e") == "we met"


def test_a_credential_is_never_quoted() -> None:
    secret = "ghp" + "_" + "a1B2" * 9
    assert quoted(f"the key is {secret}", f"the key is {secret}") is None
    assert quoted("the key is", f"the key is {secret}") == "the key is"


def test_what_was_left_out_of_a_long_line_is_not_quoted() -> None:
    line = "so it began " + "x" * 3_000 + " and so it ended"
    assert quoted("and so it ended", line) == "and so it ended"
    assert quoted("xxxx [...] xxxx", line) is None


def test_a_quote_may_be_so_long_and_no_longer() -> None:
    word = "abcd "
    longest = (word * (LONGEST_QUOTE // len(word))).strip()
    assert quoted(longest, longest) == longest
    assert quoted(longest + " abcd", longest + " abcd") is None
    assert quoted("x" * 5_000, "x" * 5_000) is None


def test_three_quotes_are_kept_and_none_twice() -> None:
    claims = ["one", "ONE", "nothing like it", "two", "three", "four"]
    found = quotes(claims, "one two three four")
    assert [quote.content for quote in found] == ["one", "two", "three"]


def test_no_more_than_six_are_looked_for() -> None:
    assert quotes(["nothing like it"] * 5 + ["one"], "one two") != ()
    assert quotes(["nothing like it"] * 6 + ["one"], "one two") == ()

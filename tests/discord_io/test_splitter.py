import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.discord_io.splitter import MESSAGE_LIMIT, SMALLEST_LIMIT, Piece, cut, join, split

LIMIT = SMALLEST_LIMIT
FENCE = re.compile(r"[ \t]{0,24}(`{3,10})(?!`)([^`\n]{0,200})")


def open_fence(text: str) -> str | None:
    """The back quotes of the code fence that `text` leaves open, read line by line."""
    ticks: str | None = None
    for line in text.split("\n"):
        found = FENCE.fullmatch(line)
        if found and ticks is None:
            ticks = found[1]
        elif found and ticks and len(found[1]) >= len(ticks) and not found[2].strip():
            ticks = None
    return ticks


def left_out(text: str, pieces: tuple[Piece, ...]) -> str:
    """What of `text` is in no piece; fails where a piece shows anything else."""
    place, missing = 0, ""
    for piece in pieces:
        while not text.startswith(piece.body, place):
            assert place < len(text), f"{piece.body!r} is not what comes next"
            missing += text[place]
            place += 1
        place += len(piece.body)
    return missing + text[place:]


def words(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count))


# --- what it is for -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a", "Hello.\n", "x" * 1999, "x" * MESSAGE_LIMIT, "日" * 2000])
def test_a_text_that_fits_is_one_message_unchanged(text: str) -> None:
    assert split(text) == (text,)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u3000" * 10, " " * 5000])
def test_a_blank_text_is_no_message(text: str) -> None:
    assert split(text) == ()


def test_one_character_more_than_fits_makes_a_second_message() -> None:
    assert [len(piece) for piece in split("x" * 2001)] == [2000, 1]


def test_without_fences_the_messages_put_together_are_the_text() -> None:
    text = "\n\n".join(words(40) for _ in range(40))
    assert "".join(split(text)) == text


def test_a_limit_too_small_for_fences_is_refused() -> None:
    with pytest.raises(ValueError, match="300"):
        cut("text", SMALLEST_LIMIT - 1)


@pytest.mark.parametrize(
    ("border", "wins_over"),
    [("\n\n", "\n"), ("\n", ". "), (". ", " "), ("。", "字"), (" ", "")],
)
def test_the_better_border_wins_although_the_other_is_nearer_to_the_limit(
    border: str, wins_over: str
) -> None:
    text = "a" * 200 + border + "b" * 50 + wins_over + "c" * 100
    assert split(text, LIMIT)[0] == "a" * 200 + border


def test_a_border_in_the_first_half_does_not_make_a_small_message() -> None:
    text = "Title\n\n" + words(100)
    assert len(split(text, LIMIT)[0]) > LIMIT - 10


def test_white_space_at_a_border_ends_the_earlier_message() -> None:
    text = "a" * 250 + "\n\n   " + "b" * 100
    assert split(text, LIMIT) == ("a" * 250 + "\n\n   ", "b" * 100)


def test_white_space_longer_than_a_message_is_left_out() -> None:
    text = "a" + " " * 900 + "b"
    assert [piece.strip() for piece in split(text, LIMIT)] == ["a", "b"]


# --- what stays whole ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    [
        "<@123456789012345678>",
        "<@!123456789012345678>",
        "<@&123456789012345678>",
        "<#123456789012345678>",
        "<:party_cat:123456789012345678>",
        "<a:party_cat:123456789012345678>",
        "<t:1700000000:R>",
        "e\u0301\u0302\u0303",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f1e7\U0001f1f7",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u1112\u1161\u11ab",
        "が",
        "\ud83d\ude00",
    ],
)
@pytest.mark.parametrize("filler", ["x", "日", "x "])
def test_what_reads_as_one_is_not_cut(whole: str, filler: str) -> None:
    for room in range(len(whole) + 2):
        text = (filler * LIMIT)[-(LIMIT - room) :] + whole + filler * 50
        assert sum(whole in piece for piece in split(text, LIMIT)) == 1, room


@pytest.mark.parametrize("filler", ["日", "x "])
def test_a_link_is_not_cut(filler: str) -> None:
    link = "https://example.org/a/long/path?with=a&query=in_it#end"
    for room in range(len(link) + 2):
        text = (filler * LIMIT)[-(LIMIT - room) :] + link + " " + filler * 50
        assert sum(link in piece for piece in split(text, LIMIT)) == 1, room


def test_flags_are_cut_between_flags() -> None:
    flag = "\U0001f1e7\U0001f1f7"
    assert all(len(piece) % 2 == 0 for piece in split(flag * 400, 301))


def test_a_link_goes_to_the_next_message_even_from_far_before_the_limit() -> None:
    link = "https://example.org/" + "p" * 278
    assert split(f"See {link} there", LIMIT)[:2] == ("See ", link + " ")


def test_a_link_longer_than_a_message_is_cut_all_the_same() -> None:
    link = "https://example.org/" + "p" * 900
    pieces = split(link, LIMIT)
    assert "".join(pieces) == link
    assert len(pieces) == 4


def test_a_letter_with_more_accents_than_a_message_holds_is_cut_all_the_same() -> None:
    text = "e" + "\u0301" * 1000
    assert "".join(split(text, LIMIT)) == text


# --- code ---------------------------------------------------------------------------------------


def code(lines: int, ticks: str = "```", info: str = "py") -> str:
    body = "".join(f"    line_{number} = {number}\n" for number in range(lines))
    return f"{ticks}{info}\n{body}{ticks}"


def test_a_fence_over_a_border_is_closed_and_reopened_with_its_language() -> None:
    first, *rest = split("Look:\n" + code(60) + "\nDone.", LIMIT)
    assert first.startswith("Look:\n```py\n")
    assert first.endswith("\n```")
    for piece in rest:
        assert piece.startswith("```py\n    line_")


def test_code_lines_are_cut_at_their_ends_and_keep_their_indentation() -> None:
    for piece in split(code(60), LIMIT):
        for line in piece.split("\n"):
            assert re.fullmatch(r"```(py)?|    line_\d+ = \d+", line)


@pytest.mark.parametrize("before", range(40))
@pytest.mark.parametrize("indent", ["", "   "])
def test_no_message_shows_a_code_block_without_code(before: int, indent: str) -> None:
    text = "x" * before + "\n" + indent + code(30).replace("\n```", f"\n\n{indent}```") + "\nEnd"
    for piece in split(text, LIMIT):
        assert not re.search(r"```(py)?\s*```", piece)


def test_a_longer_fence_holds_a_shorter_one() -> None:
    text = "````md\n" + "\n".join(["```py", "x = 1", "```"] * 60) + "\n````\nafter"
    pieces = split(text, LIMIT)
    assert all(piece.startswith("````md\n") and piece.endswith("````") for piece in pieces[:-1])
    assert pieces[-1].endswith("````\nafter")


def test_only_the_first_word_of_the_info_string_is_repeated() -> None:
    second = split('```py title="a b"\n' + "x = 1\n" * 100, LIMIT)[1]
    assert second.startswith("```py\nx")


def test_one_endless_line_of_code_is_cut_and_fenced() -> None:
    pieces = split("```\n" + "x" * 1000 + "\n```", LIMIT)
    assert all(re.fullmatch(r"```\nx+\n```", piece) for piece in pieces)


def test_a_fence_that_nobody_closed_is_closed_where_there_is_room() -> None:
    assert split("```py\nx = 1") == ("```py\nx = 1\n```",)


@pytest.mark.parametrize(("length", "is_closed"), [(1996, True), (1997, False), (2000, False)])
def test_closing_the_last_fence_never_makes_another_message(length: int, is_closed: bool) -> None:
    text = "```\n" + "x" * (length - 4)
    assert split(text) == ((text + "\n```",) if is_closed else (text,))


def test_a_fence_opened_on_nothing_is_left_alone() -> None:
    assert split("Here:\n```py") == ("Here:\n```py",)


@pytest.mark.parametrize("room", range(5))
def test_back_quotes_inside_a_line_do_not_become_a_fence_at_the_head_of_a_message(
    room: int,
) -> None:
    line = "x" * (LIMIT - room) + "```\n"
    for text in (line + "y", f"```\n{line}y\n```"):
        assert [open_fence(piece) for piece in split(text, LIMIT)] == [None, None]


def test_a_line_that_is_no_fence_is_not_cut_to_one() -> None:
    text = "```   " + "x" * 600
    assert [open_fence(piece) for piece in split(text, LIMIT)] == [None, None, None]


def test_a_fence_line_is_not_cut() -> None:
    text = "x" * 140 + "\n```py " + "title " * 30 + "\n" + "y = 1\n" * 60 + "```"
    first, second, *_ = split(text, LIMIT)
    assert first == "x" * 140 + "\n"
    assert second.startswith("```py title")


def test_back_quotes_inside_a_line_open_nothing() -> None:
    text = "Write ``` before code, and ```x = 1``` for one line. " + words(100)
    assert "".join(split(text, LIMIT)) == text


# --- for any text -------------------------------------------------------------------------------

FENCES = ["```", "```py\n", "\n```\n", "````md\n", "\n````", "   ```js\n", "~~~\n", "`", "`x`"]
BORDERS = ["\n", "\n\n", " ", "   ", "\t", "\r\n", ". ", "。", "、", "- ", "> ", "# "]
WHOLES = ["<@123>", "<@!9>", "<:cat:5>", "<a:cat", "https://example.org/a(b)", "**b**"]
DRAWN = ["👨\u200d👩\u200d👧", "🇧🇷", "👍🏽", "e\u0301", "각", "ก็", "\ud83d", "\ude00"]
RUNS = st.builds(
    str.__mul__, st.sampled_from(["x", "日", " ", "\n", "`", "a "]), st.integers(1, 700)
)
SCRAPS = st.one_of(
    st.sampled_from(FENCES + BORDERS + WHOLES + DRAWN),
    st.text(max_size=12),
    RUNS,
    st.integers(5, 90).map(words),
    st.integers(1, 30).map(code),
)
TEXTS = st.lists(SCRAPS, max_size=30).map("".join)
LIMITS = st.integers(SMALLEST_LIMIT, 500)


@given(TEXTS, LIMITS)
def test_every_message_is_within_the_limit_and_none_is_blank(text: str, limit: int) -> None:
    for piece in split(text, limit):
        assert len(piece) <= limit
        assert piece.strip()


@given(TEXTS, LIMITS)
def test_nothing_but_white_space_is_ever_left_out(text: str, limit: int) -> None:
    assert not left_out(text, cut(text, limit)).strip()


@given(st.lists(SCRAPS.filter(lambda scrap: not re.search(r"\s{99}", scrap)), max_size=30), LIMITS)
def test_where_white_space_is_short_the_pieces_joined_are_the_text(
    scraps: list[str], limit: int
) -> None:
    text = "a" + ".".join(scraps) + "z"
    assert join(cut(text, limit)) == text


@given(TEXTS, TEXTS, LIMITS)
@example("```\n" + "x" * 294, "```", 300)
@example("a\n" + "b" * 295 + "\n``", "`py\nx = 1", 300)
@settings(max_examples=300)
def test_a_growing_text_changes_only_its_last_message(text: str, more: str, limit: int) -> None:
    settled = cut(text, limit)[:-1]
    assert cut(text + more, limit)[: len(settled)] == settled


@given(TEXTS, LIMITS)
def test_what_is_added_is_only_fence_lines(text: str, limit: int) -> None:
    for piece in cut(text, limit):
        assert re.fullmatch(r"(`{3,10}\S{0,20}\n)?", piece.opening)
        assert re.fullmatch(r"(\n?`{3,10})?", piece.closing)


@given(TEXTS.filter(lambda text: not re.search(r"`{11}|\s{25}`", text)), LIMITS)
@settings(max_examples=300)
def test_every_message_but_the_last_closes_the_fences_it_opens(text: str, limit: int) -> None:
    for piece in split(text, limit)[:-1]:
        assert open_fence(piece) is None


@given(TEXTS, LIMITS)
def test_no_mark_is_parted_from_its_letter(text: str, limit: int) -> None:
    pieces = cut(text, limit)
    for before, after in pairwise(pieces):
        if not before.body[-1].isspace():
            assert unicodedata.category(after.body[0]) not in {"Mn", "Mc", "Me"}

"""What can be said of a memory's text alone."""

import pytest

from bot.memory.content import (
    content_hash,
    content_words,
    looks_like_credential,
    normalised,
)


@pytest.mark.parametrize(
    "secret",
    [
        "sk" + "-" + "a1B2c3D4e5" * 3,
        "sk" + "-proj-" + "a1B2c3D4e5" * 3,
        "sk" + "_live_" + "a1B2c3D4e5" * 3,
        "ghp" + "_" + "a1B2" * 9,
        "github" + "_pat_" + "a1B2" * 10,
        "xox" + "b-" + "1234567890-abcdef",
        "AKIA" + "ABCDEFGH12345678",
        "AIza" + "a" * 35,
        "eyJ" + "hbGciOiJIUzI1" + "." + "eyJzdWIiOiIx" + "." + "abcdefgh",
        "M" + "a1B2c3" * 4 + "." + "GabcDE" + "." + "x" * 30,
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "-----BEGIN " + "PRIVATE KEY-----",
        "https://discord.com/api/" + "webhooks/123456789012345678/" + "aB3_" * 10,
        "glpat" + "-" + "a1B2c3D4e5" * 2,
        "npm" + "_" + "a1B2c3D4e5" * 4,
        "hf" + "_" + "a1B2c3D4e5" * 4,
        "ｇｈｐ" + "_" + "a1B2" * 9,
        "gh\u200bp_" + "a1B2" * 9,
    ],
)
def test_a_key_or_token_is_recognised_within_a_sentence(secret: str) -> None:
    assert looks_like_credential(f"the key is {secret} as I said")
    assert looks_like_credential(f"key={secret}")


@pytest.mark.parametrize(
    "harmless",
    [
        "likes tea",
        "the sk-8 skateboard",
        "task-oriented-and-well-organised-person",
        "met at https://example.org/a/very/long/path/with/many/parts",
        "the id is 123456789012345678",
        "AKIA is a brand",
        "eyJafjallajökull.is.far",
        "the password is easy to guess",
        "3.141592653589793.238462643383279",
        "-----BEGIN STORY-----",
        "Donaudampfschifffahrtsgesellschaft",
        "pk-the-longest-hyphenated-words-ever is a band",
        "the ski-pk-resort-at-the-lovely-lake-of-geneva",
    ],
)
def test_what_only_looks_a_little_like_one_is_harmless(harmless: str) -> None:
    assert not looks_like_credential(harmless)


@pytest.mark.parametrize(
    "same",
    ["likes tea", "LIKES TEA", " likes \n tea ", "likes tea.", "likes tea!", "ｌｉｋｅｓ tea。"],
)
def test_case_width_spacing_and_a_final_stop_do_not_change_a_text(same: str) -> None:
    assert normalised(same) == "likes tea"


def test_the_hash_is_of_the_letter_spacing_aside() -> None:
    assert content_hash(" likes \n tea ") == content_hash("likes tea")
    assert content_hash("LIKES TEA") != content_hash("likes tea")
    assert len(content_hash("likes tea")) == 16


@pytest.mark.parametrize("other", ["likes tea?", "likes teas", "liketea", "likes, tea", ""])
def test_other_words_are_another_text(other: str) -> None:
    assert content_hash(other) != content_hash("likes tea")


def test_words_that_carry_meaning_have_three_letters_or_are_pairs_of_signs() -> None:
    assert content_words("He is at the Zoo, {p:123}!") == {"the", "zoo"}
    assert {"日本", "本茶"} <= content_words("日本茶")
    assert content_words("茶") == {"茶"}

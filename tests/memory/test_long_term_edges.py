"""Long-term memory where it could be wrong: what an answer gives away, whose word is whose."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.identifiers import GuildId, LineageId, UserId
from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import PrivacyLevel
from bot.privacy.names import Called, keep_names
from bot.storage.statements import Transaction
from tests.memory.shelf import Shelf
from tests.memory.test_long_term import refusal, stored
from tests.memory.test_long_term_changes import former, hold_at_sources
from tests.talk import GUILD, open_talk

TEA, TEAS = "likes green tea in the morning", "likes green tea in the mornings"


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with open_talk(tmp_path) as talk:
        yield Shelf(talk)


async def name(shelf: Shelf, who: str, shown: str, *others: str) -> None:
    """Let a person go by a name in the server, and be known by others."""
    user = shelf.talk.person(who).id

    async def job(tx: Transaction) -> None:
        await keep_names(tx, GUILD, [Called(user=user, name=shown, others=others)], 0)

    await shelf.talk.app.services.database.write(job)


# --- what an answer gives away


async def test_a_full_partition_does_not_tell_what_another_room_knows(shelf: Shelf) -> None:
    await shelf.keep("is moving to Lisbon", about="Ann", channel="secret")
    await asyncio.gather(*(shelf.keep(f"fact {n}", about="Ann") for n in range(99)))
    guessed = await refusal(shelf.keep("is moving to Lisbon", about="Ann"))
    wrong = await refusal(shelf.keep("is moving to Madrid", about="Ann"))
    assert guessed == wrong == "full"
    assert "is moving to Lisbon" not in await shelf.about("Ann")


async def test_a_near_duplicate_does_not_tell_what_another_room_knows(shelf: Shelf) -> None:
    await shelf.keep(TEAS, about="Ann", channel="secret")
    await shelf.keep(TEA, about="Ann")
    assert await refusal(shelf.keep(TEAS, about="Ann")) == "similar"
    assert await shelf.about("Ann") == [TEA]


async def test_what_is_known_here_is_known_however_full_and_like_others_it_is(
    shelf: Shelf,
) -> None:
    await asyncio.gather(*(shelf.keep(f"fact {n}", about="Ann") for n in range(99)))
    kept = await shelf.keep(TEA, about="Ann")
    assert (await shelf.keep(TEA, about="Ann", by="Bob")).id == kept.id


async def test_a_change_into_what_another_room_wrote_is_an_ordinary_change(shelf: Shelf) -> None:
    await shelf.keep("Likes tea.", about="Ann", channel="secret")
    kept = await shelf.keep("likes tea", about="Ann")
    await shelf.change(kept, "Likes tea.")
    assert await shelf.about("Ann") == ["Likes tea."]
    assert await shelf.about("Ann", "secret") == ["Likes tea."]


# --- whose word


async def test_whoever_took_their_word_back_has_no_say_in_what_others_said(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.keep("likes tea", about="Subject", by="Sayer")
    await shelf.forget(kept, by="Author")
    assert await refusal(shelf.forget(kept, by="Author")) == "not_yours"
    assert await refusal(shelf.change(kept, "likes rain", by="Author")) == "not_yours"
    await shelf.change(kept, "likes snow", by="Sayer")
    assert await stored(shelf) == ["likes snow"]


async def test_whoever_took_their_word_back_is_not_named_as_the_one_who_said_it(
    shelf: Shelf,
) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.keep("likes tea", about="Subject", by="Sayer")
    await shelf.forget(kept, by="Author")
    author = shelf.talk.person("Author").id
    for table, column in (("personal_memories", "author_id"), ("memory_sources", "said_by")):
        rows = await shelf.talk.rows(f"SELECT * FROM {table} WHERE {column} = {author}")
        assert rows == []


async def test_what_a_person_corrects_about_themselves_is_their_own_word(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.change(kept, "likes rain", by="Subject")
    here = await shelf.listening()
    subject = shelf.talk.person("Subject").id
    [memory] = await shelf.memory.personal_memories(subject, here)
    assert memory.author == subject
    assert await refusal(shelf.change(kept, "likes tea", by="Author")) == "not_yours"


async def test_whoever_repeats_a_server_memory_may_not_put_it_in_other_words(shelf: Shelf) -> None:
    kept = await shelf.keep("the club meets on Sundays", by="Author")
    await shelf.keep("the club meets on Sundays", by="Sayer")
    changed = shelf.change(kept, "the club is closed", by="Sayer")
    assert await refusal(changed) == "not_yours"
    await shelf.forget(kept, by="Sayer")
    assert await shelf.of_server() == ["the club meets on Sundays"]


async def test_a_person_forgets_what_every_persona_knows_of_them(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann", by="Zoe", lineage=0, by_person=True)
    assert await refusal(shelf.forget(kept, by="Bob")) == "managers_only"
    await shelf.forget(kept, by="Ann")
    assert await stored(shelf) == []


async def test_whoever_may_not_change_a_memory_learns_nothing_of_privacy(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    changed = shelf.change(kept, "sings with Bob", by="Stranger")
    assert await refusal(changed) == "not_yours"


async def test_a_right_that_ends_while_a_change_begins_is_no_right(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Subject", by="Author")
    await shelf.keep("likes tea", about="Subject", by="Sayer")
    go_on = threading.Event()
    held = await hold_at_sources(shelf.talk.app.services.database._readers, go_on)
    changing = asyncio.create_task(refusal(shelf.change(kept, "likes rain", by="Author")))
    await held.wait()
    await shelf.forget(kept, by="Author")
    go_on.set()
    assert await changing == "not_yours"
    assert await stored(shelf) == ["likes tea"]


async def test_a_memory_is_not_found_from_another_server_whatever_is_heard(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    here = await shelf.listening()
    with pytest.raises(MemoryRefused) as refused:
        await shelf.memory.find(kept.id, replace(here, server=GuildId(GUILD + 1)))
    assert refused.value.code == "not_found"


# --- former texts


async def test_two_changes_within_one_moment_lose_no_former_text(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    for text in ("likes rain", "likes snow", "likes hail"):
        await shelf.change(kept, text)
    assert await former(shelf) == ["likes tea", "likes rain", "likes snow"]


# --- texts that are odd


@pytest.mark.parametrize("text", ["\0", "\u200b", "\u200b\u2060 \0", "\u202e"])
async def test_a_text_that_shows_nothing_is_blank(shelf: Shelf, text: str) -> None:
    assert await refusal(shelf.keep(text, about="Ann")) == "blank"


@pytest.mark.parametrize("text", ["\0likes tea", "likes\0 tea", "likes tea\0"])
async def test_signs_that_nobody_sees_do_not_break_a_memory(shelf: Shelf, text: str) -> None:
    await shelf.keep(text, about="Ann")
    assert await shelf.about("Ann") == ["likes tea"]


async def test_a_number_too_large_for_a_person_breaks_nothing(shelf: Shelf) -> None:
    text = "met {p:99999999999999999999} today"
    await shelf.keep(text, about="Ann", by="Ann")
    assert await shelf.about("Ann") == [text]
    people = shelf.talk.app.services.people
    assert await people.names(GUILD, [UserId(99999999999999999999)]) == {}


# --- whom a text names


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("𝓑𝓸𝓫𝓫𝔂", "sings with Bobby"),
        ("★Bobby★", "sings with bobby"),
        ("Bobby 🌸", "sings with Bobby, loudly"),
        ("Ｂｏｂｂｙ", "sings with Bobby"),
        ("Bob\u200bby", "sings with Bobby"),
        ("Mary Ann", "sings with mary  ann"),
        ("翔太", "翔太くんと歌う"),
        ("José", "sings with JOSÉ"),
        ("Jose\u0301", "sings with José"),
    ],
)
async def test_a_private_person_is_known_under_an_adorned_name(
    shelf: Shelf, shown: str, text: str
) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL, GUILD)
    await name(shelf, "Bob", shown)
    assert await refusal(shelf.keep(text, about="Ann")) == "privacy"


@pytest.mark.parametrize("shown", ["🌸", "★", "-", "a", ""])
async def test_a_name_that_is_no_word_keeps_nobody_from_remembering(
    shelf: Shelf, shown: str
) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL, GUILD)
    await name(shelf, "Bob", shown)
    await shelf.keep("has a ★ on the door - 🌸", about="Ann")


@pytest.mark.parametrize(
    ("shown", "text", "refused"),
    [
        # A word that says nothing: only with an @, or with a capital inside a sentence.
        *(("the", text, False) for text in ("hunts the fox", "The fox runs.", "THE FOX")),
        ("The", "The fox runs. The end", False),
        *((name, "is from an island and adores mangos", False) for name in ("is", "an", "from")),
        ("ist", "das ist gut", False),
        ("です", "猫です", False),
        ("ですから", "猫ですから", False),
        ("of the", "is king of the hill", False),
        ("will", "Will it rain? It will", False),
        *(("will", text, True) for text in ("sings with Will", "sings with @will", "@Will sings")),
        # A frequent word: only with an @ or a capital.
        *((name, "adores green tea", False) for name in ("adores", "tea", "Tea", "green tea")),
        ("学校", "学校に行く", False),
        ("学校", "@学校と歌う", True),
        ("★tea★", "drinks tea", False),
        *(("rain", text, True) for text in ("Rain sings", "sings with Rain", "sings with @rain")),
        ("rain", "writes to mail@rain.org", False),
        ("green tea", "sings with Green Tea", True),
        # Any other name, however it is written.
        *(("bob", text, True) for text in ("Bob stole cake", "bob stole cake", "BOB stole cake")),
        *(("Bob", text, True) for text in ("Bob stole cake", "bob stole cake", "@bob did")),
        ("kind stranger", "met a kind stranger", True),
        ("tea7", "drinks TEA7", True),
        ("дождик", "любит дождик", True),
        ("Jo", "sings with jo", True),
    ],
)
async def test_a_private_person_is_protected_under_any_name_but_holds_up_no_plain_words(
    shelf: Shelf, shown: str, text: str, *, refused: bool
) -> None:
    await shelf.talk.level("Zed", PrivacyLevel.PARTIAL, GUILD)
    await name(shelf, "Zed", shown)
    if refused:
        assert await refusal(shelf.keep(text, about="Ann")) == "privacy"
    else:
        await shelf.keep(text, about="Ann")


async def test_a_private_person_is_known_by_account_names_and_by_earlier_ones(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL, GUILD)
    await name(shelf, "Bob", "Captain", "Robert", "bobbin77")
    await name(shelf, "Bob", "Pirate", "Robert", "bobbin77")
    for called in ("Captain", "Pirate", "Robert", "Bobbin77"):
        assert await refusal(shelf.keep(f"sings with {called}", about="Ann")) == "privacy"


@pytest.mark.parametrize("default", ["PARTIAL", "FULL"])
async def test_where_everybody_is_private_by_default_those_who_chose_nothing_are_too(
    tmp_path: Path, default: str
) -> None:
    environ = {"MADELEINE__PRIVACY__DEFAULT_LEVEL": default}
    async with open_talk(tmp_path, environ=environ) as talk:
        shelf = Shelf(talk)
        await talk.level("Ann", PrivacyLevel.OPEN)
        await name(shelf, "Ann", "Ann")
        await name(shelf, "Bob", "Bobby")
        assert await refusal(shelf.keep("sings with Bobby", about="Ann")) == "privacy"
        await shelf.keep("sings with Ann", about="Ann")


# --- two servers, two lineages


async def test_the_lineage_is_part_of_what_is_the_same(shelf: Shelf) -> None:
    async def fork(tx: Transaction) -> None:
        await tx.execute("INSERT INTO lineages (id, created_at) VALUES (2, 0)")

    await shelf.talk.app.services.database.write(fork)
    first = await shelf.keep("likes tea", about="Ann")
    second = await shelf.keep("likes tea", about="Ann", lineage=LineageId(2))
    assert first.id != second.id
    await shelf.forget(first)
    assert await shelf.about("Ann", lineage=2) == ["likes tea"]


# --- a change that says nothing new


async def test_who_only_respells_a_memory_takes_it_from_nobody(shelf: Shelf) -> None:
    kept = await shelf.keep("Chess is on Fridays", by="Ann")
    await shelf.keep("Chess is on Fridays", by="Ben", channel="lounge")
    await shelf.change(kept, "chess is on fridays", by="Boss", manager=True)
    assert await shelf.of_server() == ["chess is on fridays"]
    assert await shelf.of_server("lounge") == ["chess is on fridays"]
    assert await shelf.talk.rows("SELECT * FROM memory_versions") == []
    await shelf.change(kept, "chess is on mondays", by="Ann")
    assert await shelf.of_server() == ["chess is on mondays"]

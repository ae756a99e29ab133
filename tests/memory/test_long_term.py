"""What is kept in long-term memory, what is refused and why, and who may change it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from bot.identifiers import GuildId
from bot.memory import references
from bot.memory.references import reference_to
from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from bot.storage.statements import Transaction
from tests.memory.shelf import Shelf
from tests.talk import GUILD, open_talk


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with open_talk(tmp_path) as talk:
        yield Shelf(talk)


async def refusal(attempt: Awaitable[object]) -> str:
    """The code with which an attempt is refused."""
    with pytest.raises(MemoryRefused) as refused:
        await attempt
    return refused.value.code


async def stored(shelf: Shelf) -> list[str]:
    """Every text in the file, whoever hears it."""
    rows = await shelf.talk.rows(
        "SELECT content FROM server_memories UNION ALL SELECT content FROM personal_memories"
    )
    return sorted(str(row["content"]) for row in rows)


# --- the text itself


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u3000"])
async def test_a_blank_text_is_refused(shelf: Shelf, blank: str) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    assert await refusal(shelf.keep(blank, about="Ann")) == "blank"
    assert await refusal(shelf.change(kept, blank)) == "blank"
    assert await stored(shelf) == ["likes tea"]


async def test_one_character_and_a_thousand_are_kept(shelf: Shelf) -> None:
    await shelf.keep("x", about="Ann")
    await shelf.keep("y" * 1_000, about="Ann")
    assert await shelf.about("Ann") == ["x", "y" * 1_000]


async def test_one_character_more_is_refused(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Ann")
    assert await refusal(shelf.keep("y" * 1_001, about="Ann")) == "too_long"
    assert await refusal(shelf.change(kept, "y" * 1_001)) == "too_long"
    assert await stored(shelf) == ["likes tea"]


async def test_space_around_a_text_neither_counts_nor_is_kept(shelf: Shelf) -> None:
    kept = await shelf.keep(" " * 5_000 + "likes tea\n", about="Ann")
    assert await shelf.about("Ann") == ["likes tea"]
    await shelf.change(kept, "likes coffee " + " " * 5_000)
    assert await shelf.about("Ann") == ["likes coffee"]


async def test_a_credential_is_refused_and_nothing_is_altered(shelf: Shelf) -> None:
    key = "my key is " + "ghp" + "_" + "a1B2" * 9
    kept = await shelf.keep("likes tea", about="Ann")
    assert await refusal(shelf.keep(key, about="Ann")) == "credential"
    assert await refusal(shelf.change(kept, key)) == "credential"
    assert await stored(shelf) == ["likes tea"]


# --- scope and target


async def test_a_direct_message_has_no_server_to_know_of(shelf: Shelf) -> None:
    assert await refusal(shelf.keep("it rains here", channel="@ann")) == "no_server"


async def test_in_a_direct_message_only_oneself_is_spoken_of(shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann", channel="@ann")
    assert await refusal(shelf.keep("likes tea", about="Bob", channel="@ann")) == "target_unknown"
    assert await shelf.about("Ann", "@ann") == ["likes tea"]


# --- privacy


@pytest.mark.parametrize("level", [PrivacyLevel.PARTIAL, PrivacyLevel.FULL])
async def test_nothing_new_is_kept_about_a_private_person(
    shelf: Shelf, level: PrivacyLevel
) -> None:
    kept = await shelf.keep("likes tea", about="Bob", by="Bob")
    await shelf.talk.level("Bob", level)
    assert await refusal(shelf.keep("likes rain", about="Bob")) == "privacy"
    assert await refusal(shelf.keep("likes rain", about="Bob", by="Bob")) == "privacy"
    assert await refusal(shelf.change(kept, "likes rain", by="Bob")) == "privacy"
    assert await stored(shelf) == ["likes tea"]


async def test_a_level_for_one_server_refuses_in_that_server_only(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL, GUILD)
    assert await refusal(shelf.keep("likes rain", about="Bob")) == "privacy"
    other = type(GUILD)(GUILD + 1)
    await shelf.keep("likes rain", about="Bob", guild=other)
    assert await shelf.about("Bob", guild=other) == ["likes rain"]


async def test_a_private_person_can_still_have_a_memory_forgotten(shelf: Shelf) -> None:
    kept = await shelf.keep("likes tea", about="Bob")
    await shelf.talk.level("Bob", PrivacyLevel.FULL)
    await shelf.forget(kept, by="Bob")
    assert await stored(shelf) == []


async def test_a_reference_to_a_private_person_is_refused_in_every_scope(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    text = f"sings with {reference_to(shelf.talk.person('Bob').id)}"
    assert await refusal(shelf.keep(text, about="Ann")) == "privacy"
    assert await refusal(shelf.keep(text)) == "privacy"
    assert await refusal(shelf.keep(text, manager=True)) == "privacy"


@pytest.mark.parametrize("text", ["sings with Bob", "sings with BOB.", "bob's friend", "(bob)"])
async def test_a_private_persons_name_is_refused_in_any_case(shelf: Shelf, text: str) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    assert await refusal(shelf.keep(text, about="Ann")) == "privacy"
    assert await refusal(shelf.keep(text)) == "privacy"
    kept = await shelf.keep("sings", about="Ann")
    assert await refusal(shelf.change(kept, text)) == "privacy"


@pytest.mark.parametrize("text", ["likes bobsleigh", "was kebobbed", "met Bobby"])
async def test_a_name_inside_another_word_is_no_name(shelf: Shelf, text: str) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    await shelf.keep(text, about="Ann")
    assert await shelf.about("Ann") == [text]


async def test_an_open_person_may_be_named(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.OPEN)
    await shelf.keep("sings with Bob", about="Ann")
    assert await shelf.about("Ann") == ["sings with Bob"]


async def test_a_private_person_may_tell_the_server_about_themselves(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    await shelf.keep("Bob runs the book club", by="Bob")
    assert await shelf.of_server() == ["Bob runs the book club"]
    assert await refusal(shelf.keep("Bob runs the film club", by="Ann")) == "privacy"


# --- lineage


async def test_the_model_never_writes_what_every_persona_knows(shelf: Shelf) -> None:
    assert await refusal(shelf.keep("it rains", lineage=0)) == "global_lineage"
    assert await refusal(shelf.keep("likes tea", about="Ann", lineage=0)) == "global_lineage"
    assert await stored(shelf) == []


async def test_what_a_person_keeps_for_every_persona_is_read_by_each(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains", lineage=0, by_person=True)
    assert [await shelf.of_server(lineage=n) for n in (0, 1, 7)] == [["it rains"]] * 3
    assert await refusal(shelf.change(kept, "it snows")) == "global_lineage"


async def test_one_lineage_does_not_hear_anothers_memories(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains")
    await shelf.keep("likes tea", about="Ann")
    assert await shelf.of_server(lineage=7) == []
    assert await shelf.about("Ann", lineage=7) == []
    assert await refusal(shelf.change(kept, "it snows", lineage=7)) == "not_found"


async def test_only_managers_forget_what_every_persona_knows(shelf: Shelf) -> None:
    kept = await shelf.keep("it rains", lineage=0, by_person=True)
    assert await refusal(shelf.forget(kept)) == "managers_only"
    await shelf.forget(kept, by="Zoe", manager=True)
    assert await stored(shelf) == []


# --- how many


async def test_of_fifty_at_once_only_the_hundredth_is_kept(shelf: Shelf) -> None:
    await asyncio.gather(*(shelf.keep(f"fact {n}", about="Ann") for n in range(99)))
    attempts = [refusal(shelf.keep(f"late fact {n}", about="Ann")) for n in range(50)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert outcomes.count("full") == 49
    assert len(await stored(shelf)) == 100


async def test_a_full_partition_leaves_the_others_open(shelf: Shelf) -> None:
    await asyncio.gather(*(shelf.keep(f"fact {n}", about="Ann") for n in range(100)))
    assert await refusal(shelf.keep("one more", about="Ann")) == "full"
    await shelf.keep("one more", about="Bob")
    await shelf.keep("one more")
    other = type(GUILD)(GUILD + 1)
    await shelf.keep("one more", about="Ann", guild=other)
    assert await shelf.about("Ann", guild=other) == ["one more"]


async def test_a_full_partition_still_takes_what_it_knows(shelf: Shelf) -> None:
    await asyncio.gather(*(shelf.keep(f"fact {n}", about="Ann") for n in range(100)))
    assert (await shelf.keep("Fact 7.", about="Ann")).known_before


# --- nearly the same


async def test_a_near_duplicate_is_answered_with_the_memory_to_change(shelf: Shelf) -> None:
    kept = await shelf.keep("likes green tea in the morning", about="Ann")
    with pytest.raises(MemoryRefused) as refused:
        await shelf.keep("likes green tea in the mornings", about="Ann")
    assert (refused.value.code, refused.value.params["id"]) == ("similar", kept.id)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("was born in the year 1987 in May", "was born in the year 1988 in May"),
        ("goes to school with young Marta", "goes to school with young Marto"),
        ("goes to the cinema with {p:101}", "goes to the cinema with {p:102}"),
    ],
)
async def test_another_number_name_or_person_makes_another_memory(
    shelf: Shelf, first: str, second: str
) -> None:
    await shelf.keep(first, about="Ann")
    await shelf.keep(second, about="Ann")
    assert await shelf.about("Ann") == sorted([first, second])


async def test_what_is_not_heard_here_is_no_near_duplicate_here(shelf: Shelf) -> None:
    await shelf.keep("likes green tea in the morning", about="Ann", channel="secret")
    await shelf.keep("likes green tea in the mornings", about="Ann", channel="general")
    assert await shelf.about("Ann") == ["likes green tea in the mornings"]


# --- the same


async def test_the_same_text_in_other_writing_is_known_already(shelf: Shelf) -> None:
    first = await shelf.keep("Likes tea.", about="Ann")
    again = await shelf.keep("  likes  ＴＥＡ! ", about="Ann", by="Bob")
    assert (first.known_before, again.known_before, again.id) == (False, True, first.id)
    assert await shelf.about("Ann") == ["Likes tea."]


async def test_what_only_another_room_knows_gets_the_ordinary_answer_and_a_second_source(
    shelf: Shelf,
) -> None:
    await shelf.keep("likes tea", about="Ann", channel="secret")
    again = await shelf.keep("likes tea", about="Ann", channel="general")
    assert not again.known_before
    heard = [await shelf.about("Ann", room) for room in ("secret", "general", "third")]
    assert heard == [["likes tea"], ["likes tea"], []]
    assert len(await shelf.talk.rows("SELECT * FROM memory_sources")) == 2


async def test_the_same_text_about_another_person_is_another_memory(shelf: Shelf) -> None:
    first = await shelf.keep("likes tea", about="Ann")
    assert (await shelf.keep("likes tea", about="Bob")).id != first.id
    assert (await shelf.keep("likes tea")).id != first.id


# --- who hears


async def test_a_memory_is_heard_in_its_room_and_in_no_other_server(shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann", channel="secret")
    await shelf.keep("it rains", channel="secret")
    other = type(GUILD)(GUILD + 1)
    assert await shelf.about("Ann", "secret") == ["likes tea"]
    assert await shelf.of_server("secret") == ["it rains"]
    assert await shelf.about("Ann", "general") == []
    assert await shelf.of_server("general") == []
    assert await shelf.about("Ann", "secret", guild=other) == []
    assert await shelf.of_server("secret", guild=other) == []
    assert await shelf.about("Ann", "@ann") == []


async def test_what_is_not_heard_here_can_be_neither_changed_nor_forgotten_here(
    shelf: Shelf,
) -> None:
    kept = await shelf.keep("likes tea", about="Ann", channel="secret")
    assert await refusal(shelf.change(kept, "likes rain")) == "not_found"
    assert await refusal(shelf.forget(kept)) == "not_found"
    assert await stored(shelf) == ["likes tea"]


@pytest.mark.parametrize("level", [PrivacyLevel.PARTIAL, PrivacyLevel.FULL])
async def test_memories_of_a_private_person_are_not_used_but_are_shown_to_them(
    shelf: Shelf, level: PrivacyLevel
) -> None:
    await shelf.keep("likes tea", about="Bob")
    await shelf.talk.level("Bob", level)
    assert await shelf.about("Bob") == []
    here = await shelf.listening()
    held = await shelf.memory.held_about(shelf.talk.person("Bob").id, here)
    assert [memory.content for memory in held] == ["likes tea"]


async def test_a_mention_typed_into_a_command_is_a_reference(shelf: Shelf) -> None:
    await shelf.talk.level("Bob", PrivacyLevel.PARTIAL)
    bob = shelf.talk.person("Bob").id
    assert await refusal(shelf.keep(f"<@{bob}> owes me money")) == "privacy"
    assert await refusal(shelf.keep(f"<@!{bob}> owes me money", by_person=True)) == "privacy"


async def test_a_private_person_of_another_server_holds_nothing_up_here(shelf: Shelf) -> None:
    tea = shelf.talk.person("tea")
    await shelf.talk.app.receiver.set_level(
        tea, EVERYWHERE, PrivacyLevel.PARTIAL, seen_in=GuildId(501)
    )
    await shelf.keep("the club drinks tea on Sundays")


async def test_thousands_of_private_people_do_not_hold_up_the_event_loop(shelf: Shelf) -> None:
    async def job(tx: Transaction) -> None:
        people = [(GUILD, 10**6 + n, f"Person {n} the Great", 0, 0) for n in range(5_000)]
        await tx.execute_many("INSERT INTO people VALUES (?, ?, ?, ?, ?)", people)
        levels = [(10**6 + n, 0, "partial", 0) for n in range(5_000)]
        await tx.execute_many("INSERT INTO privacy_levels VALUES (?, ?, ?, ?)", levels)

    services = shelf.talk.app.services
    await services.database.write(job)
    await services.levels.load()
    assert await refusal(shelf.keep("sings with Person 7 the Great")) == "privacy"
    patterns = references._finder.cache_info().misses
    await shelf.keep("the club meets on Sundays")
    assert references._finder.cache_info().misses == patterns

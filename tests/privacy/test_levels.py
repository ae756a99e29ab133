"""Privacy levels: which is in force, and what each lets Madeleine keep and use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.identifiers import GuildId
from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from tests.talk import GUILD, Talk, open_talk, settled

OPEN, PARTIAL, FULL = PrivacyLevel
OTHER = GuildId(GUILD + 1)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as opened:
        await settled()
        yield opened


def level(talk: Talk, name: str, guild: GuildId = GUILD) -> PrivacyLevel:
    return talk.app.services.levels.of(talk.person(name).id, guild)


# --- which is in force


async def test_everybody_is_open_until_they_choose(talk: Talk) -> None:
    assert level(talk, "Ann") is OPEN
    assert level(talk, "Ann", EVERYWHERE) is OPEN


@pytest.mark.parametrize("default", list(PrivacyLevel))
async def test_the_config_sets_the_default(tmp_path: Path, default: PrivacyLevel) -> None:
    environ = {"MADELEINE__PRIVACY__DEFAULT_LEVEL": default.name}
    async with open_talk(tmp_path, environ=environ) as talk:
        assert level(talk, "Ann") is default
        await talk.level("Ann", OPEN)
        assert level(talk, "Ann") is OPEN


@pytest.mark.parametrize("everywhere", list(PrivacyLevel))
@pytest.mark.parametrize("here", list(PrivacyLevel))
async def test_the_stricter_of_two_is_in_force(
    talk: Talk, everywhere: PrivacyLevel, here: PrivacyLevel
) -> None:
    await talk.level("Ann", everywhere)
    await talk.level("Ann", here, GUILD)
    assert level(talk, "Ann") is max(everywhere, here)
    assert level(talk, "Ann", OTHER) is everywhere
    assert level(talk, "Ann", EVERYWHERE) is everywhere
    assert level(talk, "Bob") is OPEN


async def test_a_level_can_be_opened_again(talk: Talk) -> None:
    await talk.level("Ann", FULL)
    await talk.level("Ann", OPEN)
    assert level(talk, "Ann") is OPEN


async def test_those_who_are_at_least_as_strict_are_listed(talk: Talk) -> None:
    await talk.level("Ann", OPEN)
    await talk.level("Bob", PARTIAL)
    await talk.level("Cleo", FULL, GUILD)
    levels = talk.app.services.levels
    bob, cleo = talk.person("Bob").id, talk.person("Cleo").id
    assert levels.at_least(PARTIAL, GUILD) == {bob, cleo}
    assert levels.at_least(FULL, GUILD) == {cleo}
    assert levels.at_least(PARTIAL, OTHER) == {bob}


async def test_levels_outlive_a_restart(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ann", PARTIAL)
        await talk.level("Ann", FULL, GUILD)
    async with open_talk(tmp_path) as talk:
        assert (level(talk, "Ann"), level(talk, "Ann", OTHER)) == (FULL, PARTIAL)
        await settled()


# --- what each level lets through


@pytest.mark.parametrize(
    ("chosen", "received"), [(OPEN, "taken"), (PARTIAL, "taken"), (FULL, "heard")]
)
async def test_a_fully_private_person_is_not_answered(
    talk: Talk, chosen: PrivacyLevel, received: str
) -> None:
    await talk.level("Bob", chosen)
    assert talk.send(talk.message("Bob", "hello Madeleine"))[0] == received


@pytest.mark.parametrize(("chosen", "seen"), [(OPEN, True), (PARTIAL, True), (FULL, False)])
async def test_words_of_a_fully_private_person_are_not_in_the_context(
    talk: Talk, chosen: PrivacyLevel, seen: bool
) -> None:
    await talk.level("Bob", chosen)
    await talk.say("Ann", "hello Madeleine")  # from here on she follows the channel
    talk.overhear("Bob", "the lighthouse is blue")
    await talk.say("Ann", "what did you hear?")
    assert ("Bob: the lighthouse is blue" in talk.lines) is seen
    captured = await talk.rows("SELECT * FROM buffer_entries WHERE content LIKE '%lighthouse%'")
    assert bool(captured) is seen


@pytest.mark.parametrize(("chosen", "used"), [(OPEN, True), (PARTIAL, False)])
async def test_personal_memories_of_a_private_person_are_not_used(
    talk: Talk, chosen: PrivacyLevel, used: bool
) -> None:
    await talk.teach("collects lighthouses", about="Bob", by="Bob")
    await talk.level("Bob", chosen)
    await talk.say("Bob", "what do you know about me?")
    assert any("lighthouses" in (m["content"] or "") for m in talk.prompt.messages) is used


@pytest.mark.parametrize(("chosen", "kept"), [(OPEN, True), (PARTIAL, False), (FULL, False)])
async def test_no_new_personal_memory_is_kept_of_a_private_person(
    talk: Talk, chosen: PrivacyLevel, kept: bool
) -> None:
    await talk.level("Bob", chosen)
    if kept:
        await talk.teach("collects lighthouses", about="Bob")
    else:
        with pytest.raises(MemoryRefused):
            await talk.teach("collects lighthouses", about="Bob")
    assert len(await talk.rows("SELECT * FROM personal_memories")) == int(kept)


async def test_going_up_to_full_erases_what_was_captured(talk: Talk) -> None:
    await talk.say("Bob", "the lighthouse is blue")
    await talk.say("Ann", "the harbour is green")
    await talk.level("Bob", FULL)
    await talk.say("Ann", "what did you hear?")
    assert "Bob: the lighthouse is blue" not in talk.lines
    assert "Ann: the harbour is green" in talk.lines
    theirs = f"SELECT * FROM buffer_entries WHERE author_id = {talk.person('Bob').id}"
    assert await talk.rows(theirs) == []

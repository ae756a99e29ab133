"""Categories: the headings under which a server wants its conversations noted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.audience import DIRECT_MESSAGES
from bot.errors import UserError
from bot.identifiers import GuildId, UserId
from bot.memory.categories import Categories, Category
from tests.fakes import Text, ToolCalls
from tests.talk import GUILD, Talk, open_talk

ANN = UserId(101)
NOTE = "update_short_term_memory"


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as talk:
        yield talk


def of(talk: Talk) -> Categories:
    return talk.app.services.categories


async def labels(talk: Talk, guild: GuildId = GUILD) -> list[str]:
    return [category.label for category in await of(talk).of(guild)]


async def refused(talk: Talk, label: str, description: str = "what belongs there") -> str:
    before = await of(talk).of(GUILD)
    with pytest.raises(UserError) as caught:
        await of(talk).define(GUILD, label, description, ANN)
    assert await of(talk).of(GUILD) == before
    return caught.value.key


async def test_there_is_none_until_somebody_defines_one(talk: Talk) -> None:
    assert await labels(talk) == []
    await of(talk).define(GUILD, "Mood", "how people feel", ANN)
    assert await of(talk).of(GUILD) == (Category(label="Mood", description="how people feel"),)
    assert await labels(talk, GuildId(501)) == []


async def test_they_stand_in_the_order_in_which_they_were_defined(talk: Talk) -> None:
    for label in ("Zoo", "Mood", "Art"):
        await of(talk).define(GUILD, label, "some", ANN)
    assert await labels(talk) == ["Zoo", "Mood", "Art"]


async def test_the_same_label_in_other_capitals_is_described_anew(talk: Talk) -> None:
    await of(talk).define(GUILD, "Mood", "how people feel", ANN)
    await of(talk).define(GUILD, "  mOOD ", "weather of the soul", UserId(102))
    assert await of(talk).of(GUILD) == (Category(label="Mood", description="weather of the soul"),)
    (row,) = await talk.rows("SELECT changed_by FROM short_term_categories")
    assert row["changed_by"] == 102


async def test_there_are_five_at_most_and_one_may_make_way(talk: Talk) -> None:
    for number in range(5):
        await of(talk).define(GUILD, f"c{number}", "some", ANN)
    assert await refused(talk, "c5") == "errors.categories.full"
    await of(talk).define(GUILD, "c4", "other", ANN)
    await of(talk).remove(GUILD, "C0")
    await of(talk).define(GUILD, "c5", "some", ANN)
    assert await labels(talk) == ["c1", "c2", "c3", "c4", "c5"]


@pytest.mark.parametrize(
    ("label", "description", "code"),
    [
        ("", "some", "label"),
        ("   ", "some", "label"),
        ("x" * 33, "some", "label"),
        ("bell\x07", "some", "label"),
        ("Mood", "", "description"),
        ("Mood", "y" * 101, "description"),
    ],
)
async def test_texts_that_are_no_good_are_refused(
    talk: Talk, label: str, description: str, code: str
) -> None:
    assert await refused(talk, label, description) == f"errors.categories.{code}"


async def test_texts_at_their_limits_are_kept(talk: Talk) -> None:
    await of(talk).define(GUILD, "x" * 32, "y" * 100, ANN)
    assert await labels(talk) == ["x" * 32]


async def test_one_that_is_not_there_cannot_be_removed(talk: Talk) -> None:
    with pytest.raises(UserError) as caught:
        await of(talk).remove(GUILD, "Mood")
    assert caught.value.key == "errors.categories.unknown"


async def test_direct_messages_have_none(talk: Talk) -> None:
    assert await of(talk).of(DIRECT_MESSAGES) == ()


# --- the model


async def test_the_model_is_offered_them_with_what_belongs_there(talk: Talk) -> None:
    await of(talk).define(GUILD, "Mood", "how people feel", ANN)
    await talk.say("Ann", "hello")
    (note,) = [tool for tool in talk.prompt.tools if tool["name"] == NOTE]
    offered = note["parameters"]["properties"]["categories"]["properties"]
    assert offered == {"Mood": {"type": "string", "description": "how people feel"}}


async def test_given_ones_merge_and_an_empty_text_clears_one(talk: Talk) -> None:
    for label in ("Mood", "Plans"):
        await of(talk).define(GUILD, label, "some", ANN)
    for categories in ({"Mood": "cheerful", "Plans": "tea"}, {"Mood": "sleepy"}, {"Plans": ""}):
        talk.model.queue(ToolCalls([(NOTE, {"categories": categories})]), Text("ok"))
        await talk.say("Ann", "hello")
    (row,) = await talk.rows("SELECT categories FROM short_term_memories")
    assert row["categories"] == '{"Mood": "sleepy"}'


async def test_what_stands_under_a_removed_label_is_not_shown_and_goes_with_the_next_note(
    talk: Talk,
) -> None:
    for label in ("Mood", "Plans"):
        await of(talk).define(GUILD, label, "some", ANN)
    both = {"Mood": "cheerful", "Plans": "a picnic"}
    talk.model.queue(ToolCalls([(NOTE, {"categories": both})]), Text("ok"))
    await talk.say("Ann", "hello")
    await of(talk).remove(GUILD, "Plans")
    await talk.say("Ann", "hello again")
    assert "cheerful" in talk.prompt.system
    assert "a picnic" not in talk.prompt.system
    talk.model.queue(ToolCalls([(NOTE, {"categories": {"Mood": "sleepy"}})]), Text("ok"))
    await talk.say("Ann", "good night")
    (row,) = await talk.rows("SELECT categories FROM short_term_memories")
    assert row["categories"] == '{"Mood": "sleepy"}'

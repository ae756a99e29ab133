"""The tool that notes what a conversation is about."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.audience import Audience
from bot.features import Flag
from bot.memory.categories import Category
from bot.memory.long_term import Actor, Listening
from bot.memory.references import reference_to
from bot.memory.roster import Roster
from bot.prompts import prompt
from bot.tools.port import Failed, Ok, Outcome, Retry, ToolContext
from bot.tools.short_term import ShortTermArguments, UpdateShortTermMemory
from tests.fakes import ModelRequest, Reply, Text, ToolCalls
from tests.talk import Talk, open_talk

NOTE = "update_short_term_memory"
IMPATIENT = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "20"}


async def told(talk: Talk, **arguments: object) -> tuple[str, str]:
    """One turn with one call of the tool: its outcome, and what the model was told."""
    talk.model.queue(ToolCalls([(NOTE, arguments)]), Text("hm"))
    report = await talk.say("Ann", "hello")
    assert report is not None
    [call] = report.tool_calls
    return call.outcome, talk.prompt.tool_results[0]


async def summaries(talk: Talk) -> list[object]:
    return [row["summary"] for row in await talk.rows("SELECT summary FROM short_term_memories")]


async def tool_context(talk: Talk, *labels: str) -> ToolContext:
    """A turn of Ann's in a server that defined these categories."""
    services = talk.app.services
    origin = await services.origins.of(talk.place())
    ann = talk.person("Ann").id
    audience = Audience(here=origin.id, heard=frozenset({origin.id}))
    lineage = (await services.personas.main(origin.guild_id)).lineage
    return ToolContext(
        origin=origin,
        lineage=lineage,
        listening=Listening(server=origin.guild_id, lineage=lineage, audience=audience),
        actor=Actor(user=ann, is_manager=False),
        roster=Roster.of([(ann, "Ann")], own_names=("Madeleine",), someone="someone"),
        message_id=talk.next_id(),
        said_at=talk.clock.now(),
        flags=frozenset(Flag),
        explicit_long_term_memory_intent=False,
        route_offers_short_term_memory=True,
        categories=tuple(Category(label=one, description=f"what is {one}") for one in labels),
    )


async def call(talk: Talk, context: ToolContext, **arguments: object) -> Outcome:
    services = talk.app.services
    tool = UpdateShortTermMemory(services.short_term, services.config.memory)
    return await tool.execute(context, ShortTermArguments.model_validate(arguments))


async def noted(talk: Talk, context: ToolContext) -> tuple[str, dict[str, str]]:
    entry = await talk.app.services.short_term.of_room(context.listening.audience, context.lineage)
    assert entry is not None
    assert entry.text is not None
    return entry.text.summary, dict(entry.text.categories)


async def test_a_note_is_kept_with_references_and_shown_with_names(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await told(talk, summary=" U1 and Ann talk of tea ") == ("ok", prompt("done.noted"))
        ann = reference_to(talk.person("Ann").id)
        assert await summaries(talk) == [f"{ann} and {ann} talk of tea"]
        await talk.say("Ann", "hello")
        assert '"Ann and Ann talk of tea"' in talk.prompt.system


async def test_one_note_a_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([(NOTE, {"summary": "first"}), (NOTE, {"summary": "second"})]), Text("hm")
        )
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert [made.outcome for made in report.tool_calls] == ["ok", "failed"]
        assert talk.prompt.tool_results[1] == prompt("refused.once_a_turn")
        assert NOTE not in talk.prompt.tool_names
        assert await summaries(talk) == ["first"]


async def test_the_next_turn_may_note_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await told(talk, summary="first")
        assert (await told(talk, summary="second"))[0] == "ok"
        assert await summaries(talk) == ["second"]


async def test_with_the_feature_off_it_is_not_offered_and_refused(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.SHORT_TERM_MEMORY, on=False)
        assert await told(talk, summary="x") == ("failed", prompt("refused.short_term_off"))
        assert NOTE not in talk.model.chats[0].tool_names
        assert await summaries(talk) == []


async def test_on_a_route_that_does_not_take_it_it_is_not_offered_and_refused(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path, short_term_memory_tool=False) as talk:
        assert await told(talk, summary="x") == ("failed", prompt("refused.short_term_off"))
        assert NOTE not in talk.model.chats[0].tool_names
        assert await summaries(talk) == []


@pytest.mark.parametrize(("length", "is_kept"), [(1_500, True), (1_501, False)])
async def test_a_note_has_at_most_1500_characters(
    tmp_path: Path, length: int, is_kept: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        outcome, text = await told(talk, summary="x" * length)
        assert outcome == ("ok" if is_kept else "retry")
        assert ("1501 characters; at most 1500" in text) != is_kept
        assert bool(await summaries(talk)) == is_kept


async def test_a_failed_try_may_be_made_good_in_the_same_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(
            ToolCalls([(NOTE, {"summary": "x" * 1_501})]),
            ToolCalls([(NOTE, {"summary": "short"})]),
            Text("hm"),
        )
        await talk.say("Ann", "hello")
        assert await summaries(talk) == ["short"]


async def test_without_categories_only_a_summary_is_offered(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        [tool] = [tool for tool in talk.prompt.tools if tool["name"] == NOTE]
        assert list(tool["parameters"]["properties"]) == ["summary"]


async def test_nothing_to_note_is_a_retry(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await told(talk) == ("retry", prompt("refused.nothing_to_note"))


async def test_an_unknown_category_names_those_there_are(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        context = await tool_context(talk, "Mood", "Plans")
        outcome = await call(talk, context, categories={"Mud": "x", "Mood": "merry"})
        assert outcome == Retry(
            "Not noted: there is no category Mud. The categories are: Mood, Plans."
        )
        assert await talk.rows("SELECT * FROM short_term_memories") == []


@pytest.mark.parametrize(("length", "kind"), [(1_500, Ok), (1_501, Retry)])
async def test_a_category_has_at_most_1500_characters(
    tmp_path: Path, length: int, kind: type[Outcome]
) -> None:
    async with open_talk(tmp_path) as talk:
        context = await tool_context(talk, "Mood")
        assert isinstance(await call(talk, context, categories={"Mood": "x" * length}), kind)


@pytest.mark.parametrize("empty", ["", " \u200b"])
async def test_given_categories_merge_and_an_empty_one_is_cleared(
    tmp_path: Path, empty: str
) -> None:
    async with open_talk(tmp_path) as talk:
        context = await tool_context(talk, "Mood", "Plans")
        await call(talk, context, summary="s", categories={"Mood": "merry", "Plans": "tea"})
        again = await tool_context(talk, "Mood", "Plans")
        assert isinstance(await call(talk, again, categories={"Mood": empty, "Plans": "cake"}), Ok)
        assert await noted(talk, again) == ("s", {"Plans": "cake"})


async def test_a_refused_call_does_not_count_as_the_one_of_the_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        context = await tool_context(talk)
        assert isinstance(await call(talk, context, categories={"Mood": "x"}), Retry)
        assert isinstance(await call(talk, context, summary="x"), Ok)
        assert isinstance(await call(talk, context, summary="y"), Failed)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"explicit_long_term_memory_intent": True}, "refused.explicit_intent"),
        ({"flags": frozenset[Flag]()}, "refused.short_term_off"),
        ({"route_offers_short_term_memory": False}, "refused.short_term_off"),
    ],
)
async def test_each_guard_stands_in_the_tool_itself(
    tmp_path: Path, change: dict[str, object], refused: str
) -> None:
    async with open_talk(tmp_path) as talk:
        context = replace(await tool_context(talk), **change)  # pyright: ignore[reportArgumentType]
        assert await call(talk, context, summary="x") == Failed(prompt(refused))
        assert await talk.rows("SELECT * FROM short_term_memories") == []


async def test_a_note_that_cannot_be_written_is_put_back_and_told(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        await told(talk, summary="before")
        with closing(sqlite3.connect(tmp_path / "madeleine.db", isolation_level=None)) as other:

            def while_locked(request: ModelRequest) -> Reply:
                if not request.tool_results:
                    other.execute("BEGIN IMMEDIATE")
                    return ToolCalls([(NOTE, {"summary": "after"})])
                other.execute("ROLLBACK")
                return Text("hm")

            talk.model.on(while_locked)
            report = await talk.say("Ann", "hello")
        assert report is not None
        assert [made.outcome for made in report.tool_calls] == ["failed"]
        assert talk.prompt.tool_results == [prompt("refused.storage")]
        assert await summaries(talk) == ["before"]
        talk.model.clear()
        await talk.say("Ann", "hello")
        assert '"before"' in talk.prompt.system

"""What begins with a slash in the terminal: handoffs, and the silence that a level asks for."""

from pathlib import Path

import pytest

from bot.console import Console
from bot.console_commands import ConsoleCommands
from bot.console_script import ScriptLine
from bot.i18n import t
from tests.fakes import Json, Text, ToolCalls
from tests.handoff.room import chunk
from tests.talk import Talk, open_talk

FRESH = {"MADELEINE__HANDOFF__FRESH_MIN": "0"}


async def typed(talk: Talk, text: str) -> str:
    """What a command that Ann types is answered."""
    commands = ConsoleCommands(talk.app.services, talk.app.receiver, "en-US")
    return await commands.run(text, talk.message("Ann", text))


async def talked(talk: Talk) -> None:
    """Six turns: twelve lines, of which four are behind the watermark."""
    planted = chunk("E1", content="Ann planted tomatoes", quotes=["I planted tomatoes 0"])
    talk.keeper.clear()
    talk.keeper.on(lambda _: Json({"chunks": [planted], "resolved": []}))
    for number in range(6):
        await talk.say("Ann", f"I planted tomatoes {number}")


async def test_a_handoff_is_made_and_its_episode_shown(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=FRESH) as talk:
        await talked(talk)
        told = await typed(talk, "/memory handoff")
        assert told.startswith("1 line became 1 episode. 3 lines were forgotten. This was run ")
        assert await typed(talk, "/memory") == (
            "What happened:\n"
            "- Ann planted tomatoes (just now) \u201cI planted tomatoes 0\u201d (Ann)"
        )


async def test_where_there_is_nothing_old_enough_that_is_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        told = await typed(talk, "/memory handoff")
        assert told.startswith("There is nothing to hand over yet")


async def test_health_is_a_table_without_marks_of_discord(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert (await typed(talk, "/memory health")).startswith("Nothing was said to me here yet")
        await talked(talk)
        told = (await typed(talk, "/memory health")).splitlines()
        assert told[0] == "Lines in working memory: 12, of them kept for open matters: 0"
        assert len(told) == 10
        assert "**" not in "".join(told)


async def test_a_scene_is_begun(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        assert (await typed(talk, "/scene")).startswith("A new scene begins here.")
        await talk.say("Ann", "once upon a time")
        scenes = await talk.rows("SELECT DISTINCT scene FROM buffer_entries ORDER BY scene")
        assert [row["scene"] for row in scenes] == [0, 1]


@pytest.mark.parametrize("channel", ["general", "@ann"])
async def test_whoever_set_full_is_told_why_nothing_is_answered(
    tmp_path: Path, channel: str
) -> None:
    async with open_talk(tmp_path) as talk:
        console = Console(talk.app.services, talk.app.receiver, "en-US", out=None)
        line = ScriptLine(user="Ann", channel=channel, text="hello")
        message = console._message(line)
        assert await console._commands.run("/privacy FULL", message) == t("console.full", "en-US")
        report = await console.say(line)
        assert (report.reply, report.footer) == ("", t("console.full", "en-US"))
        await console._commands.run("/privacy OPEN", message)
        assert (await console.say(line)).reply


async def test_memories_are_searched_and_given_other_words(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await typed(talk, "/memory teach Chess is on Fridays")
        await typed(talk, "/memory teach Pizza is on Mondays")
        found = await typed(talk, "/memory search chess")
        assert "Chess is on Fridays" in found
        assert "Pizza" not in found
        assert await typed(talk, "/memory search zebra") == (
            "I remember nothing here about \u201czebra\u201d."
        )
        number = (await talk.rows("SELECT min(id) AS id FROM memories"))[0]["id"]
        told = await typed(talk, f"/memory edit {number} Chess is on Sundays")
        assert told == "It says now: Chess is on Sundays"
        assert "Chess is on Sundays" in await typed(talk, "/memory")
        assert (await typed(talk, "/memory edit chess")).startswith("Please give the number")


async def test_what_the_last_reply_changed_is_taken_back(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        console = Console(talk.app.services, talk.app.receiver, "en-US", out=None)
        call = {"content": "Chess is on Fridays", "scope": "server_wide", "target": ""}
        talk.model.queue(ToolCalls([("create_long_term_memory", call)]), Text("ok"))
        line = ScriptLine(user="Ann", channel="general", text="chess is on Fridays")
        assert (await console.say(line)).footer == "Saved: Chess is on Fridays"
        message = console._message(line)
        told = await console._commands.run("/undo", message)
        assert told == "No longer kept: Chess is on Fridays"
        assert await talk.rows("SELECT * FROM memories") == []
        assert (await console._commands.run("/undo", message)).startswith("There is nothing left")

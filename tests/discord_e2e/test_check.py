"""`madeleine check`: what it finds at Discord, and where it says to mend it."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from bot.check_line import CheckLine
from bot.discord_io.check import check_discord
from bot.i18n import t
from tests.discord_e2e.stage import Stage
from tests.fakes import DEFAULT_BOT, DEFAULT_EVERYONE, Intent, LoopbackDiscord, Permission

NEEDED = {
    "View Channels": Permission.VIEW_CHANNEL,
    "Send Messages": Permission.SEND_MESSAGES,
    "Send Messages in Threads": Permission.SEND_MESSAGES_IN_THREADS,
    "Read Message History": Permission.READ_MESSAGE_HISTORY,
    "Add Reactions": Permission.ADD_REACTIONS,
    "Attach Files": Permission.ATTACH_FILES,
    "Embed Links": Permission.EMBED_LINKS,
}


async def lines_of(stage: Stage) -> list[CheckLine]:
    with stage.discord.patched():
        return await check_discord(stage.config(), stage.environment["DISCORD_TOKEN"])


def found(lines: list[CheckLine]) -> list[tuple[str, str]]:
    return [(line.verdict, line.key) for line in lines]


async def test_where_all_is_well_every_line_is_good(empty_stage: Stage) -> None:
    empty_stage.discord.guild("second")
    lines = await lines_of(empty_stage)
    assert found(lines) == [
        ("ok", "check.token"),
        ("ok", "check.permissions"),
        ("ok", "check.permissions"),
    ]
    assert [line.params.get("server") for line in lines[1:]] == ["home", "second"]
    assert empty_stage.discord.gateway.identifies == 0


async def test_a_refused_token_is_named(empty_stage: Stage) -> None:
    empty_stage.tokens["DISCORD_TOKEN"] = "not.the.token"
    assert found(await lines_of(empty_stage)) == [("fault", "errors.discord.token")]


async def test_a_missing_intent_is_named_only_if_it_is_wanted(empty_stage: Stage) -> None:
    empty_stage.discord.gateway.privileged_intents = Intent(0)
    assert ("fault", "errors.discord.intent") in found(await lines_of(empty_stage))
    empty_stage.settings["DISCORD__MESSAGE_CONTENT_INTENT"] = "false"
    assert ("fault", "errors.discord.intent") not in found(await lines_of(empty_stage))


@pytest.mark.parametrize("name", NEEDED)
async def test_a_missing_permission_is_named_with_its_server(empty_stage: Stage, name: str) -> None:
    home = empty_stage.discord.home
    empty_stage.discord.change_role(home.everyone, DEFAULT_EVERYONE & ~NEEDED[name])
    assert found(await lines_of(empty_stage))[1] == ("ok", "check.permissions")
    empty_stage.discord.allow_bot(DEFAULT_BOT & ~NEEDED[name])
    line = (await lines_of(empty_stage))[1]
    assert (line.verdict, line.key) == ("fault", "check.permissions_missing")
    assert line.params == {"server": "home", "missing": name}


async def test_an_administrator_lacks_nothing(empty_stage: Stage) -> None:
    empty_stage.discord.allow_bot(Permission.ADMINISTRATOR)
    empty_stage.discord.change_role(empty_stage.discord.home.everyone, Permission.NONE)
    assert found(await lines_of(empty_stage))[1] == ("ok", "check.permissions")


async def test_without_a_server_the_invitation_is_given(empty_stage: Stage) -> None:
    empty_stage.discord.remove_bot(empty_stage.discord.home)
    line = (await lines_of(empty_stage))[1]
    text = t(line.key, "en-US", **line.params)
    assert str(empty_stage.discord.bot.id) in text
    wanted = sum(NEEDED.values())
    assert f"permissions={wanted}" in text


async def test_a_discord_that_fails_is_named(empty_stage: Stage) -> None:
    empty_stage.discord.fault("GET", "/users/@me$", status=403)
    assert found(await lines_of(empty_stage)) == [("fault", "errors.discord.unreachable")]


# --- the command line


async def checked(stage: Stage) -> tuple[int | None, str]:
    """The exit code of `madeleine check`, and what it prints: the table alone."""
    child = await asyncio.create_subprocess_exec(
        *stage.discord.child_command("check"),
        env=stage.environment | {"COLUMNS": "1000"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, log = await asyncio.wait_for(child.communicate(), timeout=30)
    assert log == b""
    return child.returncode, told.decode()


@pytest.mark.parametrize(("permissions", "code"), [(DEFAULT_BOT, 0), (Permission.NONE, 1)])
async def test_the_command_line_prints_what_it_found(
    empty_stage: Stage, permissions: Permission, code: int
) -> None:
    discord: LoopbackDiscord = empty_stage.discord
    discord.allow_bot(permissions)
    discord.change_role(discord.home.everyone, Permission.NONE)
    ended, text = await checked(empty_stage)
    assert ended == code
    assert "the application is Madeleine" in text
    assert ("these permissions are missing: View Channels" in text) == bool(code)


async def test_a_database_that_is_not_there_yet_is_well_and_not_made(empty_stage: Stage) -> None:
    ended, text = await checked(empty_stage)
    assert ended == 0
    assert "will be made at the first start" in text
    assert list(empty_stage.folder.iterdir()) == []


async def test_a_database_in_use_by_her_is_well(stage: Stage) -> None:
    ended, text = await checked(stage)
    assert ended == 0
    assert "opens, can be written, sound" in text
    assert "a running Madeleine is using it, which is fine" in text
    assert "hello" in (await stage.ask("hello")).content


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [(1, 0, "will be brought up to date at the next start"), (999, 1, "Update this program")],
)
async def test_another_schema_is_told_and_left_as_it_is(
    empty_stage: Stage, version: int, code: int, told: str
) -> None:
    async with empty_stage.madeleine():
        pass
    with closing(sqlite3.connect(empty_stage.database)) as plain:
        plain.execute(f"PRAGMA user_version = {version}")
    before = empty_stage.database.read_bytes()
    ended, text = await checked(empty_stage)
    assert (ended, told in text) == (code, True)
    assert empty_stage.database.read_bytes() == before


async def test_what_is_no_database_is_a_fault(empty_stage: Stage) -> None:
    empty_stage.database.write_text("dear diary, " * 200, encoding="utf-8")
    ended, text = await checked(empty_stage)
    assert (ended, "is not a database of mine" in text) == (1, True)


async def test_another_programs_database_is_a_fault(empty_stage: Stage) -> None:
    with closing(sqlite3.connect(empty_stage.database)) as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
    before = empty_stage.database.read_bytes()
    ended, text = await checked(empty_stage)
    assert (ended, "is not a database of mine" in text) == (1, True)
    assert empty_stage.database.read_bytes() == before


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("", "Put the bot's token into the environment variable DISCORD_TOKEN"),
        ("two words", "must be one line of plain letters, digits and signs"),
    ],
)
async def test_a_token_that_is_missing_or_can_be_none_is_told_in_a_whole_sentence(
    empty_stage: Stage, token: str, told: str
) -> None:
    empty_stage.tokens["DISCORD_TOKEN"] = token
    ended, text = await checked(empty_stage)
    assert (ended, told in text) == (1, True)
    assert "No Discord token. is" not in text

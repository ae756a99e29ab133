"""Commands are sent to Discord when they changed, and they follow its rules in every language."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import discord
import pytest
from discord import app_commands

from bot.discord_io.command_sync import payload_hash
from bot.i18n import catalogue
from tests.discord_e2e.stage import Stage
from tests.fakes import LoopbackDiscord
from tests.fakes.discord.command_rules import check_command, size_of

LOCALES = catalogue().locales

PUT = ("PUT", r"/applications/\d+/commands$")


# --- when


async def test_commands_are_sent_once_and_not_again_at_the_next_start(empty_stage: Stage) -> None:
    for _ in range(2):
        async with empty_stage.madeleine():
            assert {one["name"] for one in empty_stage.discord.commands.everywhere} == {
                "memory",
                "scene",
                "features",
                "channel",
                "persona",
                "privacy",
            }
    assert empty_stage.discord.commands.puts == 1


async def test_commands_that_discord_refuses_keep_nobody_from_talking(empty_stage: Stage) -> None:
    fault = empty_stage.discord.fault(*PUT, status=400, code=50035)
    async with empty_stage.madeleine():
        assert "hello" in (await empty_stage.ask("hello")).content
    assert fault.hits == 1
    async with empty_stage.madeleine():
        assert empty_stage.discord.commands.puts == 1


async def test_commands_are_not_sent_where_the_config_says_so(empty_stage: Stage) -> None:
    empty_stage.settings["DISCORD__SYNC_COMMANDS"] = "false"
    async with empty_stage.madeleine():
        assert empty_stage.discord.commands.puts == 0


class OneWord(app_commands.Translator):
    """Translates everything into one word."""

    def __init__(self, word: str) -> None:
        self._word = word

    async def translate(self, *_: object) -> str:
        return self._word


async def greet(interaction: discord.Interaction) -> None:
    """Says hello."""


async def hash_with(word: str, *, application_id: int = 1) -> str:
    """What is kept of one command whose texts are one word."""
    client = discord.Client(intents=discord.Intents.none(), application_id=application_id)
    tree = app_commands.CommandTree(client)
    name = app_commands.locale_str("greet")
    tree.add_command(app_commands.Command(name=name, description="x", callback=greet))
    await tree.set_translator(OneWord(word))
    return await payload_hash(tree)


async def test_another_translation_is_a_change() -> None:
    hashes = await asyncio.gather(*map(hash_with, ("hallo", "hallo", "salut")))
    assert hashes[0] == hashes[1] != hashes[2]


async def test_the_commands_of_another_application_are_a_change() -> None:
    hashes = [await hash_with("hallo", application_id=number) for number in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


async def test_another_bot_on_the_same_database_sends_its_commands(empty_stage: Stage) -> None:
    stage = empty_stage
    async with stage.madeleine():
        assert stage.discord.commands.puts == 1
    async with LoopbackDiscord() as elsewhere:
        other = replace(stage, discord=elsewhere)
        async with other.madeleine():
            assert elsewhere.commands.puts == 1


# --- what


@pytest.fixture
async def sent(stage: Stage) -> list[dict[str, Any]]:
    """The commands as they were sent."""
    [call] = stage.discord.calls_to(*PUT)
    return call.json


def parts(thing: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A command, its options and their choices, all the way down."""
    yield thing
    for inner in (*(thing.get("options") or ()), *(thing.get("choices") or ())):
        yield from parts(inner)


def in_language(thing: dict[str, Any], locale: str) -> dict[str, Any]:
    """A command as somebody sees it whose Discord speaks that language."""
    seen = {key: value for key, value in thing.items() if not key.endswith("_localizations")}
    for field in ("name", "description"):
        if translated := (thing.get(f"{field}_localizations") or {}).get(locale):
            seen[field] = translated
    for inner in ("options", "choices"):
        if inner in thing:
            seen[inner] = [in_language(one, locale) for one in thing[inner] or ()]
    return seen


@pytest.mark.parametrize("locale", LOCALES)
async def test_every_command_is_translated(sent: list[dict[str, Any]], locale: str) -> None:
    if locale == "en-US":
        return
    lacking = [
        part["name"]
        for command in sent
        for part in parts(command)
        if locale not in (part.get("name_localizations") or {})
        or ("description" in part and locale not in (part.get("description_localizations") or {}))
    ]
    assert lacking == []


@pytest.mark.parametrize("locale", LOCALES)
async def test_every_command_follows_discords_rules(
    sent: list[dict[str, Any]], locale: str
) -> None:
    for command in sent:
        check_command(in_language(command, locale), command["name"])


@pytest.mark.parametrize("locale", LOCALES)
async def test_no_two_things_side_by_side_have_one_name(
    sent: list[dict[str, Any]], locale: str
) -> None:
    seen = [in_language(command, locale) for command in sent]
    beside = [seen, *(part.get("options") or [] for one in seen for part in parts(one))]
    beside += [part.get("choices") or [] for one in seen for part in parts(one)]
    for group in beside:
        names = [one["name"] for one in group]
        assert len(set(names)) == len(names), names


async def test_every_command_is_small_enough_in_its_longest_language(
    sent: list[dict[str, Any]],
) -> None:
    assert all(size_of(command) <= 8_000 for command in sent)


async def test_what_belongs_to_a_server_is_offered_to_its_managers(
    sent: list[dict[str, Any]],
) -> None:
    for_managers = {
        one["name"]: one for one in sent if one["default_member_permissions"] is not None
    }
    assert for_managers.keys() == {"features", "channel", "persona"}
    for one in for_managers.values():
        assert int(one["default_member_permissions"]) == discord.Permissions.manage_guild.flag
        assert one["contexts"] == [0]

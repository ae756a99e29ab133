"""What `madeleine run` needs of Discord, and what it says where that is missing."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.errors import ConfigError, StartupError
from bot.i18n import t
from bot.run import run_discord
from tests.discord_e2e.stage import Stage
from tests.fakes import Intent, LoopbackDiscord, LoopbackModel
from tests.fakes.discord.pointing import discord_py_pointed_at

PLAIN_INTENTS = Intent.GUILDS | Intent.GUILD_MESSAGES | Intent.DIRECT_MESSAGES


def asked_intents(stage: Stage) -> Intent:
    [identify] = [one for one in stage.discord.gateway.received if one["op"] == 2]
    return Intent(identify["d"]["intents"])


async def refusal_of(stage: Stage) -> StartupError:
    """Why she does not start."""
    with stage.discord.patched(), pytest.raises(StartupError) as caught:
        await asyncio.wait_for(run_discord(stage.config(), stage.environment), timeout=10)
    return caught.value


async def test_only_the_needed_intents_are_asked_for(stage: Stage) -> None:
    assert asked_intents(stage) == PLAIN_INTENTS | Intent.MESSAGE_CONTENT


async def test_the_message_content_intent_is_asked_for_only_if_wanted(empty_stage: Stage) -> None:
    empty_stage.settings["DISCORD__MESSAGE_CONTENT_INTENT"] = "false"
    async with empty_stage.madeleine():
        assert asked_intents(empty_stage) == PLAIN_INTENTS


async def test_a_missing_intent_is_named_with_the_place_to_mend_it(tmp_path: Path) -> None:
    async with LoopbackDiscord(privileged_intents=Intent(0)) as discord, LoopbackModel() as model:
        error = await refusal_of(Stage(discord=discord, model=model, folder=tmp_path))
    assert error.key == "errors.discord.intent"
    assert "Bot, Message Content Intent" in t(error.key, "en-US")


async def test_a_refused_token_is_named_with_the_place_to_mend_it(empty_stage: Stage) -> None:
    empty_stage.tokens["DISCORD_TOKEN"] = "not.the.token"
    error = await refusal_of(empty_stage)
    assert error.key == "errors.discord.token"
    assert "developer portal" in t(error.key, "en-US")


async def test_a_discord_that_cannot_be_reached_is_named(empty_stage: Stage) -> None:
    nowhere = "http://127.0.0.1:9", "ws://127.0.0.1:9"
    with discord_py_pointed_at(*nowhere), pytest.raises(StartupError) as caught:
        await run_discord(empty_stage.config(), empty_stage.environment)
    assert caught.value.key == "errors.discord.unreachable"


async def test_without_token_or_model_nothing_is_opened(empty_stage: Stage) -> None:
    empty_stage.tokens["DISCORD_TOKEN"] = ""
    with pytest.raises(ConfigError) as caught:
        await run_discord(empty_stage.config(), empty_stage.environment)
    assert [fault.key for fault in caught.value.faults] == ["token"]
    assert not empty_stage.database.exists()


async def test_a_second_one_on_the_same_database_is_refused(stage: Stage) -> None:
    with pytest.raises(StartupError) as caught:
        await run_discord(stage.config(), stage.environment)
    assert caught.value.key == "errors.storage.locked"
    assert "hello" in (await stage.ask("hello")).content


async def test_a_database_that_another_program_holds_is_named(empty_stage: Stage) -> None:
    stage = empty_stage
    stage.settings["STORAGE__BUSY_TIMEOUT_MS"] = "20"
    async with stage.madeleine():
        pass
    with closing(sqlite3.connect(stage.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = await refusal_of(stage)
    assert error.key == "errors.storage.cannot_write"
    assert str(stage.database) in t(error.key, "en-US", **error.params)


async def test_the_command_line_says_what_to_mend_and_ends_with_two(empty_stage: Stage) -> None:
    empty_stage.tokens["DISCORD_TOKEN"] = "not.the.token"
    async with empty_stage.process() as child:
        assert await asyncio.wait_for(child.wait(), timeout=10) == 2
    said = (empty_stage.folder / "stderr.txt").read_text("utf-8")
    assert t("errors.discord.token", "en-US") in said
    assert "Traceback" not in said
    assert "not.the.token" not in said

"""Feature flags: the default gives way to the config, the config to the server."""

import asyncio
from pathlib import Path

import pytest

from bot.audience import DIRECT_MESSAGES
from bot.config import FeaturesConfig
from bot.features import DEFAULTS, Flag
from bot.identifiers import GuildId
from bot.storage.statements import Transaction
from tests.talk import GUILD, open_talk

OTHER = GuildId(GUILD + 1)


async def test_every_flag_but_images_is_on_where_nobody_chose(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        states = await talk.app.services.features.states(GUILD)
    assert {flag for flag, state in states.items() if not state.enabled} == {Flag.IMAGES}
    assert states.keys() == set(Flag) == DEFAULTS.keys()
    assert {state.changed_by for state in states.values()} == {None}


@pytest.mark.parametrize("flag", list(Flag))
async def test_the_config_changes_the_default_and_the_server_changes_it_again(
    tmp_path: Path, flag: Flag
) -> None:
    turned = not DEFAULTS[flag]
    environ = {f"MADELEINE__FEATURES__{flag.value.upper()}": str(turned).lower()}
    async with open_talk(tmp_path, environ=environ) as talk:
        features = talk.app.services.features
        assert await features.enabled(GUILD, flag) is turned
        await talk.switch(flag, on=not turned)
        assert await features.enabled(GUILD, flag) is not turned
        assert await features.enabled(OTHER, flag) is turned
        others = {f: s.enabled for f, s in (await features.states(GUILD)).items() if f != flag}
        assert others == {f: on for f, on in DEFAULTS.items() if f != flag}


async def test_who_switched_a_flag_and_when_is_kept_over_a_restart(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.RECALL, on=False)
        manager, when = talk.person("Manager").id, talk.clock.now()
    async with open_talk(tmp_path) as talk:
        state = (await talk.app.services.features.states(GUILD))[Flag.RECALL]
    assert (state.enabled, state.default) == (False, True)
    assert (state.changed_by, state.changed_at) == (manager, when)


async def test_a_flag_of_an_older_version_is_left_alone(tmp_path: Path) -> None:
    async def write(tx: Transaction) -> None:
        await tx.execute("INSERT INTO feature_flags VALUES (?, 'old_flag', 1, 1, 1)", (GUILD,))

    async with open_talk(tmp_path) as talk:
        await talk.app.services.database.write(write)
        assert (await talk.app.services.features.states(GUILD)).keys() == set(Flag)
        assert len(await talk.rows("SELECT * FROM feature_flags")) == 1


def test_every_flag_is_a_key_of_the_config_with_the_same_default() -> None:
    assert {Flag(key): value for key, value in FeaturesConfig().model_dump().items()} == DEFAULTS


async def test_a_flag_is_switched_in_one_server_alone(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        features = talk.app.services.features
        for guild in (GUILD, OTHER, DIRECT_MESSAGES):
            await features.states(guild)
        await talk.switch(Flag.SELF_TEACHING, on=False)
        assert not await features.enabled(GUILD, Flag.SELF_TEACHING)
        assert await features.enabled(OTHER, Flag.SELF_TEACHING)
        assert await features.enabled(DIRECT_MESSAGES, Flag.SELF_TEACHING)


async def test_whoever_gave_up_waiting_has_switched_all_the_same(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await talk.app.services.features.enabled(GUILD, Flag.RECALL)
        switching = asyncio.create_task(talk.switch(Flag.RECALL, on=False))
        await asyncio.sleep(0)
        switching.cancel()
        await talk.switch(Flag.RECALL, on=False, guild=OTHER)  # is written after the first
        assert not await talk.app.services.features.enabled(GUILD, Flag.RECALL)

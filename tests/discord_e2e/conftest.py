from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import LoopbackDiscord, LoopbackModel


@pytest.fixture
async def empty_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """Discord, model and an empty folder; Madeleine is not started."""
    async with LoopbackDiscord() as discord, LoopbackModel() as model:
        discord.buckets.clear()  # no test here is about the pace of edits
        yield Stage(discord=discord, model=model, folder=tmp_path)


@pytest.fixture
async def stage(empty_stage: Stage) -> AsyncIterator[Stage]:
    """The same with Madeleine connected."""
    async with empty_stage.madeleine():
        yield empty_stage

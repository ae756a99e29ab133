"""A privacy level is in force exactly from its commit on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import StorageUnavailable
from bot.identifiers import GuildId, UserId
from bot.memory.people import People
from bot.privacy.levels import EVERYWHERE, Levels, PrivacyLevel
from bot.privacy.names import Called
from bot.storage.database import Database
from bot.storage.statements import Transaction
from tests.talk import FakeClock

ANN = UserId(1)
HERE, THERE = GuildId(500), GuildId(600)
OPEN, PARTIAL, FULL = PrivacyLevel


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield database
    await database.close()


@pytest.fixture
def levels(database: Database) -> Levels:
    return Levels(database, FakeClock())


async def test_a_level_that_could_not_be_written_is_not_in_force(
    database: Database, levels: Levels
) -> None:
    await levels.set(ANN, HERE, PARTIAL)
    await database.close()
    with pytest.raises(StorageUnavailable):
        await levels.set(ANN, HERE, OPEN)
    assert levels.of(ANN, HERE) is PARTIAL


async def test_a_level_holds_from_the_commit_on_even_if_nobody_waits(
    database: Database, levels: Levels
) -> None:
    setting = asyncio.create_task(levels.set(ANN, EVERYWHERE, FULL))
    await asyncio.sleep(0)
    setting.cancel()

    async def next_write(tx: Transaction) -> None:
        await tx.fetch_all("SELECT 1")

    await database.write(next_write)
    assert levels.of(ANN, HERE) is FULL


async def test_of_two_levels_at_once_the_one_written_last_holds(
    database: Database, levels: Levels
) -> None:
    await asyncio.gather(*(levels.set(ANN, HERE, level) for level in (FULL, OPEN, PARTIAL)))
    assert levels.of(ANN, HERE) is PARTIAL
    again = Levels(database, FakeClock())
    await again.load()
    assert again.of(ANN, HERE) is PARTIAL


async def test_before_they_are_loaded_no_level_is_invented(levels: Levels) -> None:
    assert levels.at_least(OPEN, HERE) == frozenset()
    assert levels.of(ANN, HERE) is OPEN


async def test_the_name_of_whoever_chose_a_level_is_known_where_it_was_chosen(
    database: Database, levels: Levels
) -> None:
    await levels.set(ANN, EVERYWHERE, FULL, called=Called(user=ANN, name="Ann"), seen_in=HERE)
    people = People(database)
    assert await people.known_as(HERE, [ANN]) == [("Ann", ANN)]
    assert await people.known_as(THERE, [ANN]) == []

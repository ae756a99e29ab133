"""The main persona: made once when she is needed, of one lineage in every server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.audience import DIRECT_MESSAGES
from bot.identifiers import GuildId
from bot.persona.personas import FIRST_LINEAGE, Personas
from bot.storage.database import Database
from tests.storage.jobs import opened
from tests.talk import FakeClock

GUILD, OTHER = GuildId(500), GuildId(600)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield database
    await database.close()


def personas(database: Database, name: str = "Madeleine") -> Personas:
    return Personas(database, FakeClock(), default_name=name)


async def test_a_server_gets_one_main_persona_however_many_ask_at_once(database: Database) -> None:
    several = (personas(database), personas(database))
    found = await asyncio.gather(*(one.main(GUILD) for one in several for _ in range(10)))
    assert len({persona.id for persona in found}) == 1
    assert len(await database.fetch_all("SELECT 1 FROM personas")) == 1


async def test_every_server_and_direct_messages_share_the_first_lineage(database: Database) -> None:
    found = [await personas(database).main(guild) for guild in (GUILD, OTHER, DIRECT_MESSAGES)]
    assert {persona.lineage for persona in found} == {FIRST_LINEAGE}
    assert len({persona.id for persona in found}) == 3
    assert [persona.guild_id for persona in found] == [GUILD, OTHER, DIRECT_MESSAGES]


async def test_a_persona_keeps_her_id_and_name_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as first:
        before = await personas(first).main(GUILD)
    async with opened(path) as second:
        assert await personas(second, "Somebody else").main(GUILD) == before


async def test_a_new_persona_has_a_name_and_something_to_go_by(database: Database) -> None:
    persona = await personas(database).main(GUILD)
    assert persona.name == "Madeleine"
    assert persona.prompt
    assert persona.sample_lines == ()


async def test_whoever_gave_up_waiting_leaves_a_whole_persona(database: Database) -> None:
    one = personas(database)
    asking = asyncio.create_task(one.main(GUILD))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert (await one.main(GUILD)).lineage == FIRST_LINEAGE
    assert len(await database.fetch_all("SELECT 1 FROM personas")) == 1

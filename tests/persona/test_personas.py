"""The main persona: made once when she is needed, of one lineage in every server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.audience import DIRECT_MESSAGES
from bot.identifiers import GuildId
from bot.persona.personas import FIRST_LINEAGE, Personas, PersonaState
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


# --- asleep, paused, awake


@pytest.mark.parametrize(
    ("state", "takes_turns"),
    [
        (PersonaState.ACTIVE, True),
        (PersonaState.ASLEEP, True),
        (PersonaState.UNCONSCIOUS, False),
        (PersonaState.INACTIVE, False),
        (PersonaState.DEAD, False),
    ],
)
async def test_a_persona_is_in_the_state_that_was_chosen_and_known_by_it(
    database: Database, state: PersonaState, takes_turns: bool
) -> None:
    those = personas(database)
    await those.set_state(await those.main(GUILD), state)
    persona = await those.main(GUILD)
    assert (persona.state, persona.takes_turns) == (state, takes_turns)


async def test_a_state_is_kept_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as first:
        those = personas(first)
        await those.set_state(await those.main(GUILD), PersonaState.ASLEEP)
    async with opened(path) as second:
        assert (await personas(second).main(GUILD)).state is PersonaState.ASLEEP


async def test_a_state_holds_in_its_own_server_only(database: Database) -> None:
    those = personas(database)
    await those.set_state(await those.main(GUILD), PersonaState.UNCONSCIOUS)
    assert (await those.main(OTHER)).state is PersonaState.ACTIVE


async def test_a_state_lasts_since_it_was_entered(database: Database) -> None:
    clock = FakeClock()
    those = Personas(database, clock, default_name="Madeleine")
    await those.set_state(await those.main(GUILD), PersonaState.ASLEEP)
    asleep_since = await state_since(database)
    clock.pass_(hours=1)
    await those.set_state(await those.main(GUILD), PersonaState.ASLEEP)
    assert await state_since(database) == asleep_since
    await those.set_state(await those.main(GUILD), PersonaState.ACTIVE)
    assert await state_since(database) == asleep_since + 3_600_000


async def state_since(database: Database) -> int:
    row = await database.fetch_one("SELECT state_since FROM personas")
    assert row is not None
    return int(row[0])

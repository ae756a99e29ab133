"""What people are called in a server: which name is shown, and under which they are known."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.identifiers import GuildId, UserId
from bot.memory.people import People
from bot.privacy.names import MOST_NAMES, Called, keep_names
from bot.storage.database import Database
from bot.storage.migrations import load_migrations
from bot.storage.statements import Transaction

ANN, BEN = UserId(1), UserId(2)
HERE, THERE = GuildId(500), GuildId(600)


class Names:
    """The names in a file, each kept a second after the one before."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._people = People(database)
        self._now_ms = 0

    async def keep(self, *called: Called, guild: GuildId = HERE) -> None:
        self._now_ms += 1_000

        async def job(tx: Transaction) -> None:
            await keep_names(tx, guild, called, self._now_ms)

        await self._database.write(job)

    async def shown(self, user: UserId = ANN, guild: GuildId = HERE) -> str | None:
        return (await self._people.names(guild, [user])).get(user)

    async def known(self, user: UserId = ANN, guild: GuildId = HERE) -> set[str]:
        return {name for name, _ in await self._people.known_as(guild, [user])}


@pytest.fixture
async def names(tmp_path: Path) -> AsyncIterator[Names]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield Names(database)
    await database.close()


def account(name: str, *others: str) -> Called:
    """Ann, as the past of a channel shows her."""
    return Called(user=ANN, name=name, others=others, of_account=True)


def member(name: str, *others: str) -> Called:
    return Called(user=ANN, name=name, others=others)


async def test_a_members_newest_name_is_shown_and_the_others_stay_known(names: Names) -> None:
    await names.keep(member("Captain", "Ann", "ann77"))
    await names.keep(member("Pirate", "Ann", "ann77"))
    assert await names.shown() == "Pirate"
    assert await names.known() == {"Captain", "Pirate", "Ann", "ann77"}


async def test_an_accounts_name_never_takes_the_place_of_a_members(names: Names) -> None:
    await names.keep(account("Ann", "ann77"))
    assert await names.shown() == "Ann"
    await names.keep(account("Anna", "ann77"))
    assert await names.shown() == "Anna"
    await names.keep(member("Captain"))
    await names.keep(account("Anna", "ann77"))
    assert await names.shown() == "Captain"
    assert await names.known() == {"Ann", "Anna", "ann77", "Captain"}


@pytest.mark.parametrize("accounts_first", [True, False])
async def test_of_names_seen_at_once_the_members_is_shown(
    names: Names, *, accounts_first: bool
) -> None:
    both = [account("Ann"), member("Captain")]
    await names.keep(*(both if accounts_first else reversed(both)))
    assert await names.shown() == "Captain"
    assert await names.known() == {"Ann", "Captain"}


async def test_the_last_few_names_of_each_person_are_kept(names: Names) -> None:
    await names.keep(Called(user=BEN, name="Ben"))
    for number in range(MOST_NAMES):
        await names.keep(member(f"Ann {number}"))
    assert await names.known() == {f"Ann {number}" for number in range(MOST_NAMES)}
    await names.keep(member(f"Ann {MOST_NAMES}"))
    assert await names.known() == {f"Ann {number}" for number in range(1, MOST_NAMES + 1)}
    assert await names.known(BEN) == {"Ben"}


async def test_the_name_that_is_shown_is_known_however_many_came_after(names: Names) -> None:
    await names.keep(member("Captain"))
    for number in range(MOST_NAMES + 1):
        await names.keep(account(f"Ann {number}"))
    assert "Captain" in await names.known()


async def test_a_name_stays_in_its_server(names: Names) -> None:
    await names.keep(member("Captain"))
    await names.keep(member("Ann"), guild=THERE)
    assert await names.known() == {"Captain"}
    assert await names.known(guild=THERE) == {"Ann"}


async def test_names_of_an_older_file_are_known(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    await (await Database.open(path, migrations=load_migrations()[:2])).close()
    with closing(sqlite3.connect(path)) as older:
        older.execute("INSERT INTO people VALUES (500, 1, 'Captain', 0)")
        older.commit()
    database = await Database.open(path)
    names = Names(database)
    assert (await names.shown(), await names.known()) == ("Captain", {"Captain"})
    await database.close()

"""The registry of user data names every column there is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.privacy.user_data import USER_DATA, Holds
from bot.storage.database import Database

PERSON_COLUMNS = ("user_id", "author_id", "actor_id", "said_by", "written_by", "changed_by")


@pytest.fixture
async def columns(tmp_path: Path) -> AsyncIterator[set[tuple[str, str]]]:
    """Every column of a database as the migrations make it."""
    database = await Database.open(tmp_path / "madeleine.db")
    rows = await database.fetch_all(
        "SELECT t.name AS tab, c.name AS col FROM pragma_table_list AS t, pragma_table_info(t.name)"
        " AS c WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'"
    )
    yield {(row["tab"], row["col"]) for row in rows}
    await database.close()


async def test_every_column_is_registered(columns: set[tuple[str, str]]) -> None:
    assert len(columns) > 100
    assert columns - USER_DATA.keys() == set()


async def test_every_registered_column_exists(columns: set[tuple[str, str]]) -> None:
    assert USER_DATA.keys() - columns == set()


async def test_a_column_that_is_named_like_a_person_holds_one(
    columns: set[tuple[str, str]],
) -> None:
    named = {key for key in columns if key[1] in PERSON_COLUMNS or key[1].endswith("_by")}
    assert {key for key in named if USER_DATA[key] is not Holds.PERSON} == set()


async def test_a_column_that_holds_words_is_registered_as_text(
    columns: set[tuple[str, str]],
) -> None:
    worded = {key for key in columns if key[1] in {"content", "summary", "prompt", "display_name"}}
    assert {key for key in worded if USER_DATA[key] is not Holds.TEXT} == set()

"""The schema keeps its own rules: strict tables, and no delete that walks through a table."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.storage.migrations import load_migrations

BOT = Path(__file__).parents[2] / "bot"
NEVER_DELETED = {"origins", "lineages", "personas", "handoff_runs"}
"""Parents whose children need no index of their own."""


@pytest.fixture
def schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        for migration in load_migrations():
            for statement in migration.statements:
                connection.execute(statement)
        yield connection


def tables(schema: sqlite3.Connection) -> list[str]:
    rows = schema.execute("SELECT name FROM pragma_table_list WHERE schema = 'main'")
    return [row["name"] for row in rows if not row["name"].startswith("sqlite_")]


def leading_columns(schema: sqlite3.Connection, table: str) -> set[str]:
    """Columns by which rows of a table are found without reading the whole of it."""
    found = {
        row["name"]
        for row in schema.execute(f"SELECT * FROM pragma_table_info('{table}')")
        if row["pk"] == 1
    }
    for index in schema.execute(f"SELECT name FROM pragma_index_list('{table}')").fetchall():
        first = schema.execute(f"SELECT name FROM pragma_index_info('{index['name']}')").fetchone()
        found.add(first["name"])
    return found


def foreign_keys(schema: sqlite3.Connection) -> Iterator[tuple[str, sqlite3.Row]]:
    for table in tables(schema):
        for key in schema.execute(f"SELECT * FROM pragma_foreign_key_list('{table}')"):
            yield table, key


def test_every_table_is_strict(schema: sqlite3.Connection) -> None:
    rows = schema.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
    assert [
        r["name"] for r in rows if not r["strict"] and not r["name"].startswith("sqlite_")
    ] == []


def test_what_goes_with_its_parent_is_found_by_an_index(schema: sqlite3.Connection) -> None:
    slow = [
        f"{table}.{key['from']}"
        for table, key in foreign_keys(schema)
        if key["table"] not in NEVER_DELETED
        and key["seq"] == 0  # of a key of several columns the first
        and key["from"] not in leading_columns(schema, table)
    ]
    assert slow == []


def test_parents_without_indexed_children_are_never_deleted() -> None:
    pattern = re.compile(rf"DELETE\s+FROM\s+({'|'.join(sorted(NEVER_DELETED))})\b")
    code = [path for path in BOT.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))]
    assert code == []


def test_every_parent_exists(schema: sqlite3.Connection) -> None:
    assert {key["table"] for _, key in foreign_keys(schema)} <= set(tables(schema))


def test_the_reserved_lineages_are_there_from_the_first_moment(schema: sqlite3.Connection) -> None:
    assert [row["id"] for row in schema.execute("SELECT id FROM lineages")] == [0, 1]


def test_no_persona_can_be_of_the_global_lineage(schema: sqlite3.Connection) -> None:
    sql = (
        "INSERT INTO personas (guild_id, lineage_id, name, prompt, is_main, state_since,"
        " created_at, updated_at) VALUES (1, ?, 'a', '', 1, 0, 0, 0)"
    )
    with pytest.raises(sqlite3.IntegrityError):
        schema.execute(sql, (0,))
    schema.execute(sql, (1,))

"""Migrations: each step whole or not at all, from nothing and from every kept schema."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import StartupError
from bot.storage.database import Database
from bot.storage.migrations import Migration, load_migrations, split_statements
from tests.storage.jobs import keep, keys, opened

FIRST = load_migrations()[0]


def step(version: int, *statements: str) -> Migration:
    return Migration(version=version, name=f"{version:04}_step", statements=statements)


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as plain:
        return int(plain.execute("PRAGMA user_version").fetchone()[0])


async def test_from_version_1_only_what_follows_is_run_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path, migrations=(FIRST,)) as old:
        await old.write(keep("kept"))
    second = step(2, "CREATE TABLE added (x INTEGER) STRICT")
    async with opened(path, migrations=(FIRST, second)) as new:
        assert await keys(new) == {"kept"}
        assert await new.fetch_all("SELECT * FROM added") == []
    assert version_of(path) == 2


async def test_a_step_that_fails_can_be_mended_and_run_again(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    broken = step(2, "CREATE TABLE added (x INTEGER)", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(StartupError) as refused:
        await (await Database.open(path, migrations=(FIRST, broken))).close()
    assert refused.value.key == "errors.storage.cannot_open"
    assert version_of(path) == 1
    mended = step(2, "CREATE TABLE added (x INTEGER)")
    await (await Database.open(path, migrations=(FIRST, mended))).close()
    assert version_of(path) == 2


async def test_a_constraint_that_old_rows_break_is_told_and_leaves_them(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path, migrations=(FIRST,)) as old:
        await old.write(keep("a", "same"))
        await old.write(keep("b", "same"))
    stricter = step(2, "CREATE UNIQUE INDEX one_value ON application_state (value)")
    with pytest.raises(StartupError):
        await (await Database.open(path, migrations=(FIRST, stricter))).close()
    async with opened(path, migrations=(FIRST,)) as again:
        assert await keys(again) == {"a", "b"}


# --- the folder


@pytest.mark.parametrize(
    "names",
    [("0002_late.sql",), ("0001_a.sql", "0003_c.sql"), ("1_short.sql",), ("0001-dashes.sql",)],
)
def test_a_wrong_name_or_number_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_text("CREATE TABLE a (x);", encoding="utf-8")
    with pytest.raises(ValueError, match=r"not named|not numbered"):
        load_migrations(tmp_path)


def test_migrations_are_read_in_order(tmp_path: Path) -> None:
    for name in ("0002_b.sql", "0001_a.sql"):
        (tmp_path / name).write_text(f"CREATE TABLE t{name[:4]} (x);", encoding="utf-8")
    assert [m.version for m in load_migrations(tmp_path)] == [1, 2]


# --- statements


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("CREATE TABLE a (x); CREATE TABLE b (x);", 2),
        ("CREATE TABLE a (x); -- a note; with a semicolon\nCREATE TABLE b (x);", 2),
        ("CREATE TABLE a (x TEXT DEFAULT 'it''s; not over');", 1),
        ('CREATE TABLE "semi;colon" (x);', 1),
        ("/* a block; of notes */ CREATE TABLE a (x);", 1),
        ("CREATE TABLE a (x);\n-- the end", 1),
        ("CREATE TABLE a (x);\n/* the; end */\n", 1),
        (
            "CREATE TABLE a (x); CREATE TRIGGER t AFTER INSERT ON a BEGIN\n"
            "  UPDATE a SET x = CASE WHEN x = ';' THEN 1 ELSE 2 END; DELETE FROM a;\nEND;"
            " CREATE TABLE b (x);",
            3,
        ),
        ("", 0),
        ("-- nothing; here\n", 0),
    ],
)
def test_a_script_is_split_into_statements_that_run_one_by_one(script: str, count: int) -> None:
    statements = split_statements(script)
    assert len(statements) == count
    with closing(sqlite3.connect(":memory:")) as plain:
        for statement in statements:
            plain.execute(statement)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE a (x)",
        "CREATE TABLE a (x); CREATE TABLE b (x)",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a;",
        "CREATE TABLE a (x TEXT DEFAULT ';",
    ],
)
def test_a_script_that_ends_inside_a_statement_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="inside a statement"):
        split_statements(script)


PIECES = st.sampled_from(
    [
        "CREATE TABLE a (x TEXT DEFAULT ';')",
        "INSERT INTO a VALUES ('--;', \"/*;*/\")",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; SELECT ';'; END",
        "DELETE FROM a -- why; because\n",
    ]
)


@given(st.lists(PIECES, max_size=6), st.sampled_from([";", ";\n", " ;\n\n-- note; x\n"]))
def test_joined_statements_come_apart_again(pieces: list[str], joint: str) -> None:
    script = "".join(piece + joint for piece in pieces)
    assert len(split_statements(script)) == len(pieces)

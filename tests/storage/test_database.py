"""Opening, migrating, reading: what the file promises."""

import asyncio
import sqlite3
import sys
import threading
from pathlib import Path

import pytest

from bot.errors import StartupError, StorageUnavailable
from bot.storage.database import Database
from bot.storage.migrations import Migration, load_migrations, split_statements
from bot.storage.statements import Snapshot, Transaction
from bot.storage.writer import LOCK_SLICE_MS
from tests.storage.jobs import keep, opened

HOLD = """
import asyncio, sys
from pathlib import Path
from bot.storage.database import Database
async def main():
    database = await Database.open(Path(sys.argv[1]))
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await database.close()
asyncio.run(main())
"""


async def test_a_second_process_is_refused_with_the_files_name(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLD, str(path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"open\n"
    with pytest.raises(StartupError) as refusal:
        await (await Database.open(path)).close()
    assert (refusal.value.key, refusal.value.params["path"]) == (
        "errors.storage.locked",
        str(path),
    )
    await other.communicate(b"")
    await (await Database.open(path)).close()


async def test_a_file_of_a_newer_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(StartupError) as refusal:
        await (await Database.open(path)).close()
    assert refusal.value.key == "errors.storage.newer"
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 200, encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(StartupError) as refusal:
        await (await Database.open(path)).close()
    assert refusal.value.key == "errors.storage.not_a_database"
    assert path.read_bytes() == before


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(StartupError) as refusal:
        await (await Database.open(blocked / "madeleine.db")).close()
    assert refusal.value.key == "errors.storage.cannot_open"


async def test_a_failing_migration_leaves_the_step_before(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    good = Migration(version=1, name="0001_good", statements=("CREATE TABLE a (x INTEGER)",))
    bad = Migration(
        version=2, name="0002_bad", statements=("CREATE TABLE b (x INTEGER)", "NO SUCH STATEMENT")
    )
    with pytest.raises(StartupError):
        await (await Database.open(path, migrations=(good, bad))).close()
    with sqlite3.connect(path) as plain:
        tables = {row[0] for row in plain.execute("SELECT name FROM sqlite_master")}
        assert plain.execute("PRAGMA user_version").fetchone() == (1,)
    plain.close()
    assert "a" in tables
    assert "b" not in tables


async def test_the_schema_is_made_from_nothing_and_taken_as_it_is_the_next_time(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        async with opened(tmp_path / "madeleine.db") as database:
            version = await database.fetch_one("PRAGMA user_version")
            assert version is not None
            assert version[0] == len(load_migrations())
            assert await database.fetch_all("PRAGMA foreign_key_check") == []


def test_statements_are_split_where_sqlite_sees_their_end() -> None:
    script = (
        "-- a comment; with a semicolon\nCREATE TABLE a (x TEXT DEFAULT ';');\n"
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\n  DELETE FROM a;\nEND;\n"
    )
    assert len(split_statements(script)) == 2
    with pytest.raises(ValueError, match="inside a statement"):
        split_statements("CREATE TABLE a (x TEXT)")


async def test_the_pragmas_are_in_force(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db", busy_timeout_ms=1_234) as database:

        async def pragmas(tx: Snapshot) -> dict[str, object]:
            names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
            return {name: (await tx.fetch_all(f"PRAGMA {name}"))[0][0] for name in names}

        assert await database.write(pragmas) == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "secure_delete": 1,
            "busy_timeout": LOCK_SLICE_MS,
        }
        assert (await database.read(pragmas))["busy_timeout"] == 1_234
        for _ in range(2):  # every reader
            assert (await database.fetch_all("PRAGMA query_only"))[0][0] == 1


async def test_a_child_without_its_parent_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:

        async def orphan(tx: Transaction) -> None:
            await tx.execute("INSERT INTO turn_replies VALUES (1, 404, 0)")

        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            await database.write(orphan)


async def test_what_is_deleted_is_gone_from_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as database:
        await database.write(keep("key", "needle-in-the-haystack"))

        async def delete(tx: Transaction) -> None:
            await tx.execute("DELETE FROM application_state")

        await database.write(delete)
    assert b"needle-in-the-haystack" not in path.read_bytes()


async def test_a_reader_cannot_write_and_sees_one_state(tmp_path: Path) -> None:
    async with opened(tmp_path / "madeleine.db") as database:

        async def insert(tx: Transaction) -> None:
            await tx.execute("INSERT INTO application_state (key, value) VALUES ('a', 'b')")

        begun, written = threading.Event(), threading.Event()

        async def twice(snapshot: Snapshot) -> tuple[int, int]:
            before = await snapshot.fetch_int("SELECT count(*) FROM application_state")
            begun.set()
            written.wait(5)
            return before, await snapshot.fetch_int("SELECT count(*) FROM application_state")

        reading = asyncio.create_task(database.read(twice))
        assert await asyncio.to_thread(begun.wait, 5)
        await database.write(insert)
        written.set()
        assert await reading == (0, 0)
        with pytest.raises(StorageUnavailable, match="READONLY"):
            await database.read(
                lambda snapshot: snapshot.fetch_all("DELETE FROM application_state RETURNING key")
            )

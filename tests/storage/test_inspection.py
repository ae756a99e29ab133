"""Looking at a database file tells whether Madeleine could start with it, and leaves no trace."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from bot.errors import StartupError
from bot.storage.database import Database
from bot.storage.inspection import Inspection, inspect_database
from bot.storage.migrations import load_migrations
from tests.storage.test_database import HOLD
from tests.storage.test_opening import FOREIGN, as_nobody, make_foreign, open_folder, permit

__all__ = ["open_folder"]

KNOWN = len(load_migrations())
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from bot.storage.database import Database
async def main():
    await Database.open(Path(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def seen(path: Path) -> Inspection:
    """What is found out; fails where anything in the folder changes by it."""
    before = contents(path.parent)
    found = inspect_database(path)
    assert contents(path.parent) == before
    return found


def refusal(path: Path) -> str:
    before = contents(path.parent)
    with pytest.raises(StartupError) as refused:
        inspect_database(path)
    assert contents(path.parent) == before
    assert refused.value.params["path"] == str(path)
    return refused.value.key


async def made(path: Path, version: int = KNOWN) -> Path:
    """A database that nobody has open."""
    await (await Database.open(path)).close()
    with closing(sqlite3.connect(path)) as plain:
        plain.execute(f"PRAGMA user_version = {version}")
    return path


@asynccontextmanager
async def in_use(path: Path) -> AsyncIterator[None]:
    """Another process has the database open."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLD, str(path)), stdin=pipe, stdout=pipe
    )
    try:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"open\n"
        yield
    finally:
        await child.communicate(b"")


# --- what she could start with


def test_a_file_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    assert seen(tmp_path / "madeleine.db") == Inspection(version=0, known=KNOWN)


def test_folders_on_the_way_are_not_made(tmp_path: Path) -> None:
    assert inspect_database(tmp_path / "new" / "er" / "madeleine.db").version == 0
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "madeleine.db").touch()
    assert seen(tmp_path / "madeleine.db").version == 0


async def test_a_database_that_nobody_uses_is_sound(tmp_path: Path) -> None:
    path = await made(tmp_path / "madeleine.db")
    assert seen(path) == Inspection(version=KNOWN, known=KNOWN)


async def test_an_older_schema_stays_as_old_as_it_is(tmp_path: Path) -> None:
    path = await made(tmp_path / "madeleine.db", KNOWN - 1)
    assert seen(path).version == KNOWN - 1


@pytest.mark.parametrize("writing", [False, True])
async def test_a_database_in_use_is_sound_and_in_use(tmp_path: Path, *, writing: bool) -> None:
    path = tmp_path / "madeleine.db"
    async with in_use(path):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            if writing:
                other.execute("BEGIN IMMEDIATE")
            found = await asyncio.to_thread(seen, path)
        assert found == Inspection(version=KNOWN, known=KNOWN, in_use=True)
    assert not seen(path).in_use


async def test_what_a_killed_process_left_is_read_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(path))
    await child.wait()
    assert len(contents(tmp_path)) == 4
    assert seen(path) == Inspection(version=KNOWN, known=KNOWN)


async def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = await made(tmp_path / "madeleine.db")
    whole = path.read_bytes()
    path.write_bytes(whole[:8_192] + b"\xff" * (len(whole) - 8_192))
    assert seen(path).damage


# --- what she could not


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = await made(tmp_path / "madeleine.db", KNOWN + 1)
    assert refusal(path) == "errors.storage.newer"


@pytest.mark.parametrize(("version", "journal"), FOREIGN)
def test_another_programs_database_is_refused(tmp_path: Path, version: int, journal: str) -> None:
    path = tmp_path / "madeleine.db"
    make_foreign(path, version, journal)
    assert refusal(path) == "errors.storage.foreign"


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    path.write_text("dear diary, " * 200, encoding="utf-8")
    assert refusal(path) == "errors.storage.not_a_database"


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupError) as refused:
        inspect_database(tmp_path / "file" / "madeleine.db")
    assert refused.value.key == "errors.storage.cannot_open"


def test_a_folder_in_the_files_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "madeleine.db").mkdir()
    assert refusal(tmp_path / "madeleine.db") == "errors.storage.cannot_open"


@pytest.mark.parametrize("inner", ["", "new"])
async def test_a_folder_that_may_not_be_written_is_named(open_folder: Path, inner: str) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o555)
    with as_nobody(), pytest.raises(StartupError) as refused:
        inspect_database(closed / inner / "madeleine.db")
    assert refused.value.key == "errors.storage.cannot_open"
    assert list(closed.iterdir()) == []


async def test_a_file_that_may_not_be_written_is_named(open_folder: Path) -> None:
    path = await made(open_folder / "madeleine.db")
    permit(path, 0o444)
    with as_nobody():
        assert refusal(path) == "errors.storage.cannot_open"

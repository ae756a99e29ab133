"""Opening a file: what is refused stays as it was, and the refusal says what is wrong."""

import asyncio
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.errors import StartupError, StorageUnavailable
from bot.storage.database import Database
from bot.storage.migrations import load_migrations
from tests.storage.jobs import keep, keys, opened

NEWER = len(load_migrations()) + 1
NOBODY = 65_534

FOREIGN = [
    (0, "delete"),
    (0, "wal"),
    (NEWER - 1, "wal"),
    (NEWER, "delete"),
]
"""Versions and journal modes that another program's database may have."""

KILLED_AS_NEWER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA user_version = 999")
os.kill(os.getpid(), signal.SIGKILL)
"""


async def refusal(path: Path) -> str:
    with pytest.raises(StartupError) as refused:
        await (await Database.open(path)).close()
    assert refused.value.params["path"] == str(path)
    return refused.value.key


def make_foreign(path: Path, version: int, journal: str) -> None:
    """A database that another program made."""
    with closing(sqlite3.connect(path)) as plain:
        plain.execute(f"PRAGMA journal_mode = {journal}")
        plain.execute(f"PRAGMA user_version = {version}")
        plain.execute("CREATE TABLE theirs (x)")


def bytes_of(path: Path) -> dict[str, bytes]:
    """The file and the log beside it."""
    return {
        name: Path(name).read_bytes() for name in (str(path), f"{path}-wal") if Path(name).exists()
    }


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, used by somebody whom permissions bind.

    Where the usual place for such folders is closed to others, /tmp is tried before giving up.
    """
    for place in (None, "/tmp"):  # noqa: S108 - the folder in it has a name of its own
        with tempfile.TemporaryDirectory(dir=place) as folder:
            path = Path(folder)
            path.chmod(0o777)
            if nobody_may_enter(path):
                yield path
                return
    pytest.skip("needs a folder for temporary files that other users may enter: set TMPDIR")


def nobody_may_enter(folder: Path) -> bool:
    with as_nobody():
        return os.access(folder, os.W_OK | os.X_OK, effective_ids=True)


def permit(path: Path, mode: int) -> None:
    """Give a database these permissions; its lock can be taken by everybody."""
    path.chmod(mode)
    Path(f"{path}.lock").chmod(0o666)


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@contextmanager
def as_nobody() -> Iterator[None]:
    """Permissions mean nothing to the superuser, so be somebody else for a while.

    The migrations are read before: this program may lie where only the superuser may look.
    """
    load_migrations()
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


# --- what is refused


@pytest.mark.parametrize(("version", "refused"), [(NEWER - 1, False), (NEWER, True)])
async def test_a_newer_schema_is_refused_and_the_newest_known_is_not(
    tmp_path: Path, version: int, refused: bool
) -> None:
    path = tmp_path / "madeleine.db"
    await (await Database.open(path)).close()
    with closing(sqlite3.connect(path)) as plain:
        plain.execute(f"PRAGMA user_version = {version}")
    if refused:
        assert await refusal(path) == "errors.storage.newer"
    else:
        await (await Database.open(path)).close()


async def test_a_newer_schema_that_stands_only_in_the_log_is_refused_untouched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "madeleine.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED_AS_NEWER, str(path))
    await process.wait()
    before = bytes_of(path)
    assert len(before) == 2
    assert await refusal(path) == "errors.storage.newer"
    assert bytes_of(path) == before


@pytest.mark.parametrize(("version", "journal"), FOREIGN)
async def test_another_programs_database_is_refused_untouched(
    tmp_path: Path, version: int, journal: str
) -> None:
    path = tmp_path / "madeleine.db"
    make_foreign(path, version, journal)
    before = path.read_bytes()
    assert await refusal(path) == "errors.storage.foreign"
    assert path.read_bytes() == before
    assert names_in(tmp_path) - {"madeleine.db.lock"} == {"madeleine.db"}


async def test_a_damaged_file_is_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    await (await Database.open(path)).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    assert await refusal(path) in {"errors.storage.cannot_open", "errors.storage.not_a_database"}


async def test_half_a_file_is_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    path.write_bytes(b"SQLite format 3\0" + b"\x10\0\x01\x01")
    before = path.read_bytes()
    assert await refusal(path) == "errors.storage.not_a_database"
    assert path.read_bytes() == before


async def test_a_folder_in_the_files_place_is_no_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    path.mkdir()
    assert await refusal(path) == "errors.storage.cannot_open"


async def test_a_folder_that_may_not_be_written_is_named(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o555)
    with as_nobody():
        assert await refusal(closed / "madeleine.db") == "errors.storage.cannot_open"
    assert names_in(closed) == set()


async def test_a_file_that_may_not_be_written_is_refused_untouched(open_folder: Path) -> None:
    path = open_folder / "madeleine.db"
    await (await Database.open(path)).close()
    permit(path, 0o444)
    before = path.read_bytes()
    with as_nobody():
        assert await refusal(path) == "errors.storage.cannot_open"
    assert path.read_bytes() == before


async def test_a_file_that_may_not_be_read_is_no_damaged_database(open_folder: Path) -> None:
    path = open_folder / "madeleine.db"
    await (await Database.open(path)).close()
    permit(path, 0o000)
    with as_nobody():
        assert await refusal(path) == "errors.storage.cannot_open"


async def test_a_file_that_another_program_locks_is_no_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN EXCLUSIVE")
        assert await refusal(path) == "errors.storage.cannot_open"


async def test_after_a_refusal_the_file_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 999")
    await refusal(path)
    with closing(sqlite3.connect(path)) as older:
        older.execute("PRAGMA user_version = 0")
    await (await Database.open(path)).close()


async def test_the_same_file_is_not_opened_twice_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as database:
        assert await refusal(path) == "errors.storage.locked"
        await database.write(keep("still works"))
        assert await keys(database) == {"still works"}


# --- what is opened


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    path.touch()
    async with opened(path) as database:
        assert await database.write(keep("a")) == "a"


async def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "er" / "madeleine.db"
    await (await Database.open(path)).close()
    assert path.is_file()


async def test_a_name_with_signs_of_an_address_is_a_plain_name(tmp_path: Path) -> None:
    path = tmp_path / "what?mode=memory#50%.db"
    for _ in range(2):
        await (await Database.open(path)).close()
    assert path.is_file()


async def test_a_closed_database_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    async with opened(path) as database:
        await database.write(keep("a"))
        await database.close()
    assert names_in(tmp_path) - {"madeleine.db.lock"} == {"madeleine.db"}


async def test_a_file_that_became_read_only_refuses_writes_and_goes_on_reading(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "madeleine.db") as database:
        await database.write(keep("before"))
        await database._writing.execute("PRAGMA query_only = ON")
        with pytest.raises(StorageUnavailable, match="READONLY"):
            await database.write(keep("refused"))
        assert await keys(database) == {"before"}

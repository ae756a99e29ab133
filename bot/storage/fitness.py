"""Whether a file is a database that this program may open, found out without changing anything."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from bot.errors import StartupError

OWN_TABLE = "application_state"
"""Stands in every schema of ours; a file with tables but without this one is another program's."""

_NAMES = r"SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'"
_WRITE_VERSION = slice(18, 19)
_WAL = b"\2"


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """A connection that reads. Left to itself SQLite makes and changes the files beside it."""
    address = f"{path.resolve().as_uri()}?mode=ro"
    if Path(f"{path}-wal").exists():
        if Path(f"{path}-shm").exists():
            address += "&readonly_shm=1"
    elif _keeps_a_log(path):  # but there is none: nobody has it open
        address += "&immutable=1"
    with closing(sqlite3.connect(address, uri=True, timeout=1)) as connection:
        yield connection


def _keeps_a_log(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_WRITE_VERSION.stop)[_WRITE_VERSION] == _WAL


def refuse_unfit(path: Path, known: int) -> None:
    """Raise StartupError where a newer or another program made the file, or it is no database.

    OSError where it may not be written: SQLite would say so at the first write only. The file is
    not touched.
    """
    if not path.exists():
        return
    path.open("r+b").close()
    with reading(path) as connection:
        fitting_version(connection, path, known)


def fitting_version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """The schema's version.

    Raises StartupError where it is newer, another program's, or the file no database.
    """
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.OperationalError:  # locked, or beside it something that cannot be opened
        raise
    except sqlite3.DatabaseError as error:
        raise StartupError(
            "errors.storage.not_a_database", path=str(path), reason=str(error)
        ) from error
    if _is_foreign(connection, version):
        raise StartupError("errors.storage.foreign", path=str(path))
    if version > known:
        raise StartupError("errors.storage.newer", path=str(path), found=version, known=known)
    return version


def _is_foreign(connection: sqlite3.Connection, version: int) -> bool:
    """Whether tables that are not ours stand in it; where that cannot be read it is damaged."""
    try:
        names = {str(row[0]) for row in connection.execute(_NAMES)}
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return False
    return bool(names) and (version == 0 or OWN_TABLE not in names)

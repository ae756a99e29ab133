"""What a database file is like, found out without making, changing or locking anything."""

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bot.errors import StartupError
from bot.storage.fitness import fitting_version, reading
from bot.storage.migrations import load_migrations


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A file that Madeleine can start with. `version` 0: there is none yet, it will be made.

    `in_use`: a running Madeleine holds it. `damage`: what SQLite finds wrong, None where nothing.
    """

    version: int
    known: int
    in_use: bool = False
    damage: str | None = None


def inspect_database(path: Path) -> Inspection:
    """Look at the file. Raises StartupError where Database.open would; takes time for a big one."""
    known = len(load_migrations())
    try:
        _refuse_closed_folder(path.parent)
        if not path.exists() or not path.stat().st_size:
            return Inspection(version=0, known=known)
        path.open("r+b").close()
        with reading(path) as connection:
            version = fitting_version(connection, path, known)
            damage = _damage(connection)
        return Inspection(version=version, known=known, in_use=_is_in_use(path), damage=damage)
    except (OSError, sqlite3.Error) as error:
        raise StartupError(
            "errors.storage.cannot_open", path=str(path), reason=str(error)
        ) from error


def _refuse_closed_folder(folder: Path) -> None:
    """Raise OSError where the folder, or what it would be made in, may not be written."""
    while not folder.exists():
        folder = folder.parent
    as_ourselves = os.access in os.supports_effective_ids
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=as_ourselves):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _damage(connection: sqlite3.Connection) -> str | None:
    try:
        finding = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if finding == "ok" else finding


def _is_in_use(path: Path) -> bool:
    lock_file = Path(f"{path}.lock")
    if not lock_file.exists():
        return False
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False

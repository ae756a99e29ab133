"""Forward-only migrations: `NNNN_reason.sql`, each one transaction with `user_version`."""

import re
import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import aiosqlite

FOLDER = Path(__file__).parent / "migrations"
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


def split_statements(script: str) -> tuple[str, ...]:
    """The statements of a script, one by one: `executescript` would commit half a migration."""
    statements: list[str] = []
    pending = ""
    for piece in re.split(r"(?<=;)", script):
        pending += piece
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    if _COMMENT.sub("", pending).strip():
        raise ValueError("the script ends inside a statement")
    return tuple(statements)


@cache
def load_migrations(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """All migrations in order, read once. Raises ValueError where a name or a number is wrong."""
    migrations: list[Migration] = []
    for path in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise ValueError(f"{path.name} is not named NNNN_reason.sql")
        statements = split_statements(path.read_text(encoding="utf-8"))
        migrations.append(Migration(version=int(match[1]), name=path.stem, statements=statements))
    if [m.version for m in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError("migrations are not numbered 1, 2, 3 ...")
    return tuple(migrations)


async def migrate(connection: aiosqlite.Connection, migrations: tuple[Migration, ...]) -> int:
    """Bring the schema up to date; returns its version. A failing step leaves the one before."""
    rows = list(await connection.execute_fetchall("PRAGMA user_version"))
    version = int(rows[0][0])
    for migration in migrations[version:]:
        await connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in migration.statements:
                await connection.execute(statement)
            await connection.execute(f"PRAGMA user_version = {migration.version}")
            await connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                await connection.rollback()
            raise
        version = migration.version
    return version

"""Everything that is held of a person, as one document: what PRIVACY.md describes.

Rows stand as they are in the tables, ids and all, so that nothing is left out by being retold.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime

from bot.identifiers import UserId
from bot.privacy.user_data import USER_DATA, Holds
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot

FORMAT = 1

_ABOUT = "SELECT id FROM personal_memories WHERE user_id = ?1"
_TOLD = "SELECT memory_id FROM memory_sources WHERE said_by = ?1"
_PART = (
    "SELECT ledger_id FROM ledger_sources WHERE said_by = ?1"
    " UNION SELECT ledger_id FROM ledger_quotes WHERE said_by = ?1"
)
_BESIDES: Mapping[str, str] = {  # rows that are theirs though no column of them says so
    "server_memories": f"id IN ({_TOLD})",
    "personal_memories": f"id IN ({_TOLD})",
    "memory_sources": f"memory_id IN ({_ABOUT})",
    "memory_versions": (
        f"memory_id IN ({_ABOUT}) OR (memory_id, ended_at) IN"
        " (SELECT memory_id, ended_at FROM version_sources WHERE said_by = ?1)"
    ),
    "version_sources": f"memory_id IN ({_ABOUT})",
    "memory_changes": f"memory_id IN ({_ABOUT}) OR instr(former, ?1)",
    "ledger_entries": f"id IN ({_PART})",
    "ledger_versions": "EXISTS (SELECT 1 FROM json_each(people) AS p WHERE p.value = ?1)",
    "turn_replies": "turn_id IN (SELECT id FROM turns WHERE user_id = ?1)",
}
_DERIVED = frozenset({"embeddings", "erasures"})
"""Numbers made of texts that are told here, and hashes of who was erased."""


async def export_of(database: Database, person: UserId, now: datetime) -> str:
    """The document, as JSON: {"format", "person", "made_at", "tables": {name: [row, ...]}}."""
    found = await database.read(lambda db: _tables(db, person))
    document = {
        "format": FORMAT,
        "person": f"{person}",
        "made_at": now.isoformat(),
        "tables": found,
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


async def _tables(db: Snapshot, person: UserId) -> Mapping[str, list[Mapping[str, object]]]:
    found: dict[str, list[Mapping[str, object]]] = {}
    for table, which in _queries():
        rows = await db.fetch_all(f"SELECT * FROM {table} WHERE {which}", (person,))
        if rows:
            found[table] = [_told(row) for row in rows]
    return found


def _queries() -> Iterator[tuple[str, str]]:
    """Every table that can hold a row of a person's, and which rows those are."""
    columns: dict[str, list[str]] = {table: [] for table in _BESIDES}
    for (table, column), holds in USER_DATA.items():
        if holds is Holds.PERSON and table not in _DERIVED:
            columns.setdefault(table, []).append(column)
    for table, named in columns.items():
        ways = [f"{column} IN (?1, CAST(?1 AS TEXT))" for column in named]
        yield table, " OR ".join([*ways, *filter(None, [_BESIDES.get(table)])])


def _told(row: Row) -> Mapping[str, object]:
    """A row without what is computed from it; ids as texts, which every reader of JSON takes."""
    return {
        key: f"{value}" if isinstance(value, int) and value > 2**53 else value
        for key in row.keys()  # noqa: SIM118 - a Row iterates over its values
        if not isinstance(value := row[key], bytes)
    }

"""Whoever is erased is gone from the file, byte by byte; what others told is theirs and stays."""

import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.identifiers import GuildId, UserId
from bot.memory.erasure import Erasures
from bot.memory.references import reference_to
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from bot.privacy.user_data import USER_DATA, Holds
from bot.storage.statements import Transaction
from tests.fakes import Text, ToolCalls
from tests.memory.shelf import Shelf
from tests.talk import GUILD, Talk, open_talk

OTHER = GuildId(600)
ANN = UserId(8_412_377_095_116_662_021)
"""No other number of the file holds these eight bytes."""


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as talk:
        yield talk


def erasures(talk: Talk) -> Erasures:
    return Erasures(talk.app.services.database, talk.clock)


async def columns_of(talk: Talk, table: str) -> list[dict[str, object]]:
    return await talk.rows(f"PRAGMA table_info({table})")


async def plant(talk: Talk) -> list[str]:
    """A row of Ann's in every table that can hold any of hers; returns the needles in it."""
    await talk.say("Ben", "hello")  # a room, a persona, a turn
    origin = await talk.app.services.origins.of(talk.place())
    needles: list[str] = []
    tables = dict.fromkeys(table for table, _ in USER_DATA)
    held = {table: {c: h for (t, c), h in USER_DATA.items() if t == table} for table in tables}

    async def job(tx: Transaction) -> None:
        await tx.execute("PRAGMA defer_foreign_keys = ON")
        for table in ORDER:
            values: dict[str, object] = {}
            for column, holds in held[table].items():
                info = known[table][column]
                values[column] = FIXED.get((table, column), FIXED.get(("", column)))
                if holds is Holds.PERSON and (table, column) not in FIXED:
                    values[column] = ANN if info["type"] == "INTEGER" else f"{ANN}"
                elif holds is Holds.TEXT and (table, column) not in FIXED:
                    needle = f"needle-{table}-{column}"
                    needles.append(needle)
                    values[column] = needle if info["type"] == "TEXT" else needle.encode()
                if (table, column) in FIXED:
                    made = FIXED[table, column]
                    values[column] = made
                    if isinstance(made, str) and "needle" in made:
                        needles.append(made.split('"')[1] if '"' in made else made)
            if values.get("origin_id") is None and "origin_id" in values:
                values["origin_id"] = origin.id
            filled = {k: v for k, v in values.items() if v is not None}
            names, marks = ", ".join(filled), ", ".join("?" * len(filled))
            await tx.execute(
                f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(filled.values())
            )

    known = {table: {str(c["name"]): c for c in await columns_of(talk, table)} for table in ORDER}
    await talk.app.services.database.write(job)
    return needles


# In the order of their foreign keys; what no row of a person's is in stands for itself.
ORDER = [
    "people",
    "person_names",
    "privacy_levels",
    "turns",
    "buffer_entries",
    "handoff_runs",
    "ledger_entries",
    "ledger_sources",
    "ledger_quotes",
    "ledger_people",
    "ledger_versions",
    "entry_archive",
    "short_term_memories",
    "memories",
    "personal_memories",
    "memory_sources",
    "memory_versions",
    "version_sources",
    "memory_changes",
    "embeddings",
    "usage",
    "audit",
    "erasures",
]
FIXED: dict[tuple[str, str], object] = {
    ("", "guild_id"): int(GUILD),
    ("", "server_id"): int(GUILD),
    ("", "lineage_id"): 1,
    ("", "persona_lineage_id"): 1,
    ("", "seen_at"): 1,
    ("", "of_account"): 0,
    ("", "changed_at"): 1,
    ("", "said_at"): 1,
    ("", "scene"): 0,
    ("", "pinned"): 0,
    ("", "version"): 1,
    ("", "tokens"): 1,
    ("", "message_id"): 77,
    ("", "started_at"): 1,
    ("", "ended_at"): 1,
    ("", "created_at"): 1,
    ("", "updated_at"): 1,
    ("", "written_at"): 1,
    ("", "happened_from"): 1,
    ("", "happened_until"): 1,
    ("", "archived_at"): 1,
    ("", "at"): 1,
    ("", "requested_at"): 1,
    ("", "finished_at"): 1,
    ("", "run_id"): "run",
    ("", "ledger_id"): 90,
    ("", "memory_id"): 91,
    ("", "entry_id"): 92,
    ("", "position"): 0,
    ("", "importance"): 5,
    ("", "candidates"): 1,
    ("", "quotes"): 0,
    ("", "day"): "2026-03-04",
    ("", "task"): "chat",
    ("", "provider"): "p",
    ("", "model"): "m",
    ("", "requests"): 1,
    ("", "prompt_tokens"): 1,
    ("", "completion_tokens"): 1,
    ("", "cost_micro"): 1,
    ("", "action"): "set",
    ("", "item"): "1",
    ("privacy_levels", "level"): "open",
    ("turns", "id"): 93,
    ("turns", "state"): "done",
    ("buffer_entries", "id"): 92,
    ("buffer_entries", "kind"): "dialogue",
    ("handoff_runs", "id"): "run",
    ("handoff_runs", "kind"): "voluntary",
    ("handoff_runs", "state"): "committed",
    ("handoff_runs", "reason"): "velocity",
    ("ledger_entries", "id"): 90,
    ("entry_archive", "kind"): "dialogue",
    ("ledger_versions", "people"): f"[{ANN}]",
    ("short_term_memories", "categories"): '{"plan": "needle-categories"}',
    ("memories", "id"): 91,
    ("memories", "scope"): "personal",
    ("personal_memories", "id"): 91,
    ("memory_changes", "kind"): "forgotten",
    ("memory_changes", "former"): f'{{"needle-former": {ANN}}}',
    ("embeddings", "partition"): f"personal:1:{ANN}",
    ("audit", "subject"): f"{ANN}",
    ("erasures", "kind"): "person",
    ("erasures", "subject"): "a-keyed-hash",
}
SHARED = {  # of a server and its personas: what a person set there outlives them, without their id
    "personas",
    "guild_settings",
    "feature_flags",
    "short_term_categories",
    "server_memories",
}


def in_file(talk: Talk, needle: bytes) -> list[str]:
    """Which files hold a needle."""
    path = talk.app.services.database.path
    files = [path, path.with_name(f"{path.name}-wal")]
    return [file.name for file in files if file.exists() and needle in file.read_bytes()]


def ids_in_bytes() -> list[bytes]:
    return [struct.pack(">q", ANN), f"{ANN}".encode()]


async def test_every_table_that_can_hold_a_person_is_planted() -> None:
    of_people = {t for (t, _), holds in USER_DATA.items() if holds is not Holds.NEUTRAL}
    assert of_people - SHARED == set(ORDER) - {"memories"}


async def test_of_an_erased_person_no_byte_is_left(talk: Talk) -> None:
    needles = [*(needle.encode() for needle in await plant(talk)), *ids_in_bytes()]
    assert len(needles) > 15
    await talk.app.services.database.fold_log()
    assert [needle for needle in needles if not in_file(talk, needle)] == []
    await erasures(talk).erase(ANN, EVERYWHERE, by=ANN)
    assert {needle: found for needle in needles if (found := in_file(talk, needle))} == {}
    assert await talk.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert await talk.rows("PRAGMA foreign_key_check") == []
    assert await talk.say("Ben", "are you still there?") is not None


# --- what goes, and what stays


@pytest.fixture
def shelf(talk: Talk) -> Shelf:
    return Shelf(talk)


async def test_what_is_about_them_and_what_they_told_goes(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann")
    await shelf.keep("likes rum", about="Ann", by="Ben")
    await shelf.keep("is tall", about="Ben", by="Ann")
    await shelf.keep("we meet on Mondays", by="Ann")
    await shelf.keep("the shed is green", by="Ben")
    held = await erasures(talk).erase(talk.person("Ann").id, EVERYWHERE, by=talk.person("Ann").id)
    assert (held.about_them, held.told_by_them) == (2, 2)
    talk.app.services.long_term.invalidate_all()
    assert await shelf.about("Ann") == []
    assert await shelf.about("Ben") == []
    assert await shelf.of_server() == ["the shed is green"]


async def test_what_another_told_as_well_stays_theirs(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep("we meet on Mondays", by="Ann")
    await shelf.keep("we meet on Mondays", by="Ben", channel="lounge")
    await erasures(talk).erase(talk.person("Ann").id, EVERYWHERE, by=talk.person("Ann").id)
    talk.app.services.long_term.invalidate_all()
    assert await shelf.of_server("lounge") == ["we meet on Mondays"]
    assert await shelf.of_server() == []


async def test_others_speak_of_somebody(talk: Talk, shelf: Shelf) -> None:
    ann = talk.person("Ann").id
    await shelf.keep(f"{reference_to(ann)} won the cup", by="Ben")
    await erasures(talk).erase(ann, EVERYWHERE, by=ann)
    talk.app.services.long_term.invalidate_all()
    assert await shelf.of_server() == ["{p:0} won the cup"]
    talk.model.queue(Text("I see"))
    await talk.say("Ben", "who won?")
    assert "someone won the cup" in talk.prompt.system


async def test_two_erased_people_of_whom_the_same_is_told_are_one_nobody(
    talk: Talk, shelf: Shelf
) -> None:
    for name in ("Ann", "Cy"):
        await shelf.keep(f"{reference_to(talk.person(name).id)} won", by="Ben", channel=name)
    for name in ("Ann", "Cy"):
        user = talk.person(name).id
        await erasures(talk).erase(user, EVERYWHERE, by=user)
    talk.app.services.long_term.invalidate_all()
    assert await shelf.of_server("Ann") == ["{p:0} won"]
    assert await shelf.of_server("Cy") == ["{p:0} won"]
    assert len(await talk.rows("SELECT * FROM server_memories")) == 1


async def test_the_talk_with_them_goes_with_what_was_answered(talk: Talk) -> None:
    talk.model.queue(Text("a lovely secret"))
    await talk.say("Ann", "my secret is the cellar")
    await talk.say("Ben", "good morning")
    ann = talk.person("Ann").id
    held = await erasures(talk).erase(ann, EVERYWHERE, by=ann)
    assert held.entries == 2
    rows = await talk.rows("SELECT author_id, content FROM buffer_entries WHERE author_id > 0")
    assert [row["content"] for row in rows] == ["good morning"]
    assert all("secret" not in str(row) for row in await talk.rows("SELECT * FROM buffer_entries"))


async def test_a_note_on_a_room_where_they_spoke_goes(talk: Talk) -> None:
    note = {"summary": "a birthday is planned"}
    talk.model.queue(ToolCalls([("update_short_term_memory", note)]), Text("ok"))
    await talk.say("Ann", "let us plan the birthday")
    assert len(await talk.rows("SELECT * FROM short_term_memories")) == 1
    ann = talk.person("Ann").id
    assert (await erasures(talk).preview(ann, EVERYWHERE)).notes == 1
    await erasures(talk).erase(ann, EVERYWHERE, by=ann)
    assert await talk.rows("SELECT * FROM short_term_memories") == []


async def test_another_server_keeps_what_it_knows(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann")
    await shelf.keep("likes rum", about="Ann", guild=OTHER, channel="far")
    ann = talk.person("Ann").id
    held = await erasures(talk).erase(ann, GUILD, by=ann)
    assert held.about_them == 1
    talk.app.services.long_term.invalidate_all()
    assert await shelf.about("Ann") == []
    assert await shelf.about("Ann", "far", guild=OTHER) == ["likes rum"]


async def test_a_level_that_protects_them_stays(talk: Talk) -> None:
    await talk.level("Ann", PrivacyLevel.PARTIAL)
    ann = talk.person("Ann").id
    await erasures(talk).erase(ann, EVERYWHERE, by=ann)
    assert [row["level"] for row in await talk.rows("SELECT level FROM privacy_levels")] == [
        "partial"
    ]


async def test_the_preview_takes_nothing(talk: Talk, shelf: Shelf) -> None:
    await shelf.keep("likes tea", about="Ann")
    held = await erasures(talk).preview(talk.person("Ann").id, EVERYWHERE)
    assert (held.about_them, held.total) == (1, 1)
    assert await shelf.about("Ann") == ["likes tea"]


async def test_an_erasure_whose_log_could_not_be_folded_is_finished_later(talk: Talk) -> None:
    ann = talk.person("Ann").id
    await erasures(talk).erase(ann, EVERYWHERE, by=ann)
    await talk.app.services.database.write(reopen)
    await erasures(talk).finish_unfinished()
    assert await talk.rows("SELECT id FROM erasures WHERE finished_at IS NULL") == []


async def reopen(tx: Transaction) -> None:
    await tx.execute("UPDATE erasures SET finished_at = NULL")

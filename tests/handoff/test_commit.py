"""A run is written whole or not at all, once."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from bot.clock import to_ms
from bot.errors import StorageUnavailable
from bot.handoff.look import Look
from bot.identifiers import EntryId, GuildId, UserId
from bot.memory.working import EntryKind
from bot.privacy.levels import PrivacyLevel
from bot.storage.statements import Transaction
from tests.fakes import HttpError, Reply, Text, Vectors, embed
from tests.handoff.room import ANN, BEN, Room, chunk, open_room, result, tell_everything
from tests.storage.test_writer_faults import disk_full_beyond, log_size
from tests.talk import START

LONG_AGO = timedelta(hours=2)
BEANS = chunk("E1", "E2", content="Ann planted beans.")
NO_SOURCE = chunk("E99", content="Ann planted beans.")


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as room:
        yield room


@pytest.fixture
async def embedding_room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, embedder=True) as room:
        yield room


async def garden(room: Room) -> list[EntryId]:
    """Three candidates and one entry that stays."""
    said = await room.say("I planted beans in May", "They need rain", "Hm, hm", ago=LONG_AGO)
    return said + await room.say("Good evening")


async def nothing(_: Transaction) -> None:
    return None


async def looked(room: Room) -> Look:
    look = await room.watch.look(room.key, requested=True)
    assert look is not None
    return look


async def assert_nothing_changes(room: Room) -> None:
    """A run fails: memory is as it was, the failure is recorded, and the next try waits."""
    before = await room.tables()
    outcome = await room.run()
    assert outcome is not None
    assert outcome.failure
    assert await room.tables() == before
    (run,) = await room.runs()
    assert (run["state"], run["failure"]) == ("aborted", outcome.failure)
    assert (run["episodes"], run["promoted"], run["forgotten"], run["pinned"]) == (0, 0, 0, 0)
    buffer = await room.buffer()
    now = room.clock.now()
    assert (buffer["failures"], buffer["failed_at"]) == (1, to_ms(now))
    assert buffer["due_at"] == to_ms(now + timedelta(minutes=1))


# --- fail-closed


@pytest.mark.parametrize(
    "replies",
    [
        [HttpError(500)],
        [HttpError(429, retry_after=600)],
        [Text(""), Text("")],
        [Text("no JSON"), Text("none again")],
        [result(NO_SOURCE), result(NO_SOURCE)],
        [result(BEANS, {**BEANS, "importance": 11}), Text("")],
        [result(NO_SOURCE), HttpError(503)],
    ],
    ids=["down", "busy", "empty", "no JSON", "no source", "bad and empty", "bad and down"],
)
async def test_where_the_model_fails_nothing_changes(room: Room, replies: Sequence[Reply]) -> None:
    await garden(room)
    room.model.queue(*replies)
    await assert_nothing_changes(room)
    assert room.model.queued == 0


@pytest.mark.parametrize(
    "reply",
    [
        HttpError(500),
        Vectors([embed("one of two", 8)]),
        Vectors([embed("two", 8), []]),
        Vectors([[], []]),
        Vectors([embed("two", 8), embed("of different size", 9)]),
    ],
    ids=["down", "too few", "one is empty", "all are empty", "two dimensions"],
)
async def test_where_a_configured_embedder_fails_nothing_changes(
    embedding_room: Room, reply: Reply
) -> None:
    room = embedding_room
    await garden(room)
    rain = chunk("E2", content="Rain is needed.")
    room.answer(chunk("E1", content="Ann planted beans."), rain)
    room.model.queue(reply, to="embeddings")
    await assert_nothing_changes(room)
    assert len(room.model.embeddings) == 1


async def test_where_nothing_becomes_an_episode_no_embedder_is_asked(embedding_room: Room) -> None:
    await garden(embedding_room)
    outcome = await embedding_room.committed()
    assert (outcome.episodes, outcome.forgotten) == (0, 3)
    assert embedding_room.model.embeddings == []


async def test_a_failed_run_that_works_later_is_one_row_without_the_failure(room: Room) -> None:
    await garden(room)
    room.model.queue(HttpError(500))
    failed = await room.run()
    outcome = await room.committed(BEANS)
    assert failed is not None
    assert failed.run == outcome.run
    (run,) = await room.runs()
    assert (run["state"], run["failure"], run["episodes"]) == ("committed", None, 1)
    buffer = await room.buffer()
    assert (buffer["failures"], buffer["failed_at"]) == (0, None)


# --- idempotent


async def test_the_same_run_twice_changes_nothing_twice(room: Room) -> None:
    await garden(room)
    look = await looked(room)
    room.answer(BEANS)
    assert await room.handover.make(look) is not None
    after = await room.tables(), await room.runs()
    room.answer(chunk("E1", content="Ann planted many beans.", retain=True))
    assert await room.handover.make(look) is None
    assert (await room.tables(), await room.runs()) == after


async def test_a_committed_run_that_is_repeated_and_fails_stays_committed(room: Room) -> None:
    await garden(room)
    look = await looked(room)
    room.answer(BEANS)
    await room.handover.make(look)
    after = await room.tables(), await room.runs(), await room.buffer()
    room.model.queue(HttpError(500))
    await room.handover.make(look)
    assert (await room.tables(), await room.runs(), await room.buffer()) == after


async def test_every_answer_is_booked_whatever_became_of_it(room: Room) -> None:
    await garden(room)
    room.model.queue(result(NO_SOURCE), result(NO_SOURCE))
    await room.run()
    room.model.queue(result(NO_SOURCE))
    await room.committed(BEANS)
    (account,) = await room.rows("SELECT * FROM usage")
    assert (account["task"], account["requests"]) == ("handoff", 4)


# --- what is written


async def test_an_episode_has_the_time_and_the_place_of_the_event(room: Room) -> None:
    said = await garden(room)
    outcome = await room.committed(chunk("E1", "E2", content="Ann planted beans.", importance=7))
    (row,) = await room.rows("SELECT * FROM ledger_entries")
    begun = to_ms(START - LONG_AGO)
    assert row == {
        "id": row["id"],
        "origin_id": room.key.origin,
        "lineage_id": room.key.lineage,
        "run_id": outcome.run,
        "position": 0,
        "content": f"{{p:{ANN}}} planted beans.",
        "importance": 7,
        "scene": 0,
        "happened_from": begun,
        "happened_until": begun + 1000,
        "created_at": to_ms(START),
        "embedding_model": None,
        "embedding_dimension": None,
    }
    assert await room.rows("SELECT * FROM ledger_sources ORDER BY entry_id") == [
        {
            "ledger_id": row["id"],
            "entry_id": said[place],
            "message_id": room.messages[said[place]],
            "said_by": ANN,
            "said_at": begun + 1000 * place,
            "run_id": outcome.run,
        }
        for place in (0, 1)
    ]


async def test_a_quote_has_its_speaker_and_its_message(room: Room) -> None:
    (asked,) = await room.say("Do the beans need rain?", by=BEN, ago=LONG_AGO)
    (said,) = await room.say("Every plant needs rain", by=None, ago=timedelta(hours=1))
    await room.say("Good evening")
    quotes = ["the beans need rain?", "Every plant needs rain"]
    await room.committed(chunk("E1-E2", content="Ben asked about rain.", quotes=quotes))
    found = await room.rows("SELECT content, said_by, persona_id, message_id FROM ledger_quotes")
    assert [tuple(row.values()) for row in found] == [
        ("the beans need rain?", BEN, None, room.messages[asked]),
        ("Every plant needs rain", None, room.persona, room.messages[said]),
    ]


async def test_the_people_of_an_episode_spoke_in_it_or_were_named(room: Room) -> None:
    await room.say("I planted beans", by=ANN, ago=LONG_AGO)
    await room.say("Good evening", by=BEN)
    named = chunk("E1", content="Ann planted beans.", involved=["Ben", "U7"])
    await room.committed(named)
    assert [row["user_id"] for row in await room.rows("SELECT user_id FROM ledger_people")] == [
        ANN,
        BEN,
    ]


async def test_an_episode_belongs_to_the_scene_it_began_in(room: Room) -> None:
    await room.say("I planted beans", ago=timedelta(hours=5))
    await room.say("The beans grow", ago=LONG_AGO)
    await room.say("Good evening")
    first = chunk("E1", content="Ann planted beans.")
    await room.committed(first, chunk("E2", content="The beans grow."))
    rows = await room.rows("SELECT position, scene FROM ledger_entries ORDER BY position")
    assert [tuple(row.values()) for row in rows] == [(0, 0), (1, 1)]


async def test_an_episode_carries_the_embedders_vector_of_its_text(embedding_room: Room) -> None:
    room = embedding_room
    await garden(room)
    room.model.queue(Vectors([[3.0, 0.0, -4.0]]), to="embeddings")
    await room.committed(BEANS)
    assert room.model.embeddings[0].inputs == ["Ann planted beans."]
    (episode,) = await room.rows("SELECT * FROM ledger_entries")
    assert (episode["embedding_model"], episode["embedding_dimension"]) == ("embed-model", 3)
    (stored,) = await room.rows("SELECT * FROM embeddings")
    assert (stored["model"], stored["item"]) == ("embed-model", str(episode["id"]))
    assert struct.unpack("<3e", stored["vector"]) == pytest.approx((0.6, 0.0, -0.8), abs=1e-3)


@pytest.mark.parametrize("vector", [[0.0, 0.0], [1e300, 0.0], [1e-300, 0.0]])
async def test_a_vector_of_any_length_is_stored(embedding_room: Room, vector: list[float]) -> None:
    room = embedding_room
    await garden(room)
    room.model.queue(Vectors([vector]), to="embeddings")
    await room.committed(BEANS)
    (stored,) = await room.rows("SELECT vector FROM embeddings")
    assert struct.unpack("<2e", stored["vector"]) == (float(any(vector)), 0.0)


async def test_vectors_stay_with_their_episodes(embedding_room: Room) -> None:
    room = embedding_room
    said = await garden(room)
    first = chunk("E1", content="Ann planted beans.")
    room.answer(first, chunk("E2", content="Rain is needed."))
    room.model.queue(Vectors([[1.0, 0.0], [0.0, 1.0]]), to="embeddings")
    await room.run_while(room.edit(said[0], "I planted peas"))
    (stored,) = await room.rows("SELECT vector FROM embeddings")
    assert struct.unpack("<2e", stored["vector"]) == (0.0, 1.0)


async def test_what_is_consumed_or_left_out_is_archived_as_it_was(room: Room) -> None:
    said = await garden(room)
    await room.say("To myself", by=None, kind=EntryKind.THOUGHT, ago=timedelta(hours=1))
    before = {row["id"]: row for row in await room.rows("SELECT * FROM buffer_entries")}
    outcome = await room.committed(BEANS)
    assert (outcome.promoted, outcome.forgotten, outcome.pinned) == (2, 2, 0)
    assert await room.ids() == [said[3]]
    archive = await room.rows("SELECT * FROM entry_archive ORDER BY entry_id")
    assert [row["entry_id"] for row in archive] == [*said[:3], said[3] + 1]
    for row in archive:
        assert (row.pop("run_id"), row.pop("archived_at")) == (outcome.run, to_ms(START))
        row["id"] = row.pop("entry_id")
        assert row == before[row["id"]]


async def test_what_is_retained_is_in_the_ledger_and_stays_pinned(room: Room) -> None:
    said = await garden(room)
    outcome = await room.committed({**BEANS, "retain_in_buffer": True})
    assert (outcome.promoted, outcome.forgotten, outcome.pinned) == (2, 1, 2)
    assert await room.ids() == [*said[:2], said[3]]
    assert await room.pinned() == said[:2]
    assert await room.sources() == said[:2]
    assert await room.archived() == [said[2]]


async def test_the_row_of_a_run_says_what_it_did(room: Room) -> None:
    await garden(room)
    outcome = await room.committed({**BEANS, "retain_in_buffer": True})
    assert await room.runs() == [
        {
            "id": outcome.run,
            "origin_id": room.key.origin,
            "lineage_id": room.key.lineage,
            "kind": "voluntary",
            "reason": "requested",
            "state": "committed",
            "failure": None,
            "candidates": 3,
            "model": "chat-model",
            "started_at": to_ms(START),
            "ended_at": to_ms(START),
            "episodes": 1,
            "promoted": 2,
            "forgotten": 1,
            "pinned": 2,
        }
    ]


async def test_a_run_that_could_not_take_everything_is_followed_by_another(tmp_path: Path) -> None:
    async with open_room(tmp_path, max_candidates=2) as room:
        await garden(room)
        await room.committed(BEANS)
        assert (await room.buffer())["due_at"] == to_ms(START)


# --- a database that cannot be written


async def test_locked_at_the_commit_nothing_changes_and_the_next_run_works(tmp_path: Path) -> None:
    async with open_room(tmp_path, busy_timeout_ms=50) as room:
        await garden(room)
        before = await room.tables(), await room.runs()
        room.answer(BEANS)
        with closing(sqlite3.connect(room.database.path, isolation_level=None)) as other:

            async def lock() -> None:
                other.execute("BEGIN IMMEDIATE")

            with pytest.raises(StorageUnavailable):
                await room.run_while(lock())
            other.execute("ROLLBACK")
        assert (await room.tables(), await room.runs()) == before
        assert (await room.committed(BEANS)).episodes == 1


async def test_full_at_the_commit_nothing_changes_and_the_next_run_works(room: Room) -> None:
    await garden(room)
    before = await room.tables(), await room.runs()
    look = await looked(room)
    room.model.gate.clear()
    room.answer(BEANS)
    making = asyncio.create_task(room.handover.make(look))
    await room.model.wait_for_requests(1)
    with disk_full_beyond(log_size(room.database) + 4096):
        room.model.gate.set()
        with pytest.raises(StorageUnavailable):
            await making
    assert (await room.tables(), await room.runs()) == before
    assert (await room.committed(BEANS)).episodes == 1


async def test_while_nothing_can_be_written_no_model_is_paid(tmp_path: Path) -> None:
    async with open_room(tmp_path, busy_timeout_ms=50) as room:
        await garden(room)
        with closing(sqlite3.connect(room.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageUnavailable):
                await room.run()
            other.execute("ROLLBACK")
        assert room.model.requests == []


# --- cancellation


async def steps_of(making: asyncio.Task[object]) -> int:
    """How often the event loop turns until a task is done."""
    steps = 0
    while not making.done():
        await asyncio.sleep(0)
        steps += 1
    return steps


async def another_run(room: Room) -> tuple[set[EntryId], asyncio.Task[object]]:
    """The candidates of a run that begins now, and the run."""
    await garden(room)
    room.clock.pass_(hours=3)
    await room.say("Good evening")
    look = await looked(room)
    candidates = {entry.id for entry in look.candidates}
    return candidates, asyncio.create_task(room.handover.make(look))


async def test_cancelled_at_any_moment_a_run_is_whole_or_comes_again(room: Room) -> None:
    room.model.on(tell_everything)
    await steps_of((await another_run(room))[1])  # the first one connects
    steps = await steps_of((await another_run(room))[1])
    for part in range(41):
        candidates, making = await another_run(room)
        for _ in range(steps * part // 40):
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.wait({making})
        await room.database.write(nothing)  # what was queued before is written
        left, told = set(await room.ids()), set(await room.sources())
        is_written = candidates <= told
        assert candidates.isdisjoint(left if is_written else told)
        assert candidates <= (told if is_written else left)
        if not is_written:
            assert (await room.worked()).promoted >= len(candidates)


async def test_a_run_that_is_cancelled_before_its_answer_came_changes_nothing(room: Room) -> None:
    room.model.gate.clear()
    candidates, making = await another_run(room)
    await room.model.wait_for_requests(1)
    making.cancel()
    await asyncio.wait({making})
    await room.database.write(nothing)
    assert making.cancelled()
    assert candidates <= set(await room.ids())
    assert await room.episodes() == ()
    assert await room.runs() == []


async def test_a_run_that_is_cancelled_in_the_middle_of_its_commit_is_written(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.model.on(tell_everything)
    candidates, making = await another_run(room)
    level_of = room.levels.of

    def cancels(user: UserId, guild: GuildId) -> PrivacyLevel:
        making.cancel()
        return level_of(user, guild)

    monkeypatch.setattr(room.levels, "of", cancels)  # it is asked within the transaction
    await asyncio.wait({making})
    await room.database.write(nothing)
    assert making.cancelled()
    assert set(await room.sources()) == candidates
    assert candidates.isdisjoint(await room.ids())

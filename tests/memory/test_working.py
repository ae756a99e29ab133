"""Working memory: what is captured, in order, once, and how it changes and goes."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.audience import Audience, Origin, OriginKind, Place
from bot.clock import to_ms
from bot.config import HandoffConfig
from bot.identifiers import ChannelId, GuildId, LineageId, MessageId, PersonaId, TurnId, UserId
from bot.memory.buffers import Buffer as MemoryBuffer
from bot.memory.buffers import BufferKey, begin_scene, read_buffer
from bot.memory.working import (
    Entry,
    Pace,
    Utterance,
    WorkingMemory,
    add_entries,
    advance_cursor,
    cursor_of,
    editing,
    forgetting,
)
from bot.persona.personas import FIRST_LINEAGE, Personas
from bot.privacy.origins import Origins
from bot.storage.database import Database
from bot.storage.statements import Transaction
from tests.storage.jobs import opened
from tests.talk import START, FakeClock

GUILD, OTHER_GUILD = GuildId(500), GuildId(600)
SILENCE = timedelta(minutes=45)
PACE = Pace.of(HandoffConfig())
ANN, BOB = UserId(1), UserId(2)


@dataclass
class Buffer:
    """The working memory of one room, and the file that it is in."""

    database: Database
    origin: Origin
    persona: PersonaId

    async def add(self, *said: Utterance, lineage: LineageId = FIRST_LINEAGE) -> None:
        async def job(tx: Transaction) -> None:
            await add_entries(tx, self.origin.id, lineage, said, PACE)

        await self.database.write(job)

    async def begin_scene(self, *, ends: bool = False) -> None:
        async def job(tx: Transaction) -> None:
            await begin_scene(tx, [self.key], START, ends=ends)

        await self.database.write(job)

    async def row(self) -> MemoryBuffer | None:
        return await self.database.read(lambda db: read_buffer(db, self.key))

    @property
    def key(self) -> BufferKey:
        return BufferKey(origin=self.origin.id, lineage=FIRST_LINEAGE)

    async def entries(self, lineage: LineageId = FIRST_LINEAGE) -> tuple[Entry, ...]:
        audience = Audience(here=self.origin.id, heard=frozenset({self.origin.id}))
        return await WorkingMemory(self.database).entries(audience, lineage)

    async def texts(self) -> list[str]:
        return [entry.content for entry in await self.entries()]

    async def scenes(self) -> list[int]:
        return [entry.scene for entry in await self.entries()]

    async def reply(self, first: int, *messages: int) -> Utterance:
        """A reply of several messages, as a turn keeps it."""

        async def job(tx: Transaction) -> TurnId:
            turn = await tx.insert(
                "INSERT INTO turns (origin_id, message_id, lineage_id, user_id, state, started_at)"
                " VALUES (?, ?, ?, ?, 'done', 0)",
                (self.origin.id, first - 1, FIRST_LINEAGE, ANN),
            )
            await tx.execute_many(
                "INSERT INTO turn_replies VALUES (?, ?, ?)",
                [(message, turn, place) for place, message in enumerate((first, *messages))],
            )
            return TurnId(turn)

        turn = await self.database.write(job)
        said = said_by(None, "a long reply", first)
        return replace(said, persona=self.persona, turn=turn)


def said_by(
    author: UserId | None, text: str, message: int | None, at: datetime = START
) -> Utterance:
    number = None if message is None else MessageId(message)
    return Utterance(content=text, said_at=at, author=author, message_id=number)


def lines(*texts: str) -> Sequence[Utterance]:
    return [
        said_by(ANN, text, number, START + timedelta(seconds=number))
        for number, text in enumerate(texts, start=1)
    ]


async def room(database: Database, channel: int, guild: GuildId = GUILD) -> Origin:
    place = Place(kind=OriginKind.CHANNEL, guild_id=guild, channel_id=ChannelId(channel))
    return await Origins(database, FakeClock()).of(place)


@pytest.fixture
async def buffer(tmp_path: Path) -> AsyncIterator[Buffer]:
    database = await Database.open(tmp_path / "madeleine.db")
    persona = await Personas(database, FakeClock(), default_name="Madeleine").main(GUILD)
    yield Buffer(database, await room(database, 7), persona.id)
    await database.close()


# --- what is captured


async def test_what_was_said_is_kept_in_the_order_of_its_time(buffer: Buffer) -> None:
    first, second, third = lines("one", "two", "three")
    await buffer.add(third)
    await buffer.add(first, second)
    assert await buffer.texts() == ["one", "two", "three"]


async def test_an_entry_keeps_who_said_it_when_and_where_from(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "hello", 5, START))
    [entry] = await buffer.entries()
    assert (entry.author, entry.persona, entry.message_id) == (ANN, None, 5)
    assert (entry.said_at, entry.version, entry.pinned) == (START, 1, False)
    assert entry.tokens > 0


async def test_a_message_is_captured_once(buffer: Buffer) -> None:
    for text in ("hello", "hello again"):
        await buffer.add(said_by(ANN, text, 5))
    assert await buffer.texts() == ["hello"]


async def test_each_lineage_perceives_for_itself(buffer: Buffer) -> None:
    async def second_lineage(tx: Transaction) -> None:
        await tx.execute("INSERT INTO lineages (id, created_at) VALUES (2, 0)")

    await buffer.database.write(second_lineage)
    await buffer.add(said_by(ANN, "hello", 5))
    assert await buffer.entries(LineageId(2)) == ()
    await buffer.add(said_by(ANN, "hello", 5), lineage=LineageId(2))
    assert [entry.content for entry in await buffer.entries(LineageId(2))] == ["hello"]


async def test_rooms_do_not_hear_each_other(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "hello", 5))
    other = replace(buffer, origin=await room(buffer.database, 8))
    assert await other.texts() == []


@pytest.mark.parametrize("text", ["", "\0", "日本語 {p:1} \U0001f980", "x" * 100_000])
async def test_any_text_is_kept_as_it_is(buffer: Buffer, text: str) -> None:
    await buffer.add(said_by(ANN, text, 5))
    assert await buffer.texts() == [text]


# --- scenes


@pytest.mark.parametrize(("seconds", "scenes"), [(-1, [0, 0]), (0, [0, 1])])
async def test_a_silence_of_forty_five_minutes_begins_a_scene(
    buffer: Buffer, seconds: int, scenes: list[int]
) -> None:
    await buffer.add(said_by(ANN, "before", 1))
    later = START + SILENCE + timedelta(seconds=seconds)
    await buffer.add(said_by(ANN, "after", 2, later))
    assert await buffer.scenes() == scenes


async def test_a_message_that_comes_late_begins_no_scene(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "now", 9, START + 2 * SILENCE))
    await buffer.add(said_by(ANN, "late", 1, START))
    await buffer.add(said_by(ANN, "soon after", 10, START + 2 * SILENCE))
    assert await buffer.scenes() == [0, 0, 0]


async def test_a_message_that_is_captured_already_begins_no_scene(buffer: Buffer) -> None:
    said = [said_by(ANN, "one", 1), said_by(ANN, "two", 2, START + SILENCE)]
    await buffer.add(*said)
    await buffer.add(*said, said_by(ANN, "three", 3, START + SILENCE))
    assert await buffer.scenes() == [0, 1, 1]


async def test_a_scene_that_was_begun_holds_for_what_is_said_next(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "before", 1))
    await buffer.begin_scene()
    await buffer.add(said_by(ANN, "after", 2, START + timedelta(seconds=1)))
    assert await buffer.scenes() == [0, 1]


async def test_a_room_is_closed_once_and_opened_by_what_is_said_in_it(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "before", 1))
    await buffer.begin_scene(ends=True)
    await buffer.begin_scene(ends=True)
    closed = await buffer.row()
    assert closed is not None
    assert (closed.scene, closed.has_ended) == (1, True)
    await buffer.add(said_by(ANN, "after", 2))
    opened_again = await buffer.row()
    assert opened_again is not None
    assert (opened_again.scene, opened_again.has_ended) == (1, False)


# --- the cursor


async def test_the_cursor_only_moves_forward(buffer: Buffer) -> None:
    async def job(tx: Transaction) -> list[int]:
        seen = [await cursor_of(tx, buffer.origin.id, FIRST_LINEAGE)]
        for message in (5, 9, 7):
            await advance_cursor(tx, buffer.origin.id, FIRST_LINEAGE, MessageId(message))
            seen.append(await cursor_of(tx, buffer.origin.id, FIRST_LINEAGE))
        return seen

    assert await buffer.database.write(job) == [0, 5, 9, 9]


# --- what changes and goes


async def test_an_edited_message_says_what_it_says_now(buffer: Buffer) -> None:
    await buffer.add(*lines("one", "two"))
    await buffer.database.write(editing(MessageId(1), "one, and a long addition"))
    before, after = (await buffer.entries())[1], (await buffer.entries())[0]
    assert (after.content, after.version) == ("one, and a long addition", 2)
    assert after.tokens > before.tokens
    assert (before.content, before.version) == ("two", 1)


async def test_an_edit_that_changes_nothing_is_no_new_version(buffer: Buffer) -> None:
    await buffer.add(*lines("one"))
    await buffer.database.write(editing(MessageId(1), "one"))
    assert [entry.version for entry in await buffer.entries()] == [1]


async def test_deleted_messages_go_from_every_buffer(buffer: Buffer) -> None:
    other = replace(buffer, origin=await room(buffer.database, 8))
    for one in (buffer, other):
        await one.add(*lines("one", "two", "three"))
    await buffer.database.write(forgetting([MessageId(1), MessageId(3), MessageId(404)]))
    assert await buffer.texts() == await other.texts() == ["two"]


@pytest.mark.parametrize("deleted", [11, 12, 13])
async def test_a_reply_goes_whole_where_one_of_its_messages_is_deleted(
    buffer: Buffer, deleted: int
) -> None:
    await buffer.add(await buffer.reply(11, 12, 13), said_by(ANN, "thanks", 20))
    await buffer.database.write(forgetting([MessageId(deleted)]))
    assert await buffer.texts() == ["thanks"]


async def test_a_deleted_question_leaves_the_reply(buffer: Buffer) -> None:
    await buffer.add(said_by(ANN, "question", 10), await buffer.reply(11, 12))
    await buffer.database.write(forgetting([MessageId(10)]))
    assert await buffer.texts() == ["a long reply"]


async def test_what_a_person_said_goes_from_one_server(buffer: Buffer) -> None:
    elsewhere = replace(buffer, origin=await room(buffer.database, 9, OTHER_GUILD))
    for one in (buffer, elsewhere):
        await one.add(said_by(ANN, "ann", 1), said_by(BOB, "bob", 2), by_persona(one))
    await WorkingMemory(buffer.database).forget_author(ANN, GUILD)
    assert await buffer.texts() == ["bob", "madeleine"]
    assert await elsewhere.texts() == ["ann", "bob", "madeleine"]


async def test_what_a_person_said_goes_everywhere(buffer: Buffer) -> None:
    elsewhere = replace(buffer, origin=await room(buffer.database, 9, OTHER_GUILD))
    for one in (buffer, elsewhere):
        await one.add(said_by(ANN, "ann", 1), said_by(BOB, "bob", 2))
    await WorkingMemory(buffer.database).forget_author(ANN, GuildId(0))
    assert await buffer.texts() == await elsewhere.texts() == ["bob"]


async def test_entries_survive_a_restart(tmp_path: Path, buffer: Buffer) -> None:
    await buffer.add(*lines("one", "two"))
    before = await buffer.entries()
    await buffer.database.close()
    async with opened(tmp_path / "madeleine.db") as again:
        assert await replace(buffer, database=again).entries() == before


def by_persona(buffer: Buffer) -> Utterance:
    return Utterance(content="madeleine", said_at=START, persona=buffer.persona)


async def test_times_are_kept_to_the_millisecond(buffer: Buffer) -> None:
    at = START + timedelta(milliseconds=123)
    await buffer.add(said_by(ANN, "hello", 5, at))
    [entry] = await buffer.entries()
    assert entry.said_at == at
    assert to_ms(entry.said_at) == to_ms(at)

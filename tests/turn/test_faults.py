"""What fails, and what the person and the memory come to know of it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from bot.memory.references import reference_to
from bot.storage.statements import Transaction
from bot.turn.messages import Undeliverable
from tests.fakes import ContextTooLong, HttpError, Stall, Text, ToolCalls
from tests.talk import FakeClock, Talk, open_talk

CREATE = "create_long_term_memory"
PLEASE = "please remember that I like green tea"
FACT = {"content": "Ann likes green tea", "target": ""}
IMPATIENT = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "20"}
HASTY = {"MADELEINE__TURN__TIMEOUT_S": "1", "MADELEINE__TURN__TOOL_TIMEOUT_S": "1"}
NO_RETRIES = {"MADELEINE__LLM__RETRIES": "0"}


@asynccontextmanager
async def locked(folder: Path) -> AsyncIterator[None]:
    """Another program holds the file: it can be read, and nothing can be written.

    Waited for off the event loop: what is just being written needs the loop to come to its end.
    """
    path = folder / "madeleine.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def entries(talk: Talk) -> list[object]:
    rows = await talk.rows("SELECT content FROM buffer_entries ORDER BY said_at, id")
    return [row["content"] for row in rows]


async def states(talk: Talk) -> list[tuple[object, object]]:
    rows = await talk.rows("SELECT state, failure FROM turns ORDER BY id")
    return [(row["state"], row["failure"]) for row in rows]


def a_second_later(talk: Talk) -> None:
    """Answers take their time."""

    def answer(_: object) -> Text:
        talk.clock.pass_(seconds=1)
        return Text("I see")

    talk.model.on(answer)


async def job(tx: Transaction) -> None:
    await tx.execute("INSERT INTO application_state (key, value) VALUES ('late', 'x')")


# --- the database


async def test_the_reply_goes_out_although_nothing_can_be_written(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        talk.model.on(lambda _: Text("I see"))
        await talk.say("Ann", "hello")
        talk.overhear("Ben", "the weather is fine")
        async with locked(tmp_path):
            report = await talk.say("Ann", "is it?")
        assert report is not None
        assert report.reply == "I see"
        assert talk.lines == ["Ann: hello", "> I see", "Ben: the weather is fine", "Ann: is it?"]


async def test_a_room_she_knows_is_answered_after_a_restart_although_nothing_can_be_written(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
    async with open_talk(tmp_path, environ=IMPATIENT, clock=talk.clock) as talk:
        talk.model.on(lambda _: Text("I see"))
        async with locked(tmp_path):
            report = await talk.say("Ann", "and now?")
        assert report is not None
        assert report.reply == "I see"


async def test_a_waiting_message_that_was_captured_before_is_shown_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        talk.model.on(lambda _: Text("I see"))
        await talk.say("Ann", "hello")
        waiting = talk.overhear("Ben", "is it my turn?")
        await talk.say("Ann", "not yet")
        async with locked(tmp_path):
            await talk.take(waiting)
        assert talk.lines.count("Ben: is it my turn?") == 1
        assert talk.lines[-1] == "Ben: is it my turn?"


async def test_the_capture_is_made_up_for_by_the_next_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        a_second_later(talk)
        await talk.say("Ann", "hello")
        talk.overhear("Ben", "the weather is fine")
        async with locked(tmp_path):
            await talk.say("Ann", "is it?")
            assert await entries(talk) == ["hello", "I see"]
        await talk.say("Ann", "and now?")
        said = ["hello", "I see", "the weather is fine", "is it?", "I see", "and now?", "I see"]
        assert await entries(talk) == said
        assert len(talk.app.services.late_writes) == 0


async def test_a_turn_that_was_written_late_is_not_answered_again(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, environ=IMPATIENT, clock=clock) as talk:
        await talk.say("Ann", "hello")
        message = talk.message("Ann", "is anybody there?")
        async with locked(tmp_path):
            assert await talk.take(message) is not None
            assert talk.last is not None
            own = talk.own(talk.last.text, id=talk.last.message_id)
        await talk.say("Ann", "and now?")
        assert [state for state, _ in await states(talk)] == ["done"] * 3
        assert await talk.take(message) is None
        before = len(await entries(talk))
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.history.messages = (own,)
        await talk.say("Ann", "after a restart")
        assert len(await entries(talk)) == before + 2


async def test_what_was_forgotten_before_does_not_come_back_while_nothing_can_be_written(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        talk.model.on(lambda _: Text("I see"))
        await talk.say("Ann", "an old story")
        await talk.app.services.database.write(lambda tx: tx.execute("DELETE FROM buffer_entries"))
        async with locked(tmp_path):
            await talk.say("Ann", "a new one")
        assert talk.lines == ["Ann: a new one"]


async def test_what_was_deleted_or_edited_while_nothing_can_be_written_is_so_in_every_copy(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        talk.model.on(lambda _: Text("I see"))
        await talk.say("Ann", "hello")
        slip = talk.overhear("Ben", "a slip of the tongue")
        typo = talk.overhear("Ben", "I like tee")
        await talk.say("Ann", "did you hear?")
        async with locked(tmp_path):
            await talk.app.receiver.forget_messages([slip.id])
            await talk.app.receiver.edit_message(typo.id, "I like tea")
            for question in ("what did he say?", "are you sure?"):
                await talk.say("Ann", question)
                assert [line for line in talk.lines if "Ben" in line] == ["Ben: I like tea"]
        noted = talk.app.services.short_term._entries.values()
        said = [turn.content for entry in noted for turn in entry.turns]
        assert "I like tea" in said
        assert not {"a slip of the tongue", "I like tee"} & set(said)


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_reply_of_several_messages_is_gone_with_any_one_of_them(
    tmp_path: Path, part: int
) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        talk.model.queue(Text("words I regret"), Text("I see"))
        await talk.say("Ann", "hello")
        assert talk.last is not None
        parts = [talk.last.message_id, talk.next_id(), talk.next_id()]
        for position in (1, 2):
            row = (parts[position], position)
            await talk.app.services.database.write(
                lambda tx, row=row: tx.execute(
                    "INSERT INTO turn_replies (message_id, position, turn_id)"
                    " SELECT ?, ?, max(id) FROM turns",
                    row,
                )
            )
        async with locked(tmp_path):
            await talk.app.receiver.forget_messages([parts[part]])
            await talk.say("Ann", "what did you say?")
        assert talk.lines == ["Ann: hello", "Ann: what did you say?"]


async def test_whoever_asked_for_a_memory_is_told_that_it_was_not_saved(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        await talk.say("Ann", "hello")
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I could not save it."))
        async with locked(tmp_path):
            report = await talk.say("Ann", PLEASE)
        assert report is not None
        assert (report.reply, report.footer) == ("I could not save it.", "I have not saved this.")
        assert await talk.rows("SELECT * FROM memories") == []


async def test_a_full_disk_is_no_end_of_the_talk(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        a_second_later(talk)
        await talk.say("Ann", "hello")
        writing = talk.app.services.database._writing
        await writing.execute("PRAGMA max_page_count = 1")
        long = "a long story " * 2_000
        report = await talk.say("Ann", long)
        assert report is not None
        assert report.reply == "I see"
        assert "a long story" in talk.prompt.text
        await writing.execute("PRAGMA max_page_count = 1000000")
        await talk.say("Ann", "the end")
        assert await entries(talk) == ["hello", "I see", long, "I see", "the end", "I see"]


async def test_a_late_write_that_can_never_be_written_does_not_hold_up_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        late = talk.app.services.late_writes

        async def broken(tx: Transaction) -> None:
            await tx.execute("INSERT INTO turn_replies VALUES (1, 999, 0)")

        await talk.say("Ann", "hello")
        async with locked(tmp_path):
            await late.write(broken)
            await late.write(job)
        await late.retry()
        assert len(late) == 0
        assert await talk.rows("SELECT value FROM application_state WHERE key = 'late'")
        assert [r for r in caplog.records if r.levelname == "ERROR"]
        assert (await talk.say("Ann", "still there?")) is not None


# --- the model


@pytest.mark.parametrize(
    ("retry_after", "told"),
    [(None, "in a minute"), (60, "in a minute"), (61, "in 2 minutes"), (3_600, "in 60 minutes")],
)
async def test_a_model_that_is_down_is_told_with_the_time_to_try_again(
    tmp_path: Path, retry_after: float | None, told: str
) -> None:
    async with open_talk(tmp_path, environ=NO_RETRIES) as talk:
        talk.model.on(lambda _: HttpError(503, retry_after=retry_after))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert told in report.reply
        assert await states(talk) == [("failed", "ModelUnavailable")]
        assert await entries(talk) == ["hello"]


async def test_a_prompt_that_is_too_long_is_halved_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path, window=4_096) as talk:
        talk.model.queue(*[Text("word " * 100)] * 8)
        for _ in range(8):
            await talk.say("Ann", "word " * 100)
        talk.model.queue(ContextTooLong(prompt_tokens=5_000, context=4_096), Text("there"))
        report = await talk.say("Ann", "the question")
        assert report is not None
        assert report.reply == "there"
        first, second = talk.model.chats[-2:]
        assert len(second.text) < 0.8 * len(first.text)
        assert second.last_user.endswith("Ann: the question")


async def test_a_prompt_that_stays_too_long_is_told(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: ContextTooLong())
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert "too long for my model" in report.reply
        assert len(talk.model.chats) == 2


async def test_a_turn_that_takes_too_long_is_told(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=HASTY) as talk:
        talk.model.queue(Text("a slow answer", breaks=Stall(after=1, seconds=30)))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert report.reply == "That took me too long. Please try again."
        assert await states(talk) == [("failed", "TimeoutError")]


# --- twice


async def test_a_message_that_comes_twice_is_answered_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        message = talk.message("Ann", "hello")
        assert await talk.take(message) is not None
        assert await talk.take(message) is None
        assert len(talk.model.chats) == 1


async def test_nor_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        message = talk.message("Ann", "hello")
        await talk.take(message)
    async with open_talk(tmp_path, clock=clock) as talk:
        assert await talk.take(message) is None
        assert talk.model.chats == []


# --- delivery


async def test_a_reply_that_cannot_be_delivered_does_not_undo_what_was_saved(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I will!"))
        await talk.say("Ann", "hello")
        talk.model.queue(ToolCalls([(CREATE, FACT)]), Text("I will!"))
        await talk.take(talk.message("Ann", PLEASE), fails=Undeliverable("no permission"))
        assert ("failed", "Undeliverable") in await states(talk)
        await talk.say("Ann", "what do I like?")
        assert '"Ann likes green tea"' in talk.prompt.system


async def test_what_stands_of_a_reply_that_could_not_be_finished_belongs_to_the_talk(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("half of an answer to Ann"))
        await talk.take(talk.message("Ann", "hello"), fails=Undeliverable("gone"))
        assert await entries(talk) == [
            "hello",
            f"half of an answer to {reference_to(talk.person('Ann').id)}",
        ]


async def test_an_apology_is_no_part_of_the_talk(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ=NO_RETRIES) as talk:
        talk.model.queue(HttpError(503))
        report = await talk.say("Ann", "hello")
        assert report is not None
        await talk.say("Ann", "and now?")
        assert report.reply not in talk.prompt.text
        assert talk.lines == ["Ann: hello", "Ann: and now?"]

"""What happens to a message while its turn begins, and what a turn owes when things break."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.audience import Place
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from bot.storage.writer import Job
from bot.turn.messages import IncomingMessage, TurnRequest
from bot.turn.pipeline import run_turn
from tests.fakes import HttpError, Text, ToolCalls
from tests.talk import GUILD, RecordingDelivery, Talk, open_talk

FACT = ToolCalls([("create_long_term_memory", {"content": "Ann likes tea", "target": "Ann"})])


@dataclass
class TypingDelivery(RecordingDelivery):
    """Something happens when it starts: the turn has begun, its prompt is not made yet."""

    happens: Callable[[], Awaitable[None]] | None = None

    async def start(self) -> None:
        if self.happens is not None:
            await self.happens()


async def take(
    talk: Talk, *messages: IncomingMessage, happens: Callable[[], Awaitable[None]]
) -> None:
    """A turn whose other messages joined it; something happens between its row and its prompt."""
    delivery = TypingDelivery(talk.clock, talk.next_id(), happens=happens)
    first, *joined = messages
    request = TurnRequest(
        message=first, joined=tuple(joined), delivery=delivery, history=talk.history
    )
    assert await run_turn(talk.app.services, request) is not None


class Meanwhile:
    """A past that takes its time: something happens while it is read."""

    def __init__(self, talk: Talk, *past: IncomingMessage) -> None:
        self.talk = talk
        self.past = past
        self.edits: dict[IncomingMessage, str] = {}
        self.deletes: list[IncomingMessage] = []

    async def newest(self, place: Place, limit: int) -> tuple[IncomingMessage, ...]:
        del place, limit
        receiver = self.talk.app.receiver
        for message, text in self.edits.items():
            await receiver.edit_message(message.id, text)
        await receiver.forget_messages([message.id for message in self.deletes])
        return self.past


async def contents(talk: Talk) -> list[object]:
    rows = await talk.rows("SELECT content FROM buffer_entries WHERE author_id IS NOT NULL")
    return [row["content"] for row in rows]


async def test_an_edit_while_the_past_is_read_is_what_she_hears(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        message = talk.message("Ann", "my PIN is 1234")
        talk.history = Meanwhile(talk)  # pyright: ignore[reportAttributeAccessIssue]
        talk.history.edits[message] = "never mind"
        await talk.take(message)
        assert await contents(talk) == ["never mind"]
        assert "1234" not in talk.model.last.text


async def test_a_joined_message_that_is_deleted_meanwhile_was_never_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        first, second = talk.message("Ann", "first"), talk.message("Ann", "secret second")
        talk.history = Meanwhile(talk, replace(second))  # pyright: ignore[reportAttributeAccessIssue]
        talk.history.deletes.append(second)
        await talk.take(first, joined=[second])
        assert await contents(talk) == ["first"]
        assert "secret" not in talk.model.last.text


async def test_a_joined_message_that_is_deleted_before_the_prompt_is_made_is_not_answered(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        first, second = (talk.message("Ann", t) for t in ("hello", "please remember that I sing"))

        async def deletes() -> None:
            await talk.app.receiver.forget_messages([second.id])

        await take(talk, first, second, happens=deletes)
        assert talk.lines == ["Ann: hello"]
        # Nor is it taken for a wish to remember: what such a wish would hide is offered.
        assert "update_short_term_memory" in talk.prompt.tool_names
        assert await contents(talk) == ["hello"]


async def test_a_joined_message_is_answered_as_it_was_edited_before_the_prompt_was_made(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        first, second = (talk.message("Ann", text) for text in ("hello", "I like tee"))

        async def edits() -> None:
            await talk.app.receiver.edit_message(second.id, "please remember that I like tea")

        await take(talk, first, second, happens=edits)
        assert talk.lines[:2] == ["Ann: hello", "Ann: please remember that I like tea"]
        assert "update_short_term_memory" not in talk.model.chats[0].tool_names


async def test_what_became_of_joined_messages_is_known_before_the_file_is(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        texts = ("hello", "a slip of the tongue", "green tee")
        first, second, third = (talk.message("Ann", text) for text in texts)

        async def changes_that_are_not_written_yet() -> None:
            talk.app.services.rings.forget_messages([second.id])
            talk.app.services.rings.edit_message(third.id, "green tea")

        await take(talk, first, second, third, happens=changes_that_are_not_written_yet)
        assert talk.lines == ["Ann: hello", "Ann: green tea"]


async def test_a_joined_message_deleted_while_the_reply_is_written_leaves_the_memory(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        first, second = talk.message("Ann", "hello"), talk.message("Ann", "a slip of the tongue")

        async def deletes() -> None:
            await talk.model.wait_for_requests(1)
            await talk.app.receiver.forget_messages([second.id])

        talk.model.queue(Text("I see", delay=0.1))
        _, report = await asyncio.gather(deletes(), talk.take(first, joined=[second]))
        assert report is not None
        assert report.reply == "I see"
        assert await contents(talk) == ["hello"]


async def test_a_late_capture_keeps_nothing_of_whom_it_may_not_keep_by_then(tmp_path: Path) -> None:
    impatient = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "20"}
    async with open_talk(tmp_path, environ=impatient) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        talk.overhear("Ben", "a secret")
        with closing(sqlite3.connect(tmp_path / "madeleine.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await talk.say("Ann", "did you hear?")
        await talk.level("Ben", PrivacyLevel.FULL)
        await talk.say("Ann", "what did he say?")
        assert await contents(talk) == ["hello", "did you hear?", "what did he say?"]
        assert "secret" not in talk.prompt.text


async def test_a_late_capture_keeps_what_stands_by_then(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        gone, edited = talk.overhear("Ben", "a slip"), talk.overhear("Ben", "green tee")
        write = talk.app.services.database.write

        async def changed_and_written_at_once(job: Job[object]) -> object:
            object.__setattr__(talk.app.services.database, "write", write)
            await talk.app.receiver.forget_messages([gone.id])
            await talk.app.receiver.edit_message(edited.id, "green tea")
            return await write(job)

        object.__setattr__(talk.app.services.database, "write", changed_and_written_at_once)
        await talk.say("Ann", "and?")
        assert await contents(talk) == ["hello", "green tea", "and?"]


async def test_a_threads_first_message_comes_on_top_of_the_newest_twelve(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        past = [talk.message("Ann", f"m{number}", mentions_us=False) for number in range(13)]
        talk.history = Meanwhile(talk, *past)  # pyright: ignore[reportAttributeAccessIssue]
        await talk.say("Ben", "what is this thread about?")
        assert (await contents(talk))[0] == "m0"
        assert len(await contents(talk)) == 14


@pytest.mark.parametrize("silence", [[Text("")] * 3, [HttpError(500)] * 3])
async def test_what_was_kept_is_told_although_the_model_falls_silent(
    tmp_path: Path, silence: list[Text | HttpError]
) -> None:
    environ = {"MADELEINE__LLM__RETRIES": "0"}
    async with open_talk(tmp_path, environ=environ) as talk:
        talk.model.queue(FACT, *silence)
        report = await talk.say("Ann", "please remember that I like tea")
        assert report is not None
        assert report.reply == "Saved: Ann likes tea"
        assert [row["state"] for row in await talk.rows("SELECT state FROM turns")] == ["done"]


async def test_tokens_of_a_turn_that_failed_are_booked(tmp_path: Path) -> None:
    environ = {"MADELEINE__LLM__RETRIES": "0"}
    async with open_talk(tmp_path, environ=environ) as talk:
        talk.model.queue(ToolCalls([("no_such_tool", {})]), HttpError(500))
        await talk.say("Ann", "hello")
        [usage] = await talk.rows("SELECT requests, prompt_tokens FROM usage")
        assert usage["requests"] == 1
        assert usage["prompt_tokens"]


async def test_a_bug_in_the_transport_leaves_no_turn_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_talk(tmp_path) as talk:
        report = await talk.take(talk.message("Ann", "hello"), fails=RuntimeError("boom"))
        assert report is not None
        assert [row["state"] for row in await talk.rows("SELECT state FROM turns")] == ["failed"]
        assert "apology_failed" in caplog.text


async def test_an_origin_that_was_closed_again_is_stored_as_closed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        origins, place = talk.app.services.origins, talk.place("lounge")
        for is_open in (False, True, False):
            await origins.of(replace(place, open_to_everyone=is_open))
        [row] = await talk.rows("SELECT open_to_everyone FROM origins WHERE kind = 'channel'")
        assert row["open_to_everyone"] == 0


async def test_full_erases_what_was_heard_in_passing(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "my secret plan")
        person = talk.person("Ann")
        receiver = talk.app.receiver
        await receiver.set_level(person, EVERYWHERE, PrivacyLevel.FULL, seen_in=GUILD)
        assert await contents(talk) == []
        assert talk.app.services.rings.messages(talk.place().channel_id) == ()

"""What happens to a message while its turn begins, and what a turn owes when things break."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.audience import Place
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from bot.turn.messages import IncomingMessage
from tests.fakes import HttpError, Text, ToolCalls
from tests.talk import GUILD, Talk, open_talk

FACT = ToolCalls([("create_long_term_memory", {"content": "Ann likes tea", "target": "Ann"})])


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

"""Messages that are deleted or edited: every copy follows."""

import asyncio
from pathlib import Path

import pytest

from bot.turn.messages import IncomingMessage
from tests.fakes import Stall, Text
from tests.talk import Talk, open_talk

SLOW = Text("a slow answer that goes on", breaks=Stall(after=1, seconds=30))
"""Goes on only when the turn ends."""


def notes(talk: Talk) -> str:
    """Everything that short-term memory holds, as one text."""
    short_term = talk.app.services.short_term
    return " ".join(turn.content for entry in short_term._entries.values() for turn in entry.turns)


async def held_up(talk: Talk) -> IncomingMessage:
    """A turn that is under way until its message is deleted."""
    talk.model.queue(SLOW)
    message = talk.message("Zoe", "tell me a long story")
    talk.send(message)
    await talk.model.wait_for_requests(len(talk.model.chats) + 1)
    return message


async def waiting_turn(talk: Talk, text: str) -> tuple[IncomingMessage, IncomingMessage]:
    """A turn that runs, and one that waits behind it."""
    first = await held_up(talk)
    waiting = talk.message("Ann", text)
    talk.send(waiting)
    return first, waiting


async def next_prompt(talk: Talk, first: IncomingMessage) -> list[str]:
    """The lines of the waiting turn's prompt."""
    asked = len(talk.model.chats)
    await talk.app.receiver.forget_messages([first.id])
    await talk.model.wait_for_requests(asked + 1)
    return talk.lines


async def test_a_deleted_message_leaves_the_ring(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        message = talk.overhear("Ben", "a slip of the tongue")
        await talk.app.receiver.forget_messages([message.id])
        await talk.say("Ann", "what did he say?")
        assert "a slip" not in talk.prompt.text


async def test_a_deleted_message_leaves_entries_and_short_term_memory(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        message = talk.overhear("Ben", "a slip of the tongue")
        await talk.say("Ann", "did you hear?")
        assert "a slip" in notes(talk)
        await talk.app.receiver.forget_messages([message.id])
        assert "a slip" not in notes(talk)
        await talk.say("Ann", "what did he say?")
        assert "a slip" not in talk.prompt.text
        assert "a slip" not in notes(talk)


async def test_a_deleted_reply_leaves_too(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(Text("words I regret"), Text("hm"))
        await talk.say("Ann", "hello")
        assert talk.last is not None
        await talk.app.receiver.forget_messages([talk.last.message_id])
        assert "words I regret" not in notes(talk)
        await talk.say("Ann", "what did you say?")
        assert talk.lines == ["Ann: hello", "Ann: what did you say?"]


async def test_an_edited_message_says_in_every_copy_what_it_says_now(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        captured = talk.overhear("Ben", "I like tee")
        await talk.say("Ann", "did you hear?")
        in_the_ring = talk.overhear("Ben", "green tee")
        await talk.app.receiver.edit_message(captured.id, "I like tea")
        await talk.app.receiver.edit_message(in_the_ring.id, "green tea")
        assert "I like tea" in notes(talk)
        assert "I like tee" not in notes(talk)
        await talk.say("Ann", "what does he like?")
        assert talk.lines[-2:] == ["Ben: green tea", "Ann: what does he like?"]
        assert "Ben: I like tea" in talk.lines
        assert "tee" not in talk.prompt.text


async def test_a_waiting_turn_answers_what_its_message_says_now(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        first, waiting = await waiting_turn(talk, "do you like tee?")
        await talk.app.receiver.edit_message(waiting.id, "do you like tea?")
        assert (await next_prompt(talk, first))[-1] == "Ann: do you like tea?"
        assert "tee" not in talk.prompt.text


async def test_a_waiting_turn_whose_message_is_deleted_is_never_taken(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        first, waiting = await waiting_turn(talk, "never mind")
        talk.send(talk.message("Ben", "and me?"))
        await talk.app.receiver.forget_messages([waiting.id])
        assert (await next_prompt(talk, first))[-1] == "Ben: and me?"
        assert "never mind" not in talk.prompt.text


async def test_a_joined_message_that_is_deleted_is_not_answered(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        first, _ = await waiting_turn(talk, "do you like tea?")
        added = talk.message("Ann", "or rather not", mentions_us=False)
        assert talk.send(added)[0] == "joined"
        await talk.app.receiver.forget_messages([added.id])
        assert (await next_prompt(talk, first))[-1] == "Ann: do you like tea?"
        assert "rather not" not in talk.prompt.text


async def test_a_message_deleted_while_the_reply_is_written_is_not_kept(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        overheard: list[IncomingMessage] = []

        async def deletes() -> None:
            await talk.model.wait_for_requests(2)
            await talk.app.receiver.forget_messages([overheard[0].id])

        talk.model.queue(Text("hm"), Text("I am writing", delay=0.1))
        await talk.say("Ann", "hello")
        overheard.append(talk.overhear("Ben", "a slip of the tongue"))
        await asyncio.gather(deletes(), talk.say("Ann", "did you hear?"))
        assert "a slip" not in notes(talk)
        assert await talk.rows("SELECT 1 FROM buffer_entries WHERE content LIKE 'a slip%'") == []


async def test_a_deleted_message_stays_gone_where_the_database_cannot_be_read(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        message = talk.overhear("Ben", "a slip of the tongue")
        database = talk.app.services.database

        async def deletes() -> None:
            await talk.model.wait_for_requests(2)
            await talk.app.receiver.forget_messages([message.id])
            database._closed = True

        talk.model.queue(Text("I am writing", delay=0.1))
        await asyncio.gather(deletes(), talk.say("Ann", "did you hear?"))
        database._closed = False
        assert "a slip" not in notes(talk)


# --- edited to nothing


@pytest.mark.parametrize("nothing", ["", " \n", "\u200b"])
async def test_a_message_edited_to_nothing_is_gone_from_every_copy(
    tmp_path: Path, nothing: str
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        captured = talk.overhear("Ben", "a slip of the tongue")
        await talk.say("Ann", "did you hear?")
        in_the_ring = talk.overhear("Ben", "a slip again")
        for message in (captured, in_the_ring):
            await talk.app.receiver.edit_message(message.id, nothing)
        assert await talk.rows("SELECT 1 FROM buffer_entries WHERE author_id IS NULL") != []
        assert await talk.rows("SELECT 1 FROM buffer_entries WHERE trim(content) = ''") == []
        assert "a slip" not in notes(talk)
        await talk.say("Ann", "what did he say?")
        assert [line for line in talk.lines if "Ben" in line or "a slip" in line] == []


async def test_a_waiting_turn_whose_message_is_edited_to_nothing_is_never_taken(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        first, waiting = await waiting_turn(talk, "never mind")
        talk.send(talk.message("Ben", "and me?"))
        await talk.app.receiver.edit_message(waiting.id, "")
        assert (await next_prompt(talk, first))[-1] == "Ben: and me?"
        assert "never mind" not in talk.prompt.text


async def test_a_joined_message_edited_to_nothing_is_not_answered(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        first, _ = await waiting_turn(talk, "do you like tea?")
        added = talk.message("Ann", "or rather not", mentions_us=False)
        talk.send(added)
        await talk.app.receiver.edit_message(added.id, "\u200b")
        lines = await next_prompt(talk, first)
        assert [line for line in lines if "Ann:" in line] == ["Ann: do you like tea?"]

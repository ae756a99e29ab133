"""After every commit the next read is fresh, however slow another reader is, whoever gave up."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from bot.memory.changes import TurnKey
from bot.memory.long_term import Kept
from bot.turn.messages import Undeliverable
from tests.fakes import Text, ToolCalls
from tests.memory.shelf import Shelf
from tests.memory.test_long_term_changes import hold_at_sources
from tests.talk import open_talk

Write = Callable[[Shelf, Kept, str | None], Awaitable[object]]
WRITES: dict[str, tuple[Write, list[str]]] = {
    "create": (
        lambda shelf, _, about: shelf.keep("likes rain", about=about),
        ["likes rain", "likes tea"],
    ),
    "update": (lambda shelf, kept, _: shelf.change(kept, "likes snow"), ["likes snow"]),
    "forget": (lambda shelf, kept, _: shelf.forget(kept), []),
}
EVERY_WRITE = pytest.mark.parametrize("write", list(WRITES))
EVERY_SCOPE = pytest.mark.parametrize("about", ["Ann", None])


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with open_talk(tmp_path) as talk:
        yield Shelf(talk)


async def read(shelf: Shelf, about: str | None) -> list[str]:
    return await (shelf.of_server() if about is None else shelf.about(about))


async def give_up_waiting(shelf: Shelf, write: Awaitable[object]) -> None:
    """Cancel whoever waits for a write at the moment of its commit; it is written all the same."""
    loop = asyncio.get_running_loop()
    caller = asyncio.ensure_future(write)

    def give_up(sql: str) -> None:
        if sql == "COMMIT":
            loop.call_soon_threadsafe(caller.cancel)

    await shelf.talk.app.services.database._writing.set_trace_callback(give_up)
    with pytest.raises(asyncio.CancelledError):
        await caller
    await shelf.written()


@EVERY_WRITE
@EVERY_SCOPE
async def test_a_slow_reader_does_not_bring_the_past_back(
    shelf: Shelf, write: str, about: str | None
) -> None:
    change, after = WRITES[write]
    kept = await shelf.keep("likes tea", about=about)
    await shelf.listening()
    go_on = threading.Event()
    held = await hold_at_sources(shelf.talk.app.services.database._readers, go_on)
    slow = asyncio.create_task(read(shelf, about))
    await held.wait()
    await change(shelf, kept, about)
    go_on.set()
    assert await slow == ["likes tea"]
    assert await read(shelf, about) == after


@EVERY_WRITE
@EVERY_SCOPE
async def test_whoever_gave_up_waiting_leaves_a_fresh_read(
    shelf: Shelf, write: str, about: str | None
) -> None:
    change, after = WRITES[write]
    kept = await shelf.keep("likes tea", about=about)
    assert await read(shelf, about) == ["likes tea"]
    await give_up_waiting(shelf, change(shelf, kept, about))
    assert await read(shelf, about) == after


# --- undo


async def changed_by_the_model(shelf: Shelf, about: str | None) -> TurnKey:
    """A memory that said "likes tea" until the model changed it in a turn."""
    kept = await shelf.keep("likes tea", about=about)
    source, here = await shelf.source("Ann"), await shelf.listening()
    assert source.message_id is not None
    turn = TurnKey(message=source.message_id, lineage=here.lineage)
    actor = shelf.actor("Ann")
    await shelf.memory.update(kept.id, "likes snow", actor, source, here, turn=turn)
    return turn


async def undo(shelf: Shelf, turn: TurnKey) -> None:
    await shelf.memory.undo(turn, shelf.actor("Ann"), await shelf.listening())


@EVERY_SCOPE
async def test_a_slow_reader_does_not_bring_back_what_was_undone(
    shelf: Shelf, about: str | None
) -> None:
    turn = await changed_by_the_model(shelf, about)
    go_on = threading.Event()
    held = await hold_at_sources(shelf.talk.app.services.database._readers, go_on)
    slow = asyncio.create_task(read(shelf, about))
    await held.wait()
    await undo(shelf, turn)
    go_on.set()
    assert await slow == ["likes snow"]
    assert await read(shelf, about) == ["likes tea"]


@EVERY_SCOPE
async def test_whoever_gave_up_waiting_for_an_undo_leaves_a_fresh_read(
    shelf: Shelf, about: str | None
) -> None:
    turn = await changed_by_the_model(shelf, about)
    assert await read(shelf, about) == ["likes snow"]
    await give_up_waiting(shelf, undo(shelf, turn))
    assert await read(shelf, about) == ["likes tea"]


# --- the notice: the line under the reply that says what was changed

CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "create": ("create_long_term_memory", {"content": "likes rain"}),
    "update": ("update_long_term_memory", {"id": "M1", "content": "likes snow"}),
    "forget": ("update_long_term_memory", {"id": "M1", "content": ""}),
}


@pytest.mark.parametrize("fault", [Undeliverable("no permission"), RuntimeError("a bug")])
@EVERY_WRITE
@EVERY_SCOPE
async def test_a_notice_that_raises_leaves_a_fresh_read(
    shelf: Shelf, write: str, about: str | None, fault: Exception
) -> None:
    talk, (_, after) = shelf.talk, WRITES[write]
    await shelf.keep("likes tea", about=about)
    assert await read(shelf, about) == ["likes tea"]
    tool, arguments = CALLS[write]
    if write == "create":
        arguments = {**arguments, "scope": "target_user" if about else "server_wide"}
    talk.model.queue(ToolCalls([(tool, arguments)]), Text("ok"))
    asked = "please remember this: she likes rain, no, likes snow"
    await talk.take(talk.message("Ann", asked), fails=fault)
    assert await read(shelf, about) == after
    talk.model.queue(Text("I see"))
    await talk.say("Ann", "what do you know?")
    assert all(f'"{text}"' in talk.prompt.system for text in after)
    assert ("likes tea" in talk.prompt.system) == (write != "forget")

"""A privacy level that is being set while a memory is being written holds for that memory."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import PrivacyLevel
from bot.storage.statements import Transaction
from tests.fakes.waiting import Changes
from tests.memory.shelf import Shelf
from tests.talk import open_talk


@asynccontextmanager
async def level_first(shelf: Shelf, level: PrivacyLevel) -> AsyncIterator[None]:
    """Ben's level waits for the writer; what is written within waits right behind it."""
    database = shelf.talk.app.services.database
    queued, both_wait = database._writer._queue, threading.Event()

    async def until_both_wait(_: Transaction) -> None:
        both_wait.wait(5)

    async def wait_for_both() -> None:
        await Changes().wait_for(lambda: queued.qsize() == 2, timeout=5, what="two writes")
        both_wait.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(database.write(until_both_wait))
        await asyncio.sleep(0)
        tasks.create_task(wait_for_both())
        tasks.create_task(shelf.talk.level("Ben", level))
        await asyncio.sleep(0)
        yield


async def keeps(write: Awaitable[object]) -> bool:
    """Whether it is written, rather than refused for somebody's level."""
    try:
        await write
    except MemoryRefused as refusal:
        return refusal.code != "privacy"
    return True


@pytest.mark.parametrize(
    ("level", "kept"), [(PrivacyLevel.OPEN, True), (PrivacyLevel.PARTIAL, False)]
)
@pytest.mark.parametrize("about", ["Ben", None])
async def test_a_new_memory_is_kept_only_if_the_level_allows_it(
    tmp_path: Path, level: PrivacyLevel, about: str | None, *, kept: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        shelf = Shelf(talk)
        await shelf.keep("Ben likes tea", about=about)
        async with level_first(shelf, level):
            assert await keeps(shelf.keep("Ben was born in Rome", about=about)) == kept
        assert len(await talk.rows("SELECT * FROM memories")) == (2 if kept else 1)


@pytest.mark.parametrize(
    ("level", "kept"), [(PrivacyLevel.OPEN, True), (PrivacyLevel.PARTIAL, False)]
)
async def test_a_change_is_kept_only_if_the_level_allows_it(
    tmp_path: Path, level: PrivacyLevel, *, kept: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        shelf = Shelf(talk)
        old = await shelf.keep("everybody likes tea")
        async with level_first(shelf, level):
            assert await keeps(shelf.change(old, "Ben likes tea")) == kept

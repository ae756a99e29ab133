"""The border for work that nobody awaits."""

import asyncio
import gc
import logging

import pytest

from bot.background import Done, Raised, TaskOwner, report_bug, run_all, settle


async def give(value: int) -> int:
    return value


async def fail() -> None:
    raise ValueError("on purpose")


async def test_what_work_came_to_is_a_value() -> None:
    assert await settle(give(3)) == Done(3)
    outcome = await settle(fail())
    assert isinstance(outcome, Raised)
    assert str(outcome.error) == "on purpose"


async def test_a_cancellation_is_never_settled() -> None:
    task = asyncio.create_task(settle(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_every_callback_runs_whatever_another_does(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def raises() -> None:
        raise ValueError("on purpose")

    run_all([lambda: done.append(1), raises, lambda: done.append(2)])
    assert done == [1, 2]
    assert [record.message for record in caplog.records] == ["callback_failed"]


def test_a_bug_is_logged_under_the_id_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    bug_id = report_bug("turn_failed", ValueError("on purpose"))
    [record] = caplog.records
    assert (record.message, record.levelno) == ("turn_failed", logging.ERROR)
    assert getattr(record, "bug_id", None) == bug_id
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "on purpose"


def test_two_bugs_have_two_ids() -> None:
    assert report_bug("a", ValueError()) != report_bug("a", ValueError())


async def test_a_task_that_fails_is_logged_by_its_name(caplog: pytest.LogCaptureFixture) -> None:
    owner = TaskOwner()
    await owner.spawn("sweep", fail())
    assert [record.message for record in caplog.records] == ["background_task_failed: sweep"]


async def test_closing_gives_tasks_their_time(caplog: pytest.LogCaptureFixture) -> None:
    owner = TaskOwner()
    done: list[str] = []

    async def quick() -> None:
        await asyncio.sleep(0)
        done.append("quick")

    owner.spawn("quick", quick())
    await owner.close(grace_s=5)
    assert done == ["quick"]
    assert caplog.records == []


async def test_closing_ends_what_takes_longer() -> None:
    owner = TaskOwner()
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    task = owner.spawn("endless", endless())
    await asyncio.sleep(0)
    await owner.close(grace_s=0)
    assert task.cancelled()
    assert ended == ["cleaned up"]


async def test_closing_does_not_wait_for_ever_for_a_task_that_will_not_end() -> None:
    owner = TaskOwner()
    release = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    task = owner.spawn("stubborn", stubborn())
    await asyncio.sleep(0)
    await owner.close(grace_s=0, cancel_s=0.01)
    assert not task.done()
    release.set()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_task_that_is_ended_before_it_began_leaves_nothing_behind() -> None:
    owner = TaskOwner()
    work = fail()
    task = owner.spawn("never begun", work)
    await owner.close(grace_s=0)
    assert task.cancelled()
    assert work.cr_frame is None  # closed: the interpreter has nothing to warn of
    del work, task
    gc.collect()


async def test_closing_without_tasks_is_nothing() -> None:
    await TaskOwner().close(grace_s=1)

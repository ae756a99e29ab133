"""When the engine looks, what it runs, what waits for what, and who waits for whom."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from bot.guild_settings import QuietHours
from bot.handoff.engine import SWEPT_AT_ONCE
from bot.identifiers import ChannelId, LineageId, UserId
from bot.persona.personas import PersonaState
from tests.fakes import Html, HttpError, Text
from tests.handoff.room import ANN, GUILD, PLACE, Room, open_room, tell_everything

OLD = timedelta(hours=3)
MANAGER = UserId(9)
ONE_SLOT = {"slots": 1, "one_slot_quiet_s": 3_600}


async def talked(room: Room, count: int, *, ago: timedelta = OLD) -> None:
    """So many old lines, which are one scene."""
    await room.say(*(f"beans number {n} grow" for n in range(count)), ago=ago)


async def after_turn(room: Room) -> None:
    room.engine.after_turn(room.key.origin, GUILD)
    await settled()


async def settled() -> None:
    """Wait until every look and run that was started has ended."""
    while under_way := [
        task
        for task in asyncio.all_tasks()
        if task.get_name().startswith(("handoff-look-", "handoff-run-"))
    ]:
        await asyncio.wait(under_way)


async def before_turn(room: Room, lineage: LineageId | None = None) -> None:
    await room.engine.before_turn(room.key.origin, lineage or room.key.lineage, GUILD)


# --- turns


async def test_what_is_due_runs_after_the_reply(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        await before_turn(room)
        assert room.model.chats == []
        await after_turn(room)
        assert [run["reason"] for run in await room.runs()] == ["idle"]
        assert len(await room.episodes()) == 1


async def test_a_run_is_awaited_only_where_the_section_does_not_fit(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        room.engine.note_space(room.key, 10)
        await before_turn(room)
        assert [run["reason"] for run in await room.runs()] == ["budget"]


async def test_nobody_waits_longer_than_a_few_seconds_and_the_run_goes_on(tmp_path: Path) -> None:
    async with open_room(tmp_path, wait_s=0) as room:
        room.model.on(tell_everything)
        room.model.gate.clear()
        await talked(room, 6)
        room.engine.note_space(room.key, 10)
        await before_turn(room)
        assert await room.runs() == []
        room.model.gate.set()
        await settled()
        assert len(await room.episodes()) == 1


async def test_nobody_waits_for_the_run_of_another_persona(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.gate.clear()
        await talked(room, 6)
        room.engine.note_space(room.key, 10)
        await asyncio.wait_for(before_turn(room, LineageId(room.key.lineage + 1)), 5)
        assert room.model.chats == []


@pytest.mark.parametrize(("candidates", "runs"), [(3, 0), (4, 1)])
async def test_a_voluntary_run_needs_four_candidates(
    tmp_path: Path, candidates: int, runs: int
) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, candidates + 1)
        await after_turn(room)
        assert len(await room.runs()) == runs


async def test_two_looks_make_one_run(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        room.engine.after_turn(room.key.origin, GUILD)
        room.engine.after_turn(room.key.origin, GUILD)
        await settled()
        assert len(await room.runs()) == 1


async def test_at_most_two_runs_work_on_a_provider_at_once(tmp_path: Path) -> None:
    async with open_room(tmp_path, runs_per_provider=2) as room:
        places = room.engine._places
        await talked(room, 6)
        async with places, places:
            room.engine.after_turn(room.key.origin, GUILD)
            for _ in range(50):
                await asyncio.sleep(0)
            assert room.model.chats == []
        room.model.on(tell_everything)
        await settled()
        assert len(await room.runs()) == 1


async def test_a_run_comes_before_the_space_is_used_up_and_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path, early_fraction=0.5) as room:
        room.model.on(tell_everything)
        await talked(room, 6, ago=timedelta(minutes=5))
        section = await section_of(room)
        room.engine.note_space(room.key, section * 2 - 2)
        await before_turn(room)
        assert room.model.chats == []
        await after_turn(room)
        assert [run["reason"] for run in await room.runs()] == ["budget"]


async def section_of(room: Room) -> int:
    """The size of the talk: what a space of one token is measured against."""
    room.engine.note_space(room.key, 1)
    look = await room.engine.look(room.key)
    assert look is not None
    return look.report.value


async def test_a_room_where_people_talk_on_is_not_quiet_although_nothing_is_captured(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        heard = room.clock.now() - timedelta(minutes=29)
        room.watch._heard_at = lambda _: heard
        await room.engine.sweep()
        await settled()
        assert await room.runs() == []
        room.clock.pass_(minutes=1)
        await room.engine.sweep()
        await settled()
        assert [run["reason"] for run in await room.runs()] == ["idle"]


# --- failures


async def test_a_failure_holds_back_what_can_wait_and_is_tried_again(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(lambda _: HttpError(500))
        await talked(room, 6)
        before = await room.tables()
        await after_turn(room)
        asked = len(room.model.chats)
        assert [run["state"] for run in await room.runs()] == ["aborted"]
        assert await room.tables() == before
        room.clock.pass_(seconds=59)
        await after_turn(room)
        assert len(room.model.chats) == asked
        room.clock.pass_(seconds=1)
        room.model.clear()
        room.model.on(tell_everything)
        await after_turn(room)
        assert [run["state"] for run in await room.runs()] == ["committed"]
        assert (await room.buffer())["failures"] == 0


@pytest.mark.parametrize("answer", [Html(), Text("no"), Text("")])
async def test_whatever_the_model_answers_nothing_is_lost(
    tmp_path: Path, answer: Html | Text
) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(lambda _: answer)
        await talked(room, 6)
        before = await room.tables()
        await after_turn(room)
        assert await room.tables() == before
        assert (await room.buffer())["failures"] == 1


async def test_the_sweep_tries_again_after_a_failure(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(lambda _: HttpError(500))
        await talked(room, 6)
        await after_turn(room)
        room.model.clear()
        room.model.on(tell_everything)
        room.clock.pass_(minutes=1)
        await room.engine.sweep()
        await settled()
        assert len(await room.episodes()) == 1


async def test_out_of_budget_means_deferred(tmp_path: Path) -> None:
    async def nothing_left(_: object) -> bool:
        return False

    async def enough(_: object) -> bool:
        return True

    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        room.engine._may_spend = nothing_left
        await after_turn(room)
        assert room.model.chats == []
        room.engine._may_spend = enough
        room.clock.pass_(minutes=59)
        await room.engine.sweep()
        await settled()
        assert room.model.chats == []
        room.clock.pass_(minutes=1)
        await room.engine.sweep()
        await settled()
        assert len(await room.episodes()) == 1


# --- a server with one slot


async def test_on_one_slot_what_can_wait_waits_for_quiet_and_gives_way_to_turns(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path, **ONE_SLOT) as room:
        await talked(room, 6)
        room.engine.after_turn(room.key.origin, GUILD)
        await waiting(room)
        await before_turn(room)
        await settled()
        assert room.model.chats == []


async def test_on_one_slot_a_quiet_room_is_handed_over(tmp_path: Path) -> None:
    async with open_room(tmp_path, slots=1, one_slot_quiet_s=0) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        await after_turn(room)
        assert len(await room.episodes()) == 1


async def test_a_turn_calls_off_the_run_that_the_slot_is_busy_with(tmp_path: Path) -> None:
    async with open_room(tmp_path, slots=1, one_slot_quiet_s=0) as room:
        room.model.gate.clear()
        await talked(room, 6)
        room.engine.after_turn(room.key.origin, GUILD)
        await room.model.wait_for_requests(1)
        before = await room.tables()
        await before_turn(room)
        await settled()
        assert await room.tables() == before
        assert await room.runs() == []


async def test_a_manager_need_not_wait_for_quiet(tmp_path: Path) -> None:
    async with open_room(tmp_path, **ONE_SLOT) as room:
        room.model.on(tell_everything)
        await talked(room, 6)
        room.engine.after_turn(room.key.origin, GUILD)
        await waiting(room)
        outcome = await asyncio.wait_for(room.run(), 10)
        assert outcome is not None
        assert outcome.episodes == 1


async def test_a_manager_need_not_wait_for_enough_lines_nor_for_the_back_off(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path, keep_entries=8) as room:
        await talked(room, 10)
        await room.say(*(f"fresh {number}" for number in range(15)))
        room.model.queue(Text("no"), Text("no"))
        failed = await room.run()
        assert failed is not None
        assert failed.failure is not None
        room.model.on(tell_everything)
        outcome = await room.run()
        assert outcome is not None
        assert outcome.promoted == 10


async def waiting(room: Room) -> None:
    """Until a run waits for quiet."""
    for _ in range(10_000):
        if room.engine._patient:
            return
        await asyncio.sleep(0)
    raise AssertionError("no run waits")


# --- scenes, states, ends


async def test_a_scene_fires_once_whether_or_not_there_was_enough(tmp_path: Path) -> None:
    async with open_room(tmp_path, keep_entries=8) as room:
        room.model.on(tell_everything)
        await talked(room, 9)
        await room.say("a new day", ago=timedelta(0))
        await after_turn(room)
        assert await room.runs() == []
        assert (await room.buffer())["scene_fired"] == 1
        await room.say(*(f"more {n}" for n in range(6)))
        await after_turn(room)
        assert await room.runs() == []


async def test_a_command_begins_a_scene_and_hands_over_the_last_one(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6, ago=timedelta(minutes=31))
        await room.say("still here", ago=timedelta(minutes=25))
        await room.engine.begin_scene(room.key.origin, GUILD)
        await settled()
        assert [run["reason"] for run in await room.runs()] == ["scene"]
        await room.say("somewhere else")
        assert [entry.scene for entry in await room.entries()] == [0, 1]


async def test_a_closed_room_hands_over_even_a_single_line(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 2)
        await room.engine.end_room(room.key.origin, GUILD)
        await settled()
        assert len(await room.episodes()) == 1


async def test_a_room_that_was_closed_right_after_the_talk_is_handed_over_later(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 3, ago=timedelta(minutes=5))
        await room.engine.end_room(room.key.origin, GUILD)
        await room.engine.sweep()
        await settled()
        assert await room.runs() == []
        room.clock.pass_(minutes=26)
        await room.engine.sweep()
        await settled()
        assert len(await room.episodes()) == 1


async def test_a_persona_who_falls_asleep_hands_over_once(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 2, ago=timedelta(minutes=29))
        await room.say("good night")
        await sleep(room, PersonaState.ASLEEP)
        assert await room.runs() == []  # nothing is old enough
        assert (await room.buffer())["state_fired"] == "asleep"
        await sleep(room, PersonaState.ACTIVE)
        assert (await room.buffer())["state_fired"] is None
        room.clock.pass_(minutes=10)
        await sleep(room, PersonaState.UNCONSCIOUS)
        assert [run["reason"] for run in await room.runs()] == ["state"]


async def sleep(room: Room, state: PersonaState) -> None:
    """Bring the persona into a state, as the command does."""
    await room.set_state(state)
    await room.engine.attend_persona(GUILD, room.key.lineage)
    await settled()


async def test_quiet_hours_are_noticed_by_the_sweep(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        settings = room.settings
        hours = QuietHours.parse("15:10-16:00")
        await settings.set_quiet_hours(GUILD, ChannelId(PLACE.channel_id), hours, MANAGER)
        await room.say("one", "two", ago=timedelta(minutes=25))
        await room.say("three", ago=timedelta(minutes=1))
        room.clock.pass_(minutes=9, seconds=59)
        await room.engine.sweep()
        await settled()
        assert await room.runs() == []
        room.clock.pass_(seconds=1)
        await room.engine.sweep()
        await settled()
        assert [run["reason"] for run in await room.runs()] == ["state"]


# --- the sweep


@pytest.mark.parametrize(("minutes", "runs"), [(29, 0), (30, 1)])
async def test_a_room_that_went_quiet_is_swept_after_half_an_hour(
    tmp_path: Path, minutes: int, runs: int
) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        await talked(room, 6, ago=timedelta(minutes=40))
        await room.say("the last word", ago=timedelta(minutes=minutes))
        await room.engine.sweep()
        await settled()
        assert len(await room.runs()) == runs


async def test_a_room_that_was_swept_is_looked_at_again_only_when_something_is_said(
    tmp_path: Path,
) -> None:
    async with open_room(tmp_path, keep_entries=8) as room:
        room.model.on(tell_everything)
        await talked(room, 9)
        await room.engine.sweep()
        await settled()
        assert (await room.buffer())["due_at"] is None
        await room.say("hello", ago=timedelta(0))
        assert (await room.buffer())["due_at"] is not None


async def test_what_piled_up_is_spread_over_several_sweeps(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.model.on(tell_everything)
        rooms = SWEPT_AT_ONCE + 5
        await room.more_rooms(rooms, *(f"beans number {n} grow" for n in range(6)), ago=OLD)
        await room.engine.sweep()
        await settled()
        assert len(await room.runs()) == SWEPT_AT_ONCE
        await room.engine.sweep()
        await settled()
        assert len(await room.runs()) == rooms
        assert {run["reason"] for run in await room.runs()} == {"idle"}
        assert ANN in {one["said_by"] for one in await room.rows("SELECT * FROM ledger_sources")}

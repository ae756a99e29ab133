"""What a manager is shown of a room: counted, measured, and told in plain words."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.features import Flag
from bot.handoff.health import DayOfRuns, Health, read_health
from bot.handoff.trigger import TriggerReason
from bot.i18n import catalogue
from bot.identifiers import MessageId
from bot.memory.long_term import Listening
from bot.memory.working import Pace, Utterance, add_entries
from bot.storage.statements import Transaction
from bot.turn.handoff_answers import hand_over, health_rows
from tests.fakes import HttpError, Json
from tests.handoff.room import chunk
from tests.talk import GUILD, Talk, open_talk

HOURS = timedelta(hours=3)
LOCALES = catalogue().locales
PLANTED = chunk("E1", "E2", content="Ann planted tomatoes", quotes=["tomatoes 1"])


async def listening(talk: Talk, channel: str = "general") -> Listening:
    services = talk.app.services
    origin = await services.origins.of(talk.place(channel))
    persona = await services.personas.main(origin.guild_id)
    audience = await services.audiences.of_room(origin)
    return Listening(server=origin.guild_id, lineage=persona.lineage, audience=audience)


async def fill(
    talk: Talk, count: int, channel: str = "general", *, ago: timedelta = HOURS
) -> Listening:
    """Let Ann say so many lines, a second apart, the first so long ago."""
    here, first = await listening(talk, channel), talk.next_id()
    talk._number += count
    said = [
        Utterance(
            content=f"I planted tomatoes {number}",
            said_at=talk.clock.now() - ago + timedelta(seconds=number),
            author=talk.person("Ann").id,
            message_id=MessageId(first + number),
        )
        for number in range(count)
    ]

    async def job(tx: Transaction) -> None:
        pace = Pace.of(talk.app.services.config.handoff)
        await add_entries(tx, here.audience.here, here.lineage, said, pace)

    await talk.app.services.database.write(job)
    return here


async def health(talk: Talk, here: Listening) -> Health:
    services = talk.app.services
    found = await read_health(
        here.audience,
        here.lineage,
        engine=services.handoff,
        database=services.database,
        chat=services.chat,
        config=services.config.handoff,
    )
    assert found is not None
    return found


async def rows(talk: Talk, here: Listening, locale: str = "en-US") -> dict[str, str]:
    found = await health_rows(talk.app.services, here, locale)
    return {row.label: row.value for row in found}


def answer(talk: Talk, *chunks: dict[str, object]) -> None:
    """What the model answers to every handoff."""
    talk.keeper.clear()
    talk.keeper.on(lambda _: Json({"chunks": list(chunks), "resolved": []}))


def fail(talk: Talk) -> None:
    talk.keeper.clear()
    talk.keeper.on(lambda _: HttpError(400, "no"))


# --- what is read


async def test_a_room_where_nothing_was_said_has_no_health(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await health_rows(talk.app.services, await listening(talk), "en-US") == ()


async def test_entries_are_counted_and_measured_as_they_are_rendered(tmp_path: Path) -> None:
    async with open_talk(tmp_path, window=10_000) as talk:
        here = await fill(talk, 12)
        found = await health(talk, here)
        assert (found.entries, found.pinned, found.old_enough) == (12, 0, 4)
        assert (found.matters, found.episodes, found.hidden) == (0, 0, 0)
        assert found.section_limit == 6_000
        more = await health(talk, await fill(talk, 12))
        assert 0 < found.section < more.section < 2 * found.section + 20


async def test_what_the_triggers_say_is_read_with_value_and_limit(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        here = await fill(talk, 20, ago=timedelta(minutes=1))
        assert (await health(talk, here)).report.reason is TriggerReason.NONE
        report = (await health(talk, await fill(talk, 1, ago=timedelta(0)))).report
        assert (report.reason, report.value, report.limit) == (TriggerReason.VELOCITY, 21, 20)


async def test_the_last_run_is_read_with_what_it_did(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        here = await fill(talk, 12)
        answer(talk, {**PLANTED, "retain_in_buffer": True})
        await hand_over(talk.app.services, here, "en-US")
        found = await health(talk, here)
        assert found.last_run is not None
        outcome = found.last_run.outcome
        assert (outcome.episodes, outcome.promoted, outcome.forgotten, outcome.pinned) == (
            *(1, 2, 2, 2),
        )
        assert (found.matters, found.episodes, found.pinned) == (1, 1, 2)


async def test_failures_are_read_with_the_time_of_the_next_attempt(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={"MADELEINE__LLM__RETRIES": "0"}) as talk:
        here = await fill(talk, 12)
        fail(talk)
        for failures, minutes in ((1, 1), (2, 5), (3, 25)):
            await hand_over(talk.app.services, here, "en-US")
            found = await health(talk, here)
            assert (found.failures, found.retry_at) == (
                failures,
                talk.clock.now() + timedelta(minutes=minutes),
            )
        answer(talk, PLANTED)
        await hand_over(talk.app.services, here, "en-US")
        found = await health(talk, here)
        assert (found.failures, found.retry_at) == (0, None)


async def test_runs_of_the_server_are_those_of_the_last_day(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        answer(talk, PLANTED)
        here = await fill(talk, 12)
        await hand_over(talk.app.services, here, "en-US")
        there = await fill(talk, 12, "lounge")
        await hand_over(talk.app.services, there, "en-US")
        day = (await health(talk, here)).day
        assert (day.committed, day.aborted) == (2, 0)
        assert day.tokens
        talk.clock.pass_(hours=23, minutes=59)
        day = (await health(talk, here)).day
        assert (day.committed, day.tokens) == (2, 0)
        talk.clock.pass_(minutes=1)
        assert (await health(talk, here)).day.committed == 0


async def test_another_server_is_not_counted(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        answer(talk, PLANTED)
        here = await fill(talk, 12)
        await hand_over(talk.app.services, here, "en-US")
        direct = await fill(talk, 12, "@ann")
        assert (await health(talk, direct)).day == DayOfRuns(committed=0, aborted=0, tokens=None)


async def test_direct_messages_of_others_are_not_counted(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        answer(talk, PLANTED)
        for channel in ("@ann", "@ben"):
            await hand_over(talk.app.services, await fill(talk, 12, channel), "en-US")
        day = (await health(talk, await listening(talk, "@ann"))).day
        assert day == DayOfRuns(committed=1, aborted=0, tokens=None)


async def test_episodes_of_rooms_that_are_not_heard_here_are_not_counted(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        answer(talk, PLANTED)
        await hand_over(talk.app.services, await fill(talk, 12, "lounge"), "en-US")
        assert (await health(talk, await fill(talk, 12))).episodes == 0


# --- what is told


async def test_a_handoff_tells_what_came_of_it(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        here = await fill(talk, 12)
        answer(talk, {**PLANTED, "retain_in_buffer": True})
        told = await hand_over(talk.app.services, here, "en-US")
        [run] = await talk.rows("SELECT id FROM handoff_runs")
        assert told == (
            "2 lines became 1 episode. 2 lines were forgotten."
            " 2 lines stay, because a matter is still open."
            f" This was run {run['id']}; whoever runs me can undo it with"
            f" madeleine restore-run {run['id']}."
        )


@pytest.mark.parametrize(("count", "is_due"), [(8, False), (9, True)])
async def test_a_handoff_needs_one_line_behind_the_watermark(
    tmp_path: Path, count: int, is_due: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        told = await hand_over(talk.app.services, await fill(talk, count), "en-US")
        assert told.startswith("There is nothing to hand over yet") is not is_due


async def test_a_handoff_that_fails_tells_when_it_is_tried_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={"MADELEINE__LLM__RETRIES": "0"}) as talk:
        here = await fill(talk, 25)
        fail(talk)
        assert await hand_over(talk.app.services, here, "en-US") == (
            "It did not work: my model did not answer. Nothing was changed."
            " I try again in about a minute."
        )
        failures = (await rows(talk, here))["Failures in a row"]
        assert failures == "1. I try again in about a minute."
        talk.clock.pass_(hours=1)
        failures = (await rows(talk, here))["Failures in a row"]
        assert failures == "1. I try again in about a minute."


async def test_a_failed_wish_is_not_repeated_where_nothing_else_asks_for_it(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path, environ={"MADELEINE__HANDOFF__FRESH_MIN": "0"}) as talk:
        here = await fill(talk, 12, ago=timedelta(minutes=1))
        talk.keeper.clear()
        talk.keeper.on(lambda _: Json({"chunks": "none"}))
        assert await hand_over(talk.app.services, here, "en-US") == (
            "It did not work: my model gave no usable answer. Nothing was changed."
            " You can ask for it again whenever you like."
        )


async def test_what_is_switched_off_is_not_done_and_said(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        here = await fill(talk, 12)
        await talk.switch(Flag.HANDOFF, on=False)
        assert "switched off" in (await rows(talk, here))["Is a handoff due?"]
        with pytest.raises(UserError, match=r"errors\.handoff\.off"):
            await hand_over(talk.app.services, here, "en-US")
        assert talk.keeper.chats == []


async def test_a_budget_that_is_used_up_is_told(tmp_path: Path) -> None:
    environ = {"MADELEINE__BUDGETS__GUILD_DAILY_TOKENS": "1"}
    async with open_talk(tmp_path, environ=environ) as talk:
        answer(talk, PLANTED)
        here = await fill(talk, 12)
        await hand_over(talk.app.services, here, "en-US")
        with pytest.raises(UserError, match=r"errors\.handoff\.budget"):
            await hand_over(talk.app.services, here, "en-US")


async def test_the_table_is_readable(tmp_path: Path) -> None:
    async with open_talk(tmp_path, window=10_000) as talk:
        here = await fill(talk, 12)
        answer(talk, PLANTED)
        await hand_over(talk.app.services, here, "en-US")
        [run] = await talk.rows("SELECT id FROM handoff_runs")
        found = await rows(talk, await fill(talk, 15))
        assert found.pop("Their size in my prompt").endswith(" of at most 6000 tokens")
        assert found.pop("Handoffs in this server, last 24 hours").startswith(
            "worked: 1, failed: 0. Tokens for them today (UTC): "
        )
        assert found == {
            "Lines in working memory": "23, of them kept for open matters: 0",
            "Is a handoff due?": "yes, as soon as possible: there are 23 lines, more than 20.",
            "Lines old enough to be handed over": "15",
            "Last handoff": "just now: 2 lines became 1 episode. 2 lines were forgotten."
            f" (run {run['id']})",
            "Failures in a row": "none",
            "Lines that my last prompt had no room for": "0",
            "Open matters": "0",
            "Episodes known here": "1",
        }


async def test_the_age_of_a_run_is_told_by_the_clock_of_the_server(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.clock.time = datetime.fromisoformat("2026-03-04T22:00:00+00:00")
        here = await fill(talk, 12)
        await hand_over(talk.app.services, here, "en-US")
        talk.clock.pass_(hours=8)
        assert "last night" in (await rows(talk, here))["Last handoff"]
        await talk.app.services.settings.set_zone(GUILD, "Asia/Tokyo", talk.person("Ann").id)
        assert "earlier today, in the morning" in (await rows(talk, here))["Last handoff"]


@pytest.mark.parametrize("reason", [one for one in TriggerReason if one != "requested"])
@pytest.mark.parametrize("locale", LOCALES)
def test_every_reason_has_its_words(reason: TriggerReason, locale: str) -> None:
    assert f"ui.health.triggers.{reason.value}" in catalogue().texts(locale)


@pytest.mark.parametrize("locale", LOCALES)
async def test_every_row_has_its_label_in_every_language(tmp_path: Path, locale: str) -> None:
    async with open_talk(tmp_path) as talk:
        found = await rows(talk, await fill(talk, 12), locale)
        assert len(found) == 10
        assert not [label for label in found if label.startswith("ui.")]

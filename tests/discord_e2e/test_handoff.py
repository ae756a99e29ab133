"""Handoffs on Discord: asked for, looked at, and made when a room closes or she goes to sleep."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import (
    Channel,
    HttpError,
    Interaction,
    ModelRequest,
    NotPossible,
    Permission,
    Reply,
    ResponseKind,
    Text,
    User,
)

MANAGERS_ONLY = "Only those who may manage the server can do this."
LINE = re.compile(r"^(E\d+) \S+ Alice: (I planted .*)$", re.MULTILINE)


def keeper(request: ModelRequest, *, retain: bool = False) -> Reply | None:
    """Makes one episode of all that people said; answers nothing else."""
    if "chunks" not in json.dumps(request.schema):
        return None
    said = LINE.findall(request.last_user)
    chunk = {
        "source_entry_ids": [handle for handle, _ in said],
        "content": "Alice planted vegetables in the garden",
        "quotes": [said[0][1]],
        "importance": 6,
        "involved_entity_ids": [],
        "retain_in_buffer": retain,
    }
    return Text(json.dumps({"chunks": [chunk], "resolved": []}))


@pytest.fixture
async def stage(empty_stage: Stage) -> AsyncIterator[Stage]:
    """Madeleine, to whom nothing is too fresh; she makes no handoff that nobody asks for."""
    empty_stage.settings |= {
        "HANDOFF__FRESH_MIN": "0",
        "HANDOFF__VELOCITY_ENTRIES": "35",
        "LLM__RETRIES": "0",
    }
    empty_stage.model.on(keeper)
    async with empty_stage.madeleine():
        yield empty_stage


async def talk(stage: Stage, channel: Channel | None = None) -> None:
    """25 lines of people and the answer to the last of them: what two turns take in, and more."""
    for first in (1, 13):
        planted = [f"I planted row {number}" for number in range(first, first + 11)]
        await stage.chatter(*planted, by=stage.discord.alice, channel=channel)
        await stage.ask(f"I planted row {first + 11}", channel=channel)


async def use(
    stage: Stage,
    command: str,
    *,
    by: User | None = None,
    channel: Channel | None = None,
    **options: object,
) -> str:
    """Use a command, as the owner of the server unless told otherwise; gives its answer."""
    used = await stage.discord.slash(
        by or stage.discord.owner, channel or stage.discord.general, command, **options
    )
    return (await used.reply(timeout=10)).content


async def a_run(stage: Stage, count: int = 1) -> list[dict[str, object]]:
    """The runs, once there are so many."""
    return await stage.discord.wait_for(
        lambda: found if len(found := stage.rows("SELECT * FROM handoff_runs")) >= count else None,
        timeout=10,
        what=f"for {count} runs",
    )


# --- /memory handoff


async def test_a_manager_has_the_older_talk_handed_over(stage: Stage) -> None:
    await talk(stage)
    answer = await use(stage, "memory handoff")
    assert answer.startswith("17 lines became 1 episode. 1 line was forgotten. This was run ")
    assert stage.count("buffer_entries") == 8
    shown = await use(stage, "memory show", by=stage.discord.alice)
    assert shown.splitlines() == [
        "**What happened, as far as it is known here**",
        f"- {stage.discord.alice.mention} planted vegetables in the garden (just now)"
        f" \u201cI planted row 1\u201d ({stage.discord.alice.mention})",
    ]


async def test_a_matter_that_is_open_is_shown_as_such(stage: Stage) -> None:
    stage.model.clear()
    stage.model.on(lambda request: keeper(request, retain=True))
    await talk(stage)
    answer = await use(stage, "memory handoff")
    assert "16 lines stay, because a matter is still open." in answer
    shown = await use(stage, "memory show", by=stage.discord.alice)
    alice = stage.discord.alice.mention
    assert shown.startswith(f"**What is still open here**\n- {alice} planted vegetables")
    assert "What happened" not in shown


async def test_what_happened_elsewhere_is_not_shown(stage: Stage) -> None:
    bob, lounge = stage.discord.member("bob"), stage.discord.channel("lounge")
    stage.discord.hide(stage.discord.general, stage.discord.bot_role(), stage.discord.alice)
    await talk(stage)
    await use(stage, "memory handoff")
    assert "vegetables" in await use(stage, "memory show", channel=lounge)
    assert "vegetables" not in await use(stage, "memory show", channel=lounge, by=bob)


async def test_more_than_ten_episodes_are_counted(stage: Stage) -> None:
    lounge = stage.discord.thread(stage.discord.general, "lounge")
    for _ in range(12):
        await stage.chatter(
            *(f"I planted row {n}" for n in range(10)), by=stage.discord.alice, channel=lounge
        )
        await stage.ask("I planted a row", channel=lounge)
        assert "became 1 episode" in await use(stage, "memory handoff", channel=lounge)
    shown = await use(stage, "memory show", channel=lounge)
    assert shown.count("planted vegetables") == 10
    assert shown.endswith("... and 2 more, from earlier.")


async def test_where_there_is_nothing_old_enough_that_is_said(stage: Stage) -> None:
    await stage.ask("hello")
    answer = await use(stage, "memory handoff")
    assert answer.startswith("There is nothing to hand over yet")
    assert stage.count("handoff_runs") == 0


async def test_a_run_that_takes_long_is_answered_all_the_same(stage: Stage) -> None:
    await talk(stage)
    stage.model.clear()
    stage.model.on(lambda request: _later(keeper(request)))
    used = await stage.discord.slash(stage.discord.owner, stage.discord.general, "memory handoff")
    assert await used.answered() is ResponseKind.DEFERRED_MESSAGE
    used.grow_older(600)
    answer = await used.reply(containing="became 1 episode", timeout=10)
    assert answer.visible_only_to is stage.discord.owner


def _later(reply: Reply | None) -> Reply | None:
    return replace(reply, delay=0.3) if isinstance(reply, Text) else None


async def test_a_run_that_fails_is_told_in_plain_words(stage: Stage) -> None:
    await talk(stage)
    stage.model.clear()
    stage.model.on(lambda request: HttpError(500, "no") if request.schema else None)
    answer = await use(stage, "memory handoff")
    assert answer.startswith("It did not work: my model did not answer. Nothing was changed.")
    assert stage.count("buffer_entries") == 26
    assert "\n**Failures in a row:** 1." in await use(stage, "memory health")


async def test_a_handoff_that_is_switched_off_is_not_made(stage: Stage) -> None:
    await talk(stage)
    await use(stage, "features set", feature="handoff_enabled", state="off")
    assert "switched off here" in await use(stage, "memory handoff")
    assert stage.count("handoff_runs") == 0


@pytest.mark.parametrize("command", ["memory handoff", "memory health"])
async def test_members_neither_ask_for_a_handoff_nor_look_at_it(stage: Stage, command: str) -> None:
    assert await use(stage, command, by=stage.discord.alice) == MANAGERS_ONLY


@pytest.mark.parametrize("command", ["memory handoff", "memory health"])
async def test_a_direct_message_is_the_persons_own(stage: Stage, command: str) -> None:
    alice = stage.discord.alice
    direct = stage.discord.direct(alice)
    await stage.ask("hello", channel=direct)
    assert await use(stage, command, by=alice, channel=direct) != MANAGERS_ONLY


# --- /memory health


async def test_health_is_a_table_of_the_room(stage: Stage) -> None:
    await talk(stage)
    await use(stage, "memory handoff")
    rows = dict(
        line.removeprefix("**").split(":** ")
        for line in (await use(stage, "memory health")).splitlines()
    )
    assert rows["Lines in working memory"] == "8, of them kept for open matters: 0"
    assert rows["Last handoff"].startswith("just now: 17 lines became 1 episode.")
    assert rows["Episodes known here"] == "1"
    assert rows["Handoffs in this server, last 24 hours"].startswith("worked: 1, failed: 0.")


async def test_health_of_a_room_where_nothing_was_said_says_so(stage: Stage) -> None:
    assert (await use(stage, "memory health")).startswith("Nothing was said to me here yet")


async def test_health_is_told_in_the_language_of_its_reader(stage: Stage) -> None:
    await stage.ask("hello")
    manager = stage.discord.role("manager", Permission.MANAGE_GUILD)
    for locale, expected in (("pt-BR", "Linhas na memória de trabalho"), ("ja", "作業記憶の行数")):
        person = stage.discord.member(f"reader-{locale}", locale=locale, roles=[manager])
        assert expected in await use(stage, "memory health", by=person)


# --- /scene


async def test_whoever_may_write_here_begins_a_scene(stage: Stage) -> None:
    await talk(stage)
    answer = await use(stage, "scene", by=stage.discord.alice)
    assert answer.startswith("A new scene begins here.")
    [run] = await a_run(stage)
    assert run["reason"] == "scene"
    await stage.ask("I planted roses")
    assert stage.rows("SELECT max(scene) AS scene FROM buffer_entries") == [{"scene": 1}]


async def test_who_may_not_write_here_begins_no_scene(stage: Stage) -> None:
    await talk(stage)
    stage.discord.overwrite(
        stage.discord.general, stage.discord.alice, deny=Permission.SEND_MESSAGES
    )
    answer = await use(stage, "scene", by=stage.discord.alice)
    assert answer == "Only those who may write here can do this."
    assert stage.rows("SELECT scene FROM buffers") == [{"scene": 0}]


async def test_in_a_thread_it_counts_who_may_write_in_threads(stage: Stage) -> None:
    alice, general = stage.discord.alice, stage.discord.general
    thread = stage.discord.thread(general, "garden")
    stage.discord.overwrite(general, alice, deny=Permission.SEND_MESSAGES)
    assert "new scene" in await use(stage, "scene", by=alice, channel=thread)
    stage.discord.overwrite(general, alice, deny=Permission.SEND_MESSAGES_IN_THREADS)
    assert "may write" in await use(stage, "scene", by=alice, channel=thread)


async def test_a_person_begins_a_scene_in_a_direct_message(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    assert "new scene" in await use(stage, "scene", by=stage.discord.alice, channel=direct)


# --- rooms that are closed


@pytest.fixture
async def thread(stage: Stage) -> Channel:
    """A thread where 26 lines were said."""
    thread = stage.discord.thread(stage.discord.general, "garden")
    await talk(stage, thread)
    return thread


@pytest.mark.parametrize("locked", [False, True])
async def test_a_thread_that_is_archived_is_handed_over(
    stage: Stage, thread: Channel, locked: bool
) -> None:
    stage.discord.archive(thread, locked=locked)
    [run] = await a_run(stage)
    assert (run["state"], run["candidates"]) == ("committed", 18)


async def test_a_thread_that_is_locked_is_handed_over(stage: Stage, thread: Channel) -> None:
    assert thread.thread is not None
    thread.thread.locked = True
    stage.discord.channel_event("THREAD_UPDATE", thread)
    [run] = await a_run(stage)
    assert run["state"] == "committed"


async def test_a_thread_that_is_renamed_goes_on(stage: Stage, thread: Channel) -> None:
    thread.name = "orchard"
    stage.discord.channel_event("THREAD_UPDATE", thread)
    await stage.ask("I planted apples", channel=thread)
    assert stage.rows("SELECT scene, ended_at FROM buffers") == [{"scene": 0, "ended_at": None}]


async def test_a_thread_that_is_deleted_is_handed_over(stage: Stage, thread: Channel) -> None:
    stage.discord.delete_channel(thread)
    assert (await a_run(stage))[0]["state"] == "committed"


async def test_a_thread_that_was_archived_before_she_came_is_handed_over(
    empty_stage: Stage,
) -> None:
    """After a start an archived thread is not in the library's cache."""
    stage = empty_stage
    stage.settings |= {"HANDOFF__FRESH_MIN": "0", "HANDOFF__VELOCITY_ENTRIES": "35"}
    stage.model.on(keeper)
    thread = stage.discord.thread(stage.discord.general, "garden")
    async with stage.madeleine():
        await talk(stage, thread)
    assert thread.thread is not None
    thread.thread.archived = True
    async with stage.madeleine():
        thread.thread.locked = True
        stage.discord.channel_event("THREAD_UPDATE", thread)
        assert (await a_run(stage))[0]["state"] == "committed"


async def test_a_channel_that_is_deleted_is_handed_over(stage: Stage) -> None:
    garden = stage.discord.channel("garden")
    await talk(stage, garden)
    stage.discord.delete_channel(garden)
    assert (await a_run(stage))[0]["state"] == "committed"


async def test_a_room_that_was_never_talked_in_leaves_no_trace_when_it_goes(stage: Stage) -> None:
    thread = stage.discord.thread(stage.discord.general, "silence")
    stage.discord.archive(thread)
    stage.discord.delete_channel(stage.discord.channel("empty"))
    await stage.ask("hello")
    known = stage.rows("SELECT channel_id FROM origins WHERE kind != 'server'")
    assert known == [{"channel_id": stage.discord.general.id}]


# --- /persona sleep


async def test_a_paused_persona_answers_nobody_until_she_is_woken(stage: Stage) -> None:
    await stage.ask("hello")
    assert "is paused now" in await use(stage, "persona sleep", state="paused")
    await stage.discord.say(
        stage.discord.alice, stage.discord.general, "are you there?", mention_bot=True
    )
    assert "**OPEN**" in await use(stage, "privacy level", by=stage.discord.alice)
    assert "is awake" in await use(stage, "persona sleep", state="awake")
    assert "and now?" in (await stage.ask("and now?")).content
    said = stage.discord.bot_messages(stage.discord.general)
    assert len([message for message in said if not message.visible_only_to]) == 2
    assert "are you there?" in stage.prompt.text


@pytest.mark.parametrize("state", ["asleep", "paused"])
async def test_who_goes_to_sleep_hands_over_what_she_holds(stage: Stage, state: str) -> None:
    await talk(stage)
    await use(stage, "persona sleep", state=state)
    [run] = await a_run(stage)
    assert (run["reason"], run["state"]) == ("state", "committed")


async def test_a_persona_asleep_answers_who_calls_her(stage: Stage) -> None:
    assert "is asleep now" in await use(stage, "persona sleep", state="asleep")
    reply = await stage.ask("hello")
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "thanks", reply_to=reply
    )
    await stage.reply_to(question)


async def test_only_managers_send_her_to_sleep(stage: Stage) -> None:
    alice = stage.discord.alice
    with pytest.raises(NotPossible, match="not offered to alice"):
        await use(stage, "persona sleep", by=alice, state="paused")
    everybody_may_use(stage, "persona")
    assert await use(stage, "persona sleep", by=alice, state="paused") == MANAGERS_ONLY
    await stage.ask("hello")


def everybody_may_use(stage: Stage, name: str) -> None:
    """A server's owner can let everybody use a command, whatever we ask Discord for."""
    command = stage.discord.commands.find(name, None)
    assert command is not None
    command["default_member_permissions"] = None


# --- /channel quiet and /features zone


async def test_quiet_hours_are_set_shown_and_ended(stage: Stage) -> None:
    assert "no quiet hours" in await use(stage, "channel quiet")
    expected = "In this channel I sleep from 22:00 to 07:00 (UTC)."
    assert await use(stage, "channel quiet", hours="22-7") == expected
    assert await use(stage, "channel quiet") == expected
    lounge = stage.discord.channel("lounge")
    assert "no quiet hours" in await use(stage, "channel quiet", channel=lounge)
    assert "no quiet hours" in await use(stage, "channel quiet", hours="OFF")
    assert "no quiet hours" in await use(stage, "channel quiet")


async def test_quiet_hours_are_ended_in_the_language_of_the_person(stage: Stage) -> None:
    manager = stage.discord.role("manager", Permission.MANAGE_GUILD)
    person = stage.discord.member("person", locale="ja", roles=[manager])
    await use(stage, "channel quiet", hours="22-7")
    await use(stage, "channel quiet", by=person, hours="オフ")
    assert "no quiet hours" in await use(stage, "channel quiet")


async def test_what_is_no_span_of_hours_is_refused_with_an_example(stage: Stage) -> None:
    answer = await use(stage, "channel quiet", hours="at night")
    assert answer == "at night is no span of hours. Write it like this: 22:00-07:00."


async def test_only_managers_set_quiet_hours_and_zones(stage: Stage) -> None:
    for name in ("channel", "features"):
        everybody_may_use(stage, name)
    alice = stage.discord.alice
    assert await use(stage, "channel quiet", by=alice, hours="22-7") == MANAGERS_ONLY
    assert await use(stage, "features zone", by=alice, zone="Asia/Tokyo") == MANAGERS_ONLY
    assert stage.count("guild_settings") == 0


async def test_a_zone_is_offered_set_and_shown(stage: Stage) -> None:
    assert "Time zone: **UTC**." in await use(stage, "features show")
    offered: Interaction = await stage.discord.autocomplete(
        stage.discord.owner, stage.discord.general, "features zone", "zone", zone="lisb"
    )
    assert [one["value"] for one in await offered.choices()] == ["Europe/Lisbon"]
    assert "**Europe/Lisbon**" in await use(stage, "features zone", zone="Europe/Lisbon")
    assert "Time zone: **Europe/Lisbon**." in await use(stage, "features show")
    await use(stage, "channel quiet", hours="22-7")
    assert "(Europe/Lisbon)" in await use(stage, "channel quiet")


async def test_at_most_25_zones_are_offered(stage: Stage) -> None:
    offered = await stage.discord.autocomplete(
        stage.discord.owner, stage.discord.general, "features zone", "zone", zone=""
    )
    assert len(await offered.choices()) == 25


async def test_a_zone_that_nobody_knows_is_refused(stage: Stage) -> None:
    answer = await use(stage, "features zone", zone="Middle Earth")
    assert answer.startswith("I know no time zone called Middle Earth.")

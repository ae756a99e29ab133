"""Slash commands: what they do, for whom, and in which language they answer."""

import logging
import re
import sqlite3
from contextlib import closing

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import Channel, NotPossible, Permission, ResponseKind, ToolCalls, User

NOTHING = "I remember nothing of you or of this server that is known in this channel."
MANAGERS_ONLY = "Only those who may manage the server can do this."


async def use(
    stage: Stage,
    command: str,
    *,
    by: User | None = None,
    channel: Channel | None = None,
    **options: object,
) -> str:
    """Use a command; gives its answer."""
    used = await stage.discord.slash(
        by or stage.discord.alice, channel or stage.discord.general, command, **options
    )
    return (await used.reply()).content


def newest_number(stage: Stage, answer: str) -> int:
    """The number of the memory that was just taught; the answer must not tell it.

    It would be an old one where only another room knows the same.
    """
    assert answer == "I have saved this. /memory show lists it with its number."
    [row] = stage.rows("SELECT max(id) AS number FROM memories")
    return int(str(row["number"]))


def everybody_may_use(stage: Stage, name: str) -> None:
    """A server's owner can let everybody use a command, whatever we ask Discord for."""
    command = stage.discord.commands.find(name, None)
    assert command is not None
    command["default_member_permissions"] = None


# --- every command


@pytest.mark.parametrize("command", ["memory show", "privacy level"])
async def test_a_command_is_answered_at_once_for_its_author_alone(
    stage: Stage, command: str
) -> None:
    used = await stage.discord.slash(stage.discord.alice, stage.discord.general, command)
    assert await used.answered() is ResponseKind.DEFERRED_MESSAGE
    answer = await used.reply()
    assert answer.visible_only_to is stage.discord.alice
    assert answer not in stage.discord.visible_to(stage.discord.owner, stage.discord.general)


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("en-US", "Your privacy level here is"),
        ("en-GB", "Your privacy level here is"),
        ("pt-BR", "Seu nível de privacidade"),
        ("ja", "プライバシー"),
        ("de", "Deine Privatsphäre-Stufe ist hier"),
        ("it", "Your privacy level here is"),
    ],
)
async def test_a_command_answers_in_the_language_of_its_author(
    stage: Stage, locale: str, expected: str
) -> None:
    person = stage.discord.member("person", locale=locale)
    assert expected in await use(stage, "privacy level", by=person)


async def test_commands_carry_their_translations(stage: Stage) -> None:
    memory = stage.discord.commands.find("memory", None)
    assert memory is not None
    assert {"pt-BR", "ja"} <= set(memory["description_localizations"])
    [show] = [one for one in memory["options"] if one["name"] == "show"]
    assert {"pt-BR", "ja"} <= set(show["name_localizations"])
    features = stage.discord.commands.find("features", None)
    assert features is not None
    [switch] = [one for one in features["options"] if one["name"] == "set"]
    flag = switch["options"][0]["choices"][0]
    assert flag["value"] == "self_teaching_enabled"
    assert {"pt-BR", "ja"} <= set(flag["name_localizations"])


async def test_a_fault_of_ours_is_told_with_a_number_that_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(stage.database)) as connection:
        connection.execute("ALTER TABLE privacy_levels RENAME TO lost_levels")
    with caplog.at_level(logging.ERROR):
        answer = await use(stage, "privacy level", level="PARTIAL")
    found = re.search(r"name this number: (\w+)\.", answer)
    assert found is not None
    assert found[1] in {getattr(record, "bug_id", None) for record in caplog.records}


async def test_a_busy_database_is_told_in_plain_words(empty_stage: Stage) -> None:
    empty_stage.settings["STORAGE__BUSY_TIMEOUT_MS"] = "50"
    async with empty_stage.madeleine():
        with closing(sqlite3.connect(empty_stage.database)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            used = await empty_stage.discord.slash(
                *(empty_stage.discord.alice, empty_stage.discord.general, "memory teach"),
                text="I like tea",
            )
            answer = await used.reply()
    assert answer.content == (
        "My memory cannot be reached right now. Please try again in a minute."
    )


# --- /memory


async def test_show_says_so_where_there_is_nothing(stage: Stage) -> None:
    assert await use(stage, "memory show") == NOTHING


async def test_what_is_taught_is_shown_and_is_in_the_next_prompt(stage: Stage) -> None:
    number = newest_number(stage, await use(stage, "memory teach", text="Alice likes green tea"))
    await use(stage, "memory teach", text="Tea is at five", about="server")
    shown = await use(stage, "memory show")
    mine, ours = shown.split("**What I remember of this server here**")
    assert f"`{number}` Alice likes green tea - {stage.discord.alice.mention}, just now" in mine
    assert "Tea is at five" in ours
    await stage.ask("what do I like?")
    assert "Alice likes green tea" in stage.prompt.system
    assert "Tea is at five" in stage.prompt.system


async def test_what_is_taught_has_the_whole_server_as_its_source(stage: Stage) -> None:
    await use(stage, "memory teach", text="Tea is at five", about="server")
    await stage.ask("when is tea?", channel=stage.discord.channel("lounge"))
    assert "Tea is at five" in stage.prompt.system


async def test_what_is_taught_in_a_direct_message_stays_there(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    await use(stage, "memory teach", text="I am getting married", channel=direct)
    assert "married" in await use(stage, "memory show", channel=direct)
    assert await use(stage, "memory show") == NOTHING
    await stage.ask("any news?")
    assert "married" not in stage.prompt.text


async def test_a_server_cannot_be_taught_in_a_direct_message(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    answer = await use(stage, "memory teach", text="Tea", about="server", channel=direct)
    assert answer.startswith("In a direct message I only keep things about you.")


async def test_show_tells_nobody_what_was_said_elsewhere(stage: Stage) -> None:
    fact = {"content": "Alice has a secret", "scope": "target_user", "target": ""}
    stage.model.queue(ToolCalls([("create_long_term_memory", fact)]), "I will remember that.")
    den = stage.discord.channel("den")
    stage.discord.hide(den, stage.discord.bot_role(), stage.discord.alice)
    await stage.ask("remember that I have a secret", channel=den)
    assert "secret" in await use(stage, "memory show", channel=den)
    assert "secret" in await use(stage, "memory show")  # she alone sees the answer, and reads both
    bob = stage.discord.member("bob")
    assert await use(stage, "memory show", by=bob) == NOTHING


async def test_a_command_in_a_thread_is_about_the_thread(stage: Stage) -> None:
    note = {"summary": "They plan a tea party."}
    thread = stage.discord.thread(stage.discord.general, "tea")
    stage.model.queue(ToolCalls([("update_short_term_memory", note)]), "nice")
    await stage.ask("let us plan a tea party", channel=thread)
    assert "They plan a tea party." in await use(stage, "memory show", channel=thread)
    assert await use(stage, "memory show") == NOTHING


async def test_show_has_the_note_on_the_conversation(stage: Stage) -> None:
    note = {"summary": "They plan a tea party."}
    stage.model.queue(ToolCalls([("update_short_term_memory", note)]), "nice")
    await stage.ask("let us plan a tea party")
    assert "They plan a tea party." in await use(stage, "memory show")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("   ", "There is no text to keep."),
        ("my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH", "This looks like"),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_the_reason(
    stage: Stage, text: str, expected: str
) -> None:
    assert (await use(stage, "memory teach", text=text)).startswith(expected)
    assert await use(stage, "memory show") == NOTHING


async def test_discord_itself_refuses_a_text_that_is_too_long(stage: Stage) -> None:
    with pytest.raises(NotPossible):
        await use(stage, "memory teach", text="x" * 1_001)
    assert newest_number(stage, await use(stage, "memory teach", text="x" * 1_000))


async def test_teaching_the_same_twice_keeps_it_once(stage: Stage) -> None:
    await use(stage, "memory teach", text="Tea is at five", about="server")
    answer = await use(stage, "memory teach", text="tea is at FIVE.", about="server")
    assert answer == "I knew this already."
    assert stage.count("server_memories") == 1


async def test_nothing_is_taught_about_somebody_who_does_not_want_it(stage: Stage) -> None:
    bob = stage.discord.member("bob", display_name="Bobby")
    await use(stage, "privacy level", by=bob, level="PARTIAL")
    answer = await use(stage, "memory teach", text="Bobby snores", about="server")
    assert answer.startswith("This is about somebody who does not want to be remembered")
    answer = await use(stage, "memory teach", text="I like tea", by=bob)
    assert "/privacy level changes that" in answer


async def test_a_person_forgets_what_is_about_them(stage: Stage) -> None:
    number = newest_number(stage, await use(stage, "memory teach", text="Alice likes green tea"))
    answer = await use(stage, "memory forget", memories=str(number))
    assert answer == "Forgotten: Alice likes green tea"
    await stage.ask("what do I like?")
    assert "green tea" not in stage.prompt.text


async def test_nobody_forgets_what_is_not_theirs(stage: Stage) -> None:
    number = newest_number(
        stage, await use(stage, "memory teach", text="Tea is at five", about="server")
    )
    bob = stage.discord.member("bob")
    answer = await use(stage, "memory forget", memories=str(number), by=bob)
    assert answer.startswith("Only the person it is about, or who told me")
    assert (
        await use(stage, "memory forget", memories=str(number), by=stage.discord.owner)
    ).startswith("Forgotten")


async def test_a_memory_that_is_not_heard_here_does_not_exist_here(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    number = newest_number(
        stage, await use(stage, "memory teach", text="I am getting married", channel=direct)
    )
    expected = f"There is no memory {number} here. /memory show lists what there is."
    assert await use(stage, "memory forget", memories=str(number)) == expected
    assert (
        await use(stage, "memory forget", memories=str(number), by=stage.discord.owner) == expected
    )


async def test_members_teach_the_server_only_where_that_is_on(stage: Stage) -> None:
    await use(
        stage,
        "features set",
        by=stage.discord.owner,
        feature="member_teaching_enabled",
        state="off",
    )
    answer = await use(stage, "memory teach", text="Tea is at five", about="server")
    assert answer.startswith("In this server only managers may change")
    assert newest_number(stage, await use(stage, "memory teach", text="Alice likes tea"))
    owner = stage.discord.owner
    assert newest_number(
        stage, await use(stage, "memory teach", text="Tea is at five", about="server", by=owner)
    )


# --- /features


async def test_features_are_shown_with_meaning_and_default(stage: Stage) -> None:
    shown = await use(stage, "features show", by=stage.discord.owner)
    assert (
        "`self_teaching_enabled` I may keep lasting memories by myself: **on** (default: on)"
        in shown.splitlines()
    )
    assert "`images_enabled` I look at pictures: **off** (default: off)" in shown.splitlines()


async def test_a_switch_is_shown_with_who_and_when(stage: Stage) -> None:
    owner = stage.discord.owner
    answer = await use(
        stage, "features set", by=owner, feature="self_teaching_enabled", state="off"
    )
    expected = f"**off** (default: on) Changed by {owner.mention}, just now."
    assert answer.endswith(expected)
    assert expected in await use(stage, "features show", by=owner)


async def test_features_are_offered_to_managers_only(stage: Stage) -> None:
    with pytest.raises(NotPossible, match="not offered to alice"):
        await use(stage, "features show")
    manager = stage.discord.role("manager", Permission.MANAGE_GUILD)
    stage.discord.assign_roles(stage.discord.alice, manager)
    assert "self_teaching_enabled" in await use(stage, "features show")


async def test_features_are_refused_to_others_even_where_discord_offers_them(
    stage: Stage,
) -> None:
    everybody_may_use(stage, "features")
    assert await use(stage, "features show") == MANAGERS_ONLY
    answer = await use(stage, "features set", feature="self_teaching_enabled", state="off")
    assert answer == MANAGERS_ONLY
    assert stage.count("feature_flags") == 0


async def test_features_are_not_offered_in_direct_messages(stage: Stage) -> None:
    with pytest.raises(NotPossible, match="not offered in this kind of place"):
        await use(stage, "features show", channel=stage.discord.direct(stage.discord.alice))


async def test_a_switch_holds_for_its_own_server_only(stage: Stage) -> None:
    second = stage.discord.guild("second")
    lounge = stage.discord.channel("lounge", guild=second)
    owner = stage.discord.owner
    await use(stage, "features set", by=owner, feature="images_enabled", state="on")
    shown = await use(stage, "features show", by=owner, channel=lounge)
    assert "`images_enabled` I look at pictures: **off** (default: off)" in shown


# --- /privacy


async def test_full_says_that_she_no_longer_answers_and_how_to_undo_it(stage: Stage) -> None:
    answer = await use(stage, "privacy level", level="FULL")
    assert "I no longer answer you" in answer
    assert "The same command with OPEN undoes this." in answer
    await stage.discord.say(stage.discord.alice, stage.discord.general, "hello", mention_bot=True)
    assert "OPEN" in await use(stage, "privacy level", level="OPEN")
    assert "hello again" in (await stage.ask("hello again")).content
    assert [chat for chat in stage.model.chats if chat.last_user.endswith(": hello")] == []


async def test_commands_work_for_members_at_full(stage: Stage) -> None:
    await use(stage, "memory teach", text="Alice likes green tea")
    await use(stage, "privacy level", level="FULL")
    shown = await use(stage, "memory show")
    assert "Alice likes green tea" in shown
    number = int(re.findall(r"`(\d+)`", shown)[0])
    assert (await use(stage, "memory forget", memories=str(number))).startswith("Forgotten")


async def test_a_stricter_level_for_one_server_says_how_to_undo_it(stage: Stage) -> None:
    await use(stage, "privacy level", level="FULL", where="server")
    answer = await use(stage, "privacy level", level="OPEN")
    assert "**FULL**" in answer
    assert "only in this server" in answer
    assert "**OPEN**" in await use(stage, "privacy level", level="OPEN", where="server")


async def test_the_level_holds_in_direct_messages_too(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    assert "**PARTIAL**" in await use(stage, "privacy level", level="PARTIAL", channel=direct)
    assert "**PARTIAL**" in await use(stage, "privacy level")

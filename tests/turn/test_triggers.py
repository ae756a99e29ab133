"""Which messages are for us."""

from pathlib import Path

import pytest

from bot.identifiers import UserId
from bot.memory.references import reference_to
from bot.privacy.levels import PrivacyLevel
from bot.turn.messages import Person
from bot.turn.triggers import Triggers
from tests.talk import BOT, GUILD, Talk, open_talk

ROBOT = Person(id=UserId(77), name="Robot", is_bot=True)


def triggers(talk: Talk, *, bots: bool = True) -> Triggers:
    return Triggers(talk.app.services.levels, answer_other_bots=bots, bot_exchanges=3)


@pytest.mark.parametrize(
    ("more", "channel", "starts"),
    [
        ({}, "general", True),
        ({"mentions_us": False}, "general", False),
        ({"mentions_us": False, "replies_to_us": True}, "general", True),
        ({"mentions_us": False}, "@ann", True),
        ({"is_system": True}, "general", False),
        ({"is_system": True}, "@ann", False),
        ({"is_own": True}, "general", False),
        ({"is_own": True}, "@ann", False),
    ],
)
async def test_a_mention_a_reply_or_a_direct_message_starts_a_turn(
    tmp_path: Path, more: dict[str, object], channel: str, starts: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        message = talk.message("Ann", "hello", channel, **more)
        assert triggers(talk).starts_turn(message) == starts


NOTHING = ["", " ", "\n", "\u200b", "\u2060 \ufeff"]


@pytest.mark.parametrize("text", NOTHING)
async def test_nothing_is_answered_where_nothing_is_said(tmp_path: Path, text: str) -> None:
    async with open_talk(tmp_path) as talk:
        direct = talk.message("Ann", text, "@ann", mentions_us=False)
        reply = talk.message("Ann", text, mentions_us=False, replies_to_us=True)
        assert not triggers(talk).starts_turn(direct)
        assert not triggers(talk).starts_turn(reply)


@pytest.mark.parametrize("text", ["?", "\u200b\U0001f980", "\u2060a"])
async def test_one_sign_is_enough_to_be_answered(tmp_path: Path, text: str) -> None:
    async with open_talk(tmp_path) as talk:
        message = talk.message("Ann", text, "@ann", mentions_us=False)
        assert triggers(talk).starts_turn(message)


async def test_a_bare_mention_is_a_call(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert triggers(talk).starts_turn(talk.message("Ann", reference_to(BOT)))


@pytest.mark.parametrize(
    ("level", "starts"),
    [(PrivacyLevel.OPEN, True), (PrivacyLevel.PARTIAL, True), (PrivacyLevel.FULL, False)],
)
async def test_a_full_member_is_not_answered(
    tmp_path: Path, level: PrivacyLevel, starts: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ann", level)
        assert triggers(talk).starts_turn(talk.message("Ann", "hello")) == starts
        assert triggers(talk).starts_turn(talk.message("Ann", "hello", "@ann")) == starts


async def test_a_level_for_one_server_holds_there_only(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ann", PrivacyLevel.FULL, GUILD)
        assert not triggers(talk).starts_turn(talk.message("Ann", "hello"))
        assert triggers(talk).starts_turn(talk.message("Ann", "hello", "@ann"))


async def test_other_bots_are_not_answered_unless_that_is_allowed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        message = talk.message("Robot", "hello", author=ROBOT)
        assert not triggers(talk, bots=False).starts_turn(message)
        assert triggers(talk, bots=True).starts_turn(message)


async def test_bots_that_answer_each_other_stop_after_three_exchanges(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        those = triggers(talk)
        said = [talk.message("Robot", f"hello {n}", author=ROBOT) for n in range(5)]
        assert [those.starts_turn(message) for message in said] == [True] * 3 + [False] * 2


async def test_a_person_who_speaks_lets_the_bots_begin_anew(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        those = triggers(talk)
        for number in range(4):
            those.starts_turn(talk.message("Robot", f"hello {number}", author=ROBOT))
        those.starts_turn(talk.message("Ann", "what are you doing?", mentions_us=False))
        assert those.starts_turn(talk.message("Robot", "hello again", author=ROBOT))


async def test_exchanges_are_counted_for_each_channel_and_only_where_we_are_spoken_to(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        those = triggers(talk)
        for number in range(5):
            idle = talk.message("Robot", f"beep {number}", author=ROBOT, mentions_us=False)
            assert not those.starts_turn(idle)
        assert those.starts_turn(talk.message("Robot", "hello", author=ROBOT))
        for number in range(3):
            assert those.starts_turn(talk.message("Robot", f"{number}", "garden", author=ROBOT))
        assert those.starts_turn(talk.message("Robot", "hello", author=ROBOT))

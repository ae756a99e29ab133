"""Cooldowns and daily budgets."""

from pathlib import Path

from tests.fakes import Text
from tests.talk import open_talk

PREFIX = "MADELEINE__BUDGETS__"


async def test_a_person_in_cooldown_is_told_how_long_to_wait(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={f"{PREFIX}PERSON_COOLDOWN_S": "10"}) as talk:
        await talk.say("Ann", "hello")
        report = await talk.say("Ann", "hello again")
        assert report is not None
        assert "9 seconds" in report.reply
        assert len(talk.model.chats) == 1


async def test_a_cooldown_ends_and_does_not_hold_for_others(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={f"{PREFIX}PERSON_COOLDOWN_S": "10"}) as talk:
        await talk.say("Ann", "hello")
        await talk.say("Ben", "hello")
        talk.clock.pass_(seconds=8)
        await talk.say("Ann", "hello again")
        assert len(talk.model.chats) == 3


async def test_a_spent_daily_budget_refuses_kindly_until_midnight(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={f"{PREFIX}PERSON_DAILY_TOKENS": "1"}) as talk:
        talk.model.on(lambda _: Text("hi"))
        await talk.say("Ann", "hello")
        refused = await talk.say("Ann", "and now?")
        assert refused is not None
        assert "about 9 hours" in refused.reply
        await talk.say("Ben", "me too")
        talk.clock.pass_(hours=9)
        await talk.say("Ann", "a new day")
        assert len(talk.model.chats) == 3


async def test_a_servers_budget_holds_for_everybody_in_it(tmp_path: Path) -> None:
    async with open_talk(tmp_path, environ={f"{PREFIX}GUILD_DAILY_TOKENS": "1"}) as talk:
        await talk.say("Ann", "hello")
        refused = await talk.say("Ben", "hello")
        assert refused is not None
        assert "server" in refused.reply
        await talk.say("Ben", "hello", "@ben")
        assert len(talk.model.chats) == 2


async def test_no_budget_is_no_limit(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for _ in range(5):
            await talk.say("Ann", "hello")
        assert len(talk.model.chats) == 5

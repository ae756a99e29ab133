"""Where a fact told in one place is heard: nowhere that is read by more people than heard it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_memory import keeps
from tests.fakes import Channel, ChannelKind, Permission, Role, User

FACT = "the treasure lies under the oak"


@dataclass
class Rooms:
    """A server with two circles of members; Alice belongs to both, Bob to the inner one."""

    stage: Stage

    def __post_init__(self) -> None:
        discord = self.stage.discord
        self.insiders, self.guests = discord.role("insiders"), discord.role("guests")
        self.others = discord.role("others")
        self.bob = discord.member("bob")
        discord.assign_roles(discord.alice, self.insiders, self.guests, self.others)
        discord.assign_roles(self.bob, self.insiders)
        self.made: dict[str, Channel] = {}

    def __getitem__(self, name: str) -> Channel:
        if name not in self.made:
            self.made[name] = MAKING[name](self)
        return self.made[name]

    def hidden(self, name: str, *readers: Role | User) -> Channel:
        discord = self.stage.discord
        channel = discord.channel(name)
        discord.hide(channel, discord.bot_role(), *readers)
        return channel

    def thread(self, parent: str, *, private: bool = False) -> Channel:
        discord = self.stage.discord
        members = [discord.bot, discord.alice]
        return discord.thread(self[parent], private=private, members=members if private else ())

    def news(self) -> Channel:
        return self.stage.discord.channel("news", kind=ChannelKind.ANNOUNCEMENT)

    def without_past(self) -> Channel:
        channel = self.stage.discord.channel("amnesic")
        home = self.stage.discord.home
        self.stage.discord.overwrite(channel, home, deny=Permission.READ_MESSAGE_HISTORY)
        return channel

    def forum_post(self) -> Channel:
        forum = self.stage.discord.channel("questions", kind=ChannelKind.FORUM)
        return self.stage.discord.thread(forum, "Where is it?")

    async def settled(self) -> None:
        """Wait until she knows every room: her gateway has told her what was made last."""
        marker = await self.stage.discord.say(self.bob, self.stage.discord.general, "<marker>")
        del marker


MAKING: dict[str, Callable[[Rooms], Channel]] = {
    "public": lambda rooms: rooms.stage.discord.channel("public"),
    "other public": lambda rooms: rooms.stage.discord.channel("other public"),
    "private": lambda rooms: rooms.hidden("private", rooms.insiders, rooms.guests),
    "same circle": lambda rooms: rooms.hidden("same", rooms.guests, rooms.insiders),
    "narrower": lambda rooms: rooms.hidden("narrower", rooms.insiders),
    "other circle": lambda rooms: rooms.hidden("others", rooms.others),
    "thread": lambda rooms: rooms.thread("public"),
    "other thread": lambda rooms: rooms.thread("public"),
    "thread of private": lambda rooms: rooms.thread("private"),
    "private thread": lambda rooms: rooms.thread("public", private=True),
    "forum post": Rooms.forum_post,
    "news": Rooms.news,
    "without past": Rooms.without_past,
}

TABLE = [
    # told in, asked in, heard
    ("public", "public", True),
    ("public", "other public", True),
    ("public", "private", True),
    ("public", "news", True),
    ("public", "forum post", True),
    ("private", "private", True),
    ("private", "public", False),
    ("private", "other circle", False),
    ("private", "narrower", True),
    ("narrower", "private", False),
    ("private", "same circle", True),
    ("private", "thread of private", True),
    ("private", "thread", False),
    ("thread of private", "private", True),
    ("thread of private", "public", False),
    ("thread", "public", True),
    ("public", "thread", True),
    ("thread", "other thread", True),
    ("public", "private thread", True),
    ("private thread", "public", False),
    ("private thread", "thread", False),
    ("private thread", "private thread", True),
    ("forum post", "public", True),
    ("news", "public", True),
    ("private", "news", False),
    ("without past", "public", False),
    ("without past", "without past", True),
    ("public", "without past", True),
]


async def tell(stage: Stage, channel: Channel, by: User | None = None) -> None:
    stage.model.queue(keeps(FACT, scope="server_wide"), "I will.")
    await stage.ask(f"please remember that {FACT}", channel=channel, by=by)
    assert stage.count("server_memories") == 1


async def is_heard(stage: Stage, channel: Channel, by: User | None = None) -> bool:
    await stage.ask("where is it?", channel=channel, by=by)
    system = stage.prompt.system
    return FACT in system


@pytest.fixture
def rooms(stage: Stage) -> Rooms:
    return Rooms(stage)


@pytest.mark.parametrize(("told", "asked", "heard"), TABLE)
async def test_a_fact_is_heard_where_nobody_reads_who_did_not_hear_it(
    stage: Stage, rooms: Rooms, told: str, asked: str, *, heard: bool
) -> None:
    here, there = rooms[told], rooms[asked]
    await tell(stage, here)
    assert await is_heard(stage, there) is heard

"""Where a fact told in one place is heard: nowhere that is read by more people than heard it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_memory import keeps, set_level
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


# --- one person alone


PERSONAL = "Alice was born on a ship"


async def tell_of_alice(stage: Stage, channel: Channel) -> None:
    stage.model.queue(keeps(PERSONAL), "I will.")
    await stage.ask(f"please remember that {PERSONAL}", channel=channel)
    assert stage.count("personal_memories") == 1


async def knows_of_alice(stage: Stage, channel: Channel, by: User | None = None) -> bool:
    await stage.ask("<@1> what do you know of Alice?", channel=channel, by=by)
    return PERSONAL in stage.prompt.system


@pytest.mark.parametrize("told", ["public", "private", "thread"])
async def test_in_a_direct_message_she_knows_what_the_person_told_on_a_server(
    stage: Stage, rooms: Rooms, told: str
) -> None:
    await tell_of_alice(stage, rooms[told])
    direct = stage.discord.direct(stage.discord.alice)
    assert await knows_of_alice(stage, direct)


async def test_but_nothing_of_what_the_server_knows(stage: Stage, rooms: Rooms) -> None:
    await tell(stage, rooms["public"])
    assert not await is_heard(stage, stage.discord.direct(stage.discord.alice))


async def test_nor_what_was_said_of_them_where_they_cannot_read(stage: Stage, rooms: Rooms) -> None:
    discord = stage.discord
    den = rooms.hidden("den", rooms.bob)
    stage.model.queue(keeps(PERSONAL, target="alice"), "I will.")
    await stage.chatter("hello", by=discord.alice, channel=rooms["public"])
    await stage.ask(
        f"please remember that {PERSONAL} <@{discord.alice.id}>", channel=den, by=rooms.bob
    )
    assert stage.count("personal_memories") == 1
    assert not await knows_of_alice(stage, discord.direct(discord.alice))


async def test_nor_where_their_roles_cannot_be_asked_for(stage: Stage, rooms: Rooms) -> None:
    await tell_of_alice(stage, rooms["public"])
    stage.discord.fault("GET", r"/guilds/\d+/members/\d+", status=500, times=20)
    assert not await knows_of_alice(stage, stage.discord.direct(stage.discord.alice))


async def test_nor_against_their_level_on_that_server(stage: Stage, rooms: Rooms) -> None:
    await tell_of_alice(stage, rooms["public"])
    await set_level(stage, stage.discord.alice, "PARTIAL", where="server")
    assert not await knows_of_alice(stage, stage.discord.direct(stage.discord.alice))


async def test_what_is_told_in_a_direct_message_stays_there(stage: Stage, rooms: Rooms) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    await tell_of_alice(stage, direct)
    assert not await knows_of_alice(stage, rooms["public"])
    assert await knows_of_alice(stage, direct)


async def test_another_server_hears_nothing(stage: Stage, rooms: Rooms) -> None:
    discord = stage.discord
    other = discord.guild("other")
    discord.invite_bot(other)
    discord.member(discord.alice, guild=other)
    await tell(stage, rooms["public"])
    there = discord.channel("there", guild=other)
    assert not await is_heard(stage, there, by=discord.alice)


async def shown(stage: Stage, channel: Channel, by: User) -> str:
    used = await stage.discord.slash(by, channel, "memory show")
    return (await used.reply()).content


async def test_an_answer_for_one_person_tells_what_that_person_reads(
    stage: Stage, rooms: Rooms
) -> None:
    await tell(stage, rooms["narrower"])
    assert FACT in await shown(stage, rooms["public"], rooms.bob)
    assert FACT not in await shown(stage, rooms["public"], stage.discord.member("cy"))


# --- rights that change


async def test_a_room_that_is_closed_is_no_longer_heard_and_one_that_opens_is(
    stage: Stage, rooms: Rooms
) -> None:
    discord, room = stage.discord, rooms["private"]
    await tell(stage, room)
    assert not await is_heard(stage, rooms["public"])
    discord.overwrite(room, discord.home, allow=Permission.VIEW_CHANNEL)
    assert await is_heard(stage, rooms["public"])
    discord.overwrite(room, discord.home, deny=Permission.VIEW_CHANNEL)
    assert not await is_heard(stage, rooms["public"])


async def test_a_role_that_no_longer_sees_everything(stage: Stage, rooms: Rooms) -> None:
    """A channel hidden from administrators alone is hidden from nobody."""
    discord, room = stage.discord, rooms["public"]
    bosses = discord.role("bosses", Permission.ADMINISTRATOR)
    discord.overwrite(room, bosses, deny=Permission.VIEW_CHANNEL)
    await tell(stage, room)
    assert await is_heard(stage, rooms["other public"])
    discord.change_role(bosses, Permission.NONE)
    assert not await is_heard(stage, rooms["other public"])


async def test_a_role_that_was_taken_counts_at_once_for_commands(
    stage: Stage, rooms: Rooms
) -> None:
    await tell(stage, rooms["narrower"])
    assert FACT in await shown(stage, rooms["public"], rooms.bob)
    stage.discord.assign_roles(rooms.bob)
    assert FACT not in await shown(stage, rooms["public"], rooms.bob)


@pytest.mark.parametrize(("told", "heard"), [("public", True), ("private", False)])
async def test_a_room_that_is_deleted_stays_as_open_as_it_was(
    stage: Stage, rooms: Rooms, told: str, *, heard: bool
) -> None:
    await tell(stage, rooms[told])
    stage.discord.delete_channel(rooms[told])
    await stage.discord.wait_for(lambda: stage.rows("SELECT 1 FROM origins WHERE deleted_at > 0"))
    assert await is_heard(stage, rooms["other public"]) is heard


async def test_a_room_that_was_closed_before_it_was_deleted_stays_closed(
    stage: Stage, rooms: Rooms
) -> None:
    discord, room = stage.discord, rooms["public"]
    await tell(stage, room)
    discord.hide(room, discord.bot_role())
    discord.delete_channel(room)
    await discord.wait_for(lambda: stage.rows("SELECT 1 FROM origins WHERE deleted_at > 0"))
    assert not await is_heard(stage, rooms["other public"])


async def test_what_the_server_was_taught_is_heard_in_every_room(
    stage: Stage, rooms: Rooms
) -> None:
    used = await stage.discord.slash(
        stage.discord.owner, rooms["private"], "memory teach", text=FACT, about="server"
    )
    await used.reply()
    assert await is_heard(stage, rooms["public"])
    assert await is_heard(stage, rooms["other circle"])


async def test_a_private_fact_told_in_public_too_is_public(stage: Stage, rooms: Rooms) -> None:
    await tell(stage, rooms["private"])
    assert not await is_heard(stage, rooms["other public"])
    stage.model.queue(keeps(FACT, scope="server_wide"), "I will.")
    await stage.ask(f"please remember that {FACT}", channel=rooms["public"])
    assert stage.count("server_memories") == 1
    assert await is_heard(stage, rooms["other public"])

"""Who reads a channel, held against what Discord's own rules give each member of random servers."""

from __future__ import annotations

from typing import Any

import discord
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.discord_io.rooms import rooms_of
from bot.identifiers import ChannelId
from bot.privacy.hearing import all_read

GUILD, OWNER, BOT = 1, 2, 3
ROLES = range(10, 14)
BOT_ROLE = 19
MEMBERS = range(20, 24)
CHANNELS = range(30, 34)
VIEW, PAST, CONNECT, ADMIN = 1 << 10, 1 << 16, 1 << 20, 1 << 3
TEXT, VOICE, NEWS = 0, 2, 5

rights = st.sets(st.sampled_from((VIEW, PAST, CONNECT)), max_size=3).map(sum)
role_rights = st.one_of(rights, rights, rights, rights.map(lambda bits: bits | ADMIN))


@st.composite
def overwrites(draw: st.DrawFn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    targets = [(GUILD, 0), (BOT, 1), (BOT_ROLE, 0), (OWNER, 1)]
    targets += [(role, 0) for role in ROLES] + [(member, 1) for member in MEMBERS]
    for target, kind in draw(st.lists(st.sampled_from(targets), max_size=4, unique=True)):
        allowed = draw(rights)
        denied = draw(rights) & ~allowed
        found.append({"id": target, "type": kind, "allow": str(allowed), "deny": str(denied)})
    return found


@st.composite
def servers(draw: st.DrawFn) -> dict[str, Any]:
    """A server as Discord describes one; its channels often resemble each other."""
    everyone = draw(rights)
    roles = [
        {"id": GUILD, "name": "@everyone", "permissions": str(everyone), "position": 0},
        *(
            {"id": role, "name": str(role), "permissions": str(draw(role_rights)), "position": 1}
            for role in ROLES
        ),
        {"id": BOT_ROLE, "name": "bot", "permissions": str(VIEW | PAST | CONNECT), "position": 2}
        | {"managed": True, "tags": {"bot_id": BOT}},
    ]
    known = [draw(overwrites()) for _ in range(3)]
    channels: list[dict[str, Any]] = []
    for channel in CHANNELS:
        of_it = draw(st.one_of(st.sampled_from(known), overwrites()))
        if draw(st.booleans()):  # one more overwrite than another channel has
            ids = {one["id"] for one in of_it}
            of_it = [*of_it, *(one for one in draw(overwrites()) if one["id"] not in ids)]
        kind = draw(st.sampled_from((TEXT, TEXT, TEXT, VOICE, NEWS)))
        channels.append(
            {"id": channel, "type": kind, "name": "c", "position": 0, "nsfw": False}
            | {"bitrate": 1, "user_limit": 0, "permission_overwrites": of_it}
        )
    held = st.lists(st.sampled_from(ROLES), unique=True, max_size=3)
    members = [member(user, draw(held)) for user in MEMBERS]
    return {
        "id": GUILD,
        "name": "server",
        "owner_id": OWNER,
        "roles": roles,
        "channels": channels,
        "members": [*members, member(OWNER, []), member(BOT, [BOT_ROLE])],
        "member_count": len(members) + 2,
    }


def member(user: int, roles: list[int]) -> dict[str, Any]:
    return {
        "user": {"id": user, "username": str(user), "discriminator": "0", "avatar": None},
        "roles": roles,
        "joined_at": "2026-01-01T00:00:00+00:00",
        "deaf": False,
        "mute": False,
        "flags": 0,
    }


def guild_of(server: dict[str, Any]) -> discord.Guild:
    client = discord.Client(intents=discord.Intents.all())
    state = client._connection
    own = {"id": BOT, "username": "bot", "discriminator": "0", "avatar": None, "bot": True}
    state.user = discord.ClientUser(state=state, data=own)  # pyright: ignore[reportArgumentType]
    return discord.Guild(data=server, state=state)  # pyright: ignore[reportArgumentType]


def reads(person: discord.Member, channel: discord.abc.GuildChannel, *, past: bool) -> bool:
    found = channel.permissions_for(person)
    if not past:
        return found.view_channel
    connects = found.connect or not isinstance(channel, discord.VoiceChannel)
    return found.view_channel and found.read_message_history and connects


@settings(max_examples=300, deadline=None)
@given(servers())
async def test_whoever_reads_the_one_room_reads_the_other(server: dict[str, Any]) -> None:
    guild = guild_of(server)
    rooms = (await rooms_of(guild)).readers
    assert rooms.keys() == {channel.id for channel in guild.channels}
    people = [person for person in guild.members if person.id != BOT]
    for here in guild.channels:
        for there in guild.channels:
            if all_read(rooms[ChannelId(here.id)], rooms[ChannelId(there.id)]):
                for person in people:
                    if reads(person, here, past=False):
                        assert reads(person, there, past=True), person

"""Permissions: computed as discord.py computes them, and held by REST."""

from __future__ import annotations

import discord
import pytest

from tests.fakes import ChannelKind, LoopbackDiscord, NotPossible, Permission
from tests.fakes_selftest.conftest import ListeningClient

VIEW, SEND = Permission.VIEW_CHANNEL, Permission.SEND_MESSAGES


async def test_permissions_agree_with_those_of_discord_py(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    reader = server.role("reader", VIEW)
    muted = server.role("muted")
    places = [server.channel(f"place-{n}") for n in range(6)]
    server.overwrite(places[1], server.home, deny=VIEW)
    server.overwrite(places[2], server.home, deny=VIEW)
    server.overwrite(places[2], reader, allow=VIEW)
    server.overwrite(places[3], muted, deny=SEND)
    server.overwrite(places[4], muted, deny=VIEW)
    server.overwrite(places[4], reader, allow=VIEW)
    server.overwrite(places[5], server.alice, allow=SEND | Permission.MANAGE_MESSAGES)
    server.overwrite(places[5], server.home, deny=SEND)
    server.assign_roles(server.alice, reader, muted)

    home = client.get_guild(server.home.id)
    await server.wait_for(lambda: len(home.channels) == 7 and home.get_channel(places[5].id))
    for user in (server.alice, server.owner, server.bot):
        member = await home.fetch_member(user.id)
        for place in places:
            theirs = home.get_channel(place.id).permissions_for(member)
            for permission in (VIEW, SEND, Permission.ATTACH_FILES, Permission.MANAGE_MESSAGES):
                name = permission.name.lower()
                expected = getattr(theirs, name) and (theirs.view_channel or user is server.owner)
                assert server.can(user, place, permission) == expected, (user, place, name)


async def test_a_channel_starts_with_the_overwrites_of_its_category(
    server: LoopbackDiscord,
) -> None:
    category = server.channel("staff", kind=ChannelKind.CATEGORY)
    server.hide(category, server.alice)
    room = server.channel("lounge", category=category)
    assert server.can(server.alice, room, VIEW)
    assert not server.can(server.bot, room, VIEW)


@pytest.mark.parametrize(
    ("missing", "code"),
    [(VIEW, "50001"), (SEND, "50013")],
    ids=["view", "send"],
)
async def test_sending_needs_permissions(
    server: LoopbackDiscord, client: ListeningClient, missing: Permission, code: str
) -> None:
    server.overwrite(server.general, server.bot, deny=missing)
    with pytest.raises(discord.Forbidden, match=code):
        await client.channel(server.general.id).send("hello?")
    assert server.general.history == []


@pytest.mark.parametrize(
    ("missing", "content"),
    [
        (Permission.EMBED_LINKS, {"embed": discord.Embed(title="t")}),
        (Permission.ATTACH_FILES, {"file": "f"}),
    ],
    ids=["embed", "file"],
)
async def test_embeds_and_files_need_permissions(
    server: LoopbackDiscord,
    client: ListeningClient,
    missing: Permission,
    content: dict[str, object],
    tmp_path: object,
) -> None:
    server.overwrite(server.general, server.bot, deny=missing)
    if "file" in content:
        path = tmp_path / "f.txt"
        path.write_text("f")
        content = {"file": discord.File(path)}
    with pytest.raises(discord.Forbidden, match="50013"):
        await client.channel(server.general.id).send(**content)


async def test_without_the_right_to_read_history_there_is_none(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "earlier")
    server.overwrite(server.general, server.bot, deny=Permission.READ_MESSAGE_HISTORY)
    channel = client.channel(server.general.id)

    assert [one async for one in channel.history()] == []
    with pytest.raises(discord.Forbidden, match="50013"):
        await channel.fetch_message(message.id)
    with pytest.raises(discord.HTTPException, match="160002"):
        await channel.send("a reply", reference=channel.get_partial_message(message.id))


async def test_reactions_need_permissions_unless_they_join_one(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    message = await server.say(server.alice, server.general, "nice?")
    await server.react(server.alice, message, "👍")
    server.overwrite(server.general, server.bot, deny=Permission.ADD_REACTIONS)
    handle = client.channel(server.general.id).get_partial_message(message.id)

    await handle.add_reaction("👍")
    with pytest.raises(discord.Forbidden, match="50013"):
        await handle.add_reaction("👎")


async def test_people_are_held_to_their_permissions_too(server: LoopbackDiscord) -> None:
    server.overwrite(server.general, server.alice, deny=SEND)
    with pytest.raises(NotPossible, match="alice may not write"):
        await server.say(server.alice, server.general, "hello")


async def test_what_a_person_sees_follows_their_permissions(server: LoopbackDiscord) -> None:
    closed = server.channel("closed")
    server.hide(closed)
    message = await server.say(server.owner, closed, "for few")
    assert server.visible_to(server.owner, closed) == [message]
    assert server.visible_to(server.alice, closed) == []


async def test_unknown_things_are_not_found(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    channel = client.channel(server.general.id)
    with pytest.raises(discord.NotFound, match="10008"):
        await channel.fetch_message(1)
    with pytest.raises(discord.NotFound, match="10003"):
        await client.fetch_channel(1)
    with pytest.raises(discord.NotFound, match="10013"):
        await client.fetch_user(1)
    stranger = server.user("stranger")
    with pytest.raises(discord.NotFound, match="10007"):
        await client.get_guild(server.home.id).fetch_member(stranger.id)


async def test_listing_members_by_rest_needs_the_intent(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    answer = client.http.get_members(server.home.id, limit=10, after=None)
    with pytest.raises(discord.Forbidden, match="50001"):
        await answer

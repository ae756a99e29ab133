from __future__ import annotations

from collections.abc import Callable

import discord
import pytest

from bot.audience import OriginKind, Place
from bot.discord_io.audience import place_of
from tests.discord_io.room import Listener
from tests.fakes import Channel, ChannelKind, LoopbackDiscord, Permission

VIEW = Permission.VIEW_CHANNEL
PAST = Permission.READ_MESSAGE_HISTORY


async def place(server: LoopbackDiscord, client: Listener, channel: Channel) -> Place:
    """The place of a channel, once everything that happened before has been heard."""
    marker = server.channel("marker")
    await server.wait_for(lambda: client.get_channel(marker.id))
    return place_of(client.place(channel))


async def test_a_channel(server: LoopbackDiscord, client: Listener) -> None:
    assert await place(server, client, server.general) == Place(
        kind=OriginKind.CHANNEL,
        guild_id=server.home.id,
        channel_id=server.general.id,
        open_to_everyone=True,
        name="general",
    )


async def test_a_thread_is_as_open_as_its_parent(server: LoopbackDiscord, client: Listener) -> None:
    thread = server.thread(server.general, "talk")
    assert await place(server, client, thread) == Place(
        kind=OriginKind.THREAD,
        guild_id=server.home.id,
        channel_id=thread.id,
        parent_id=server.general.id,
        open_to_everyone=True,
        name="talk",
    )
    server.hide(server.general, server.bot_role())
    assert not (await place(server, client, thread)).open_to_everyone


async def test_a_forum_post_is_a_thread_of_the_forum(
    server: LoopbackDiscord, client: Listener
) -> None:
    forum = server.channel("questions", kind=ChannelKind.FORUM)
    found = await place(server, client, server.thread(forum, "Soup"))
    assert (found.kind, found.parent_id, found.open_to_everyone) == (
        OriginKind.THREAD,
        forum.id,
        True,
    )


async def test_a_private_thread_is_never_open(server: LoopbackDiscord, client: Listener) -> None:
    thread = server.thread(server.general, "secret", private=True, members=[server.bot])
    found = await place(server, client, thread)
    assert (found.kind, found.open_to_everyone) == (OriginKind.PRIVATE_THREAD, False)


async def test_direct_messages_are_never_open(server: LoopbackDiscord, client: Listener) -> None:
    direct = server.direct(server.alice)
    message = await server.say(server.alice, direct, "hi")
    found = await server.wait_for(lambda: client.heard.get(message.id))
    assert place_of(found.channel) == Place(
        kind=OriginKind.DIRECT, guild_id=None, channel_id=direct.id
    )


async def test_a_channel_known_by_its_id_alone_is_not_open(
    server: LoopbackDiscord, client: Listener
) -> None:
    unknown = client.get_partial_messageable(5, guild_id=server.home.id)
    assert place_of(unknown) == Place(
        kind=OriginKind.CHANNEL, guild_id=server.home.id, channel_id=5
    )
    assert place_of(client.get_partial_messageable(5)).kind is OriginKind.DIRECT


Change = Callable[[LoopbackDiscord], None]


def everyone(*, allow: Permission = Permission.NONE, deny: Permission = Permission.NONE) -> Change:
    return lambda server: server.overwrite(server.general, server.home, allow=allow, deny=deny)


def role(*, allow: Permission = Permission.NONE, deny: Permission = Permission.NONE) -> Change:
    return lambda server: server.overwrite(
        server.general, server.role("some"), allow=allow, deny=deny
    )


def member(deny: Permission) -> Change:
    return lambda server: server.overwrite(server.general, server.alice, deny=deny)


def base(permissions: Permission) -> Change:
    return lambda server: server.change_role(server.home.everyone, permissions)


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ((), True),
        ((everyone(deny=VIEW),), False),
        ((everyone(deny=PAST),), False),
        ((everyone(deny=Permission.SEND_MESSAGES),), True),
        ((role(deny=VIEW),), False),
        ((role(deny=PAST),), False),
        ((role(allow=VIEW),), True),
        ((role(deny=Permission.SEND_MESSAGES),), True),
        ((member(VIEW),), False),
        ((base(PAST),), False),
        ((base(VIEW),), False),
        ((base(VIEW | PAST),), True),
        ((base(Permission.NONE), everyone(allow=VIEW | PAST)), True),
        ((base(Permission.NONE), everyone(allow=VIEW)), False),
        ((base(Permission.NONE), role(allow=VIEW | PAST)), False),
        ((everyone(deny=VIEW), role(allow=VIEW)), False),
        ((base(Permission.ADMINISTRATOR), everyone(deny=VIEW)), True),
    ],
)
async def test_open_is_what_everyone_may_view_and_nobody_is_denied(
    server: LoopbackDiscord, client: Listener, changes: tuple[Change, ...], *, is_open: bool
) -> None:
    for change in changes:
        change(server)
    guild = client.get_guild(server.home.id)
    assert guild is not None
    wanted = server.home.everyone.permissions.value
    await server.wait_for(lambda: guild.default_role.permissions.value == wanted)
    found = await overwritten(server, client)
    assert place_of(found).open_to_everyone is is_open


async def overwritten(server: LoopbackDiscord, client: Listener) -> discord.TextChannel:
    """`general` as the client knows it, with as many overwrites as it has."""

    def known() -> discord.TextChannel | None:
        found = client.get_channel(server.general.id)
        assert isinstance(found, discord.TextChannel)
        return found if len(found.overwrites) == len(server.general.overwrites) else None

    return await server.wait_for(known)


async def test_a_channel_in_a_closed_category_is_not_open(
    server: LoopbackDiscord, client: Listener
) -> None:
    category = server.channel("staff", kind=ChannelKind.CATEGORY)
    server.overwrite(category, server.home, deny=VIEW)
    server.overwrite(category, server.bot_role(), allow=VIEW)
    channel = server.channel("plans", category=category)
    assert not (await place(server, client, channel)).open_to_everyone

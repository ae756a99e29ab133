"""From a method and a path to the handler that answers it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes.discord import refusals
from tests.fakes.discord.permissions import Permission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.fakes.discord.calls import Call
    from tests.fakes.discord.records import Channel, Guild, JsonObject, Message
    from tests.fakes.discord.server import LoopbackDiscord

Answer = tuple[int, object]
NO_CONTENT: Answer = (204, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRequest:
    """What a handler gets: the world, the call, and the parts of the path by name."""

    world: LoopbackDiscord
    call: Call
    path: dict[str, str]

    @property
    def body(self) -> JsonObject:
        return self.call.body

    def id(self, name: str) -> int:
        """A snowflake of the path; what is no snowflake is refused as Discord refuses it."""
        value = self.path[name]
        if not value.isdigit():
            raise refusals.invalid_form(
                name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.'
            )
        return int(value)

    @property
    def channel(self) -> Channel:
        """The channel of the path, which the bot can view."""
        channel = self.world.channels.get(self.id("channel"))
        if channel is None:
            raise refusals.unknown_channel()
        if not self.world.can(self.world.bot, channel, Permission.VIEW_CHANNEL):
            raise refusals.missing_access()
        return channel

    @property
    def guild(self) -> Guild:
        """The guild of the path, which the bot is in."""
        guild = self.world.guilds.get(self.id("guild"))
        if guild is None or self.world.bot.id not in guild.members:
            raise refusals.unknown_guild()
        return guild

    @property
    def message(self) -> Message:
        """The message of the path: one in its channel that is not ephemeral."""
        message = self.channel.messages.get(self.id("message"))
        if message is None or message.is_ephemeral:
            raise refusals.unknown_message()
        return message

    def need(self, channel: Channel, *permissions: Permission) -> None:
        """Refuse with 50013 unless the bot has each of the permissions there."""
        for permission in permissions:
            if not self.world.can(self.world.bot, channel, permission):
                raise refusals.missing_permissions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`token_in_path` marks the routes that need no Authorization header."""

    method: str
    pattern: re.Pattern[str]
    handler: Callable[[RestRequest], Awaitable[Answer]]
    token_in_path: bool = False


def route(
    method: str,
    template: str,
    handler: Callable[[RestRequest], Awaitable[Answer]],
    *,
    token_in_path: bool = False,
) -> Route:
    """A route from a template such as `/channels/{channel}/messages`."""
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
    return Route(
        method=method,
        pattern=re.compile(f"^{pattern}$"),
        handler=handler,
        token_in_path=token_in_path,
    )

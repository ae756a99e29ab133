"""Whom a message notifies: what its text names, as far as `allowed_mentions` lets it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.fakes.discord.permissions import Permission, channel_permissions
from tests.fakes.discord.records import Pings

if TYPE_CHECKING:
    from tests.fakes.discord.records import Channel, JsonObject, User

USER_MENTION = re.compile(r"<@!?(\d+)>")
ROLE_MENTION = re.compile(r"<@&(\d+)>")
EVERYONE_MENTION = re.compile(r"@(everyone|here)\b")
EVERYBODY = ("users", "roles", "everyone")


def pings_of(
    content: str,
    *,
    channel: Channel,
    author: User,
    allowed: JsonObject | None,
    replied_to: User | None = None,
) -> Pings:
    """Without `allowed_mentions` everything that the text names is notified, as on Discord."""
    users = _allowed_ids(USER_MENTION, content, allowed, "users")
    roles = _allowed_ids(ROLE_MENTION, content, allowed, "roles")
    if replied_to and (allowed is None or allowed.get("replied_user", False)):
        users |= {replied_to.id}
    may_ping_all = _may_ping_all(author, channel)
    parse = EVERYBODY if allowed is None else allowed.get("parse", ())
    wants_everyone = "everyone" in parse and bool(EVERYONE_MENTION.search(content))
    return Pings(
        everyone=wants_everyone and may_ping_all,
        user_ids=frozenset(users),
        role_ids=frozenset(_reachable_roles(roles, channel, may_ping_all=may_ping_all)),
    )


def _allowed_ids(
    pattern: re.Pattern[str], content: str, allowed: JsonObject | None, kind: str
) -> set[int]:
    named = {int(found) for found in pattern.findall(content)}
    if allowed is None or kind in allowed.get("parse", ()):
        return named
    return named & {int(one) for one in allowed.get(kind, ())}


def _may_ping_all(author: User, channel: Channel) -> bool:
    member = channel.guild.members.get(author.id) if channel.guild else None
    return member is not None and Permission.MENTION_EVERYONE in channel_permissions(
        member, channel
    )


def _reachable_roles(ids: set[int], channel: Channel, *, may_ping_all: bool) -> set[int]:
    known = channel.guild.roles if channel.guild else {}
    return {one for one in ids if one in known and (may_ping_all or known[one].mentionable)}

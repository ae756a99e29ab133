"""The names a person goes by in a server: kept so that whoever is private is known under each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.identifiers import GuildId, UserId
from bot.storage.statements import Transaction

MOST_NAMES = 5
"""Nickname, display name and username, and two that were used before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What somebody goes by in a server.

    `of_account`: `name` is only their account's, as the past of a channel shows it; as a member
    they may have another. `others`: what else they are known as.
    """

    user: UserId
    name: str
    others: tuple[str, ...] = ()
    of_account: bool = False


def newest_names(called: Iterable[Called]) -> Mapping[UserId, Called]:
    """The last name of each; one that is only the account's gives way to a member's."""
    newest: dict[UserId, Called] = {}
    for one in called:
        known = newest.get(one.user)
        if known is None or known.of_account or not one.of_account:
            newest[one.user] = one
    return newest


async def keep_names(
    tx: Transaction, guild: GuildId, called: Iterable[Called], now_ms: int
) -> None:
    """Keep what people go by in a server: the name to show, and the last few under which to know.

    A name that is only an account's never takes the place of a member's.
    """
    called = tuple(called)
    newest = newest_names(called).values()
    names = {(one.user, name) for one in called for name in (one.name, *one.others)}
    await tx.execute_many(
        "INSERT INTO people (guild_id, user_id, display_name, seen_at, of_account)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (guild_id, user_id) DO UPDATE SET"
        " display_name = excluded.display_name, seen_at = excluded.seen_at,"
        " of_account = excluded.of_account WHERE excluded.of_account <= of_account",
        [(guild, one.user, one.name, now_ms, int(one.of_account)) for one in newest],
    )
    await tx.execute_many(
        "INSERT INTO person_names (guild_id, user_id, name, seen_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (guild_id, user_id, name) DO UPDATE SET seen_at = excluded.seen_at",
        [(guild, user, name, now_ms) for user, name in names],
    )
    await tx.execute_many(
        "DELETE FROM person_names WHERE guild_id = ?1 AND user_id = ?2 AND name NOT IN"
        " (SELECT name FROM person_names WHERE guild_id = ?1 AND user_id = ?2"
        " ORDER BY seen_at DESC LIMIT ?3)",
        [(guild, one.user, MOST_NAMES) for one in newest],
    )

"""The name of the day: what a person is called now where a reference to them is shown."""

import json
from collections.abc import Iterable, Mapping

from bot.audience import DIRECT_MESSAGES
from bot.identifiers import GuildId, UserId
from bot.storage.database import Database
from bot.storage.statements import Transaction


async def keep_names(
    tx: Transaction, guild: GuildId, names: Iterable[tuple[UserId, str]], now_ms: int
) -> None:
    """Keep the names that people go by in a server."""
    await tx.execute_many(
        "INSERT INTO people (guild_id, user_id, display_name, seen_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (guild_id, user_id) DO UPDATE SET"
        " display_name = excluded.display_name, seen_at = excluded.seen_at",
        [(guild, user, name, now_ms) for user, name in names],
    )


class People:
    """Reads the names of people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def names_here(
        self, guild: GuildId, users: Iterable[UserId] | None = None
    ) -> Mapping[UserId, str]:
        """The names of people who were seen in this server: of those `users`, or of everybody."""
        rows = await self._database.fetch_all(
            "SELECT user_id, display_name FROM people WHERE guild_id = ?1"
            " AND (?2 IS NULL OR user_id IN (SELECT value FROM json_each(?2)))",
            (guild, None if users is None else json.dumps(sorted(set(users)))),
        )
        return {UserId(row["user_id"]): row["display_name"] for row in rows}

    async def names(self, guild: GuildId, users: Iterable[UserId]) -> Mapping[UserId, str]:
        """The names of people as this server, or a direct message, knows them.

        What somebody is called in another server stays there.
        """
        wanted = json.dumps(sorted(set(users)))  # as one parameter: any number, of any size
        rows = await self._database.fetch_all(
            "SELECT user_id, display_name FROM people WHERE guild_id IN (?1, ?2)"
            " AND user_id IN (SELECT value FROM json_each(?3)) ORDER BY guild_id = ?1 DESC",
            (guild, DIRECT_MESSAGES, wanted),
        )
        names: dict[UserId, str] = {}
        for row in rows:
            names.setdefault(UserId(row["user_id"]), row["display_name"])
        return names

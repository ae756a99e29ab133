"""The name of the day: what a person is called now where a reference to them is shown."""

import json
from collections.abc import Iterable, Mapping, Sequence

from bot.audience import DIRECT_MESSAGES
from bot.identifiers import GuildId, UserId
from bot.storage.database import Database
from bot.storage.statements import Transaction


class People:
    """Reads the names of people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known_as(
        self,
        guild: GuildId,
        users: Iterable[UserId] | None = None,
        *,
        within: Transaction | None = None,
    ) -> Sequence[tuple[str, UserId]]:
        """Every name that people are known by in this server: `users`, or everybody.

        `within`: as that transaction sees it.
        """
        rows = await (within or self._database).fetch_all(
            "SELECT name, user_id FROM (SELECT guild_id, user_id, display_name AS name FROM people"
            " UNION SELECT guild_id, user_id, name FROM person_names) WHERE guild_id = ?1"
            " AND (?2 IS NULL OR user_id IN (SELECT value FROM json_each(?2)))",
            (guild, None if users is None else json.dumps(sorted(set(users)))),
        )
        return [(row["name"], UserId(row["user_id"])) for row in rows]

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

"""Privacy levels: what a person lets Madeleine keep and use."""

from enum import IntEnum

from bot.audience import DIRECT_MESSAGES
from bot.clock import Clock, to_ms
from bot.identifiers import GuildId, UserId
from bot.privacy.names import Called, keep_names
from bot.storage.database import Database
from bot.storage.statements import Snapshot, Transaction


class PrivacyLevel(IntEnum):
    """From most open to most closed, so that the stricter of two is the greater."""

    OPEN = 0
    PARTIAL = 1
    FULL = 2


EVERYWHERE = DIRECT_MESSAGES
"""The guild id under which a person's level for all places is kept."""


class Levels:
    """Every level that somebody chose, in memory: a level is asked for at every message."""

    def __init__(
        self, database: Database, clock: Clock, default: PrivacyLevel = PrivacyLevel.OPEN
    ) -> None:
        self._database = database
        self._clock = clock
        self.default = default
        self._levels: dict[tuple[UserId, GuildId], PrivacyLevel] = {}

    async def load(self) -> None:
        """Read the levels from the file; once, before the first message."""
        self._levels = await self._database.read(_read)

    async def within(self, tx: Transaction) -> "Levels":
        """The levels as a transaction sees them: some may be set in it and not committed yet."""
        levels = Levels(self._database, self._clock, self.default)
        levels._levels = await _read(tx)
        return levels

    def of(self, user: UserId, guild: GuildId) -> PrivacyLevel:
        """The level in force: the stricter of the person's own and the one for that server."""
        everywhere = self._levels.get((user, EVERYWHERE), self.default)
        return max(everywhere, self._levels.get((user, guild), PrivacyLevel.OPEN))

    def at_least(self, level: PrivacyLevel, guild: GuildId) -> frozenset[UserId]:
        """Everybody who chose a level that in that server comes to `level` or stricter."""
        users = {user for user, _ in self._levels}
        return frozenset(user for user in users if self.of(user, guild) >= level)

    async def set(
        self,
        user: UserId,
        guild: GuildId,
        level: PrivacyLevel,
        *,
        called: Called | None = None,
        seen_in: GuildId | None = None,
    ) -> None:
        """Keep a person's level, for one server or EVERYWHERE.

        `called` is what they go by in the server `seen_in`, where the level was set.
        """

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO privacy_levels (user_id, guild_id, level, changed_at)"
                " VALUES (?, ?, ?, ?) ON CONFLICT (user_id, guild_id) DO UPDATE SET"
                " level = excluded.level, changed_at = excluded.changed_at",
                (user, guild, level.name.lower(), to_ms(self._clock.now())),
            )
            if called is not None:
                await keep_names(tx, seen_in or guild, [called], to_ms(self._clock.now()))
            tx.after_commit(lambda: self._levels.update({(user, guild): level}))

        await self._database.write(job)


async def _read(db: Snapshot) -> dict[tuple[UserId, GuildId], PrivacyLevel]:
    rows = await db.fetch_all("SELECT user_id, guild_id, level FROM privacy_levels")
    return {
        (UserId(row["user_id"]), GuildId(row["guild_id"])): PrivacyLevel[row["level"].upper()]
        for row in rows
    }

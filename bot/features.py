"""Feature flags: one registry; the default gives way to the config, the config to the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.clock import Clock, from_ms, to_ms
from bot.identifiers import GuildId, UserId
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Transaction


class Flag(StrEnum):
    """Everything that a server's managers can switch; the texts are in the locales."""

    SELF_TEACHING = "self_teaching_enabled"
    SHORT_TERM_MEMORY = "short_term_memory_enabled"
    HANDOFF = "handoff_enabled"
    RECALL = "recall_enabled"
    STREAMING = "streaming_enabled"
    NOTICES = "notices_enabled"
    IMAGES = "images_enabled"
    MEMBER_TEACHING = "member_teaching_enabled"


DEFAULTS: Mapping[Flag, bool] = {flag: flag is not Flag.IMAGES for flag in Flag}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagState:
    """A flag as it stands in one server; the last two are None where nobody changed it."""

    flag: Flag
    enabled: bool
    default: bool
    changed_by: UserId | None = None
    changed_at: datetime | None = None


class Features:
    """Reads and switches flags."""

    def __init__(
        self, database: Database, clock: Clock, configured: Mapping[Flag, bool] | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._defaults = {**DEFAULTS, **(configured or {})}
        self._cache: VersionedCache[GuildId, Mapping[Flag, FlagState]] = VersionedCache()

    async def states(self, guild: GuildId) -> Mapping[Flag, FlagState]:
        """Every flag of a server."""
        return await self._cache.get(guild, lambda: self._read(guild))

    async def enabled(self, guild: GuildId, flag: Flag) -> bool:
        """Whether a flag is on in a server."""
        return (await self.states(guild))[flag].enabled

    async def switch(self, guild: GuildId, flag: Flag, *, enabled: bool, by: UserId) -> None:
        """Switch a flag; who and when is kept with it."""

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO feature_flags (guild_id, flag, enabled, changed_by, changed_at)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT (guild_id, flag) DO UPDATE SET"
                " enabled = excluded.enabled, changed_by = excluded.changed_by,"
                " changed_at = excluded.changed_at",
                (guild, flag, enabled, by, to_ms(self._clock.now())),
            )
            tx.after_commit(lambda: self._cache.invalidate(guild))

        await self._database.write(job)

    async def _read(self, guild: GuildId) -> Mapping[Flag, FlagState]:
        rows = await self._database.fetch_all(
            "SELECT flag, enabled, changed_by, changed_at FROM feature_flags WHERE guild_id = ?",
            (guild,),
        )
        states = {
            flag: FlagState(flag=flag, enabled=default, default=default)
            for flag, default in self._defaults.items()
        }
        for row in rows:
            if row["flag"] in states:  # a flag that an older version had is left alone
                flag = Flag(row["flag"])
                states[flag] = FlagState(
                    flag=flag,
                    enabled=bool(row["enabled"]),
                    default=self._defaults[flag],
                    changed_by=UserId(row["changed_by"]),
                    changed_at=from_ms(row["changed_at"]),
                )
        return states

"""What a server's managers have set beside its features: its time zone, when a room is quiet."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from functools import cache
from typing import Self
from zoneinfo import ZoneInfo, available_timezones

from bot.clock import Clock, to_ms
from bot.errors import UserError
from bot.identifiers import ChannelId, GuildId, UserId
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Transaction

_ZONE = "zone"
_QUIET = "quiet_hours"
_SPAN = re.compile(
    r"\s*(\d{1,2})(?::(\d\d))?\s*(?:[-~\u2013\u301c\uff5e]|to)\s*(\d{1,2})(?::(\d\d))?\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """From when to when a room is quiet, by the clock of its server; may go past midnight."""

    begin: time
    end: time

    @classmethod
    def parse(cls, text: str) -> Self:
        """Hours such as "22:00-07:00" or "22-7". Raises UserError where they are none."""
        found = _SPAN.fullmatch(text)
        if found is None:
            raise UserError("errors.settings.quiet_hours", hours=text[:40])
        hours = [int(part or 0) for part in found.groups()]
        try:
            begin, end = time(hours[0] % 24, hours[1]), time(hours[2] % 24, hours[3])
        except ValueError:
            raise UserError("errors.settings.quiet_hours", hours=text[:40]) from None
        if begin == end or hours[0] > 24 or hours[2] > 24:
            raise UserError("errors.settings.quiet_hours", hours=text[:40])
        return cls(begin=begin, end=end)

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"

    def holds(self, local: datetime) -> bool:
        """Whether it is quiet at a time of the server's own clock."""
        now = local.time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end


class GuildSettings:
    """Reads and changes settings; who and when is kept with them."""

    def __init__(self, database: Database, clock: Clock, *, default_zone: str) -> None:
        self._database = database
        self._clock = clock
        self._default_zone = default_zone
        self._cache: VersionedCache[GuildId, Mapping[str, str]] = VersionedCache()

    async def zone(self, guild: GuildId) -> ZoneInfo:
        """The time zone of a server."""
        return ZoneInfo((await self._all(guild)).get(_ZONE, self._default_zone))

    async def set_zone(self, guild: GuildId, zone: str, by: UserId) -> None:
        """Change the time zone. Raises UserError where no such zone is known."""
        name = (await asyncio.to_thread(_zones)).get(_plain(zone))
        if name is None:
            raise UserError("errors.settings.zone", zone=zone[:40])
        await self._write(guild, _ZONE, name, by)

    async def quiet_hours(self, guild: GuildId, channel: ChannelId) -> QuietHours | None:
        """When a room is quiet; None where it never is."""
        hours = (await self._all(guild)).get(f"{_QUIET}.{channel}")
        return QuietHours.parse(hours) if hours else None

    async def set_quiet_hours(
        self, guild: GuildId, channel: ChannelId, hours: QuietHours | None, by: UserId
    ) -> None:
        """Change when a room is quiet."""
        await self._write(guild, f"{_QUIET}.{channel}", str(hours) if hours else "", by)

    async def is_quiet(self, guild: GuildId, channel: ChannelId) -> bool:
        """Whether a room is quiet now."""
        hours = await self.quiet_hours(guild, channel)
        if hours is None:
            return False
        return hours.holds(self._clock.now().astimezone(await self.zone(guild)))

    async def rooms_with_quiet_hours(self) -> tuple[tuple[GuildId, ChannelId], ...]:
        """Every room for which quiet hours are set."""
        rows = await self._database.fetch_all(
            f"SELECT guild_id, key FROM guild_settings WHERE key LIKE '{_QUIET}.%' AND value != ''"
        )
        return tuple(
            (GuildId(row["guild_id"]), ChannelId(int(row["key"].partition(".")[2]))) for row in rows
        )

    async def _all(self, guild: GuildId) -> Mapping[str, str]:
        return await self._cache.get(guild, lambda: self._read(guild))

    async def _read(self, guild: GuildId) -> Mapping[str, str]:
        rows = await self._database.fetch_all(
            "SELECT key, value FROM guild_settings WHERE guild_id = ?", (guild,)
        )
        return {row["key"]: row["value"] for row in rows}

    async def _write(self, guild: GuildId, key: str, value: str, by: UserId) -> None:
        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO guild_settings (guild_id, key, value, changed_by, changed_at)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT (guild_id, key) DO UPDATE SET"
                " value = excluded.value, changed_by = excluded.changed_by,"
                " changed_at = excluded.changed_at",
                (guild, key, value, by, to_ms(self._clock.now())),
            )
            tx.after_commit(lambda: self._cache.invalidate(guild))

        await self._database.write(job)


async def matching_zones(typed: str, *, most: int) -> tuple[str, ...]:
    """Names of time zones in which what was typed stands; those with it at the front first.

    "new y" finds America/New_York.
    """
    wanted = _plain(typed)
    zones = await asyncio.to_thread(_zones)

    def place(plain: str) -> tuple[bool, str]:
        begins = plain.startswith(wanted) or plain.rpartition("/")[2].startswith(wanted)
        return (not begins, plain)

    found = sorted((plain for plain in zones if wanted in plain), key=place)
    return tuple(zones[plain] for plain in found[:most])


@cache
def _zones() -> Mapping[str, str]:
    """Every time zone by its plain name; reading them from disk takes 40 ms."""
    names = available_timezones() - {"localtime", "Factory"}
    return {_plain(name): name for name in names}


def _plain(zone: str) -> str:
    return zone.strip().casefold().replace(" ", "_")

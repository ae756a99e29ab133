"""Who Madeleine speaks as in a server."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from bot.clock import Clock, to_ms
from bot.identifiers import GuildId, LineageId, PersonaId
from bot.prompts import prompt
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction
from bot.storage.writer import Job

FIRST_LINEAGE = LineageId(1)
"""Madeleine herself: the same lineage in every server, until somebody forks her."""


class PersonaState(StrEnum):
    """How much of what happens a persona takes part in."""

    ACTIVE = "active"
    ASLEEP = "asleep"
    """Answers only who calls her: quiet hours, or sent to sleep."""
    UNCONSCIOUS = "unconscious"
    """Answers nobody: paused by a manager."""
    INACTIVE = "inactive"
    """Switched off."""
    DEAD = "dead"
    """Deleted; what she remembers stays until it is erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """A persona as she is now. `lineage` is the identity behind her memory."""

    id: PersonaId
    guild_id: GuildId
    lineage: LineageId
    name: str
    prompt: str
    sample_lines: tuple[str, ...]
    state: PersonaState = PersonaState.ACTIVE

    @property
    def takes_turns(self) -> bool:
        """Whether she answers at all, be it only those who call her."""
        match self.state:
            case PersonaState.ACTIVE | PersonaState.ASLEEP:
                return True
            case PersonaState.UNCONSCIOUS | PersonaState.INACTIVE | PersonaState.DEAD:
                return False
            case _:
                assert_never(self.state)


class Personas:
    """Reads personas; a server's main persona is made when it is first needed."""

    def __init__(self, database: Database, clock: Clock, *, default_name: str) -> None:
        self._database = database
        self._clock = clock
        self._default_name = default_name
        self._mains: VersionedCache[GuildId, Persona] = VersionedCache()

    async def main(self, guild: GuildId) -> Persona:
        """The main persona of a server (or of direct messages)."""
        return await self._mains.get(guild, lambda: self._read_or_make(guild))

    async def set_state(self, persona: Persona, state: PersonaState) -> None:
        """Send a persona to sleep, pause her, or wake her."""
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "UPDATE personas SET state = ?1, state_since = ?2, updated_at = ?2"
                " WHERE id = ?3 AND state != ?1",
                (state, now, persona.id),
            )
            tx.after_commit(lambda: self._mains.invalidate(persona.guild_id))

        await self._database.write(job)

    async def _read_or_make(self, guild: GuildId) -> Persona:
        known = await self._database.read(lambda db: _main(db, guild))
        return known or await self._database.write(self._main_job(guild))

    def _main_job(self, guild: GuildId) -> Job[Persona]:
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> Persona:
            await tx.execute(
                "INSERT INTO personas (guild_id, lineage_id, name, prompt, is_main, state_since,"
                " created_at, updated_at) VALUES (?, ?, ?, ?, 1, ?, ?, ?)"
                " ON CONFLICT (guild_id) WHERE is_main = 1 DO NOTHING",
                (
                    guild,
                    FIRST_LINEAGE,
                    self._default_name,
                    prompt("persona.default"),
                    now,
                    now,
                    now,
                ),
            )
            made = await _main(tx, guild)
            if made is None:
                raise RuntimeError("the main persona that was just written is not there")
            return made

        return job


async def persona_of_lineage(db: Snapshot, guild: GuildId, lineage: LineageId) -> Persona | None:
    """Who speaks for a lineage in a server; None where nobody does."""
    row = await db.fetch_one(
        "SELECT * FROM personas WHERE guild_id = ? AND lineage_id = ?"
        " ORDER BY state = 'dead', is_main DESC, id LIMIT 1",
        (guild, lineage),
    )
    return _persona(row) if row else None


async def _main(db: Snapshot, guild: GuildId) -> Persona | None:
    row = await db.fetch_one("SELECT * FROM personas WHERE guild_id = ? AND is_main = 1", (guild,))
    return _persona(row) if row else None


def _persona(row: Row) -> Persona:
    return Persona(
        id=PersonaId(row["id"]),
        guild_id=GuildId(row["guild_id"]),
        lineage=LineageId(row["lineage_id"]),
        name=row["name"],
        prompt=row["prompt"],
        sample_lines=tuple(json.loads(row["sample_lines"])),
        state=PersonaState(row["state"]),
    )

"""Under which headings a server wants its conversations noted."""

from dataclasses import dataclass

from bot.audience import DIRECT_MESSAGES
from bot.clock import Clock, to_ms
from bot.config import MemoryConfig
from bot.errors import UserError
from bot.identifiers import GuildId, UserId
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot, Transaction

LONGEST_LABEL = 32
LONGEST_DESCRIPTION = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A heading, and what belongs under it."""

    label: str
    description: str


class Categories:
    """Reads and changes the categories of servers; who changed one and when is kept with it."""

    def __init__(self, database: Database, clock: Clock, config: MemoryConfig) -> None:
        self._database = database
        self._clock = clock
        self._most = config.stm_max_categories
        self._cache: VersionedCache[GuildId, tuple[Category, ...]] = VersionedCache()

    async def of(self, guild: GuildId) -> tuple[Category, ...]:
        """The categories of a server in their order; none in direct messages."""
        if guild == DIRECT_MESSAGES:
            return ()
        return await self._cache.get(
            guild, lambda: self._database.read(lambda db: _read(db, guild))
        )

    async def define(self, guild: GuildId, label: str, description: str, by: UserId) -> Category:
        """Add a category, or describe anew the one of that label, whatever its capitals.

        Raises UserError where the texts are no good or there are as many as there may be.
        """
        label, description = " ".join(label.split()), " ".join(description.split())
        if not (1 <= len(label) <= LONGEST_LABEL and label.isprintable()):
            raise UserError("errors.categories.label", limit=LONGEST_LABEL)
        if not (1 <= len(description) <= LONGEST_DESCRIPTION and description.isprintable()):
            raise UserError("errors.categories.description", limit=LONGEST_DESCRIPTION)

        async def job(tx: Transaction) -> Category:
            known = await _read(tx, guild)
            same = _named(known, label)
            if same is None and len(known) >= self._most:
                raise UserError("errors.categories.full", limit=self._most)
            category = Category(label=same.label if same else label, description=description)
            await tx.execute(
                "INSERT INTO short_term_categories (guild_id, label, description, position,"
                " changed_by, changed_at) VALUES (?1, ?2, ?3, (SELECT ifnull(max(position), 0) + 1"
                " FROM short_term_categories WHERE guild_id = ?1), ?4, ?5)"
                " ON CONFLICT (guild_id, label) DO UPDATE SET description = excluded.description,"
                " changed_by = excluded.changed_by, changed_at = excluded.changed_at",
                (guild, category.label, description, by, to_ms(self._clock.now())),
            )
            tx.after_commit(lambda: self._cache.invalidate(guild))
            return category

        return await self._database.write(job)

    async def remove(self, guild: GuildId, label: str) -> Category:
        """Remove a category; what is noted under it is shown no more, and goes with the next note.

        Raises UserError where there is none of that label.
        """

        async def job(tx: Transaction) -> Category:
            found = _named(await _read(tx, guild), " ".join(label.split()))
            if found is None:
                raise UserError("errors.categories.unknown", label=label[:LONGEST_LABEL])
            await tx.execute(
                "DELETE FROM short_term_categories WHERE guild_id = ? AND label = ?",
                (guild, found.label),
            )
            tx.after_commit(lambda: self._cache.invalidate(guild))
            return found

        return await self._database.write(job)


def _named(known: tuple[Category, ...], label: str) -> Category | None:
    wanted = label.casefold()
    return next((one for one in known if one.label.casefold() == wanted), None)


async def _read(db: Snapshot, guild: GuildId) -> tuple[Category, ...]:
    rows = await db.fetch_all(
        "SELECT label, description FROM short_term_categories WHERE guild_id = ?"
        " ORDER BY position, label",
        (guild,),
    )
    return tuple(map(_category, rows))


def _category(row: Row) -> Category:
    return Category(label=row["label"], description=row["description"])

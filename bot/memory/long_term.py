"""Long-term memory: facts about a server and about a person, each heard where a source of it is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from bot.audience import DIRECT_MESSAGES
from bot.clock import Clock, to_ms
from bot.config import MemoryConfig
from bot.identifiers import GLOBAL_LINEAGE, GuildId, MemoryId, UserId
from bot.memory import long_term_rows as rows
from bot.memory.changes import Change, TurnKey, drop_old_changes, record_change
from bot.memory.checks import Checks, check_rights, find_same
from bot.memory.content import normalised, tidy
from bot.memory.listening import Actor, Listening, is_about
from bot.memory.long_term_rows import FormerText, Memory, NewMemory, Scope, Source
from bot.memory.people import People
from bot.memory.references import with_references
from bot.memory.refusals import MemoryRefused
from bot.memory.undo import Undone, undo_turn
from bot.privacy.forgotten import ForgottenValues
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Snapshot, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A memory is on disk. `known_before`: this audience could hear the same text already."""

    id: MemoryId
    known_before: bool = False


class LongTermMemory:
    """Reads, writes and forgets memories; its caches are fresh from each commit on."""

    def __init__(
        self,
        database: Database,
        people: People,
        levels: Levels,
        forgotten: ForgottenValues,
        clock: Clock,
        config: MemoryConfig,
    ) -> None:
        self._database = database
        self._levels = levels
        self._clock = clock
        self._config = config
        self.checks = Checks(people, levels, forgotten, config)
        self._of_server: VersionedCache[GuildId, tuple[Memory, ...]] = VersionedCache()
        self._of_user: VersionedCache[UserId, tuple[Memory, ...]] = VersionedCache()

    # Reading

    async def server_memories(self, listening: Listening) -> tuple[Memory, ...]:
        """What is known about the server here, last changed first."""
        if listening.server == DIRECT_MESSAGES:
            return ()
        known = await self._of_server.get(
            listening.server, lambda: rows.read_server(self._database, listening.server)
        )
        return tuple(map(listening.as_heard, filter(listening.hears, known)))

    async def personal_memories(self, user: UserId, listening: Listening) -> tuple[Memory, ...]:
        """What is known about a person here, last changed first; nothing unless they are OPEN."""
        if self._levels.of(user, listening.server) is not PrivacyLevel.OPEN:
            return ()
        known = await self.held_about(user, listening)
        return tuple(m for m in known if self._levels.of(user, m.server) is PrivacyLevel.OPEN)

    async def held_about(self, user: UserId, listening: Listening) -> tuple[Memory, ...]:
        """The same for the person's own eyes: whatever their level, they see what is kept."""
        known = await self._of_user.get(user, lambda: rows.read_personal(self._database, user))
        return tuple(map(listening.as_heard, filter(listening.hears, known)))

    async def find(self, memory: MemoryId, listening: Listening) -> Memory:
        """One memory by its number. Raises MemoryRefused where it is not heard here."""
        return await self._database.read(lambda db: _find(db, memory, listening))

    # Writing. `turn`: the turn in which the model makes the change, where it can be undone.

    async def create(
        self, new: NewMemory, actor: Actor, listening: Listening, *, turn: TurnKey | None = None
    ) -> Kept:
        """Keep a memory; returns once it is on disk. Raises MemoryRefused or StorageUnavailable."""
        new = replace(new, content=with_references(tidy(new.content)))
        checks = self.checks
        checks.content(new.content)
        checks.scope(new, actor, listening)

        async def job(tx: Transaction) -> Kept:
            await checks.privacy(tx, new.content, new.scope, new.subject, actor, new.server)
            await checks.forgotten(tx, new.content, actor, new.server, by_person=new.by_person)
            if new.lineage == GLOBAL_LINEAGE and not new.by_person:
                raise MemoryRefused("global_lineage")
            partition = await rows.read_partition(tx, new)
            same = find_same(new.content, partition, listening)
            known = same is not None and listening.hears(same)
            if not known:  # a text that only another room knows is refused as any other would be
                checks.limit(partition)
                checks.similar(new.content, [m for m in partition if listening.hears(m)])
            self._invalidate(tx, new.scope, new.server, new.subject)
            now_ms = to_ms(self._clock.now())
            if same is None:
                kept = Kept(id=await rows.insert(tx, new, now_ms))
            else:
                await rows.add_source(tx, same.id, new.source)
                kept = Kept(id=same.id, known_before=known)
            if turn is not None and not known:
                change = Change(kind="saved", memory=kept.id, user=actor.user)
                await record_change(tx, turn, change, now_ms)
            return kept

        return await self._database.write(job)

    async def update(
        self,
        memory: MemoryId,
        content: str,
        actor: Actor,
        source: Source,
        listening: Listening,
        *,
        turn: TurnKey | None = None,
    ) -> Memory:
        """Change a memory's text; returns what it was. Blank text is for `forget`.

        The former text stays as "used to" until it is forgotten. Raises MemoryRefused.
        """
        content = with_references(tidy(content))
        self.checks.content(content)
        check_rights(await self.find(memory, listening), actor, rewords=True)

        async def job(tx: Transaction) -> Memory:
            old = await _find(tx, memory, listening)  # as it is now: somebody may have been faster
            check_rights(old, actor, rewords=True)
            privacy = self.checks.privacy
            await privacy(tx, content, old.scope, old.subject, actor, old.server)
            await self.checks.forgotten(tx, content, actor, old.server, by_person=turn is None)
            if old.lineage == GLOBAL_LINEAGE:
                raise MemoryRefused("global_lineage")
            changes = await _reword(tx, old, content, source, listening, self._clock)
            self._invalidate(tx, old.scope, old.server, old.subject)
            if turn is not None:
                for change in changes:
                    await record_change(tx, turn, change, to_ms(self._clock.now()))
            return old

        return await self._database.write(job)

    async def forget(
        self,
        memory: MemoryId,
        actor: Actor,
        listening: Listening,
        *,
        turn: TurnKey | None = None,
    ) -> Memory:
        """Remove the sources the actor has a right to; the row goes with its last one.

        Returns what the memory was. Raises MemoryRefused.
        """

        async def job(tx: Transaction) -> Memory:
            old = await _find(tx, memory, listening)
            if old.lineage == GLOBAL_LINEAGE and not (
                actor.is_manager or old.subject == actor.user
            ):
                raise MemoryRefused("managers_only")
            check_rights(old, actor)
            manages = old.scope is Scope.SERVER and actor.is_manager
            takes_all = manages or is_about(old, actor.user)
            if turn is not None:
                change = Change(kind="forgotten", memory=old.id, user=actor.user, former=old)
                await record_change(tx, turn, change, to_ms(self._clock.now()))
            await rows.remove_sources(tx, old, said_by=None if takes_all else actor.user)
            self._invalidate(tx, old.scope, old.server, old.subject)
            return old

        return await self._database.write(job)

    async def undo(self, turn: TurnKey, actor: Actor, listening: Listening) -> tuple[Undone, ...]:
        """Undo what the model changed in a turn, all of it or nothing, the latest first.

        Raises MemoryRefused.
        """

        async def job(tx: Transaction) -> tuple[Undone, ...]:
            undone = await undo_turn(tx, turn, actor, listening, self.checks)
            for one in undone:
                self._invalidate(tx, one.scope, one.server, one.subject)
            return undone

        return await self._database.write(job)

    async def drop_old_changes(self) -> int:
        """Drop what is too old to be undone; returns how many changes that were."""
        now = self._clock.now()
        limit = to_ms(now - timedelta(days=self._config.undo_days))
        forgotten = to_ms(now - timedelta(hours=self._config.undo_forgotten_hours))
        return await self._database.write(
            partial(drop_old_changes, before_ms=limit, forgotten_before_ms=forgotten)
        )

    def invalidate_user_cache(self, user: UserId) -> None:
        """Forget what is cached about a person; the next prompt reads it anew."""
        self._of_user.invalidate(user)

    def invalidate_server_cache(self, server: GuildId) -> None:
        """Forget what is cached about a server."""
        self._of_server.invalidate(server)

    def invalidate_all(self) -> None:
        """Forget all that is cached: somebody was erased."""
        self._of_server.clear()
        self._of_user.clear()

    def _invalidate(
        self, tx: Transaction, scope: Scope, server: GuildId, subject: UserId | None
    ) -> None:
        """Have the caches forget it with the commit."""
        forget: Callable[[], None] = partial(self.invalidate_server_cache, server)
        if scope is Scope.PERSONAL and subject is not None:
            forget = partial(self.invalidate_user_cache, subject)
        tx.after_commit(forget)


async def _reword(
    tx: Transaction,
    old: Memory,
    content: str,
    source: Source,
    listening: Listening,
    clock: Clock,
) -> tuple[Change, ...]:
    """Give a memory its new text; where another says that already, it goes and that one has gained
    a source.
    """
    partition = await rows.read_partition(tx, old.restated(content, source))
    others = tuple(memory for memory in partition if memory.id != old.id)
    same = find_same(content, others, listening)
    if same is None and normalised(content) == normalised(old.content):  # nothing new is said
        await rows.respell(tx, old, content)
        return ()
    if same is None:
        await rows.change(tx, old, content, source, to_ms(clock.now()))
        return (Change(kind="updated", memory=old.id, user=source.said_by),)
    await rows.add_source(tx, same.id, source)
    await rows.remove_sources(tx, old, said_by=None)
    return (
        Change(kind="saved", memory=same.id, user=source.said_by),
        Change(kind="forgotten", memory=old.id, user=source.said_by, former=old),
    )


async def _find(db: Snapshot, memory: MemoryId, listening: Listening) -> Memory:
    found = await rows.read_one(db, memory)
    if found is None or not listening.hears(found):
        raise MemoryRefused("not_found", id=memory)
    return found


__all__ = [
    "Actor",
    "FormerText",
    "Kept",
    "Listening",
    "LongTermMemory",
    "Memory",
    "NewMemory",
    "Scope",
    "Source",
    "TurnKey",
    "Undone",
]

"""Long-term memory: facts about a server and about a person, each heard where a source of it is."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.audience import DIRECT_MESSAGES, Audience
from bot.clock import Clock, to_ms
from bot.config import MemoryConfig
from bot.identifiers import GLOBAL_LINEAGE, GuildId, LineageId, MemoryId, UserId
from bot.memory import long_term_rows as rows
from bot.memory.content import (
    content_hash,
    is_blank,
    likeness,
    looks_like_credential,
    normalised,
    says_nearly_the_same,
    tidy,
)
from bot.memory.long_term_rows import Memory, NewMemory, Scope, Source
from bot.memory.people import People
from bot.memory.references import named_people, referenced_people, with_references
from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.cache import VersionedCache
from bot.storage.database import Database
from bot.storage.statements import Snapshot, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A memory is on disk. `known_before`: this audience could hear the same text already."""

    id: MemoryId
    known_before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """On whose behalf memory is changed: the member who triggered the turn or gave the command."""

    user: UserId
    is_manager: bool
    may_teach_server: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a read stands: server, lineage and audience. Every read of memories takes one."""

    server: GuildId
    lineage: LineageId
    audience: Audience

    def hears(self, memory: Memory) -> bool:
        """Whether a memory belongs to this lineage (or all) and one of its sources is heard."""
        return memory.lineage in (self.lineage, GLOBAL_LINEAGE) and any(
            source.origin in self.audience.heard for source in memory.sources
        )

    def as_heard(self, memory: Memory) -> Memory:
        """A memory as it is known here: who told it elsewhere, and when, is not."""
        heard = [s for s in memory.sources if s.origin in self.audience.heard]
        return replace(
            memory,
            author=heard[0].said_by,
            created_at=heard[0].said_at,
            updated_at=heard[-1].said_at,
            sources=tuple(heard),
        )


class LongTermMemory:
    """Reads, writes and forgets memories; its caches are fresh from each commit on."""

    def __init__(
        self,
        database: Database,
        people: People,
        levels: Levels,
        clock: Clock,
        config: MemoryConfig,
    ) -> None:
        self._database = database
        self._people = people
        self._levels = levels
        self._clock = clock
        self._config = config
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
        return await self.held_about(user, listening)

    async def held_about(self, user: UserId, listening: Listening) -> tuple[Memory, ...]:
        """The same for the person's own eyes: whatever their level, they see what is kept."""
        known = await self._of_user.get(user, lambda: rows.read_personal(self._database, user))
        here = (m for m in known if m.server == listening.server and listening.hears(m))
        return tuple(map(listening.as_heard, here))

    async def find(self, memory: MemoryId, listening: Listening) -> Memory:
        """One memory by its number. Raises MemoryRefused where it is not heard here."""
        return await self._database.read(lambda db: _find(db, memory, listening))

    # Writing

    async def create(self, new: NewMemory, actor: Actor, listening: Listening) -> Kept:
        """Keep a memory; returns once it is on disk. Raises MemoryRefused or StorageUnavailable."""
        new = replace(new, content=with_references(tidy(new.content)))
        self.check_content(new.content)
        self._check_scope(new, actor, listening)

        async def job(tx: Transaction) -> Kept:
            await self._check_privacy(tx, new.content, new.scope, new.subject, actor, new.server)
            if new.lineage == GLOBAL_LINEAGE and not new.by_person:
                raise MemoryRefused("global_lineage")
            partition = await rows.read_partition(tx, new)
            same = self._same(new.content, partition, listening)
            known = same is not None and listening.hears(same)
            if not known:  # a text that only another room knows is refused as any other would be
                if len(partition) >= self._config.ltm_per_partition:
                    raise MemoryRefused("full", limit=self._config.ltm_per_partition)
                self._check_similar(new.content, [m for m in partition if listening.hears(m)])
            tx.after_commit(self._invalidation(new.scope, new.server, new.subject))
            if same is None:
                return Kept(id=await rows.insert(tx, new, to_ms(self._clock.now())))
            await rows.add_source(tx, same.id, new.source)
            return Kept(id=same.id, known_before=known)

        return await self._database.write(job)

    async def update(
        self, memory: MemoryId, content: str, actor: Actor, source: Source, listening: Listening
    ) -> Memory:
        """Change a memory's text; returns what it was. Blank text is for `forget`.

        The former text stays as "used to" until it is forgotten. Raises MemoryRefused.
        """
        content = with_references(tidy(content))
        self.check_content(content)
        found = await self.find(memory, listening)
        self._check_rights(found, actor, rewords=True)

        async def job(tx: Transaction) -> Memory:
            old = await _find(tx, memory, listening)  # as it is now: somebody may have been faster
            self._check_rights(old, actor, rewords=True)
            await self._check_privacy(tx, content, old.scope, old.subject, actor, listening.server)
            if old.lineage == GLOBAL_LINEAGE:
                raise MemoryRefused("global_lineage")
            partition = await rows.read_partition(tx, old.restated(content, source))
            others = tuple(m for m in partition if m.id != old.id)
            same = self._same(content, others, listening)
            if same is not None:
                await rows.add_source(tx, same.id, source)
                await rows.remove_sources(tx, old, said_by=None)
            else:
                await rows.change(tx, old, content, source, to_ms(self._clock.now()))
            tx.after_commit(self._invalidation(old.scope, old.server, old.subject))
            return old

        return await self._database.write(job)

    async def forget(self, memory: MemoryId, actor: Actor, listening: Listening) -> Memory:
        """Remove the sources the actor has a right to; the row goes with its last one.

        Returns what the memory was. Raises MemoryRefused.
        """
        old = await self.find(memory, listening)
        if old.lineage == GLOBAL_LINEAGE and not (actor.is_manager or old.subject == actor.user):
            raise MemoryRefused("managers_only")
        self._check_rights(old, actor)
        manages = old.scope is Scope.SERVER and actor.is_manager
        takes_all = manages or _is_about(old, actor.user)

        async def job(tx: Transaction) -> Memory:
            await rows.remove_sources(tx, old, said_by=None if takes_all else actor.user)
            tx.after_commit(self._invalidation(old.scope, old.server, old.subject))
            return old

        return await self._database.write(job)

    def invalidate_user_cache(self, user: UserId) -> None:
        """Forget what is cached about a person; the next prompt reads it anew."""
        self._of_user.invalidate(user)

    def invalidate_server_cache(self, server: GuildId) -> None:
        """Forget what is cached about a server."""
        self._of_server.invalidate(server)

    def _invalidation(
        self, scope: Scope, server: GuildId, subject: UserId | None
    ) -> Callable[[], None]:
        if scope is Scope.PERSONAL and subject is not None:
            return lambda: self.invalidate_user_cache(subject)
        return lambda: self.invalidate_server_cache(server)

    # Checks

    def check_content(self, content: str) -> None:
        """Raise MemoryRefused where the text is blank, too long, or holds a key or token."""
        if is_blank(content):
            raise MemoryRefused("blank")
        length = len(content.strip())
        if length > self._config.ltm_max_characters:
            raise MemoryRefused("too_long", limit=self._config.ltm_max_characters, length=length)
        if looks_like_credential(content):
            raise MemoryRefused("credential")

    def _check_scope(self, new: NewMemory, actor: Actor, listening: Listening) -> None:
        if new.scope is Scope.PERSONAL:
            if new.subject is None:
                raise MemoryRefused("target_missing")
            if listening.server == DIRECT_MESSAGES and new.subject != actor.user:
                raise MemoryRefused("target_unknown", target="")
            return
        if listening.server == DIRECT_MESSAGES:
            raise MemoryRefused("no_server")
        if not (actor.is_manager or actor.may_teach_server):
            raise MemoryRefused("managers_only")

    async def _check_privacy(
        self,
        tx: Transaction,
        content: str,
        scope: Scope,
        subject: UserId | None,
        actor: Actor,
        server: GuildId,
    ) -> None:
        """Refuse a text about, or naming, anybody who is not OPEN when it is written."""
        levels = await self._levels.within(tx)
        closed = None
        if levels.default is PrivacyLevel.OPEN:
            closed = levels.at_least(PrivacyLevel.PARTIAL, server)
        names = await self._people.known_as(server, closed, within=tx)
        about = referenced_people(content) | named_people(content, names)
        if subject is not None:
            about |= {subject}
        if scope is Scope.SERVER:
            about -= {actor.user}  # whoever is private may still tell the server about themselves
        if any(levels.of(user, server) >= PrivacyLevel.PARTIAL for user in about):
            raise MemoryRefused("privacy")

    def _check_rights(self, memory: Memory, actor: Actor, *, rewords: bool = False) -> None:
        """Who said the same may take their own word back, but not put words in another's mouth."""
        theirs = actor.user in (memory.subject, memory.author)
        if not rewords:
            theirs = theirs or _is_about(memory, actor.user)
            theirs = theirs or any(s.said_by == actor.user for s in memory.sources)
        if memory.scope is Scope.SERVER:
            may_teach = actor.is_manager or actor.may_teach_server
            if not may_teach and (rewords or not _is_about(memory, actor.user)):
                raise MemoryRefused("managers_only")
            theirs = theirs or actor.is_manager
        if not theirs:
            raise MemoryRefused("not_yours")

    def _same(
        self, content: str, partition: tuple[Memory, ...], listening: Listening
    ) -> Memory | None:
        """The memory that says the same: heard here in any dress, else to the letter.

        What is known elsewhere in other capitals stays its own: that wording is not known here.
        """
        for memory in partition:
            if listening.hears(memory) and normalised(memory.content) == normalised(content):
                return memory
        return next(
            (m for m in partition if content_hash(m.content) == content_hash(content)), None
        )

    def _check_similar(self, content: str, heard: list[Memory]) -> None:
        nearest = sorted(heard, key=lambda m: likeness(content, m.content), reverse=True)
        for memory in nearest[: self._config.duplicate_nearest]:
            if says_nearly_the_same(content, memory.content, self._config.duplicate_similarity):
                raise MemoryRefused("similar", id=memory.id)


def _is_about(memory: Memory, user: UserId) -> bool:
    """Whether a memory is about a person: they may always have it deleted.

    What the server knows is about everybody it speaks of; what is known of a person is theirs.
    """
    if memory.scope is Scope.PERSONAL:
        return memory.subject == user
    return user in referenced_people(memory.content)


async def _find(db: Snapshot, memory: MemoryId, listening: Listening) -> Memory:
    found = await rows.read_one(db, memory)
    if found is None or found.server != listening.server or not listening.hears(found):
        raise MemoryRefused("not_found", id=memory)
    return found


__all__ = [
    "Actor",
    "Kept",
    "Listening",
    "LongTermMemory",
    "Memory",
    "NewMemory",
    "Scope",
    "Source",
]

"""Where a read of memories stands, and on whose behalf memory is changed."""

from dataclasses import dataclass, replace

from bot.audience import Audience
from bot.identifiers import GLOBAL_LINEAGE, GuildId, LineageId, OriginId, UserId
from bot.memory.long_term_rows import Memory, Scope
from bot.memory.references import referenced_people


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
        heard = self._heard(memory)
        return memory.lineage in (self.lineage, GLOBAL_LINEAGE) and any(
            source.origin in heard for source in memory.sources
        )

    def as_heard(self, memory: Memory) -> Memory:
        """A memory as it is known here: who told it elsewhere, and when, is not.

        Nor is what it said before, unless that was told here too.
        """
        origins = self._heard(memory)
        heard = [source for source in memory.sources if source.origin in origins]
        return replace(
            memory,
            author=heard[0].said_by,
            created_at=heard[0].said_at,
            updated_at=heard[-1].said_at,
            sources=tuple(heard),
            former=tuple(
                former
                for former in memory.former
                if any(source.origin in origins for source in former.sources)
            ),
        )

    def _heard(self, memory: Memory) -> frozenset[OriginId]:
        """Where a source of this memory may stand: memories of a server stay there.

        But whoever listens alone hears what is known of themselves on their servers too.
        """
        if memory.server == self.server:
            return self.audience.heard
        is_own = memory.scope is Scope.PERSONAL and memory.subject == self.audience.listener
        return self.audience.to_listener if is_own else frozenset()


def is_about(memory: Memory, user: UserId) -> bool:
    """Whether a memory is about a person: they may always have it deleted.

    What the server knows is about everybody it speaks of; what is known of a person is theirs.
    """
    if memory.scope is Scope.PERSONAL:
        return memory.subject == user
    return user in referenced_people(memory.content)

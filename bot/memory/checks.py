"""What a memory is held against before it is written, each fault with its own code.

Each raises MemoryRefused.
"""

from collections.abc import Sequence

from bot.audience import DIRECT_MESSAGES
from bot.config import MemoryConfig
from bot.identifiers import GuildId, UserId
from bot.memory.content import (
    content_hash,
    is_blank,
    looks_like_credential,
    normalised,
)
from bot.memory.likeness import likeness, says_nearly_the_same
from bot.memory.listening import Actor, Listening, is_about
from bot.memory.long_term_rows import Memory, NewMemory, Scope
from bot.memory.people import People
from bot.memory.references import named_people, referenced_people
from bot.memory.refusals import MemoryRefused
from bot.privacy.forgotten import ForgottenValues
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.statements import Transaction


class Checks:
    """The checks of long-term memory, in the order in which they are made."""

    def __init__(
        self, people: People, levels: Levels, forgotten: ForgottenValues, config: MemoryConfig
    ) -> None:
        self._people = people
        self._levels = levels
        self._forgotten = forgotten
        self._config = config

    def content(self, content: str) -> None:
        """The text is blank, too long, or holds a key or token."""
        if is_blank(content):
            raise MemoryRefused("blank")
        length = len(content.strip())
        if length > self._config.ltm_max_characters:
            raise MemoryRefused("too_long", limit=self._config.ltm_max_characters, length=length)
        if looks_like_credential(content):
            raise MemoryRefused("credential")

    def scope(self, new: NewMemory, actor: Actor, listening: Listening) -> None:
        """It is kept where nothing of the kind is, or by whom it may not be."""
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

    async def forgotten(
        self, tx: Transaction, content: str, actor: Actor, server: GuildId, *, by_person: bool
    ) -> None:
        """It holds a value that this server had forgotten. A manager's command lets it in again."""
        if by_person and actor.is_manager:
            await self._forgotten.let_in(tx, content, server)
        elif self._forgotten.holds(content, server):
            raise MemoryRefused("forgotten")

    async def privacy(
        self,
        tx: Transaction,
        content: str,
        scope: Scope,
        subject: UserId | None,
        actor: Actor,
        server: GuildId,
    ) -> None:
        """It is about, or names, somebody who is not OPEN when it is written."""
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

    def limit(self, partition: Sequence[Memory]) -> None:
        """No more fit into the partition."""
        if len(partition) >= self._config.ltm_per_partition:
            raise MemoryRefused("full", limit=self._config.ltm_per_partition)

    def similar(self, content: str, heard: Sequence[Memory]) -> None:
        """One that is heard here says nearly the same."""
        nearest = sorted(heard, key=lambda m: likeness(content, m.content), reverse=True)
        for memory in nearest[: self._config.duplicate_nearest]:
            if says_nearly_the_same(content, memory.content, self._config.duplicate_similarity):
                raise MemoryRefused("similar", id=memory.id)


def check_rights(memory: Memory, actor: Actor, *, rewords: bool = False) -> None:
    """Who said the same may take their own word back, but not put words in another's mouth."""
    theirs = actor.user in (memory.subject, memory.author)
    if not rewords:
        theirs = theirs or is_about(memory, actor.user)
        theirs = theirs or any(s.said_by == actor.user for s in memory.sources)
    if memory.scope is Scope.SERVER:
        may_teach = actor.is_manager or actor.may_teach_server
        if not may_teach and (rewords or not is_about(memory, actor.user)):
            raise MemoryRefused("managers_only")
        theirs = theirs or actor.is_manager
    if not theirs:
        raise MemoryRefused("not_yours")


def may_change(memory: Memory, actor: Actor, *, rewords: bool) -> bool:
    """Whether somebody has the right to reword a memory, or to have it forgotten."""
    try:
        check_rights(memory, actor, rewords=rewords)
    except MemoryRefused:
        return False
    return True


def find_same(content: str, partition: Sequence[Memory], listening: Listening) -> Memory | None:
    """The memory that says the same: heard here in any dress, else to the letter.

    What is known elsewhere in other capitals stays its own: that wording is not known here.
    """
    for memory in partition:
        if listening.hears(memory) and normalised(memory.content) == normalised(content):
            return memory
    return next((m for m in partition if content_hash(m.content) == content_hash(content)), None)

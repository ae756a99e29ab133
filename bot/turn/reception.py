"""Where every transport brings its messages: heard, judged, queued; and where messages change."""

from collections.abc import Callable, Sequence
from typing import Literal

from bot.errors import StorageUnavailable
from bot.identifiers import GuildId, MessageId, UserId
from bot.memory.erasure import Erasures, Held
from bot.memory.forgetting import Forgetting, Traces
from bot.memory.listening import Actor
from bot.memory.long_term import LongTermMemory
from bot.memory.short_term import ShortTermMemory
from bot.memory.working import WorkingMemory, editing, forgetting
from bot.privacy.forgotten import ForgottenValues, says
from bot.privacy.levels import EVERYWHERE, Levels, PrivacyLevel
from bot.turn.late_writes import LateWrites
from bot.turn.messages import Delivery, History, IncomingMessage, Person, TurnRequest
from bot.turn.queue import TurnQueue
from bot.turn.ring import Rings
from bot.turn.triggers import Triggers, says_something

Reception = Literal["heard", "joined", "taken", "busy", "closed"]


class Receiver:
    """Takes messages in and keeps every copy of them true."""

    def __init__(
        self,
        *,
        rings: Rings,
        triggers: Triggers,
        queue: TurnQueue,
        working: WorkingMemory,
        short_term: ShortTermMemory,
        levels: Levels,
        late_writes: LateWrites,
        erasures: Erasures,
        long_term: LongTermMemory,
        forgotten: ForgottenValues,
        forgetting: Forgetting,
    ) -> None:
        self.rings = rings
        self.queue = queue
        self._triggers = triggers
        self._working = working
        self._short_term = short_term
        self._levels = levels
        self._late_writes = late_writes
        self._erasures = erasures
        self._long_term = long_term
        self._forgotten = forgotten
        self._forgetting = forgetting

    def receive(
        self, message: IncomingMessage, delivery: Callable[[], Delivery], history: History
    ) -> Reception:
        """Hear a message; where it is for us, take its turn on. `delivery` is made only then.

        One that says nothing joins no turn: there is nothing in it to answer.
        """
        level = self._levels.of(message.author.id, message.place.guild_key)
        if message.is_own or level is PrivacyLevel.FULL:
            return "heard"
        self.rings.hear(message)
        turn = None
        if self._triggers.starts_turn(message):
            turn = TurnRequest(message=message, delivery=delivery(), history=history)
        may_join = not message.is_system and says_something(message.text)
        if may_join and self.queue.join(message, turn):
            return "joined"
        return "heard" if turn is None else self.queue.submit(turn)

    async def set_level(
        self, person: Person, guild: GuildId, level: PrivacyLevel, *, seen_in: GuildId
    ) -> None:
        """Keep a person's level; going up to FULL erases what was captured of them in passing.

        `guild` is EVERYWHERE, or the one server that the level is for. The name they go by where
        they set it (`seen_in`) stays known, so that a text which names them can be refused there.
        """
        await self._levels.set(person.id, guild, level, called=person.called, seen_in=seen_in)

        if level is PrivacyLevel.FULL:
            self._drop_what_was_heard(person.id, guild)
            self._short_term.forget_author(person.id, guild)
            await self._working.forget_author(person.id, guild)
            self._short_term.forget_author(person.id, guild)

    async def erase(self, person: UserId, guild: GuildId) -> Held:
        """Erase what is held of a person, in one server or EVERYWHERE; returns how much that was.

        Raises StorageUnavailable, also where something that was said still waits to be written.
        """
        if not await self._late_writes.retry():
            raise StorageUnavailable("earlier writes are still waiting")
        self._drop_what_was_heard(person, guild)
        held = await self._erasures.erase(person, guild, by=person)
        self._short_term.forget_all()
        self._long_term.invalidate_all()
        return held

    async def forget_words(self, value: str, guild: GuildId, actor: Actor) -> Traces:
        """Forget what holds a value in a server, as far as the actor may; returns what that was.

        Raises StorageUnavailable, also where something that was said still waits to be written.
        """
        if not await self._late_writes.retry():
            raise StorageUnavailable("earlier writes are still waiting")

        def holds(message: IncomingMessage) -> bool:
            is_theirs = actor.is_manager or message.author.id == actor.user
            return is_theirs and message.place.guild_key == guild and says(message.text, value)

        self.rings.forget_where(holds)
        found = await self._forgetting.forget(value, guild, actor)
        self._short_term.forget_all()
        self._long_term.invalidate_all()
        return found

    def _drop_what_was_heard(self, person: UserId, guild: GuildId) -> None:
        """What they said leaves the rings, and their turns end."""

        def is_theirs(message: IncomingMessage) -> bool:
            held = guild in (EVERYWHERE, message.place.guild_key)
            return held and message.author.id == person

        self.rings.forget_where(is_theirs)
        self.queue.cancel_where(is_theirs)

    async def forget_messages(self, messages: Sequence[MessageId]) -> None:
        """Messages were deleted: they leave the ring, waiting turns and both memories at once."""
        self.rings.forget_messages(messages)
        self._short_term.forget_messages(messages)
        for message in messages:
            self.queue.cancel_message(message)
        await self._late_writes.write(forgetting(messages))
        self._short_term.forget_messages(messages)  # a reader may have had the rows as they were

    async def edit_message(self, message: MessageId, text: str) -> None:
        """A message was edited: every copy says what it says now; one without text is none.

        Nor is one that now says what was to be forgotten.
        """
        if not says_something(text) or self._forgotten.holds_any(text):
            await self.forget_messages([message])
            return
        self.rings.edit_message(message, text)
        self._short_term.edit_message(message, text)
        self.queue.edit_message(message, text)
        await self._late_writes.write(editing(message, text))
        self._short_term.edit_message(message, text)

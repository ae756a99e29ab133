"""What a transport hands to the turn, and the ports through which a turn speaks back."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from bot.audience import Place
from bot.identifiers import LineageId, MemoryId, MessageId, UserId
from bot.memory.changes import TurnKey
from bot.privacy.names import Called


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody as the transport shows them now. Managers may change what belongs to the server.

    `other_names` and `of_account` are as in `Called`.
    """

    id: UserId
    name: str
    other_names: tuple[str, ...] = ()
    of_account: bool = False
    is_bot: bool = False
    is_manager: bool = False

    @property
    def called(self) -> Called:
        """What they go by."""
        return Called(
            user=self.id, name=self.name, others=self.other_names, of_account=self.of_account
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """One message of a person (or of another bot). Mentions in `text` are person references.

    `may_answer`: whether we may write where it was said, as far as the transport knows.
    """

    id: MessageId
    place: Place
    author: Person
    text: str
    sent_at: datetime
    locale: str
    people: tuple[Person, ...] = ()
    mentions_us: bool = False
    replies_to: MessageId | None = None
    replies_to_us: bool = False
    is_own: bool = False
    is_system: bool = False
    may_answer: bool = True

    def replying_to_us(self, *, ours: bool) -> "IncomingMessage":
        """The message, knowing whether what it replies to is ours."""
        return replace(self, replies_to_us=ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What stands in the channel after a reply: its messages in order, when the first was sent."""

    message_ids: tuple[MessageId, ...]
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedToForget:
    """Memories of a lineage that somebody asked to forget, to be confirmed."""

    lineage: LineageId
    memories: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The small lines under a reply. `undoes`: the turn whose changes to memory can be undone."""

    text: str = ""
    undoes: TurnKey | None = None
    forgets: AskedToForget | None = None

    def __bool__(self) -> bool:
        return bool(self.text)


NO_FOOTER = Footer()


class Undeliverable(Exception):
    """The reply cannot be sent here (no permission, the channel is gone)."""


class Delivery(Protocol):
    """Shows one reply. Each call takes the whole text so far, so that a retry can replace it."""

    async def start(self) -> None:
        """Show that a reply is being written, until `finish` or `abandon`."""
        ...

    async def show(self, text: str) -> None:
        """Show the reply so far; may be coalesced; a failed edit is made up for later."""
        ...

    async def finish(self, text: str, *, footer: Footer = NO_FOOTER) -> Delivered:
        """Show the whole reply; `footer` stands under it in small type and is no part of it.

        Raises Undeliverable where nothing of it could be sent.
        """
        ...

    async def abandon(self) -> Delivered | None:
        """Stop where it is; returns what already stands, or None where nothing was sent."""
        ...


class History(Protocol):
    """Reads a channel's past from the transport."""

    async def newest(self, place: Place, limit: int) -> tuple[IncomingMessage, ...]:
        """The newest messages, oldest first; empty where the channel may not be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One turn to take: the message that started it and those its author added while it waited."""

    message: IncomingMessage
    joined: tuple[IncomingMessage, ...] = ()
    delivery: Delivery
    history: History

    @property
    def messages(self) -> tuple[IncomingMessage, ...]:
        """All messages of the turn in order."""
        return (self.message, *self.joined)

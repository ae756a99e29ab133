"""The ring: the last messages of a channel that is in talk, in memory only."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.clock import Clock
from bot.identifiers import ChannelId, MessageId
from bot.privacy.levels import Levels, PrivacyLevel
from bot.turn.messages import IncomingMessage

_REMEMBERED_CHANGES = 1_000


@dataclass(slots=True)
class _Ring:
    used_at: datetime
    vouches: bool = False
    messages: dict[MessageId, IncomingMessage] = field(
        default_factory=dict[MessageId, IncomingMessage]
    )


class Rings:
    """A ring for each channel where a turn ran lately.

    A ring vouches for the gap since the last capture once the channel's newest messages were read
    into it; it cannot after a restart, nor after a connection whose events were lost.
    """

    def __init__(self, clock: Clock, levels: Levels, *, size: int, active: timedelta) -> None:
        self._clock = clock
        self._levels = levels
        self._size = size
        self._active = active
        self._rings: OrderedDict[ChannelId, _Ring] = OrderedDict()
        self._changed: OrderedDict[MessageId, str | None] = OrderedDict()

    def hear(self, message: IncomingMessage) -> None:
        """Take in a message, if its channel is in talk and its author may be captured."""
        self._drop_quiet()
        ring = self._rings.get(message.place.channel_id)
        if ring is not None:
            self._add(ring, (message,))

    def open(self, channel: ChannelId) -> None:
        """Begin (or go on) to listen to a channel, because a turn is taken there."""
        self._drop_quiet()
        now = self._clock.now()
        self._rings.setdefault(channel, _Ring(used_at=now)).used_at = now
        self._rings.move_to_end(channel)

    def vouches(self, channel: ChannelId) -> bool:
        """Whether nothing can have been missed since the last capture."""
        ring = self._rings.get(channel)
        return ring is not None and ring.vouches

    def load(self, channel: ChannelId, messages: Iterable[IncomingMessage]) -> None:
        """Take in the channel's newest messages as they were fetched; from now on it vouches.

        Of what was heard already only the text is taken: the past shows accounts, not members.
        All of it stays until the next message: a thread's first message comes on top of the rest.
        """
        ring = self._rings[channel]
        heard = ring.messages
        self._add(
            ring,
            (replace(heard.get(message.id, message), text=message.text) for message in messages),
            trims=False,
        )
        ring.vouches = True

    def messages(self, channel: ChannelId) -> tuple[IncomingMessage, ...]:
        """What the ring holds, oldest first."""
        ring = self._rings.get(channel)
        return tuple(ring.messages.values()) if ring else ()

    def heard_at(self, channel: ChannelId) -> datetime | None:
        """When the newest message of a channel was sent; None where we do not listen."""
        newest = self.messages(channel)[-1:]
        return newest[0].sent_at if newest else None

    def as_it_stands(self, message: IncomingMessage) -> IncomingMessage | None:
        """A copy brought up to what was edited lately; None where it was deleted."""
        text = self.text_now(message.id, message.text)
        return None if text is None else replace(message, text=text)

    def text_now(self, message: MessageId, text: str) -> str | None:
        """What a message says after it was edited lately; None where it was deleted."""
        return self._changed.get(message, text)

    def forget_messages(self, messages: Sequence[MessageId]) -> None:
        """Take deleted messages out."""
        for message in messages:
            self._note_change(message, None)
        for ring in self._rings.values():
            for message in messages:
                ring.messages.pop(message, None)

    def edit_message(self, message: MessageId, text: str) -> None:
        """Bring a message up to its new text."""
        self._note_change(message, text)
        for ring in self._rings.values():
            old = ring.messages.get(message)
            if old is not None:
                ring.messages[message] = replace(old, text=text)

    def forget_where(self, is_gone: Callable[[IncomingMessage], bool]) -> None:
        """Take out every message for which `is_gone` holds."""
        for ring in self._rings.values():
            ring.messages = {i: m for i, m in ring.messages.items() if not is_gone(m)}

    def doubt_all(self) -> None:
        """Events were lost: every channel's newest messages must be read again."""
        for ring in self._rings.values():
            ring.vouches = False

    def _drop_quiet(self) -> None:
        """Where no turn ran for long, nobody is listened to; the rings stand in order of use."""
        now = self._clock.now()
        while self._rings:
            channel, ring = next(iter(self._rings.items()))
            if now - ring.used_at < self._active:
                return
            del self._rings[channel]

    def _note_change(self, message: MessageId, text: str | None) -> None:
        """Remember an edit or deletion: older copies of the message may still be on their way."""
        self._changed[message] = text
        while len(self._changed) > _REMEMBERED_CHANGES:
            self._changed.popitem(last=False)

    def _add(self, ring: _Ring, messages: Iterable[IncomingMessage], *, trims: bool = True) -> None:
        for message in messages:
            current = self.as_it_stands(message)
            if current is not None and self._may_keep(current):
                ring.messages[message.id] = current
        in_order = sorted(ring.messages.values(), key=lambda m: m.id)
        kept = in_order[-self._size :] if trims else in_order
        ring.messages = {message.id: message for message in kept}

    def _may_keep(self, message: IncomingMessage) -> bool:
        level = self._levels.of(message.author.id, message.place.guild_key)
        return not message.is_system and bool(message.text) and level is not PrivacyLevel.FULL

"""One turn at a time in a channel: first come, first served, bounded."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.background import TaskOwner
from bot.identifiers import ChannelId, MessageId
from bot.turn.messages import IncomingMessage, TurnRequest

Admission = Literal["taken", "busy", "closed"]


class _Waiting:
    """A turn that waits, and what its author adds meanwhile."""

    def __init__(self, request: TurnRequest) -> None:
        self.request = request
        self._own_turns = {request.message.id: request}

    def join(self, message: IncomingMessage, own_turn: TurnRequest | None) -> None:
        self.request = replace(self.request, joined=(*self.request.joined, message))
        if own_turn is not None:
            self._own_turns[message.id] = own_turn

    def edit(self, message: MessageId, text: str) -> None:
        def edited(one: IncomingMessage) -> IncomingMessage:
            return replace(one, text=text) if one.id == message else one

        first, *joined = map(edited, self.request.messages)
        self.request = replace(self.request, message=first, joined=tuple(joined))

    def take_out(self, is_gone: Callable[[IncomingMessage], bool]) -> bool:
        """Whether a turn is left: where its message is gone, the next that is for us starts it."""
        left = [message for message in self.request.messages if not is_gone(message)]
        for place, message in enumerate(left):
            own_turn = self._own_turns.get(message.id)
            if own_turn is not None:
                joined = tuple(left[place + 1 :])
                self.request = replace(own_turn, message=message, joined=joined)
                return True
        return False


@dataclass(slots=True)
class _Line:
    """The turns of one channel: at most one runs, the others wait."""

    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    running: TurnRequest | None = None
    turn: asyncio.Task[object] | None = None


class TurnQueue:
    """Runs turns. `run` must not raise for anything but cancellation."""

    def __init__(
        self,
        run: Callable[[TurnRequest], Awaitable[object]],
        *,
        limit: int,
        joined_limit: int,
    ) -> None:
        self._run = run
        self._limit = limit
        self._joined_limit = joined_limit
        self._lines: dict[ChannelId, _Line] = {}
        self._tasks = TaskOwner()
        self._closed = False

    def submit(self, request: TurnRequest) -> Admission:
        """Take a turn on; "busy": too many wait in its channel; "closed": we are ending."""
        channel = request.message.place.channel_id
        line = self._lines.get(channel)
        waiting = _Waiting(request)
        if self._closed:
            return "closed"
        if line is None:
            line = self._lines[channel] = _Line()
            line.waiting.append(waiting)
            self._tasks.spawn(f"turns-{channel}", self._serve(channel, line))
            return "taken"
        about_to_run = line.running is None
        if len(line.waiting) - about_to_run >= self._limit:
            return "busy"
        line.waiting.append(waiting)
        return "taken"

    def join(self, message: IncomingMessage, own_turn: TurnRequest | None) -> bool:
        """Let a message join its author's newest waiting turn; False where none has room.

        `own_turn`: the turn that the message starts by itself, where it is for us.
        """
        line = self._lines.get(message.place.channel_id)
        for waiting in reversed(line.waiting if line is not None else ()):
            if waiting.request.message.author.id == message.author.id:
                if len(waiting.request.joined) >= self._joined_limit:
                    return False
                waiting.join(message, own_turn)
                return True
        return False

    def edit_message(self, message: MessageId, text: str) -> None:
        """A waiting turn answers what the message says now."""
        for line in self._lines.values():
            for waiting in line.waiting:
                waiting.edit(message, text)

    def cancel_message(self, message: MessageId) -> None:
        """A message is gone: its turn ends, or never begins.

        Where others joined a waiting turn, the first of them that is for us starts it. A message
        that joined the running turn leaves its prompt where that is not made yet
        (`read_context`); a reply that is being written goes on.
        """
        self.cancel_where(lambda one: one.id == message)

    def cancel_where(self, is_gone: Callable[[IncomingMessage], bool]) -> None:
        """Every turn whose message is gone or unwanted now ends, or never begins."""
        for line in self._lines.values():
            line.waiting = deque(one for one in line.waiting if one.take_out(is_gone))
            if line.running is not None and is_gone(line.running.message) and line.turn:
                line.turn.cancel()

    def cancel_channel(self, channel: ChannelId) -> bool:
        """End the turn that runs in a channel; False where none does."""
        line = self._lines.get(channel)
        if line is None or line.turn is None:
            return False
        return line.turn.cancel()

    async def close(self, *, grace_s: float, cancel_s: float) -> None:
        """Take nothing more on; wait for what runs, then cancel it."""
        self._closed = True
        for line in self._lines.values():
            line.waiting.clear()
        await self._tasks.close(grace_s=grace_s, cancel_s=cancel_s)

    async def _serve(self, channel: ChannelId, line: _Line) -> None:
        try:
            while line.waiting:
                line.running = line.waiting.popleft().request
                line.turn = asyncio.ensure_future(self._run(line.running))
                try:
                    await asyncio.wait({line.turn})
                finally:
                    if not line.turn.done():  # we are being cancelled: so is the turn
                        line.turn.cancel()
                        await asyncio.wait({line.turn})
                    line.running = line.turn = None
        finally:
            del self._lines[channel]

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


@dataclass(slots=True)
class _Line:
    """The turns of one channel: at most one runs, the others wait."""

    waiting: deque[TurnRequest] = field(default_factory=deque[TurnRequest])
    running: TurnRequest | None = None
    turn: asyncio.Task[object] | None = None


class TurnQueue:
    """Runs turns. `run` must not raise for anything but cancellation."""

    def __init__(self, run: Callable[[TurnRequest], Awaitable[object]], *, limit: int) -> None:
        self._run = run
        self._limit = limit
        self._lines: dict[ChannelId, _Line] = {}
        self._tasks = TaskOwner()
        self._closed = False

    def submit(self, request: TurnRequest) -> Admission:
        """Take a turn on; "busy": too many wait in its channel; "closed": we are ending."""
        channel = request.message.place.channel_id
        line = self._lines.get(channel)
        if self._closed:
            return "closed"
        if line is None:
            line = self._lines[channel] = _Line()
            line.waiting.append(request)
            self._tasks.spawn(f"turns-{channel}", self._serve(channel, line))
            return "taken"
        about_to_run = line.running is None
        if len(line.waiting) - about_to_run >= self._limit:
            return "busy"
        line.waiting.append(request)
        return "taken"

    def join(self, message: IncomingMessage) -> bool:
        """Let a message join its author's waiting turn; False where none of theirs waits."""
        line = self._lines.get(message.place.channel_id)
        if line is None:
            return False
        for position, request in enumerate(line.waiting):
            if request.message.author.id == message.author.id:
                joined = (*request.joined, message)
                line.waiting[position] = replace(request, joined=joined)
                return True
        return False

    def edit_message(self, message: MessageId, text: str) -> None:
        """A waiting turn answers what the message says now."""
        for line in self._lines.values():
            line.waiting = deque(_edited(request, message, text) for request in line.waiting)

    def cancel_message(self, message: MessageId) -> None:
        """The message that started a turn is gone: its turn ends, or never begins."""
        for line in self._lines.values():
            line.waiting = deque(
                replace(r, joined=tuple(m for m in r.joined if m.id != message))
                for r in line.waiting
                if r.message.id != message
            )
            running = line.running
            if running is not None and running.message.id == message and line.turn is not None:
                line.turn.cancel()

    def cancel_where(self, is_unwanted: Callable[[IncomingMessage], bool]) -> None:
        """Every turn whose message is unwanted now ends, or never begins."""
        for line in self._lines.values():
            line.waiting = deque(r for r in line.waiting if not is_unwanted(r.message))
            if line.running is not None and is_unwanted(line.running.message) and line.turn:
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
                line.running = line.waiting.popleft()
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


def _edited(request: TurnRequest, message: MessageId, text: str) -> TurnRequest:
    def edit(one: IncomingMessage) -> IncomingMessage:
        return replace(one, text=text) if one.id == message else one

    return replace(request, message=edit(request.message), joined=tuple(map(edit, request.joined)))

"""What tests ask of the loopback Discord: the calls that came in, and what the bot said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.fakes.discord.interacting import InteractingWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.discord.calls import Call
    from tests.fakes.discord.records import Channel, Message
    from tests.fakes.waiting import T

TOO_MANY_REQUESTS = 429


class WatchedWorld(InteractingWorld):
    """`calls` holds every REST request; `bot_typed_in` the channels where the bot was typing."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.bot_typed_in: list[Channel] = []

    async def wait_for(
        self,
        predicate: Callable[[], T | None],
        *,
        timeout: float = 20.0,  # noqa: ASYNC109
        what: str | Callable[[], str] = "",
    ) -> T:
        """The first truthy value of a predicate, asked after every change and every 20 ms."""
        return await self.changes.wait_for(predicate, timeout=timeout, what=what)

    async def next_call(
        self,
        method: str,
        pattern: str,
        *,
        timeout: float = 20.0,  # noqa: ASYNC109
    ) -> Call:
        """The oldest answered request that matches and that no earlier `next_call` gave."""
        matches = re.compile(pattern)

        def oldest() -> Call | None:
            return next(
                (
                    call
                    for call in self.calls
                    if not call.claimed
                    and call.status
                    and call.method == method
                    and matches.search(call.path)
                ),
                None,
            )

        call = await self.wait_for(
            oldest, timeout=timeout, what=lambda: f"for {method} {pattern}; {self._last_calls()}"
        )
        call.claimed = True
        return call

    def calls_to(self, method: str, pattern: str) -> list[Call]:
        """Every request so far that matches, answered or not."""
        return [one for one in self.calls if one.method == method and re.search(pattern, one.path)]

    @property
    def rate_limited(self) -> list[Call]:
        """The requests that were answered with 429."""
        return [call for call in self.calls if call.status == TOO_MANY_REQUESTS]

    async def wait_for_reply(
        self,
        channel: Channel,
        *,
        after: Message | None = None,
        containing: str = "",
        timeout: float = 20.0,  # noqa: ASYNC109
    ) -> Message:
        """The bot's first message after another one, once its text has what is looked for.

        The bot may still be editing it: name the text's end in `containing` to wait for the whole.
        """

        def found() -> Message | None:
            return next(
                (
                    message
                    for message in self.bot_messages(channel)
                    if (after is None or message.id > after.id) and containing in message.content
                ),
                None,
            )

        return await self.wait_for(
            found,
            timeout=timeout,
            what=lambda: f"for a reply with {containing!r}; {self._last_calls()}",
        )

    def _last_calls(self) -> str:
        return "the last calls: " + (", ".join(str(call) for call in self.calls[-8:]) or "none")

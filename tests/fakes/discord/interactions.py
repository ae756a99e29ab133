"""An interaction from both sides: what the person did, and how the application answered."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from tests.fakes.discord.message_rules import all_components
from tests.fakes.discord.records import JsonObject, Message

if TYPE_CHECKING:
    from tests.fakes.discord.records import Channel, User
    from tests.fakes.waiting import Changes

ANSWER_WITHIN_SECONDS = 3.0
TOKEN_LIVES_SECONDS = 15 * 60.0


class InteractionKind(IntEnum):
    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL_SUBMIT = 5


class ResponseKind(IntEnum):
    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    AUTOCOMPLETE = 8
    MODAL = 9


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Interaction:
    """`original` is the message that `@original` names; `followups` are those sent later.

    `source` is the message whose component was used.
    """

    id: int
    token: str
    kind: InteractionKind
    user: User
    channel: Channel
    payload: JsonObject
    changes: Changes
    source: Message | None = None
    user_installed: bool = False
    response_kind: ResponseKind | None = None
    response: JsonObject | None = None
    original: Message | None = None
    followups: list[Message] = field(default_factory=list)
    started_at: float = field(default_factory=time.monotonic)

    def __repr__(self) -> str:
        return f"<{self.kind.name} of {self.user.name}, answered: {self.response_kind}>"

    # --- time

    @property
    def age(self) -> float:
        """Seconds since the person acted."""
        return time.monotonic() - self.started_at

    def grow_older(self, seconds: float) -> None:
        """Pretend that it began earlier: no test has to wait for 3 seconds or 15 minutes."""
        self.started_at -= seconds

    @property
    def is_too_old_to_answer(self) -> bool:
        return self.age > ANSWER_WITHIN_SECONDS

    @property
    def has_expired(self) -> bool:
        return self.age > TOKEN_LIVES_SECONDS

    # --- the answer

    @property
    def acknowledged(self) -> bool:
        return self.response_kind is not None

    @property
    def messages(self) -> list[Message]:
        """Everything sent as an answer that is there to read, in order; no placeholder."""
        sent = [self.original] if self.original else []
        return [one for one in [*sent, *self.followups] if not one.is_loading and not one.deleted]

    async def answered(self, *, timeout: float = 20.0) -> ResponseKind:  # noqa: ASYNC109
        """How it was first answered, once it was."""
        return await self.changes.wait_for(
            lambda: self.response_kind, timeout=timeout, what=f"for an answer to {self!r}"
        )

    async def reply(
        self,
        *,
        containing: str = "",
        timeout: float = 20.0,  # noqa: ASYNC109
    ) -> Message:
        """The first message of the answer that has the text; a placeholder does not count."""
        return await self.changes.wait_for(
            lambda: next((one for one in self.messages if containing in one.content), None),
            timeout=timeout,
            what=f"for a message with {containing!r} in answer to {self!r}",
        )

    async def choices(self, *, timeout: float = 20.0) -> list[JsonObject]:  # noqa: ASYNC109
        """The names and values that an autocomplete offered."""
        await self.answered(timeout=timeout)
        if self.response_kind is not ResponseKind.AUTOCOMPLETE or self.response is None:
            raise AssertionError(f"{self!r} is no autocomplete")
        return self.response["choices"]

    async def modal(self, *, timeout: float = 20.0) -> JsonObject:  # noqa: ASYNC109
        """The form that was opened."""
        await self.answered(timeout=timeout)
        if self.response_kind is not ResponseKind.MODAL or self.response is None:
            raise AssertionError(f"{self!r} opened no modal")
        return self.response


def find_component(components: list[JsonObject], name: str) -> JsonObject | None:
    """The component with a custom id, label or placeholder."""
    return next(
        (
            one
            for one in all_components(components)
            if name in (one.get("custom_id"), one.get("label"), one.get("placeholder"))
        ),
        None,
    )

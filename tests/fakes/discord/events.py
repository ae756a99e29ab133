"""What is published to the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.discord.records import Channel, Guild, JsonObject, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to dispatch: `data`, or the message it is about (read as each session may)."""

    name: str
    data: JsonObject | None = None
    message: Message | None = None
    guild: Guild | None = None
    channel: Channel | None = None
    user_id: int | None = None

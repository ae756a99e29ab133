"""The rows of `turns`: what was taken on, what became of it, which messages answered."""

import json
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from bot.clock import Clock, to_ms
from bot.errors import StorageUnavailable
from bot.identifiers import LineageId, MessageId, OriginId, TurnId, UserId
from bot.llm.chat import Usage
from bot.storage.database import Database
from bot.storage.statements import Snapshot, Transaction

log = logging.getLogger(__name__)

Ending = Literal["done", "failed"]


async def take_turn(
    tx: Transaction,
    origin: OriginId,
    message: MessageId,
    lineage: LineageId,
    user: UserId,
    now: datetime,
) -> TurnId | None:
    """Record that a message is being answered; None where it was taken before, by whomever."""
    taken = await tx.execute(
        "INSERT INTO turns (origin_id, message_id, lineage_id, user_id, state, started_at)"
        " VALUES (?, ?, ?, ?, 'taken', ?) ON CONFLICT DO NOTHING",
        (origin, message, lineage, user, to_ms(now)),
    )
    if not taken:
        return None
    return TurnId(
        await tx.fetch_int(
            "SELECT id FROM turns WHERE origin_id = ? AND message_id = ? AND lineage_id = ?",
            (origin, message, lineage),
        )
    )


async def mark_replying(database: Database, turn: TurnId) -> None:
    """Record that text of the reply stands, unless the turn has ended meanwhile.

    Where it cannot be written it is let go: the turn's end says more.
    """

    async def job(tx: Transaction) -> None:
        await tx.execute(
            "UPDATE turns SET state = 'replying' WHERE id = ? AND state = 'taken'", (turn,)
        )

    try:
        await database.write(job)
    except StorageUnavailable as unavailable:
        log.info("replying_not_marked", extra={"reason": unavailable.reason})


async def end_turn(
    tx: Transaction,
    turn: TurnId,
    ending: Ending,
    replies: Sequence[MessageId],
    now: datetime,
    *,
    usage: Usage | None = None,
    model: str | None = None,
    failure: str | None = None,
) -> bool:
    """Record how a turn ended and which messages stand for it; False where it had ended before."""
    usage = usage or Usage()
    ended = await tx.execute(
        "UPDATE turns SET state = ?, ended_at = ?, model = ?, failure = ?,"
        " prompt_tokens = ?, completion_tokens = ?"
        " WHERE id = ? AND state IN ('taken', 'replying')",
        (
            *(ending, to_ms(now), model, failure),
            *(usage.prompt_tokens, usage.completion_tokens, turn),
        ),
    )
    if not ended:
        return False
    await tx.execute_many(
        "INSERT INTO turn_replies (message_id, turn_id, position) VALUES (?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(message, turn, position) for position, message in enumerate(replies)],
    )
    return True


async def fail_taken(tx: Transaction, message: MessageId, now: datetime) -> None:
    """Close the turn of a message, if one was taken and nothing came of it."""
    await tx.execute(
        "UPDATE turns SET state = 'failed', failure = 'cancelled', ended_at = ?"
        " WHERE message_id = ? AND state = 'taken'",
        (to_ms(now), message),
    )


async def active_lineages(
    db: Snapshot, origin: OriginId, now: datetime, active: timedelta
) -> tuple[LineageId, ...]:
    """The lineages that took a turn in a room lately: they all hear what is said there."""
    rows = await db.fetch_all(
        "SELECT DISTINCT lineage_id FROM turns WHERE origin_id = ? AND started_at > ?",
        (origin, to_ms(now - active)),
    )
    return tuple(LineageId(row["lineage_id"]) for row in rows)


async def known_replies(db: Snapshot, messages: Sequence[MessageId]) -> frozenset[MessageId]:
    """Those of `messages` that answered a turn."""
    if not messages:
        return frozenset()
    rows = await db.fetch_all(
        "SELECT message_id FROM turn_replies"
        f" WHERE message_id IN ({','.join('?' * len(messages))})",
        messages,
    )
    return frozenset(MessageId(row["message_id"]) for row in rows)


async def replies_in_parts(
    db: Snapshot, messages: Iterable[MessageId]
) -> dict[MessageId, list[MessageId]]:
    """All messages of those replies that have several, by the first one, if among `messages`."""
    rows = await db.fetch_all(
        "SELECT first.message_id AS first, part.message_id AS part FROM turn_replies AS first"
        " JOIN turn_replies AS part ON part.turn_id = first.turn_id AND part.position > 0"
        " WHERE first.position = 0 AND first.message_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(messages)),),
    )
    parts: dict[MessageId, list[MessageId]] = {}
    for row in rows:
        parts.setdefault(MessageId(row["first"]), []).append(MessageId(row["part"]))
    return parts


class TurnRows:
    """Looks at and mends turns outside of a turn."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def fail_unfinished(self) -> int:
        """Close the turns that the last process left open; none of them is answered again."""
        now = to_ms(self._clock.now())

        async def job(tx: Transaction) -> int:
            return await tx.execute(
                "UPDATE turns SET state = 'failed', failure = 'interrupted', ended_at = ?"
                " WHERE state IN ('taken', 'replying')",
                (now,),
            )

        return await self._database.write(job)

    async def is_reply(self, message: MessageId) -> bool:
        """Whether a message is one of ours that answered a turn."""
        row = await self._database.fetch_one(
            "SELECT 1 FROM turn_replies WHERE message_id = ?", (message,)
        )
        return row is not None

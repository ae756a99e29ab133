"""How it stands with the working memory of a room, for those who look after it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.audience import DIRECT_MESSAGES, Audience
from bot.clock import from_ms, to_ms
from bot.config import HandoffConfig
from bot.handoff.engine import HandoffEngine
from bot.handoff.look import Look
from bot.handoff.runs import Outcome, back_off
from bot.handoff.trigger import TriggerReport, unpinned
from bot.handoff.watermark import partition_buffer
from bot.identifiers import LineageId, RunId
from bot.llm.routing import Route
from bot.memory.buffers import Buffer, BufferKey
from bot.memory.ledger import open_matters
from bot.memory.retelling import count_episodes
from bot.memory.transcript import View, section_tokens
from bot.storage.database import Database
from bot.storage.statements import Row, Snapshot

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The newest run of a room, and when it ended or was undone."""

    outcome: Outcome
    ended_at: datetime
    is_undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfRuns:
    """Runs of the last 24 hours in a server; in a direct message those of that one alone.

    `tokens` were used for them since midnight UTC; None in a direct message, where they are not
    told apart by person.
    """

    committed: int
    aborted: int
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is found in one room.

    `section` and `section_limit`: tokens of working memory as it is rendered; a limit of 0 is none.
    `old_enough`: entries behind the watermark. `hidden`: entries that the last prompt had no room
    for. `retry_at`: not before then is a run made again after failures.
    """

    entries: int
    pinned: int
    section: int
    section_limit: int
    report: TriggerReport
    old_enough: int
    hidden: int
    matters: int
    episodes: int
    failures: int
    retry_at: datetime | None
    last_run: LastRun | None
    day: DayOfRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What one state of the file says."""

    entries: int
    pinned: int
    matters: int
    episodes: int
    last_run: LastRun | None
    day: DayOfRuns


async def read_health(
    audience: Audience,
    lineage: LineageId,
    *,
    engine: HandoffEngine,
    database: Database,
    chat: Route,
    config: HandoffConfig,
) -> Health | None:
    """How it stands with the room where the audience stands; None where nothing was said yet."""
    look = await engine.look(BufferKey(origin=audience.here, lineage=lineage))
    if look is None:
        return None
    now, buffer = look.scenery.now, look.buffer
    counted = await database.read(lambda db: _count(db, audience, buffer, now))
    fresh = timedelta(minutes=config.fresh_min)
    partition = partition_buffer(look.entries, now, config.keep_entries, fresh=fresh)
    return Health(
        entries=counted.entries,
        pinned=counted.pinned,
        section=_section(look, chat.ratio),
        section_limit=_section_limit(look, chat.window, config),
        report=look.report,
        old_enough=len(partition.candidates),
        hidden=buffer.hidden,
        matters=counted.matters,
        episodes=counted.episodes,
        failures=buffer.failures,
        retry_at=_retry_at(look, config),
        last_run=counted.last_run,
        day=counted.day,
    )


def _section(look: Look, ratio: float) -> int:
    scenery = look.scenery
    view = View(persona=look.persona.id, roster=scenery.roster, now=scenery.now, zone=scenery.zone)
    return section_tokens(unpinned(look.entries), view, ratio)


def _section_limit(look: Look, window: int, config: HandoffConfig) -> int:
    """The ceiling, or what the last prompt had space for where that was less."""
    ceiling = int(round(window * config.ceiling_fraction, 6))
    return min(filter(None, (ceiling, look.space)), default=0)


def _retry_at(look: Look, config: HandoffConfig) -> datetime | None:
    buffer = look.buffer
    if buffer.failed_at is None:
        return None
    return buffer.failed_at + back_off(look.report.trigger, buffer.failures, config)


async def _count(db: Snapshot, audience: Audience, buffer: Buffer, now: datetime) -> _Counted:
    origin, lineage = buffer.key.origin, buffer.key.lineage
    entries = await db.fetch_one(
        "SELECT count(*) AS entries, coalesce(sum(pinned), 0) AS pinned FROM buffer_entries"
        " WHERE origin_id = ? AND lineage_id = ?",
        (origin, lineage),
    )
    run = await db.fetch_one(
        "SELECT * FROM handoff_runs WHERE origin_id = ? AND lineage_id = ?"
        " ORDER BY started_at DESC LIMIT 1",
        (origin, lineage),
    )
    return _Counted(
        entries=entries["entries"] if entries else 0,
        pinned=entries["pinned"] if entries else 0,
        matters=len(await open_matters(db, origin, lineage)),
        episodes=await count_episodes(db, audience, lineage),
        last_run=_last_run(run) if run else None,
        day=await _day(db, buffer, now),
    )


async def _day(db: Snapshot, buffer: Buffer, now: datetime) -> DayOfRuns:
    direct = buffer.guild == DIRECT_MESSAGES
    rows = await db.fetch_all(
        "SELECT r.state, count(*) AS runs FROM handoff_runs AS r"
        " JOIN origins AS o ON o.id = r.origin_id"
        " WHERE o.guild_id = ?1 AND (?2 IS NULL OR o.id = ?2) AND r.ended_at > ?3"
        " GROUP BY r.state",
        (buffer.guild, buffer.key.origin if direct else None, to_ms(now - _DAY)),
    )
    runs = {row["state"]: row["runs"] for row in rows}
    tokens = await db.fetch_int(
        "SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) FROM usage"
        " WHERE day = ? AND guild_id = ? AND task = 'handoff'",
        (now.date().isoformat(), buffer.guild),
    )
    return DayOfRuns(
        committed=runs.get("committed", 0),
        aborted=runs.get("aborted", 0),
        tokens=None if direct else tokens,
    )


def _last_run(row: Row) -> LastRun:
    return LastRun(
        outcome=Outcome(
            run=RunId(row["id"]),
            episodes=row["episodes"],
            promoted=row["promoted"],
            forgotten=row["forgotten"],
            pinned=row["pinned"],
            failure=row["failure"],
        ),
        ended_at=from_ms(row["ended_at"]),
        is_undone=row["state"] == "undone",
    )

"""Short-term memory: the last turns of a conversation, and what the model noted about it.

The cache is the memory; only summary and category text also have a row, so that they outlive it.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.audience import Audience, Origin
from bot.clock import Clock
from bot.config import MemoryConfig
from bot.errors import Unavailable
from bot.identifiers import LineageId, MessageId, OriginId, UserId
from bot.memory.short_term_rows import ShortTermChange, ShortTermRows, ShortTermText
from bot.memory.working import Entry
from bot.privacy.levels import Levels, PrivacyLevel

_Key = tuple[OriginId, LineageId]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermEntry:
    """What is remembered of one conversation; `turns` are its last messages, oldest first."""

    origin: OriginId
    captured_at: datetime
    turns: tuple[Entry, ...] = ()
    text: ShortTermText | None = None
    turns_since_refresh: int = 0

    @property
    def summary(self) -> str:
        """The summary, or nothing."""
        return self.text.summary if self.text else ""


class ShortTermMemory:
    """Owns the cache and keeps the rows in step with it."""

    def __init__(
        self, rows: ShortTermRows, levels: Levels, clock: Clock, config: MemoryConfig
    ) -> None:
        self._rows = rows
        self._levels = levels
        self._clock = clock
        self._config = config
        self._entries: OrderedDict[_Key, ShortTermEntry] = OrderedDict()

    def store(
        self, origin: Origin, lineage: LineageId, turns: Sequence[Entry], triggered_by: UserId
    ) -> bool:
        """Keep the last messages of a conversation; False where the person's level forbids it."""
        if self._is_full(triggered_by, origin):
            return False
        kept = [
            turn for turn in turns if turn.author is None or not self._is_full(turn.author, origin)
        ]
        before = self._live((origin.id, lineage))
        self._put(
            lineage,
            ShortTermEntry(
                origin=origin.id,
                captured_at=self._clock.now(),
                turns=tuple(kept[-self._config.stm_messages :]),
                text=before.text if before else None,
                turns_since_refresh=(before.turns_since_refresh if before else 0) + 1,
            ),
        )
        return True

    async def of_room(self, audience: Audience, lineage: LineageId) -> ShortTermEntry | None:
        """What is remembered of the room where the audience stands, read back if need be."""
        key = (audience.here, lineage)
        live = self._live(key)
        if live is not None and live.text is not None:
            return live
        text = await self._rows.read(audience.here, lineage)
        live = self._live(key)  # a capture or an update may have come while the row was read
        if text is None or (live is not None and live.text is not None):
            return live
        entry = live or ShortTermEntry(origin=audience.here, captured_at=self._clock.now())
        entry = replace(entry, text=text)
        self._put(lineage, entry)
        return entry

    def of_other_rooms(
        self, audience: Audience, lineage: LineageId, most: int
    ) -> tuple[ShortTermEntry, ...]:
        """The newest conversations elsewhere that this audience may hear, newest first.

        What the model noted is told elsewhere for a day only; what a person wrote, longer.
        """
        others = [
            self._as_told_elsewhere(entry)
            for origin in audience.heard - {audience.here}
            if (entry := self._live((origin, lineage))) is not None
        ]
        return tuple(sorted(others, key=lambda e: e.captured_at, reverse=True)[:most])

    async def update(
        self,
        origin: Origin,
        lineage: LineageId,
        *,
        summary: str | None,
        categories: Mapping[str, str],
    ) -> None:
        """Change the live entry in place, then its row.

        Raises StorageUnavailable where the row could not be written; the fields just written are
        then put back where they are still the ones written.
        """
        now = self._clock.now()
        here = Audience(here=origin.id, heard=frozenset({origin.id}))
        before = await self.of_room(here, lineage)
        before = before or ShortTermEntry(origin=origin.id, captured_at=now)
        old = before.text or ShortTermText(written_at=now)
        change = ShortTermChange(
            summary=summary, categories=categories, written_by=None, written_at=now
        )
        written = change.of(old)
        self._put(lineage, replace(before, text=written, turns_since_refresh=0))
        try:
            await self._rows.write(origin, lineage, change)
        except Unavailable:
            live = self._live((origin.id, lineage))
            if live is not None and live.text is not None:
                turns = before.turns_since_refresh + live.turns_since_refresh
                text = _put_back(live.text, written, old)
                self._put(lineage, replace(live, text=text, turns_since_refresh=turns))
            raise

    def forget_messages(self, messages: Sequence[MessageId]) -> None:
        """Take deleted messages out of every conversation."""
        gone = set(messages)
        self._rewrite(lambda turn: None if turn.message_id in gone else turn)

    def forget_author(self, author: UserId) -> None:
        """Take everything a person said out of every conversation."""
        self._rewrite(lambda turn: None if turn.author == author else turn)

    def edit_message(self, message: MessageId, content: str) -> None:
        """Bring a message up to its new text in every conversation."""
        self._rewrite(
            lambda turn: replace(turn, content=content) if turn.message_id == message else turn
        )

    def sweep(self) -> None:
        """Drop what has outlived its time."""
        for key in list(self._entries):
            self._live(key)

    def _rewrite(self, change: Callable[[Entry], Entry | None]) -> None:
        for key, entry in list(self._entries.items()):
            turns = tuple(new for turn in entry.turns if (new := change(turn)) is not None)
            if turns != entry.turns:
                self._entries[key] = replace(entry, turns=turns)

    def _is_full(self, user: UserId, origin: Origin) -> bool:
        return self._levels.of(user, origin.guild_id) is PrivacyLevel.FULL

    def _as_told_elsewhere(self, entry: ShortTermEntry) -> ShortTermEntry:
        if entry.text is None or entry.text.written_by is not None:
            return entry
        told_for = timedelta(hours=self._config.stm_elsewhere_hours)
        is_old = self._clock.now() - entry.text.written_at >= told_for
        return replace(entry, text=None) if is_old else entry

    def _put(self, lineage: LineageId, entry: ShortTermEntry) -> None:
        key = (entry.origin, lineage)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > self._config.stm_max_entries:
            self._entries.popitem(last=False)

    def _live(self, key: _Key) -> ShortTermEntry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        now = self._clock.now()
        kept_for = timedelta(days=self._config.stm_retention_days)
        if entry.text is not None and now - entry.text.written_at >= kept_for:
            entry = self._entries[key] = replace(entry, text=None)
        hours = (
            self._config.stm_summary_ttl_hours if entry.summary else self._config.stm_raw_ttl_hours
        )
        if now - entry.captured_at >= timedelta(hours=hours):
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry


def _put_back(live: ShortTermText, written: ShortTermText, old: ShortTermText) -> ShortTermText:
    """The live text, with what it held before in every field that is still the one written."""
    categories = dict(live.categories)
    for label in written.categories.keys() | old.categories.keys():
        if live.categories.get(label) == written.categories.get(label):
            categories[label] = old.categories.get(label, "")
    return replace(
        old if live is written else live,
        summary=old.summary if live.summary == written.summary else live.summary,
        categories={label: text for label, text in categories.items() if text},
    )


def store_short_term_memory(
    memory: ShortTermMemory,
    origin: Origin,
    lineage: LineageId,
    turns: Sequence[Entry],
    *,
    triggered_by: UserId,
) -> bool:
    """Passive capture after a turn; False where the triggering person's level is FULL."""
    return memory.store(origin, lineage, turns, triggered_by)

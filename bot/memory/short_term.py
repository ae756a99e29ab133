"""Short-term memory: the last turns of a conversation, and what the model noted about it.

The cache is the memory; only summary and category text also have a row, so that they outlive it.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.audience import DIRECT_MESSAGES, Audience, Origin
from bot.clock import Clock
from bot.config import MemoryConfig
from bot.errors import Unavailable
from bot.identifiers import GuildId, LineageId, MessageId, OriginId, UserId
from bot.memory.content import looks_like_credential
from bot.memory.refusals import MemoryRefused
from bot.memory.short_term_rows import (
    Conversation,
    ShortTermChange,
    ShortTermRows,
    ShortTermText,
)
from bot.memory.working import Entry
from bot.privacy.forgotten import ForgottenValues
from bot.privacy.levels import Levels, PrivacyLevel

_Key = tuple[OriginId, LineageId]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermEntry:
    """What is remembered of one conversation; `turns` are its last messages, oldest first."""

    origin: OriginId
    guild: GuildId
    captured_at: datetime
    turns: tuple[Entry, ...] = ()
    text: ShortTermText | None = None
    turns_since_refresh: int = 0

    @property
    def newest_at(self) -> datetime:
        """When something was last said or noted there."""
        said = [turn.said_at for turn in self.turns[-1:]]
        noted = [self.text.written_at] if self.text else []
        return max((*said, *noted), default=self.captured_at)

    @property
    def summary(self) -> str:
        """The summary, or nothing."""
        return self.text.summary if self.text else ""


class ShortTermMemory:
    """Owns the cache and keeps the rows in step with it."""

    def __init__(
        self,
        rows: ShortTermRows,
        levels: Levels,
        forgotten: ForgottenValues,
        clock: Clock,
        config: MemoryConfig,
    ) -> None:
        self._rows = rows
        self._levels = levels
        self._forgotten = forgotten
        self._clock = clock
        self._config = config
        self.version = 0
        """Rises with every deletion and edit: what was read before one is not to be stored."""
        self._entries: OrderedDict[_Key, ShortTermEntry] = OrderedDict()
        self._looked_up: set[_Key] = set()
        """Conversations of which the file holds nothing more than the cache."""

    def store(
        self, origin: Origin, lineage: LineageId, turns: Sequence[Entry], triggered_by: UserId
    ) -> bool:
        """Keep the last messages of a conversation; False where the person's level forbids it."""
        if self._levels.of(triggered_by, origin.guild_id) is PrivacyLevel.FULL:
            return False
        before = self._live((origin.id, lineage))
        known = _joined(before.turns if before else (), turns)
        kept = [turn for turn in known if not self._is_barred(turn, origin.guild_id)]
        self._put(
            lineage,
            ShortTermEntry(
                origin=origin.id,
                guild=origin.guild_id,
                captured_at=self._clock.now(),
                turns=tuple(kept[-self._config.stm_messages :]),
                text=before.text if before else None,
                turns_since_refresh=(before.turns_since_refresh if before else 0) + 1,
            ),
        )
        return True

    async def of_room(self, audience: Audience, lineage: LineageId) -> ShortTermEntry | None:
        """What is remembered of the room where the audience stands, read back if need be."""
        await self._look_up(audience, lineage)
        return self._live((audience.here, lineage))

    async def of_other_rooms(
        self, audience: Audience, lineage: LineageId, most: int
    ) -> tuple[ShortTermEntry, ...]:
        """The newest conversations elsewhere that this audience may hear, newest first.

        What the model noted is told elsewhere for a day only; what a person wrote, longer.
        """
        await self._look_up(audience, lineage)
        others = [
            told
            for origin in audience.heard - {audience.here}
            if (entry := self._live((origin, lineage))) is not None
            and ((told := self._as_told_elsewhere(entry)).turns or told.text)
        ]
        return tuple(sorted(others, key=lambda e: e.newest_at, reverse=True)[:most])

    async def _look_up(self, audience: Audience, lineage: LineageId) -> None:
        """Read back what the cache lost or never had: after a restart, or when its time was up."""
        for origin in audience.heard:
            self._live((origin, lineage))  # one whose time is up is read again
        unknown = [o for o in audience.heard if (o, lineage) not in self._looked_up]
        if not unknown:
            return
        now, version = self._clock.now(), self.version
        found = await self._rows.read(
            unknown,
            lineage,
            since=now - timedelta(hours=self._config.stm_raw_ttl_hours),
            most=self._config.stm_messages,
        )
        if version != self.version:  # something was deleted while it was read
            await self._look_up(audience, lineage)
            return
        for origin in unknown:
            key = (origin, lineage)
            if key in self._looked_up:
                continue
            self._looked_up.add(key)
            live = self._live(key)  # a capture or an update may have come while it was read
            if (stored := found.get(origin)) is not None:
                entry = self._restored(origin, stored, live, now)
                if entry.turns or entry.text:
                    self._put(lineage, entry)

    def _restored(
        self,
        origin: OriginId,
        stored: Conversation,
        live: ShortTermEntry | None,
        now: datetime,
    ) -> ShortTermEntry:
        ended = _up_to_last_reply(stored.turns)
        turns = tuple(t for t in ended if not self._is_barred(t, stored.guild))
        if live is not None:
            joined = _joined(turns, live.turns)[-self._config.stm_messages :]
            return replace(live, turns=joined, text=live.text or stored.text)
        return ShortTermEntry(
            origin=origin,
            guild=stored.guild,
            captured_at=turns[-1].said_at if turns else now,
            turns=turns,
            text=stored.text,
        )

    async def update(
        self,
        origin: Origin,
        lineage: LineageId,
        *,
        summary: str | None,
        categories: Mapping[str, str],
        labels: Collection[str] | None = None,
        written_by: UserId | None = None,
    ) -> None:
        """Change the live entry in place, then its row; `written_by` None: by the model.

        Raises StorageUnavailable where the row could not be written; the fields just written are
        then put back where they are still the ones written. MemoryRefused where a text holds a key,
        or what the server had forgotten.
        """
        for text in (summary or "", *categories.values()):
            if looks_like_credential(text):
                raise MemoryRefused("credential")
            if self._forgotten.holds(text, origin.guild_id):
                raise MemoryRefused("forgotten")
        now = self._clock.now()
        here = Audience(here=origin.id, heard=frozenset({origin.id}))
        before = await self.of_room(here, lineage)
        before = before or ShortTermEntry(origin=origin.id, guild=origin.guild_id, captured_at=now)
        old = before.text or ShortTermText(written_at=now)
        change = ShortTermChange(
            summary=summary,
            categories=categories,
            written_by=written_by,
            written_at=now,
            labels=None if labels is None else frozenset(labels),
        )
        written = change.of(old)
        refreshed = 0 if written_by is None else before.turns_since_refresh
        self._put(lineage, replace(before, text=written, turns_since_refresh=refreshed))
        known = False
        try:
            await self._rows.write(origin, lineage, change)
            known = True
        except Unavailable:
            live = self._live((origin.id, lineage))
            if live is not None and live.text is not None:
                turns = before.turns_since_refresh + live.turns_since_refresh - refreshed
                text = _put_back(live.text, written, old)
                self._put(lineage, replace(live, text=text, turns_since_refresh=turns))
            known = True
            raise
        finally:
            if not known:  # called off or broken: what the row says now is read again
                self._entries.pop((origin.id, lineage), None)
                self._looked_up.discard((origin.id, lineage))

    async def edit(
        self,
        origin: Origin,
        lineage: LineageId,
        *,
        summary: str | None = None,
        categories: Mapping[str, str] | None = None,
        by: UserId,
    ) -> None:
        """Change a note in a person's words; it stays useful for as long as its row lives.

        Raises MemoryRefused where a text is too long or holds a key, StorageUnavailable as above.
        """
        categories = categories or {}
        limit = self._config.stm_max_characters
        for text in (summary or "", *categories.values()):
            if len(text) > limit:
                raise MemoryRefused("too_long", limit=limit, length=len(text))
        await self.update(origin, lineage, summary=summary, categories=categories, written_by=by)

    def forget_messages(self, messages: Sequence[MessageId]) -> None:
        """Take deleted messages out of every conversation."""
        gone = set(messages)
        self._rewrite(lambda turn: None if turn.message_id in gone else turn)

    def forget_author(self, author: UserId, guild: GuildId) -> None:
        """Take everything a person said out of the conversations of a server, or of all (0)."""
        self._rewrite(
            lambda turn: None if turn.author == author else turn,
            within=None if guild == DIRECT_MESSAGES else guild,
        )

    def edit_message(self, message: MessageId, content: str) -> None:
        """Bring a message up to its new text in every conversation."""
        self._rewrite(
            lambda turn: replace(turn, content=content) if turn.message_id == message else turn
        )

    def forget_all(self) -> None:
        """Forget what is cached, all of it: the rows have changed beneath it."""
        self.version += 1
        self._entries.clear()
        self._looked_up.clear()

    def sweep(self) -> None:
        """Drop what has outlived its time."""
        for key in list(self._entries):
            self._live(key)

    def _rewrite(
        self, change: Callable[[Entry], Entry | None], within: GuildId | None = None
    ) -> None:
        self.version += 1
        for key, entry in list(self._entries.items()):
            if within is not None and entry.guild != within:
                continue
            turns = tuple(new for turn in entry.turns if (new := change(turn)) is not None)
            if turns != entry.turns:
                self._entries[key] = replace(entry, turns=turns)

    def _is_barred(self, turn: Entry, guild: GuildId) -> bool:
        """Whether its author is remembered nowhere."""
        return turn.author is not None and (
            self._levels.of(turn.author, guild) is PrivacyLevel.FULL
        )

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
            evicted, _ = self._entries.popitem(last=False)
            self._looked_up.discard(evicted)
        if len(self._looked_up) > 2 * self._config.stm_max_entries:  # most of them hold nothing
            self._looked_up.intersection_update(self._entries)

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
            self._looked_up.discard(key)
            return None
        self._entries.move_to_end(key)
        return entry


def _up_to_last_reply(turns: Sequence[Entry]) -> Sequence[Entry]:
    """What is said after the last reply belongs to a turn that is under way, or was called off."""
    replies = [place for place, turn in enumerate(turns, 1) if turn.persona is not None]
    return turns[: replies[-1]] if replies else ()


def _joined(before: Sequence[Entry], turns: Sequence[Entry]) -> tuple[Entry, ...]:
    """What was said before and now, in order of time; a message that is in both as it is now.

    A handoff takes entries out of working memory that were said a moment ago.
    """
    known = {turn.message_id or turn.id: turn for turn in (*before, *turns)}
    return tuple(sorted(known.values(), key=lambda turn: (turn.said_at, turn.id)))


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

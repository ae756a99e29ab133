"""Open matters by hand: what a person keeps in sight, or closes, without a model."""

from collections.abc import Callable, Sequence

from bot.clock import Clock
from bot.errors import UserError
from bot.handoff.commit import Commit, commit_job
from bot.handoff.look import Look, Watch
from bot.handoff.material import Material
from bot.handoff.runs import Run
from bot.handoff.selection import DraftEpisode, Selection
from bot.handoff.trigger import TriggerReason, TriggerReport
from bot.identifiers import LedgerId, UserId
from bot.memory.buffers import BufferKey
from bot.memory.content import is_blank, looks_like_credential
from bot.memory.ledger import Matter
from bot.memory.refusals import MemoryRefused
from bot.memory.working import Entry
from bot.privacy.levels import Levels, PrivacyLevel
from bot.storage.database import Database

MOST_LINES = 12
LONGEST_MATTER = 300
_IMPORTANCE = 6
_BY_HAND = TriggerReport(trigger="voluntary", reason=TriggerReason.REQUESTED)


class ByHand:
    """Makes the same commit as a handoff does, with a person's choice in the place of a model's."""

    def __init__(self, watch: Watch, database: Database, levels: Levels, clock: Clock) -> None:
        self._watch = watch
        self._database = database
        self._levels = levels
        self._clock = clock

    async def pin(self, key: BufferKey, text: str, newest: Sequence[Entry]) -> None:
        """Open a matter told in these words, which keeps the entries in working memory.

        Raises UserError where there is nothing to pin or it changed meanwhile, MemoryRefused where
        the words are no good.
        """
        text = " ".join(text.split())
        if is_blank(text):
            raise MemoryRefused("blank")
        if len(text) > LONGEST_MATTER:
            raise MemoryRefused("too_long", limit=LONGEST_MATTER, length=len(text))
        if looks_like_credential(text):
            raise MemoryRefused("credential")
        look = await self._look(key)
        entries = tuple(entry for entry in newest if not entry.pinned)[-MOST_LINES:]
        if not entries:
            raise UserError("errors.pin.nothing")
        episode = DraftEpisode(
            content=look.scenery.roster.hide(text),
            quotes=(),
            importance=_IMPORTANCE,
            sources=entries,
            people=frozenset(entry.author for entry in entries if entry.author is not None),
            retain=True,
        )
        selection = Selection(episodes=(episode,), resolved=())
        material = Material.of(entries, (), (), look.scenery)
        await self._commit(look, material, entries, selection)

    async def close(self, key: BufferKey, matter: LedgerId) -> Matter:
        """Close a matter: its entries leave working memory, its episode stays.

        Raises UserError where there is none of that number, or it changed meanwhile.
        """
        look = await self._look(key)
        found = next((one for one in look.matters if one.id == matter), None)
        if found is None:
            raise UserError("errors.pin.unknown", id=matter)
        held = [entry for entry in look.entries if entry.id in found.entries]
        material = Material.of((), held, (found,), look.scenery)
        await self._commit(look, material, held, Selection(episodes=(), resolved=(found,)))
        return found

    async def _look(self, key: BufferKey) -> Look:
        look = await self._watch.look(key, requested=True)
        if look is None:
            raise UserError("errors.pin.nothing")
        return look

    async def _commit(
        self, look: Look, material: Material, entries: Sequence[Entry], selection: Selection
    ) -> None:
        now = self._clock.now()
        run = Run.over(look.buffer.key, entries, _BY_HAND, now)
        outcome = await self._database.write(
            commit_job(
                Commit(
                    run=run,
                    material=material,
                    looked_at=entries,
                    selection=selection,
                    vectors=None,
                    model=None,
                    is_barred=self._bars(look),
                    now=now,
                )
            )
        )
        done = outcome is not None and (outcome.episodes or selection.resolved)
        if not done:
            raise UserError("errors.pin.changed")

    def _bars(self, look: Look) -> Callable[[UserId], bool]:
        return lambda user: self._levels.of(user, look.buffer.guild) is PrivacyLevel.FULL

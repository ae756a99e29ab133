"""Open matters and episodes as people read them: what happened and when, with what was said."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.audience import Audience
from bot.clock import naturalize_time
from bot.i18n import t
from bot.identifiers import GLOBAL_LINEAGE, LineageId, PersonaId, UserId
from bot.memory.ledger import Ledger, Quote
from bot.memory.references import show_names
from bot.storage.database import Database
from bot.storage.statements import Snapshot

MOST_TOLD = 10
"""Episodes that are told at once: the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For whom it is told: how people are named to them, as of when, in which zone and language.

    `persona` and `persona_name`: whose own words are hers.
    """

    name_of: Callable[[UserId], str]
    persona: PersonaId
    persona_name: str
    now: datetime
    zone: ZoneInfo
    locale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """A line for each open matter, oldest first, and for each of the newest episodes, in order.

    `more`: episodes that are heard here and not among them.
    """

    matters: tuple[str, ...]
    episodes: tuple[str, ...]
    more: int


async def retell(
    ledger: Ledger, database: Database, audience: Audience, lineage: LineageId, reader: Reader
) -> Retold:
    """What happened, as far as it is heard where the audience stands."""
    matters = await ledger.open_matters(audience, lineage)
    heard = await ledger.episodes(audience, lineage)
    known = await database.read(lambda db: count_episodes(db, audience, lineage))
    quotes = {episode.id: episode.quotes for episode in heard}
    still_open = {matter.id for matter in matters}
    newest = [episode for episode in heard if episode.id not in still_open][-MOST_TOLD:]
    return Retold(
        matters=tuple(
            _line(matter.content, matter.happened_from, quotes.get(matter.id, ()), reader)
            for matter in matters
        ),
        episodes=tuple(
            _line(episode.content, episode.happened_until, episode.quotes, reader)
            for episode in newest
        ),
        more=max(0, known - len(matters) - len(newest)),
    )


async def count_episodes(db: Snapshot, audience: Audience, lineage: LineageId) -> int:
    """How many episodes are heard where the audience stands, open matters among them."""
    return await db.fetch_int(
        "SELECT count(*) FROM ledger_entries WHERE lineage_id IN (?, ?)"
        " AND origin_id IN (SELECT value FROM json_each(?))",
        (lineage, GLOBAL_LINEAGE, json.dumps(audience.ids)),
    )


def _line(content: str, when: datetime, quotes: Sequence[Quote], reader: Reader) -> str:
    age = naturalize_time(reader.now, when, reader.zone, reader.locale)
    text = show_names(content, reader.name_of)
    said = (
        t(
            "ui.memory.quote",
            reader.locale,
            text=show_names(quote.content, reader.name_of),
            person=_speaker(quote, reader),
        )
        for quote in quotes
    )
    return " ".join((t("ui.memory.episode", reader.locale, text=text, age=age), *said))


def _speaker(quote: Quote, reader: Reader) -> str:
    if quote.said_by is not None:
        return reader.name_of(quote.said_by)
    is_own = quote.persona == reader.persona
    return reader.persona_name if is_own else t("people.someone", reader.locale)

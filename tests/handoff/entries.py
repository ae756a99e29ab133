"""What a handoff works on, made by hand: entries, matters, and the room they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.handoff.material import Material, Scenery
from bot.identifiers import EntryId, LedgerId, MessageId, PersonaId, UserId
from bot.memory.ledger import Matter
from bot.memory.roster import Roster
from bot.memory.working import Entry, EntryKind

NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
"""A Wednesday."""
ANN, BEN, CARL = UserId(101), UserId(102), UserId(103)
PERSONA, OTHER_PERSONA = PersonaId(7), PersonaId(8)
ROSTER = Roster.of(
    [(ANN, "Ann"), (BEN, "Ben"), (CARL, "Carl")], own_names=("Madeleine",), someone="someone"
)
SCENERY = Scenery(name="Madeleine", roster=ROSTER, zone=ZoneInfo("UTC"), now=NOW, persona=PERSONA)


def entry(
    number: int,
    text: str = "tea",
    *,
    author: UserId | None = ANN,
    persona: PersonaId | None = None,
    ago: timedelta = timedelta(0),
    scene: int = 0,
    kind: EntryKind = EntryKind.DIALOGUE,
    pinned: bool = False,
    version: int = 1,
) -> Entry:
    """What was said so long ago; without an author, by the persona."""
    return Entry(
        id=EntryId(number),
        kind=kind,
        author=author,
        persona=persona or (PERSONA if author is None else None),
        content=text,
        message_id=MessageId(1000 + number),
        said_at=NOW - ago,
        scene=scene,
        pinned=pinned,
        version=version,
        tokens=1,
    )


def entries(
    count: int, *, ago: timedelta = timedelta(0), scene: int = 0, first: int = 1
) -> list[Entry]:
    """So many lines, all of them that old."""
    return [entry(first + number, ago=ago, scene=scene) for number in range(count)]


def lines(*texts: str) -> list[Entry]:
    """Lines of Ann and Ben in turn, a minute apart, since two hours ago."""
    return [
        entry(
            number,
            text,
            author=ANN if number % 2 else BEN,
            ago=timedelta(hours=2) - timedelta(minutes=number),
        )
        for number, text in enumerate(texts, 1)
    ]


def matter(
    number: int,
    text: str = "Ann owes {p:102} money.",
    *,
    ago: timedelta = timedelta(days=1),
    held: Sequence[int] = (),
) -> Matter:
    return Matter(
        id=LedgerId(number),
        content=text,
        happened_from=NOW - ago,
        entries=tuple(map(EntryId, held)),
    )


def material(
    candidates: Sequence[Entry],
    *,
    noted: Sequence[Entry] = (),
    matters: Sequence[Matter] = (),
    scenery: Scenery = SCENERY,
) -> Material:
    return Material.of(candidates, noted, matters, scenery)

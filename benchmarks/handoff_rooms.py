"""The rooms that `benchmarks.handoff` plays: who says what when, and which turns that makes."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

PEOPLE = ("Ann", "Ben", "Carl", "Dora", "Emil")
SCENE_SILENCE = timedelta(minutes=45)
START = datetime.fromisoformat("2026-03-04T21:00:00+00:00")
"""A Wednesday evening."""
REPLIES_AFTER = timedelta(seconds=2)

_THINGS = (
    *("the garden", "the old bridge", "her sister", "the train to Lyon", "the second chapter"),
    *("a green bicycle", "the choir", "the leaking roof", "his exam", "the chess club"),
    *("the birthday cake", "our server", "the broken boiler", "that film", "the harvest"),
)
_SAID = (
    *("I keep thinking about {} today.", "Did anybody hear more of {}?", "Well, {} again!"),
    *("We should do something about {} before Friday, or it will be too late for all of us.",),
    *("No idea.", "Let me tell you how it went with {}, you will not believe it."),
    *("{} was better than I thought, but {} is another matter.", "haha yes, {}", "And {}?"),
)
_LONG_EVERY, _LONG_PARTS = 50, 20
"""One line in so many is a long one, made of so many sentences: some 900 characters."""
_FEWEST = 2
"""Lines of a turn: the one that starts it, and the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something said; `by` is the number of a person, None where it is the persona's reply."""

    at: datetime
    by: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """`at` says how long after the start the line with a number is said.

    `conversation`: how many lines there are between two silences, where there are silences.
    """

    name: str
    about: str
    at: Callable[[int], timedelta]
    quiet_hours: str | None = None
    conversation: int | None = None

    def turns(self, entries: int, *, most: int, seed: int = 1) -> list[list[Line]]:
        """So many lines (two or more), by the turns they belong to; each ends with the reply.

        Where there are conversations, only whole ones, one at least. A turn has two lines up to
        `most`, or one more before a silence: none goes past it. The same seed gives the same lines.
        """
        dice = random.Random(seed)
        if self.conversation:
            entries = self.conversation * self.conversations(entries)
        times = [START + self.at(number) for number in range(entries)]
        return [_turn(part, dice) for part in _parts(times, most, dice)]

    def conversations(self, entries: int) -> int:
        """How many of them are played for so many entries."""
        return max(1, entries // self.conversation) if self.conversation else 0


def _parts(
    times: Sequence[datetime], most: int, dice: random.Random
) -> Iterator[Sequence[datetime]]:
    begin = 0
    while begin < len(times):
        size = dice.randint(_FEWEST, most)
        left = _before_silence(times[begin : begin + size + _FEWEST])
        if left < size + _FEWEST:  # not enough for another turn
            size = left
        yield times[begin : begin + size]
        begin += size


def _before_silence(times: Sequence[datetime]) -> int:
    """How many lines there are until a silence, or in all."""
    silences = (n for n in range(1, len(times)) if times[n] - times[n - 1] >= SCENE_SILENCE)
    return next(silences, len(times))


def _turn(times: Sequence[datetime], dice: random.Random) -> list[Line]:
    said = [Line(at=at, by=dice.randrange(len(PEOPLE)), text=_text(dice)) for at in times[:-1]]
    replied_at = min(times[-1], times[-2] + REPLIES_AFTER)
    return [*said, Line(at=replied_at, by=None, text=_text(dice))]


def _text(dice: random.Random) -> str:
    parts = _LONG_PARTS if dice.randrange(_LONG_EVERY) == 0 else 1
    return " ".join(
        dice.choice(_SAID).format(dice.choice(_THINGS), dice.choice(_THINGS)) for _ in range(parts)
    )


def _evenly(gap: timedelta) -> Callable[[int], timedelta]:
    return lambda number: gap * number


def _in_stretches(lines: int, gap: timedelta, period: timedelta) -> Callable[[int], timedelta]:
    """So many lines one after the other, and again after every period."""
    return lambda number: period * (number // lines) + gap * (number % lines)


_CONVERSATION, _EVENING = 30, 160
_GAP, _NIGHT_GAP = timedelta(seconds=40), timedelta(seconds=90)

ROOMS = (
    Room(name="busy", about="3 s apart", at=_evenly(timedelta(seconds=3))),
    Room(name="steady", about="60 s apart", at=_evenly(timedelta(seconds=60))),
    Room(name="slow", about="10 min apart", at=_evenly(timedelta(minutes=10))),
    Room(
        name="conversations",
        about="30 lines 40 s apart, then 3 h of silence",
        at=_in_stretches(_CONVERSATION, _GAP, _GAP * (_CONVERSATION - 1) + timedelta(hours=3)),
        conversation=_CONVERSATION,
    ),
    Room(
        name="night",
        about="90 s apart from 21:00 to 01:00, quiet hours 23:00-07:00",
        at=_in_stretches(_EVENING, _NIGHT_GAP, timedelta(days=1)),
        quiet_hours="23:00-07:00",
    ),
)

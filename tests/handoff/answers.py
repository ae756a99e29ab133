"""Answers of any shape to whatever a run shows, for tests that play at random."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes import ModelRequest, Reply
from tests.handoff.room import chunk, result, shown_lines

CHUNKS = 3


@dataclass(frozen=True)
class Answer:
    """What the model does with each line in turn: into which chunk (CHUNKS: it is left out).

    `retains` and `goes_on` by chunk: is it kept open, and with which matter does it go on (1 is the
    first; 0 is none). `settles`: matters that are resolved.
    """

    places: Sequence[int]
    retains: Sequence[bool]
    goes_on: Sequence[int]
    settles: frozenset[int]

    def to(self, request: ModelRequest) -> Reply:
        """This answer for the lines and matters that are shown; every line is of a tomato."""
        lines = list(shown_lines(request).items())
        matters = re.findall(r"^(P[0-9]+) ", request.last_user, re.MULTILINE)
        places = [self.places[number % len(self.places)] for number in range(len(lines))]
        chunks: list[dict[str, object]] = []
        for number, (retain, goes_on) in enumerate(zip(self.retains, self.goes_on, strict=True)):
            taken = [line for line, place in zip(lines, places, strict=True) if place == number]
            matter = matters[goes_on - 1 : goes_on] if goes_on else []
            if taken or matter:
                words = [word for _, text in taken[:1] for word in text.split()]
                told = " ".join(("They spoke of a tomato:", *reversed(words)))  # no copy
                handles = (*matter, *(handle for handle, _ in taken))
                chunks.append(chunk(*handles, content=told, retain=retain))
        return result(*chunks, resolved=[f"P{number}" for number in sorted(self.settles)])

"""What a handoff run shows the model: entries, people and open matters under short handles."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from zoneinfo import ZoneInfo

from bot.clock import naturalize_time
from bot.handoff.answer import answer_schema
from bot.i18n import DEFAULT_LOCALE
from bot.identifiers import EntryId, PersonaId
from bot.llm.chat import ChatMessage, JsonSchema
from bot.llm.tokens import estimate_tokens
from bot.memory.ledger import Matter
from bot.memory.quoting import quoted, shortened, spoken, without_hidden_signs
from bot.memory.roster import Roster
from bot.memory.working import Entry, EntryKind
from bot.prompts import prompt

LONGEST_ENTRY = 2_000
"""Characters that are shown of one entry; the middle of a longer one is left out."""
LONGEST_KNOWN = 500
"""Characters that are shown of what the ledger holds already: a matter, or a line of it."""
HANDLE = re.compile(r"[EP](?<![A-Za-z0-9_][EP])[1-9][0-9]{0,5}(?![A-Za-z0-9_])")
"""What stands for an entry or a matter between a prompt and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenery:
    """How the lines of one room are shown: under which names, in whose time zone, and when.

    `name` is the persona's. `persona` tells her lines from those of other personas; None: all are
    hers.
    """

    name: str
    roster: Roster
    zone: ZoneInfo
    now: datetime
    persona: PersonaId | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody's name."""
        return (*(participant.name for participant in self.roster.participants), self.name)

    def speaker(self, entry: Entry) -> str:
        """The name of who said an entry."""
        if entry.author is not None:
            return self.roster.name(entry.author)
        is_own = self.persona is None or entry.persona == self.persona
        return self.name if is_own else self.roster.someone


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What one run works on. `noted`: pinned entries that are candidates again, by their matter.

    `texts`: the entries as the model reads them.
    """

    entries: Mapping[str, Entry]
    matters: Mapping[str, Matter]
    noted: Mapping[EntryId, Matter]
    texts: Mapping[EntryId, str]
    scenery: Scenery

    @classmethod
    def of(
        cls,
        candidates: Sequence[Entry],
        noted: Sequence[Entry],
        matters: Sequence[Matter],
        scenery: Scenery,
    ) -> "Material":
        """Handles for entries in order of time, and for matters; nobody used them as words.

        A pinned entry that no matter holds any more is like any other candidate.
        """
        by_entry = {entry: matter for matter in matters for entry in matter.entries}
        entries = sorted((*candidates, *noted), key=lambda entry: (entry.said_at, entry.id))
        said = (*scenery.names, *(told.content for told in (*entries, *matters)))
        used = {word for text in said for word in HANDLE.findall(text)}
        known = {entry.id: by_entry[entry.id] for entry in noted if entry.id in by_entry}
        lengths = dict.fromkeys(known, LONGEST_KNOWN)
        texts = {
            entry.id: shown_text(entry, scenery.roster, lengths.get(entry.id, LONGEST_ENTRY))
            for entry in entries
        }
        return cls(
            entries=dict(zip(_handles("E", used), entries, strict=False)),
            matters=dict(zip(_handles("P", used), matters, strict=False)),
            noted=known,
            texts=texts,
            scenery=scenery,
        )

    @property
    def new_entries(self) -> tuple[Entry, ...]:
        """The candidates that are in no episode yet."""
        return tuple(entry for entry in self.entries.values() if entry.id not in self.noted)

    def shown(self, entry: Entry) -> str:
        """An entry's text as the model reads it."""
        return self.texts[entry.id]

    def messages(self, *, example: bool = False) -> tuple[ChatMessage, ...]:
        """The prompt of the run; `example`: with one for a small model, which learns by copying."""
        blocks = (self._people(), self._matters(), prompt("handoff.lines"), *self._lines())
        return (
            ChatMessage(role="system", content=prompt("handoff.rules", name=self.scenery.name)),
            *(_example() if example else ()),
            ChatMessage(role="user", content="\n".join(filter(None, blocks))),
        )

    def schema(self) -> JsonSchema:
        """The schema of the answer, with the handles of this run."""
        people = (participant.handle for participant in self.scenery.roster.participants)
        return answer_schema(self.entries, self.matters, people)

    def _people(self) -> str:
        people = [f"{p.handle} {p.name}" for p in self.scenery.roster.participants]
        return prompt("handoff.people", people=", ".join(people)) if people else ""

    def _matters(self) -> str:
        if not self.matters:
            return ""
        lines = (
            f"{handle} ({self._age(matter)}): {self._told(matter)}"
            for handle, matter in self.matters.items()
        )
        return "\n".join((prompt("handoff.matters"), *lines))

    def _age(self, matter: Matter) -> str:
        now, zone = self.scenery.now, self.scenery.zone
        return naturalize_time(now, matter.happened_from, zone, DEFAULT_LOCALE)

    def _told(self, matter: Matter) -> str:
        return quoted(_shortened(self.scenery.roster.show(matter.content), LONGEST_KNOWN))

    def _lines(self) -> Iterable[str]:
        day = ""
        for handle, entry in self.entries.items():
            local = entry.said_at.astimezone(self.scenery.zone)
            date = f"[{local:%A} {local.day} {local:%B %Y}]"
            if date != day:
                yield date
                day = date
            yield f"{handle} {local:%H:%M} {self._speaker(entry)}: {self.shown(entry)}"

    def _speaker(self, entry: Entry) -> str:
        marks = [entry.kind.value] if entry.kind is not EntryKind.DIALOGUE else []
        marks += [prompt("handoff.noted")] if entry.id in self.noted else []
        name = self.scenery.speaker(entry)
        return f"{name} ({', '.join(marks)})" if marks else name


def _example() -> tuple[ChatMessage, ChatMessage]:
    return (
        ChatMessage(role="user", content=prompt("handoff.example.lines")),
        ChatMessage(role="assistant", content=prompt("handoff.example.answer")),
    )


def shown_text(entry: Entry, roster: Roster, most: int = LONGEST_ENTRY) -> str:
    """An entry's text with names, at most `most` characters of it."""
    return spoken(_shortened(roster.show(entry.content), most))


def one_line(text: str) -> str:
    """The text on one line, without signs that nobody sees."""
    return " ".join(without_hidden_signs(" ".join(text.split())).split())


def oldest_that_fit(
    candidates: Sequence[Entry], roster: Roster, *, tokens: int, most: int, ratio: float
) -> tuple[Entry, ...]:
    """The oldest candidates that one run can take, at least one.

    Where some have to wait, the run ends with a scene, if it holds a whole one.
    """
    taken, left = 0, tokens
    for entry in candidates[:most]:
        left -= estimate_tokens(shown_text(entry, roster), ratio) + _FRAME
        if left < 0:
            break
        taken += 1
    taken = max(1, taken)
    if taken < len(candidates):
        following = candidates[taken].scene
        ends = (n for n in range(taken, 0, -1) if candidates[n - 1].scene != following)
        taken = next(ends, taken)
    return tuple(candidates[:taken])


_FRAME = 14
"""Tokens of a line's handle, time and speaker."""


def _shortened(text: str, most: int) -> str:
    return shortened(text, most, f" {prompt('blocks.shortened')} ")


def _handles(letter: str, used: set[str]) -> Iterator[str]:
    return (handle for number in count(1) if (handle := f"{letter}{number}") not in used)

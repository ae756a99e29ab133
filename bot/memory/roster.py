"""The people of one turn, under names and handles that are theirs alone while it lasts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from rapidfuzz import fuzz, process

from bot.identifiers import UserId
from bot.memory.everyday import is_everyday, is_written_as_word
from bot.memory.quoting import without_hidden_signs
from bot.memory.references import hide_names, holds_word, show_names

HANDLE = re.compile(r"U(?<![A-Za-z0-9_]U)[1-9][0-9]{0,5}(?![A-Za-z0-9_])")
"""What stands for a person between a prompt and its answer.

The letter stands first: where a look back did, a full prompt took 28 times as long to search.
"""

_JOINER = "\u200d"
_FEWEST_COMMON = 60
"""How alike a name must be to be proposed, out of 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMatching:
    """When a misspelt name still means somebody: likeness of 100, and by how much the nearest."""

    similarity: int = 90
    margin: int = 5
    candidates: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """Somebody in the turn: `handle` (U1) for the model, `name` unique among the participants."""

    user: UserId
    handle: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """A name that could be several people, or nobody; `candidates` are the nearest (at most 3)."""

    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Who takes part, in a fixed order; made anew for every turn.

    `also_known` names those who are only spoken of; they cannot be a target. `at_hand`: whose name
    means them without an @ although it is written as any word ("bob", "rain").
    """

    participants: tuple[Participant, ...]
    own_names: frozenset[str]
    someone: str
    also_known: Mapping[UserId, str] = field(default_factory=dict[UserId, str])
    at_hand: frozenset[UserId] = frozenset()
    matching: NameMatching = field(default_factory=NameMatching)
    _by_user: Mapping[UserId, Participant] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_user", {p.user: p for p in self.participants})

    @classmethod
    def of(
        cls,
        people: Iterable[tuple[UserId, str]],
        *,
        own_names: Iterable[str],
        someone: str,
        also_known: Mapping[UserId, str] | None = None,
        matching: NameMatching | None = None,
    ) -> "Roster":
        """The roster of these people.

        A display name that is taken gets a number ("Ann", "Ann (2)"); taken are all handles, the
        word for somebody unknown, and the bot's own names, which are left to the bot itself.
        """
        known = dict(people)
        handles = {user: f"U{number}" for number, user in enumerate(known, start=1)}
        own = frozenset(own_names)
        taken = {word.casefold() for word in (*handles.values(), *own, someone)}
        participants: list[Participant] = []
        for user, handle in handles.items():
            shown = _one_line(known[user])
            name = _unique(shown, taken) if shown else handle
            taken.add(name.casefold())
            participants.append(Participant(user=user, handle=handle, name=name))
        spoken_of: dict[UserId, str] = {}
        taken -= {name.casefold() for name in own}
        for user, shown in (also_known or {}).items():
            if plain := _one_line(shown):
                spoken_of[user] = _unique(plain, taken)
                taken.add(spoken_of[user].casefold())
        return cls(
            participants=tuple(participants),
            own_names=own,
            someone=someone,
            also_known=spoken_of,
            matching=matching or NameMatching(),
        )

    def with_free_handles(self, texts: Iterable[str]) -> "Roster":
        """The roster with handles that nobody used as a word in these texts: "U2" may be a band."""
        used = {word for text in texts for word in HANDLE.findall(text)}
        free = (handle for number in count(1) if (handle := f"U{number}") not in used)
        participants = tuple(replace(p, handle=next(free)) for p in self.participants)
        return replace(self, participants=participants)

    def with_at_hand(self, users: Iterable[UserId], talk: Iterable[str]) -> "Roster":
        """The roster of a turn that these people have a part in, given what was said.

        A name in small letters may be a word of the talk. It means the person where they speak or
        are mentioned now and nobody used it as a word; else only as @name, which is how it is
        shown. A person not recognised costs little; one put into the middle of another's memory
        alters what was said.
        """
        texts = tuple(talk)
        names = {user: self.name(user) for user in users if user in self}
        at_hand = frozenset(
            user
            for user, name in names.items()
            if is_written_as_word(name)
            and not is_everyday(name)
            and not any(holds_word(text, name) for text in texts)
        )
        return replace(self, at_hand=at_hand)

    def __contains__(self, user: UserId) -> bool:
        return user in self._by_user

    def name(self, user: UserId) -> str:
        """The person's name in this turn, or the word for somebody unknown or erased."""
        participant = self._by_user.get(user)
        return participant.name if participant else self.also_known.get(user, self.someone)

    def show(self, text: str) -> str:
        """A stored text with names in the place of references.

        A name that would read as a word gets an @, so that `hide` finds it again.
        """
        return show_names(text, self._name_in_text)

    def hide(self, text: str) -> str:
        """A text of the model as it is stored: names and handles become references.

        It is shown no references, so that what looks like one is none.
        """
        names: dict[str, UserId] = {}
        for user, name in self.also_known.items():
            if not self.is_own_name(name):
                names |= dict.fromkeys(self._spellings(user, name), user)
        for participant in self.participants:
            names |= dict.fromkeys(
                self._spellings(participant.user, participant.name), participant.user
            )
            names[participant.handle] = participant.user
        return hide_names(text.replace("{p:", "{p :"), names)

    def _spellings(self, user: UserId, name: str) -> Iterator[str]:
        """How a name must be written to mean the person."""
        as_word = is_written_as_word(name)
        if as_word:
            yield f"@{name}"
        if not as_word or user in self.at_hand:
            yield name

    def _name_in_text(self, user: UserId) -> str:
        name = self.name(user)
        is_known = user in self or user in self.also_known
        marked = is_known and is_written_as_word(name) and not self.is_own_name(name)
        return f"@{name}" if marked else name

    def is_own_name(self, name: str) -> bool:
        """Whether the name means the bot itself."""
        return name.strip().casefold() in {own.casefold() for own in self.own_names}

    def find(self, target: str) -> UserId | Ambiguous:
        """Who is meant: a handle, else a name exactly, else the name that is clearly nearest."""
        whole = target.strip().casefold()
        wanted = whole.removeprefix("@")
        called = {p.name.casefold(): p.user for p in self.participants}
        called.update({p.handle.casefold(): p.user for p in self.participants})
        exact = called.get(whole) or called.get(wanted)
        if exact is not None:
            return exact
        names = {p.name: p.name.casefold() for p in self.participants}
        ranked = process.extract(
            wanted,
            names,
            scorer=fuzz.ratio,
            limit=self.matching.candidates,
            score_cutoff=_FEWEST_COMMON,  # nobody is proposed who is called quite otherwise
        )
        clear = len(ranked) == 1 or (
            len(ranked) > 1 and ranked[0][1] - ranked[1][1] >= self.matching.margin
        )
        if ranked and ranked[0][1] >= self.matching.similarity and clear:
            return next(p.user for p in self.participants if p.name == ranked[0][2])
        return Ambiguous(candidates=tuple(str(name) for _, _, name in ranked))


def plain_name(name: str) -> str:
    """A display name on one line, without signs that only make it look like another's."""
    return " ".join(without_hidden_signs(name.replace(_JOINER, "")).split())


def _one_line(name: str) -> str:
    """A display name that neither ends its line nor reads as a speaker, reference or mention."""
    return " ".join(name.replace(":", " ").replace("<@", "< @").split()).lstrip("@ ")


def _unique(name: str, taken: set[str]) -> str:
    if name.casefold() not in taken:
        return name
    number = 2
    while f"{name} ({number})".casefold() in taken:
        number += 1
    return f"{name} ({number})"

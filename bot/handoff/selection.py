"""One structured model call: which entries become which episodes, and what is forgotten.

A model's answer is data. What it says is checked here against the lines that it was given; what
cannot be mended without guessing makes the answer invalid.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.handoff.answer import HandoffChunk, HandoffResult, handles_in
from bot.handoff.grounding import is_in_another_script, repeats_lines, shares_a_word
from bot.handoff.material import HANDLE, LONGEST_KNOWN, Material, one_line
from bot.handoff.quotes import true_quotes
from bot.identifiers import LedgerId, UserId
from bot.llm.chat import Finished
from bot.llm.routing import Route
from bot.llm.structured import MOST_PROBLEMS_TOLD, ask_structured
from bot.memory.content import is_blank, looks_like_credential
from bot.memory.ledger import Matter, Quote
from bot.memory.references import referenced_people
from bot.memory.roster import HANDLE as PERSON_HANDLE
from bot.memory.working import Entry
from bot.prompts import prompt

_IDS = r"[EP][0-9]+(?:(?:\s*[,;&/\u2013-]\s*|\s+(?:and\s+|to\s+)?)[EP][0-9]+)*"
_CITATION = re.compile(rf"^{_IDS}\s*[:.\u2013\u2014-]\s*|\s*[(\[]{_IDS}[)\]]")
_NAMED_TWICE = re.compile(r"(\{p:\d+\})\s*[(\[]\1[)\]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEpisode:
    """A checked chunk: texts as they are stored. `continues`: the open matter that it goes on with.

    `sources` are the entries that are in no episode yet.
    """

    content: str
    quotes: tuple[Quote, ...]
    importance: int
    sources: tuple[Entry, ...]
    people: frozenset[UserId]
    retain: bool
    continues: Matter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a run decided. What of the material is in no episode, is forgotten."""

    episodes: tuple[DraftEpisode, ...]
    resolved: tuple[Matter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A chunk that is yet to be checked; `content` as it would be stored."""

    number: int
    chunk: HandoffChunk
    content: str
    sources: tuple[Entry, ...]
    matter: Matter | None


async def select(
    route: Route,
    material: Material,
    *,
    max_tokens: int,
    repairs: int,
    omit_all_entries: int,
    paid: Callable[[Finished], None],
) -> Selection:
    """Have the model choose. `paid` is told of every answer, usable or not.

    More than `omit_all_entries` entries are forgotten whole only where the model says so twice.
    Raises `ModelFault("malformed")` where no answer can be used, and whatever the route raises.
    """
    selected: list[Selection] = []
    many = len(material.new_entries) > omit_all_entries
    asked_about_nothing = False

    def check(result: HandoffResult) -> None:
        nonlocal asked_about_nothing
        if many and not result.chunks and not asked_about_nothing:
            asked_about_nothing = True
            raise ValueError(prompt("handoff.problem.nothing", count=len(material.new_entries)))
        selected.append(read_result(result, material))

    await ask_structured(
        route,
        material.messages(example=route.tools_mode == "structured"),
        HandoffResult,
        schema=material.schema(),
        max_tokens=max_tokens,
        repairs=repairs,
        check=check,
        paid=paid,
    )
    return selected[-1]


def closing_surplus(selection: Selection, matters: Sequence[Matter], most: int) -> Selection:
    """The selection with the oldest of too many matters closed, whatever the model would keep.

    `matters` are all that are open, oldest first. They are in the ledger; only their pins go.
    """
    surplus = {matter.id for matter in matters[: max(0, len(matters) - most)]}
    return replace(
        selection,
        episodes=tuple(
            replace(episode, retain=False)
            if episode.continues is not None and episode.continues.id in surplus
            else episode
            for episode in selection.episodes
        ),
    )


def verbatim(material: Material) -> Selection:
    """The episode of a single line that no answer could be had about: what was said, word for word.

    A line that nothing is to be kept of is forgotten.
    """
    [entry] = material.new_entries
    text = one_line(material.shown(entry))
    if is_blank(text) or looks_like_credential(text):
        return Selection(episodes=(), resolved=())
    roster = material.scenery.roster
    told = prompt(
        "handoff.verbatim", name=material.scenery.speaker(entry), text=text[:LONGEST_KNOWN]
    )
    episode = DraftEpisode(
        content=roster.hide(told),
        quotes=(),
        importance=1,
        sources=(entry,),
        people=frozenset({entry.author} if entry.author is not None else ()),
        retain=False,
    )
    return Selection(episodes=(episode,), resolved=())


def read_result(result: HandoffResult, material: Material) -> Selection:
    """The answer as a selection. Raises ValueError with the reasons why it cannot be used."""
    claims = tuple(_claims(result, material))
    problems = [problem for claim in claims if (problem := _problem(claim, material)) is not None]
    if problems:
        raise ValueError("; ".join(problems[:MOST_PROBLEMS_TOLD]))
    settled = handles_in(result.resolved, "P")
    continued = {claim.matter.id for claim in claims if claim.matter is not None}
    return Selection(
        episodes=tuple(_draft(claim, material) for claim in claims),
        resolved=tuple(
            matter
            for handle, matter in material.matters.items()
            if handle in settled and matter.id not in continued
        ),
    )


def _claims(result: HandoffResult, material: Material) -> Iterator[_Claim]:
    """Every chunk with its entries and its matter.

    What two chunks name stays with the first; one that names nothing else is left out: its lines
    are told already.
    """
    taken: set[str] = set()
    going_on: set[LedgerId] = set()
    for number, chunk in enumerate(result.chunks, 1):
        named = handles_in(chunk.source_entry_ids, "E")
        entries = [e for handle, e in material.entries.items() if handle in named - taken]
        matters = [matter for handle, matter in material.matters.items() if handle in named]
        matters += [material.noted[e.id] for e in entries if e.id in material.noted]
        matter = next((matter for matter in matters if matter.id not in going_on), None)
        sources = tuple(entry for entry in entries if entry.id not in material.noted)
        is_told = not named.isdisjoint((*material.entries, *material.matters))
        taken |= named
        going_on |= {matter.id} if matter else set()
        if sources or matter or not is_told:
            content = _stored(chunk.content, material)
            yield _Claim(
                number=number, chunk=chunk, content=content, sources=sources, matter=matter
            )


def _stored(content: str, material: Material) -> str:
    """A summary as it is stored: one line, with references, and no ids of its lines in brackets."""
    known = material.entries.keys() | material.matters.keys()

    def without_known(cited: re.Match[str]) -> str:
        return "" if known.issuperset(HANDLE.findall(cited[0])) else cited[0]

    hidden = material.scenery.roster.hide(_CITATION.sub(without_known, one_line(content)))
    return _NAMED_TWICE.sub(r"\1", hidden)


def _problem(claim: _Claim, material: Material) -> str | None:
    """Why a chunk cannot be used."""
    roster, names = material.scenery.roster, material.scenery.names
    content, number = roster.show(claim.content), claim.number
    said = [material.shown(entry) for entry in claim.sources]
    said += [roster.show(claim.matter.content)] if claim.matter else []
    if not said:
        return prompt("handoff.problem.no_source", number=number)
    if is_blank(content):
        return prompt("handoff.problem.blank", number=number)
    if looks_like_credential(content):
        return prompt("handoff.problem.credential", number=number)
    if unknown := [one for one in _ids(content) if not any(one in t for t in (*said, *names))]:
        return prompt("handoff.problem.ids", number=number, ids=", ".join(unknown))
    if repeats_lines(content, said):
        return prompt("handoff.problem.copied", number=number)
    if is_in_another_script(content, said, but=names):
        return prompt("handoff.problem.script", number=number)
    if not shares_a_word(content, said, but=names):
        return prompt("handoff.problem.unsaid", number=number)
    return None


def _ids(text: str) -> list[str]:
    return sorted({*HANDLE.findall(text), *PERSON_HANDLE.findall(text)})


def _draft(claim: _Claim, material: Material) -> DraftEpisode:
    roster = material.scenery.roster
    known = {participant.user for participant in roster.participants}
    named = " ".join(claim.chunk.involved_entity_ids)
    texts = [claim.content, roster.hide(f"{named} {named.upper()}")]
    texts += [entry.content for entry in claim.sources]
    spoke = {entry.author for entry in claim.sources if entry.author is not None}
    spoken_of = {user for text in texts for user in referenced_people(text)}
    return DraftEpisode(
        content=claim.content,
        quotes=true_quotes(claim.chunk.quotes, claim.sources, material),
        importance=claim.chunk.importance,
        sources=claim.sources,
        people=frozenset(spoke | (spoken_of & known)),
        retain=claim.chunk.retain_in_buffer,
        continues=claim.matter,
    )

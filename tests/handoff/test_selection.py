"""One model call: what of its answer is taken, what is mended, and what is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.errors import ModelFault, ModelUnavailable
from bot.handoff.answer import HandoffResult
from bot.handoff.material import Material
from bot.handoff.selection import DraftEpisode, Selection, select
from bot.llm.chat import Finished
from bot.llm.client import ProviderSettings
from bot.llm.routing import Route, Router, RouterSettings
from bot.llm.strict_schema import strict_schema
from bot.memory.working import EntryKind
from tests.fakes.model.replies import Html, HttpError, Reply, Text
from tests.fakes.model.server import LoopbackModel
from tests.handoff.entries import ANN, BEN, CARL, entries, entry, lines, material, matter

DOG = lines("I adopted a dog on Saturday", "What is the dog called?", "Rex, he is so small")
SECRET = "ghp" + "_" + "a1B2" * 9


def chunk(content: str = "Ann adopted a dog.", **given: Any) -> dict[str, Any]:
    """A good chunk on `DOG`, but for what is given."""
    return {
        "source_entry_ids": ["E1", "E2", "E3"],
        "content": content,
        "quotes": [],
        "importance": 5,
        "involved_entity_ids": ["U1"],
        "retain_in_buffer": False,
    } | given


def answer(*chunks: dict[str, Any], **given: Any) -> str:
    return json.dumps({"chunks": chunks, "resolved": []} | given, ensure_ascii=False)


GOOD = answer(chunk())


@dataclass
class Desk:
    """Where a selection is made, with every answer that was paid for."""

    model: LoopbackModel
    route: Route
    paid: list[Finished] = field(default_factory=list[Finished])

    async def select(
        self, *answers: Reply, of: Material | None = None, repairs: int = 1
    ) -> Selection:
        self.model.queue(*answers)
        return await select(
            self.route,
            of or material(DOG),
            max_tokens=500,
            repairs=repairs,
            omit_all_entries=8,
            paid=self.paid.append,
        )

    async def episode(self, *answers: Reply, of: Material | None = None) -> DraftEpisode:
        (episode,) = (await self.select(*answers, of=of)).episodes
        return episode

    async def refusal(self, bad: str, of: Material | None = None) -> str:
        """What the model is told of an answer that it gives twice; nothing is chosen."""
        with pytest.raises(ModelFault) as caught:
            await self.select(bad, bad, of=of)
        assert caught.value.kind == "malformed"
        assert len(self.model.chats) == len(self.paid) == 2
        assert caught.value.detail in self.model.last.last_user
        return caught.value.detail


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with LoopbackModel() as model:
        provider = ProviderSettings(
            name="loopback", base_url=model.base_url, model="tiny", max_context=8192
        )

        async def no_sleep(_: float) -> None:
            return

        router = Router(RouterSettings(chat=(provider,)), clock=SystemClock(), sleep=no_sleep)
        yield Desk(model, router.handoff)
        await router.close()


# --- a good answer


async def test_a_good_answer_takes_one_call(desk: Desk) -> None:
    given = material(DOG)
    selection = await desk.select(GOOD, of=given)
    assert selection == Selection(
        episodes=(
            DraftEpisode(
                content="{p:101} adopted a dog.",
                quotes=(),
                importance=5,
                sources=tuple(DOG),
                people=frozenset((ANN, BEN)),
                retain=False,
            ),
        ),
        resolved=(),
    )
    assert len(desk.model.chats) == len(desk.paid) == 1
    sent = [(message["role"], message["content"]) for message in desk.model.last.messages]
    assert sent == [(message.role, message.content) for message in given.messages()]
    assert desk.model.last.schema == given.schema()


def test_the_schema_offers_the_handles_of_the_run_and_no_others() -> None:
    chunks = strings_of(material(DOG, matters=[matter(1)]).schema())
    assert {"E1", "E2", "E3", "P1", "U1"} <= chunks
    assert not {"E4", "P2"} & chunks


def test_without_open_matters_none_can_be_resolved() -> None:
    schema: Any = material(DOG).schema()
    assert schema["properties"]["resolved"]["maxItems"] == 0


def test_the_schema_asks_for_what_the_specification_names() -> None:
    narrow: Any = material(DOG).schema()
    whole: Any = strict_schema(HandoffResult)
    for schemas in ((narrow, whole), (narrow["properties"]["chunks"]["items"],) * 2):
        assert schemas[0]["required"] == schemas[1]["required"]
        assert list(schemas[0]["properties"]) == schemas[0]["required"]


def strings_of(node: object) -> set[str]:
    match node:
        case dict():
            return {text for value in node.values() for text in strings_of(value)}
        case list():
            return {text for value in node for text in strings_of(value)}
        case str():
            return {node}
        case _:
            return set()


async def test_a_small_model_is_shown_an_example_that_is_a_good_answer(desk: Desk) -> None:
    messages = material(DOG).messages(example=True)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert HandoffResult.model_validate_json(messages[2].content).chunks
    with pytest.raises(ModelFault):  # whoever repeats it, says what nobody said
        await desk.select(messages[2].content, messages[2].content)


async def test_a_copy_of_the_lines_is_no_summary(desk: Desk) -> None:
    copied = (
        "Ann: I adopted a dog on Saturday Ben: What is the dog called? Ann: Rex, he is so small"
    )
    assert "copy of its lines" in await desk.refusal(answer(chunk(copied)))


async def test_what_no_chunk_names_is_in_no_episode(desk: Desk) -> None:
    episode = await desk.episode(answer(chunk(source_entry_ids=["E1"], retain_in_buffer=True)))
    assert (episode.sources, episode.retain) == ((DOG[0],), True)


# --- answers that are no answer


@pytest.mark.parametrize(
    "written",
    [
        f"Here you are:\n```json\n{GOOD}\n```\nAnything else?",
        f"<think>E1 is about a dog {{so}}...</think>\n{GOOD}",
        GOOD.replace("dog.", "dog.\\ud83d"),
        answer(chunk(), thoughts="none", chunks=[chunk(mood="glad")]),
    ],
)
async def test_what_surrounds_an_answer_is_nothing(desk: Desk, written: str) -> None:
    assert (await desk.episode(Text(written))).content == "{p:101} adopted a dog."
    assert len(desk.model.chats) == 1


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "it is empty"),
        ("I would rather not.", "no JSON object"),
        (GOOD[:40], "cut off"),
        ("<html><body>502</body></html>", "no JSON object"),
        (answer(chunk(importance=0)), "chunks.0.importance"),
        (answer(chunk(importance=11)), "chunks.0.importance"),
        (answer(chunk(importance=7.5)), "chunks.0.importance"),
        (answer(chunk(importance="high")), "chunks.0.importance"),
        (answer(chunk(importance=None)), "chunks.0.importance"),
        (answer(chunk("dog " * 501)), "chunks.0.content"),
        (answer(chunk(content=None)), "chunks.0.content"),
        ('{"chunks": null}', "chunks"),
        ('{"resolved": []}', "chunks: Field required"),
        (json.dumps(chunk()), "chunks: Field required"),
        (answer(chunk(source_entry_ids=[])), "chunk 1: none of its source_entry_ids"),
        (answer(chunk(source_entry_ids=None)), "chunk 1: none of its source_entry_ids"),
        (answer(chunk(source_entry_ids=["E9", "P1", "12:04"])), "chunk 1: none of its source"),
        (answer(chunk(" \u200b ")), "chunk 1: content is empty"),
        (answer(chunk(f"The dog's key is {SECRET}.")), "chunk 1: content holds a key"),
        (answer(chunk("E1 tells of a dog.")), "chunk 1: content holds E1"),
        (answer(chunk("U9 adopted a dog.")), "chunk 1: content holds U9"),
        (answer(chunk("I'm sorry, I can't help with that.")), "chunk 1: content shares no word"),
        (answer(chunk("Ann bought a castle.")), "chunk 1: content shares no word"),
        (answer(chunk("Аня взяла собаку.")), "chunk 1: content is written in another script"),
        (answer(chunk("アンは犬を飼った。")), "chunk 1: content is written in another script"),
        (answer(chunk(), chunk("Ben sings.", source_entry_ids=["E7"])), "chunk 2: none of its"),
    ],
)
async def test_a_bad_answer_is_sent_back_once_and_then_refused(
    desk: Desk, written: str, why: str
) -> None:
    assert why in await desk.refusal(written)


@pytest.mark.parametrize(
    ("said", "invented"),
    [
        ("Мы взяли щенка", "Извините, я не могу помочь с этим."),
        ("子犬をもらったよ、うれしい", "申し訳ありませんが、お応えできません。"),
        ("我们领养了一只小狗", "抱歉，我无法处理这个请求。"),
    ],
)
async def test_a_refusal_is_no_episode_in_any_script(desk: Desk, said: str, invented: str) -> None:
    one = material([entry(1, said)])
    bad = answer(chunk(invented, source_entry_ids=["E1"]))
    assert "shares no word" in await desk.refusal(bad, of=one)


async def test_a_bad_answer_may_be_mended_by_the_second(desk: Desk) -> None:
    bad = answer(chunk("Ann bought a castle."), chunk("Ben sings.", source_entry_ids=["E9"]))
    assert (await desk.episode(bad, GOOD)).content == "{p:101} adopted a dog."
    assert len(desk.model.chats) == len(desk.paid) == 2
    assert desk.model.last.messages[-2]["content"] == bad
    for problem in ("chunk 1: content shares no word", "chunk 2: none of its source_entry_ids"):
        assert problem in desk.model.last.last_user


async def test_at_most_eight_problems_are_told(desk: Desk) -> None:
    bad = answer(*(chunk("Nothing.", source_entry_ids=["E99"]) for _ in range(30)))
    assert (await desk.refusal(bad)).count("chunk ") == 8


async def test_a_server_that_sends_a_page_is_unavailable(desk: Desk) -> None:
    with pytest.raises(ModelUnavailable):
        await desk.select(*[Html()] * 4)
    assert desk.paid == []
    assert len(desk.model.chats) + desk.model.queued == 4


async def test_a_server_that_fails_is_asked_again_and_its_answer_paid_once(desk: Desk) -> None:
    await desk.select(HttpError(500), GOOD)
    assert (len(desk.model.chats), len(desk.paid)) == (2, 1)


async def test_without_repairs_one_bad_answer_is_enough(desk: Desk) -> None:
    with pytest.raises(ModelFault):
        await desk.select("no", GOOD, repairs=0)
    assert (len(desk.model.chats), desk.model.queued) == (1, 1)


# --- nothing worth remembering


async def test_eight_entries_are_forgotten_at_a_word(desk: Desk) -> None:
    selection = await desk.select(answer(), of=material(entries(8)))
    assert selection == Selection(episodes=(), resolved=())
    assert len(desk.model.chats) == 1


async def test_nine_entries_are_forgotten_where_it_is_said_twice(desk: Desk) -> None:
    selection = await desk.select(answer(), answer(), of=material(entries(9)))
    assert selection == Selection(episodes=(), resolved=())
    assert len(desk.model.chats) == len(desk.paid) == 2
    assert "9 lines were given" in desk.model.last.last_user


async def test_asked_again_the_model_may_find_something(desk: Desk) -> None:
    tea = answer(chunk("They drink tea.", source_entry_ids=["E1"]))
    selection = await desk.select(answer(), tea, of=material(entries(9)))
    assert len(selection.episodes) == 1


@pytest.mark.parametrize("bad", ["no", answer(chunk("Ben bought a castle."))])
async def test_giving_up_after_another_fault_forgets_nothing(desk: Desk, bad: str) -> None:
    with pytest.raises(ModelFault):
        await desk.select(bad, answer(), of=material(entries(9)))
    assert len(desk.model.chats) == 2


# --- ids


@pytest.mark.parametrize(
    "ids",
    [
        ["E1", "E2", "E3"],
        ["E3", "E1", "E2", "E2"],
        ["E1", "E9", "U1", "E2", "nonsense", "E3", None, True],
        ["e1", "[E2]", '"E3"'],
        ["E1, E2, E3"],
        ["E1; E2 and E3"],
        ["E1-E3"],
        ["E1\u2013E3"],
        ["E1..3"],
        ["E3 to E1"],
        ["E01", "E02", "E03"],
        ["\uff25\uff11", "E2", "E3"],
        ["entry E1", "E2:", "(E3)"],
        [1, 2, 3],
        ["1", "2", "3"],
        ["1-3"],
        "E1, E2, E3",
        [{"id": "E1"}, {"id": "E2"}, {"id": "E3"}],
    ],
)
async def test_ids_are_understood_however_they_are_written(desk: Desk, ids: object) -> None:
    assert (await desk.episode(answer(chunk(source_entry_ids=ids)))).sources == tuple(DOG)


async def test_an_id_in_two_chunks_stays_with_the_first(desk: Desk) -> None:
    first = chunk(source_entry_ids=["E1", "E2"])
    second = chunk("The dog is called Rex.", source_entry_ids=["E2", "E3"])
    selection = await desk.select(answer(first, second))
    assert [one.sources for one in selection.episodes] == [tuple(DOG[:2]), (DOG[2],)]


async def test_a_chunk_of_which_all_is_told_already_is_left_out(desk: Desk) -> None:
    again = chunk("The dog is small.", source_entry_ids=["E3"])
    assert (await desk.episode(answer(chunk(), chunk(), again))).content == "{p:101} adopted a dog."
    assert len(desk.model.chats) == 1


# --- values


@pytest.mark.parametrize("importance", [7, "7", 7.0])
async def test_a_number_may_be_written_as_text(desk: Desk, importance: object) -> None:
    assert (await desk.episode(answer(chunk(importance=importance)))).importance == 7


@pytest.mark.parametrize("importance", [1, 10])
async def test_importance_goes_from_one_to_ten(desk: Desk, importance: int) -> None:
    assert (await desk.episode(answer(chunk(importance=importance)))).importance == importance


async def test_what_may_be_left_out_is_nothing(desk: Desk) -> None:
    bare = {"source_entry_ids": ["E1"], "content": "Ann adopted a dog.", "importance": 3}
    empty = dict.fromkeys(("quotes", "involved_entity_ids", "retain_in_buffer"))
    first, second = [await desk.episode(answer(one, resolved=None)) for one in (bare, bare | empty)]
    assert first == second
    assert (first.quotes, first.retain, first.people) == ((), False, frozenset((ANN,)))


@pytest.mark.parametrize("chunks", [chunk(), {"1": chunk()}])
async def test_chunks_may_be_an_object(desk: Desk, chunks: dict[str, Any]) -> None:
    assert await desk.episode(answer(chunks=chunks)) == await desk.episode(GOOD)


# --- content


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("Ann adopted\n a dog.\0", "{p:101} adopted a dog."),
        ("U1 adopted a dog that U2 likes.", "{p:101} adopted a dog that {p:102} likes."),
        ("Ann (U1) adopted a dog.", "{p:101} adopted a dog."),
        ("U1 (Ann) adopted a dog.", "{p:101} adopted a dog."),
        ("U1's dog is small.", "{p:101}'s dog is small."),
        ("Ann adopted a dog (E1).", "{p:101} adopted a dog."),
        ("Ann adopted a dog [E1, E2]. It is small (E3).", "{p:101} adopted a dog. It is small."),
        ("E1-E3: Ann adopted a dog.", "{p:101} adopted a dog."),
        ("Ann adopted a dog, {p:999} says.", "{p:101} adopted a dog, {p :999} says."),
        ("Madeleine likes the dog.", "Madeleine likes the dog."),
    ],
)
async def test_content_is_one_line_with_references_and_without_ids(
    desk: Desk, written: str, stored: str
) -> None:
    assert (await desk.episode(answer(chunk(written)))).content == stored


async def test_a_word_that_looks_like_an_id_stays_where_it_was_said(desk: Desk) -> None:
    expo = material([entry(1, "The E3 was loud, and U77 played")])
    told = chunk("Ann heard U77 at the E3 (E3).", source_entry_ids=["E1"])
    assert (
        await desk.episode(answer(told), of=expo)
    ).content == "{p:101} heard U77 at the E3 (E3)."


# --- people


@pytest.mark.parametrize(
    ("named", "others"),
    [
        ([], set()),
        (["U3"], {CARL}),
        (["u3", "U9", "U"], {CARL}),
        (["U1, U3"], {CARL}),
        (["Carl"], {CARL}),
        ("[U3]", {CARL}),
        (["<@999>", "{p:998}"], set()),
    ],
)
async def test_involved_are_authors_and_those_named_who_are_here(
    desk: Desk, named: object, others: set[int]
) -> None:
    episode = await desk.episode(answer(chunk(involved_entity_ids=named)))
    assert episode.people == {ANN, BEN} | others


async def test_who_is_spoken_of_is_involved(desk: Desk) -> None:
    mention = material([entry(1, "{p:103} found a dog, {p:999}")])
    told = chunk("A dog was found.", source_entry_ids=["E1"], involved_entity_ids=[])
    assert (await desk.episode(answer(told), of=mention)).people == {ANN, CARL}
    written = chunk("Carl knows the dog.", involved_entity_ids=[])
    assert (await desk.episode(answer(written))).people == {ANN, BEN, CARL}


# --- quotes


@pytest.mark.parametrize(
    ("quotes", "kept"),
    [
        (["I adopted a dog on Saturday"], ["I adopted a dog on Saturday"]),
        (["\u201ci adopted\u00a0 a dog on saturday\u201d"], ["I adopted a dog on Saturday"]),
        (["I adopted a dog on Sunday"], ["I adopted a dog on Saturday"]),
        (["I adore this animal"], []),
        ("he is so small", ["he is so small"]),
        ([{"speaker": "U1", "text": "he is so small"}, 7], ["he is so small"]),
        (None, []),
    ],
)
async def test_quotes_are_true_or_dropped(desk: Desk, quotes: object, kept: list[str]) -> None:
    episode = await desk.episode(answer(chunk(quotes=quotes)))
    assert [quote.content for quote in episode.quotes] == kept


async def test_a_quote_is_from_a_source_of_its_own_chunk(desk: Desk) -> None:
    told = chunk(source_entry_ids=["E1"], quotes=["he is so small"])
    assert (await desk.episode(answer(told))).quotes == ()


async def test_a_thought_is_never_quoted(desk: Desk) -> None:
    thought = entry(1, "the dog worries me", author=None, kind=EntryKind.THOUGHT)
    told = chunk("The dog is a worry.", source_entry_ids=["E1"], quotes=["the dog worries me"])
    assert (await desk.episode(answer(told), of=material([thought]))).quotes == ()


# --- open matters

LOAN = matter(1, "{p:101} owes {p:102} money.", held=[50])
QUARREL = matter(2, "{p:103} quarrels with {p:102}.", held=[60])
OPEN = (LOAN, QUARREL)


async def test_matters_are_named_resolved(desk: Desk) -> None:
    for written in (["P2"], ["p2", "P2", "P9", "E1"], "P2", [2], ["2"]):
        selection = await desk.select(
            answer(chunk(), resolved=written), of=material(DOG, matters=OPEN)
        )
        assert selection.resolved == (QUARREL,)


async def test_a_chunk_goes_on_with_a_matter(desk: Desk) -> None:
    told = chunk("Ann owes Ben money for the dog.", source_entry_ids=["P1", "E1"])
    episode = await desk.episode(answer(told), of=material(DOG, matters=OPEN))
    assert (episode.continues, episode.sources) == (LOAN, (DOG[0],))


async def test_a_matter_may_be_told_anew_without_a_line(desk: Desk) -> None:
    told = chunk("Ann still owes Ben money.", source_entry_ids=["P1"])
    episode = await desk.episode(answer(told), of=material(DOG, matters=OPEN))
    assert (episode.continues, episode.sources) == (LOAN, ())


async def test_a_matter_in_two_chunks_goes_on_with_the_first(desk: Desk) -> None:
    first = chunk("Ann owes Ben money for the dog.", source_entry_ids=["P1", "E1"])
    second = chunk("Ben asks for the dog's name.", source_entry_ids=["P1", "E2"])
    third = chunk("Ann owes Ben money.", source_entry_ids=["P1"])
    selection = await desk.select(answer(first, second, third), of=material(DOG, matters=OPEN))
    assert [one.continues for one in selection.episodes] == [LOAN, None]


async def test_a_matter_that_goes_on_is_not_resolved_as_well(desk: Desk) -> None:
    told = chunk("Ann owes Ben money for the dog.", source_entry_ids=["P1", "E1"])
    selection = await desk.select(
        answer(told, resolved=["P1", "P2"]), of=material(DOG, matters=OPEN)
    )
    assert selection.resolved == (QUARREL,)


async def test_a_noted_line_goes_on_with_its_matter_and_is_no_source_again(desk: Desk) -> None:
    pin = entry(50, "I will pay you back", pinned=True, ago=timedelta(days=1))
    given = material(DOG, noted=[pin], matters=OPEN)
    told = chunk("Ann owes Ben money for the dog.", source_entry_ids=["E1", "E2"])
    episode = await desk.episode(answer(told), of=given)
    assert (episode.continues, episode.sources) == (LOAN, (DOG[0],))

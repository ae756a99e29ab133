"""Who answers a task: retries, the next provider, slots, and what is learned on the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.errors import ContextTooLong, ModelUnavailable
from bot.llm.chat import (
    ChatEvent,
    ChatMessage,
    ChatRequest,
    Finished,
    Restarted,
    TextDelta,
    ToolSpec,
    Usage,
)
from bot.llm.client import ProviderSettings
from bot.llm.routing import Route, Router, RouterSettings
from bot.llm.slots import Slots
from bot.llm.tokens import estimate_prompt_tokens
from bot.llm.trial import RetrySettings
from tests.fakes.model import replies
from tests.fakes.model.replies import (
    BadJson,
    CorruptEvent,
    Cut,
    Disconnect,
    Html,
    HttpError,
    Reply,
    Reset,
    Stall,
    Text,
    ToolCalls,
    Vectors,
)
from tests.fakes.model.server import LoopbackModel

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HELLO = ChatRequest(messages=(ChatMessage(role="user", content="hello"),), max_tokens=50)
SEARCH = ToolSpec(name="search", description="Looks.", parameters={"type": "object"})


class World:
    """Two model servers, a clock that stands still, and the waits that were asked for."""

    def __init__(self, first: LoopbackModel, second: LoopbackModel) -> None:
        self.first = first
        self.second = second
        self.waits: list[float] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.routers: list[Router] = []

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()

    def provider(self, server: LoopbackModel | None = None, **settings: Any) -> ProviderSettings:
        server = server or self.first
        name = "first" if server is self.first else "second"
        given = {"name": name, "model": "tiny", "max_context": 8192, "stall_s": 0.2} | settings
        return ProviderSettings(base_url=server.base_url, **given)

    def router(
        self, *chat: ProviderSettings, retry: RetrySettings | None = None, **settings: Any
    ) -> Router:
        given = RouterSettings(chat=chat, retry=retry or RetrySettings(), **settings)
        router = Router(given, clock=self, sleep=self.sleep, jitter=lambda: 0.5)
        self.routers.append(router)
        return router

    def chat(self, *chat: ProviderSettings, retry: RetrySettings | None = None) -> Route:
        return self.router(*chat, retry=retry).chat

    def both(self, **retry: Any) -> Route:
        """A route over both servers."""
        second = self.provider(self.second)
        return self.chat(self.provider(), second, retry=RetrySettings(**retry))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with LoopbackModel() as first, LoopbackModel() as second:
        world = World(first, second)
        yield world
        for router in world.routers:
            await router.close()


async def answer_of(route: Route, request: ChatRequest = HELLO) -> list[ChatEvent]:
    async with aclosing(route.stream(request)) as events:
        return [event async for event in events]


def text_of(answer: list[ChatEvent]) -> str:
    text = ""
    for event in answer:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, Restarted):
            text = ""
    return text


def provider_of(answer: list[ChatEvent]) -> str:
    end = answer[-1]
    assert isinstance(end, Finished)
    return end.provider


# --- retries


TRANSIENT: list[Reply] = [
    HttpError(429),
    HttpError(500),
    HttpError(503),
    Reset(),
    Html(),
    BadJson(),
    Cut(),
    Disconnect(),
    CorruptEvent(),
]


@pytest.mark.parametrize("fault", TRANSIENT, ids=repr)
async def test_a_passing_fault_is_tried_again(world: World, fault: Reply) -> None:
    world.first.queue(fault, Text("tea"))
    assert text_of(await answer_of(world.both())) == "tea"
    assert len(world.first.chats) == 2
    assert not world.second.chats


@pytest.mark.parametrize("fault", TRANSIENT, ids=repr)
async def test_after_two_retries_the_next_provider_is_asked(world: World, fault: Reply) -> None:
    world.first.queue(*[fault] * 3)
    world.second.queue(Text("tea"))
    answer = await answer_of(world.both())
    assert (text_of(answer), provider_of(answer)) == ("tea", "second")
    assert len(world.first.chats) == 3


@pytest.mark.parametrize("fault", [HttpError(400), HttpError(401), HttpError(402), Stall()])
async def test_what_a_retry_cannot_mend_goes_to_the_next_provider(
    world: World, fault: Reply
) -> None:
    world.first.queue(fault)
    assert provider_of(await answer_of(world.both())) == "second"
    assert len(world.first.chats) == 1
    assert world.waits == []


async def test_a_timeout_is_tried_again(world: World) -> None:
    world.first.queue(replies.Hang(), Text("tea"))
    assert text_of(await answer_of(world.chat(world.provider(timeout_s=0.2)))) == "tea"


async def test_waits_double_and_are_spread_by_jitter(world: World) -> None:
    world.first.queue(*[HttpError(500)] * 4)
    route = world.both(retries=3, back_off_s=0.5)
    assert provider_of(await answer_of(route)) == "second"
    assert world.waits == [0.5, 1.0, 2.0]


async def test_a_retry_after_is_waited_for(world: World) -> None:
    world.first.queue(HttpError(429, retry_after=30), HttpError(429, retry_after=0.1), Text("tea"))
    assert provider_of(await answer_of(world.both())) == "first"
    assert world.waits == [30, 1.0]


async def test_a_retry_after_as_a_date_is_waited_for(world: World) -> None:
    world.first.queue(HttpError(429, retry_after=NOW + timedelta(seconds=20)))
    assert provider_of(await answer_of(world.both())) == "first"
    assert world.waits == [20]


async def test_a_retry_after_beyond_the_limit_goes_to_the_next_provider(world: World) -> None:
    world.first.queue(HttpError(429, retry_after=31))
    assert provider_of(await answer_of(world.both())) == "second"
    assert world.waits == []


@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_the_number_of_retries_is_a_setting(world: World, retries: int) -> None:
    world.first.queue(*[HttpError(500)] * (retries + 1))
    assert provider_of(await answer_of(world.both(retries=retries))) == "second"
    assert len(world.first.chats) == retries + 1


async def test_each_provider_has_its_own_retries(world: World) -> None:
    world.first.queue(*[HttpError(500)] * 3)
    world.second.queue(HttpError(500), HttpError(500), Text("tea"))
    assert text_of(await answer_of(world.both())) == "tea"


# --- text that went out already


async def test_an_answer_that_begins_anew_says_so(world: World) -> None:
    world.first.queue(Text("green tea", breaks=Cut(after=1)), Text("black tea"))
    answer = await answer_of(world.both())
    assert answer[:-1] == [
        TextDelta(text="green "),
        Restarted(),
        TextDelta(text="black "),
        TextDelta(text="tea"),
    ]


async def test_it_says_so_too_where_the_new_answer_has_no_text(world: World) -> None:
    world.first.queue(Text("green tea", breaks=Cut(after=1)), ToolCalls([("search", {})]))
    answer = await answer_of(world.both())
    assert [type(event) for event in answer] == [TextDelta, Restarted, Finished]


async def test_nothing_is_taken_back_where_nothing_went_out(world: World) -> None:
    world.first.queue(Text("green tea", breaks=Cut(after=0)), HttpError(500), Text("black"))
    assert (await answer_of(world.both()))[:-1] == [TextDelta(text="black")]


async def test_text_is_taken_back_once_for_each_time_it_went_out(world: World) -> None:
    broken = Text("green tea", breaks=Disconnect(after=1))
    world.first.queue(broken, HttpError(500), broken)
    world.second.queue(Text("black"))
    answer = await answer_of(world.both())
    assert [type(event) for event in answer[:-1]] == [
        TextDelta,
        Restarted,
        TextDelta,
        Restarted,
        TextDelta,
    ]
    assert text_of(answer) == "black"


# --- when nobody answers


async def unavailable(route: Route) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        await answer_of(route)
    return caught.value


async def test_where_everybody_fails_the_route_says_who_and_why(world: World) -> None:
    world.first.queue(HttpError(401))
    world.second.queue(*[HttpError(500)] * 3)
    assert (await unavailable(world.both())).reason == "first: auth, second: server"


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        (HttpError(500), HttpError(500), 60),
        (HttpError(429, retry_after=300), HttpError(401), 300),
        (HttpError(429, retry_after=300), HttpError(429, retry_after=90), 90),
        (HttpError(429, retry_after=300), HttpError(500), 60),
        (HttpError(401), HttpError(400), None),
    ],
)
async def test_it_says_when_to_come_back(
    world: World, first: HttpError, second: HttpError, seconds: float | None
) -> None:
    world.first.queue(first)
    world.second.queue(second)
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert (await unavailable(world.both(retries=0))).retry_at == expected


async def test_a_prompt_too_long_passes_up_at_once(world: World) -> None:
    world.first.queue(replies.ContextTooLong(prompt_tokens=9000, context=8192))
    with pytest.raises(ContextTooLong) as caught:
        await answer_of(world.both())
    assert (caught.value.limit, caught.value.asked) == (8192, 9000)
    assert len(world.first.chats) == 1
    assert not world.second.chats


async def test_what_a_server_said_is_not_logged_as_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.first.queue(HttpError(400, "cannot read 'my secret'"))
    with caplog.at_level(logging.DEBUG, "bot"):
        await answer_of(world.both())
    told = [one for one in caplog.records if one.levelno >= logging.INFO]
    assert [one.getMessage() for one in told] == ["model_request_failed"]
    assert "secret" not in str(vars(told[0]))


# --- slots


@asynccontextmanager
async def asking(*routes: Route) -> AsyncIterator[list[asyncio.Task[list[ChatEvent]]]]:
    tasks = [asyncio.create_task(answer_of(route)) for route in routes]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("slots", [1, 2])
async def test_a_server_gets_no_more_requests_at_once_than_it_has_slots(
    world: World, slots: int
) -> None:
    world.first.on(lambda _: Text("tea", delay=0.02))
    route = world.chat(world.provider(slots=slots))
    await asyncio.gather(*(answer_of(route) for _ in range(5)))
    assert world.first.most_at_once == slots


async def test_models_on_one_server_share_the_fewest_slots_named(world: World) -> None:
    world.first.on(lambda _: Text("tea", delay=0.02))
    roomy, narrow = world.provider(slots=5), world.provider(slots=2, model="other")
    router = world.router(roomy, handoff=(narrow,), embeddings=(roomy,))
    routes = [router.chat, router.handoff] * 3
    await asyncio.gather(*(answer_of(route) for route in routes))
    assert world.first.most_at_once == 2


def first_one_hangs() -> Callable[[Any], Reply | None]:
    """A rule under which the first request keeps its slot until it is given up."""
    waiting = [Text("held", breaks=Stall(after=0))]
    return lambda _: waiting.pop() if waiting else None


async def test_the_chat_goes_before_the_handoff(world: World) -> None:
    provider = world.provider(slots=1, stall_s=5)
    router = world.router(provider, handoff=(replace(provider, model="summer"),))
    world.first.on(first_one_hangs())
    async with asking(router.chat) as (holder,):
        await world.first.wait_for_requests(1)
        async with asking(router.handoff, router.chat) as waiting:
            await asyncio.sleep(0)
            holder.cancel()
            await asyncio.gather(*waiting)
    assert [request.model for request in world.first.chats] == ["tiny", "tiny", "summer"]


async def test_a_waiter_that_gives_up_does_not_keep_the_slot(world: World) -> None:
    route = world.chat(world.provider(slots=1, stall_s=5))
    world.first.on(first_one_hangs())
    async with asking(route, route, route) as (holder, quitter, last):
        await world.first.wait_for_requests(1)
        quitter.cancel()
        holder.cancel()
        assert text_of(await last) == "echo: hello"
    assert len(world.first.chats) == 2


async def test_a_waiter_that_gives_up_as_its_slot_comes_hands_it_on() -> None:
    slots = Slots(1)

    async def wait() -> None:
        async with slots.hold(0):
            pass

    async with slots.hold(0):
        quitter = asyncio.create_task(wait())
        await asyncio.sleep(0)
    quitter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await quitter
    await asyncio.wait_for(wait(), timeout=1)


async def test_a_retry_does_not_keep_the_slot_while_it_waits(world: World) -> None:
    world.first.queue(HttpError(500), Text("for the other"), Text("tea"))
    route = world.chat(world.provider(slots=1))

    async def ask_too() -> None:
        assert text_of(await answer_of(route)) == "for the other"

    world.meanwhile = ask_too
    assert text_of(await answer_of(route)) == "tea"
    assert world.waits == [0.5]


async def test_closing_the_stream_frees_the_slot(world: World) -> None:
    route = world.chat(world.provider(slots=1, stall_s=5))
    world.first.queue(Text("one two", breaks=Stall(after=1)))
    async with aclosing(route.stream(HELLO)) as events:
        assert await anext(events) == TextDelta(text="one ")
    assert text_of(await answer_of(route)) == "echo: hello"
    await world.first.wait_for(lambda: world.first.chats[0].aborted)


# --- what a route says about itself


async def test_a_route_speaks_for_its_first_provider(world: World) -> None:
    first = world.provider(max_context=4096, tools="structured")
    route = world.chat(first, world.provider(world.second))
    assert (route.task, route.window, route.tools_mode) == ("chat", 4096, "structured")
    assert route.provider == first


async def test_without_a_handoff_route_the_chats_providers_are_asked(world: World) -> None:
    router = world.router(world.provider())
    assert provider_of(await answer_of(router.handoff)) == "first"
    assert router.handoff.task == "handoff"
    assert router.embeddings is None


async def test_a_handoff_route_has_its_own_provider(world: World) -> None:
    router = world.router(world.provider(), handoff=(world.provider(world.second),))
    assert provider_of(await answer_of(router.handoff)) == "second"


@pytest.mark.parametrize(("mode", "offered"), [("native", 1), ("structured", 0), ("none", 0)])
async def test_tools_are_offered_only_where_they_are_taken(
    world: World, mode: Any, offered: int
) -> None:
    await answer_of(world.chat(world.provider(tools=mode)), replace(HELLO, tools=(SEARCH,)))
    assert len(world.first.last.tools) == offered


@pytest.mark.parametrize(
    ("usage", "cost"),
    [(Usage(prompt_tokens=1_000_000, completion_tokens=10), 150_006), (None, 0)],
)
async def test_the_cost_is_rounded_up_to_a_micro_unit(
    world: World, usage: Usage | None, cost: int
) -> None:
    route = world.chat(world.provider(input_price=150_000, output_price=550_000))
    answer = Finished(reason="stop", tool_calls=(), usage=usage, provider="first", model="tiny")
    assert route.cost(answer) == cost


async def test_the_cost_is_that_of_the_provider_that_answered(world: World) -> None:
    route = world.chat(
        world.provider(input_price=1_000_000), world.provider(world.second, input_price=2_000_000)
    )
    answer = Finished(
        reason="stop",
        tool_calls=(),
        usage=Usage(prompt_tokens=10),
        provider="second",
        model="tiny",
    )
    assert route.cost(answer) == 20


# --- how the model counts


async def test_the_ratio_is_learned_from_the_usage(world: World) -> None:
    route = world.chat(world.provider())
    estimated = estimate_prompt_tokens(HELLO, 1.0)
    world.first.queue(Text("tea", prompt_tokens=round(estimated * 1.5)))
    assert route.ratio == 1.1
    await answer_of(route)
    assert route.ratio == pytest.approx(1.18)


async def test_another_providers_usage_teaches_nothing_about_the_first(world: World) -> None:
    world.first.queue(HttpError(401))
    world.second.queue(Text("tea", prompt_tokens=1000))
    route = world.both()
    await answer_of(route)
    assert route.ratio == 1.1


async def test_a_refused_prompt_corrects_the_ratio(world: World) -> None:
    route = world.chat(world.provider())
    asked = round(estimate_prompt_tokens(HELLO, 1.0) * 1.5)
    world.first.queue(replies.ContextTooLong(prompt_tokens=asked, context=4))
    with pytest.raises(ContextTooLong):
        await answer_of(route)
    assert route.ratio == pytest.approx(1.5)


# --- embeddings


def embeddings_of(world: World, **retry: Any) -> Route:
    route = world.router(
        world.provider(),
        embeddings=(world.provider(), world.provider(world.second, model="other")),
        retry=RetrySettings(**retry),
    ).embeddings
    assert route is not None
    return route


async def test_texts_become_vectors_in_their_order(world: World) -> None:
    answer = await embeddings_of(world).embed(["green tea", "coffee", "green tea"])
    assert (answer.provider, answer.model) == ("first", "tiny")
    assert answer.vectors[0] == answer.vectors[2] != answer.vectors[1]
    assert world.first.embeddings[0].inputs == ["green tea", "coffee", "green tea"]


async def test_no_texts_need_no_request(world: World) -> None:
    assert (await embeddings_of(world).embed([])).vectors == []
    assert not world.first.requests


@pytest.mark.parametrize(
    "fault",
    [
        HttpError(500),
        BadJson(),
        Html(),
        Reset(),
        Vectors([[1.0, 0.0]]),
        Vectors([[1.0, 0.0], [1.0]]),
        Vectors([[], []]),
    ],
    ids=repr,
)
async def test_embeddings_are_tried_again_and_elsewhere(world: World, fault: Reply) -> None:
    world.first.queue(*[fault] * 2, to="embeddings")
    answer = await embeddings_of(world, retries=1).embed(["tea", "coffee"])
    assert (answer.provider, answer.model) == ("second", "other")
    assert len(world.first.embeddings) == 2


async def test_without_an_embedder_that_answers_the_route_says_so(world: World) -> None:
    world.first.queue(HttpError(401), to="embeddings")
    world.second.queue(HttpError(429, retry_after=300), to="embeddings")
    with pytest.raises(ModelUnavailable) as caught:
        await embeddings_of(world).embed(["tea"])
    assert caught.value.retry_at == NOW + timedelta(seconds=300)

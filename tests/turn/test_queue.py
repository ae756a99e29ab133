"""One turn at a time in a channel: order, bound, joining, taking back, closing."""

import asyncio
import logging
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from bot.audience import OriginKind, Place
from bot.identifiers import ChannelId, GuildId, MessageId, UserId
from bot.privacy.levels import PrivacyLevel
from bot.turn.messages import Delivery, IncomingMessage, Person, TurnRequest
from bot.turn.queue import TurnQueue
from tests.fakes import Stall, Text
from tests.talk import START, RecordedHistory, open_talk

SLOW = Text("a slow answer", breaks=Stall(after=1, seconds=30))


class Turns:
    """Turns that last until the test lets them end."""

    def __init__(self, limit: int = 10, joined_limit: int = 10) -> None:
        self.queue = TurnQueue(self._run, limit=limit, joined_limit=joined_limit)
        self.begun: list[TurnRequest] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._numbers = count(1)

    def message(self, text: str, channel: int = 1, *, by: int = 0) -> IncomingMessage:
        """A message; everybody says one, unless `by` says who it was."""
        number = next(self._numbers)
        return IncomingMessage(
            id=MessageId(number),
            place=Place(
                kind=OriginKind.CHANNEL, guild_id=GuildId(5), channel_id=ChannelId(channel)
            ),
            author=Person(id=UserId(by or 100 + number), name="Ann"),
            text=text,
            sent_at=START,
            locale="en-US",
        )

    def submit(self, text: str, channel: int = 1, *, by: int = 0) -> str:
        return self.take(self.message(text, channel, by=by))

    def take(self, message: IncomingMessage) -> str:
        return self.queue.submit(self._own_turn(message))

    def add(self, message: IncomingMessage, *, is_for_us: bool = False) -> bool:
        return self.queue.join(message, self._own_turn(message) if is_for_us else None)

    def _own_turn(self, message: IncomingMessage) -> TurnRequest:
        delivery = cast("Delivery", f"the answer to {message.text}")
        return TurnRequest(message=message, delivery=delivery, history=RecordedHistory())

    async def begins(self, text: str) -> TurnRequest:
        """The turn of a message, once it runs."""
        for _ in range(100):
            for request in self.begun:
                if request.message.text == text:
                    return request
            await asyncio.sleep(0)
        raise AssertionError(f"{text} never began")

    async def end(self, text: str) -> None:
        await self.begins(text)
        self._gates[text].set()

    @property
    def order(self) -> list[str]:
        return [request.message.text for request in self.begun]

    async def _run(self, request: TurnRequest) -> None:
        text = request.message.text
        gate = self._gates[text] = asyncio.Event()
        self.begun.append(request)
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(text)
            raise
        self.ended.append(text)


async def test_turns_of_one_channel_run_one_after_the_other_in_their_order() -> None:
    turns = Turns()
    for text in ("a", "b", "c"):
        assert turns.submit(text) == "taken"
    await turns.begins("a")
    assert turns.order == ["a"]
    for text in ("a", "b", "c"):
        await turns.end(text)
    await turns.queue.close(grace_s=1, cancel_s=1)
    assert turns.order == turns.ended == ["a", "b", "c"]


async def test_turns_of_two_channels_run_at_once() -> None:
    turns = Turns()
    turns.submit("here", 1)
    turns.submit("there", 2)
    await turns.begins("here")
    await turns.begins("there")
    await turns.queue.close(grace_s=0, cancel_s=1)


@pytest.mark.parametrize("one_runs_already", [True, False])
async def test_ten_wait_behind_the_one_that_runs(*, one_runs_already: bool) -> None:
    turns = Turns()
    turns.submit("first")
    if one_runs_already:
        await turns.begins("first")
    assert [turns.submit(f"waiting {n}") for n in range(10)] == ["taken"] * 10
    assert turns.submit("too many") == "busy"
    await turns.end("first")
    await turns.begins("waiting 0")
    assert turns.submit("again room for one") == "taken"
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_what_a_person_adds_while_their_turn_waits_joins_it() -> None:
    turns = Turns()
    turns.submit("first")
    await turns.begins("first")
    turns.submit("question", by=7)
    assert turns.add(turns.message("and more", by=7))
    assert turns.add(turns.message("still more", by=7))
    assert not turns.add(turns.message("not mine", by=8))
    assert not turns.add(turns.message("elsewhere", 2, by=7))
    await turns.end("first")
    request = await turns.begins("question")
    assert [m.text for m in request.messages] == ["question", "and more", "still more"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_nothing_joins_a_turn_that_runs() -> None:
    turns = Turns()
    turns.submit("question", by=7)
    await turns.begins("question")
    assert not turns.add(turns.message("too late", by=7))
    await turns.queue.close(grace_s=0, cancel_s=1)


@pytest.mark.parametrize("limit", [0, 1, 10])
async def test_only_so_many_join_a_turn(limit: int) -> None:
    turns = Turns(joined_limit=limit)
    turns.submit("first")
    await turns.begins("first")
    turns.submit("question", by=7)
    joined = [turns.add(turns.message(f"more {n}", by=7)) for n in range(limit + 2)]
    assert joined == [True] * limit + [False] * 2
    await turns.end("first")
    assert len((await turns.begins("question")).joined) == limit
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_what_one_joined_message_leaves_another_may_take() -> None:
    turns = Turns(joined_limit=1)
    turns.submit("first")
    await turns.begins("first")
    turns.submit("question", by=7)
    slip = turns.message("a slip", by=7)
    assert turns.add(slip)
    turns.queue.cancel_message(slip.id)
    assert turns.add(turns.message("better", by=7))
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_where_somebody_waits_twice_what_they_add_joins_the_newer_turn() -> None:
    turns = Turns(joined_limit=1)
    turns.submit("first")
    await turns.begins("first")
    turns.submit("question", by=7)
    turns.add(turns.message("more", by=7))
    turns.submit("second question", by=7)
    assert turns.add(turns.message("more of the second", by=7))
    await turns.end("first")
    await turns.end("question")
    request = await turns.begins("second question")
    assert [m.text for m in request.messages] == ["second question", "more of the second"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_a_running_turn_ends_when_its_message_is_taken_back() -> None:
    turns = Turns()
    message = turns.message("a")
    turns.take(message)
    turns.submit("b")
    await turns.begins("a")
    turns.queue.cancel_message(message.id)
    await turns.begins("b")
    assert turns.cancelled == ["a"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_a_waiting_turn_whose_message_is_taken_back_never_begins() -> None:
    turns = Turns()
    turns.submit("a")
    waiting = turns.message("b")
    turns.take(waiting)
    turns.submit("c")
    turns.queue.cancel_message(waiting.id)
    await turns.end("a")
    await turns.begins("c")
    assert turns.order == ["a", "c"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def waiting_turns(*added: str) -> tuple[Turns, list[IncomingMessage]]:
    """One person's waiting turn, and what they added; "me: ..." would start a turn by itself."""
    turns = Turns()
    turns.submit("first")
    await turns.begins("first")
    messages = [turns.message("question", by=7)]
    turns.take(messages[0])
    for text in added:
        messages.append(turns.message(text, by=7))
        assert turns.add(messages[-1], is_for_us=text.startswith("me:"))
    turns.submit("last")
    return turns, messages


async def next_turn(turns: Turns) -> TurnRequest:
    """The turn that comes after the first."""
    begun = len(turns.begun)
    await turns.end("first")
    for _ in range(100):
        if len(turns.begun) > begun:
            return turns.begun[begun]
        await asyncio.sleep(0)
    raise AssertionError("no turn began")


@pytest.mark.parametrize(
    ("added", "gone", "answered"),
    [
        (("me: a", "me: b"), (0,), ["me: a", "me: b"]),
        (("aside", "me: a", "and b"), (0,), ["me: a", "and b"]),
        (("me: a", "me: b"), (0, 1), ["me: b"]),
        (("me: a", "me: b"), (1, 0), ["me: b"]),
        (("me: a",), (1,), ["question"]),
        (("me: a",), (0, 1), ["last"]),
        (("aside", "and more"), (0,), ["last"]),
        ((), (0,), ["last"]),
    ],
)
async def test_where_its_message_is_gone_the_next_that_is_for_us_starts_the_turn(
    added: tuple[str, ...], gone: tuple[int, ...], answered: list[str]
) -> None:
    turns, messages = await waiting_turns(*added)
    for index in gone:
        turns.queue.cancel_message(messages[index].id)
    assert [m.text for m in (await next_turn(turns)).messages] == answered
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_the_turn_that_is_left_answers_its_own_message_and_keeps_its_place() -> None:
    turns, messages = await waiting_turns("me: a")
    turns.queue.edit_message(messages[1].id, "me: b")
    turns.queue.cancel_message(messages[0].id)
    request = await next_turn(turns)
    assert request.message == replace(messages[1], text="me: b")
    assert str(request.delivery) == "the answer to me: a"
    await turns.end("me: b")
    await turns.begins("last")
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_of_somebody_unwanted_nothing_is_left() -> None:
    turns, _ = await waiting_turns("me: a", "more")
    turns.queue.cancel_where(lambda message: message.author.id == 7)
    assert (await next_turn(turns)).message.text == "last"
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_a_running_turn_goes_on_when_what_joined_it_is_taken_back() -> None:
    turns, messages = await waiting_turns("me: a")
    await turns.end("first")
    await turns.begins("question")
    turns.queue.cancel_message(messages[1].id)
    await turns.end("question")
    await turns.begins("last")
    assert turns.cancelled == []
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_a_channel_is_stopped_without_touching_others_or_those_who_wait() -> None:
    turns = Turns()
    turns.submit("here", 1)
    turns.submit("there", 2)
    turns.submit("next here", 1)
    await turns.begins("there")
    assert turns.queue.cancel_channel(ChannelId(1))
    await turns.begins("next here")
    assert turns.cancelled == ["here"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_stopping_where_nothing_runs_says_so() -> None:
    turns = Turns()
    assert not turns.queue.cancel_channel(ChannelId(1))
    turns.submit("a")
    await turns.end("a")
    await turns.queue.close(grace_s=1, cancel_s=1)
    assert not turns.queue.cancel_channel(ChannelId(1))


async def test_closing_waits_for_what_runs_and_drops_what_waits() -> None:
    turns = Turns()
    turns.submit("a")
    turns.submit("b")
    await turns.begins("a")
    closing = asyncio.ensure_future(turns.queue.close(grace_s=5, cancel_s=1))
    await asyncio.sleep(0)
    assert turns.submit("c") == "closed"
    await turns.end("a")
    await closing
    assert turns.order == turns.ended == ["a"]


async def test_closing_cancels_what_does_not_end_in_time() -> None:
    turns = Turns()
    turns.submit("a")
    await turns.begins("a")
    await turns.queue.close(grace_s=0.01, cancel_s=1)
    assert turns.cancelled == ["a"]


async def test_a_turn_that_breaks_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = asyncio.Event()

    async def run(request: TurnRequest) -> None:
        if request.message.text == "a":
            raise ZeroDivisionError
        done.set()

    turns = Turns()
    turns.queue = TurnQueue(run, limit=10, joined_limit=10)
    turns.submit("a")
    turns.submit("b")
    await asyncio.wait_for(done.wait(), 1)
    assert [r for r in caplog.records if r.levelno == logging.ERROR]
    await turns.queue.close(grace_s=1, cancel_s=1)


# --- as the application receives messages


async def test_the_application_takes_ten_that_wait_and_no_more(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW)
        talk.send(talk.message("Zoe", "tell me a story"))
        await talk.model.wait_for_requests(1)
        received = [talk.send(talk.message(f"Person{n}", "and me?"))[0] for n in range(11)]
        assert received == ["taken"] * 10 + ["busy"]
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)


async def test_what_joined_is_answered_together(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW, Text("both"))
        first = talk.message("Zoe", "tell me a story")
        talk.send(first)
        await talk.model.wait_for_requests(1)
        _, delivery = talk.send(talk.message("Ann", "do you like tea?"))
        assert talk.send(talk.message("Ann", "green tea", mentions_us=False))[0] == "joined"
        await talk.app.receiver.forget_messages([first.id])
        await talk.model.wait_for(lambda: delivery.text)
        assert talk.lines == ["Ann: do you like tea?", "Ann: green tea"]
        assert len(talk.model.chats) == 2
        rows = await talk.rows("SELECT content FROM buffer_entries ORDER BY said_at, id")
        assert [row["content"] for row in rows] == ["do you like tea?", "green tea", "both"]


async def test_of_what_is_beyond_a_call_is_a_turn_of_its_own_and_the_rest_is_heard(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW, Text("yes"), Text("green"))
        first = talk.message("Zoe", "tell me a story")
        talk.send(first)
        await talk.model.wait_for_requests(1)
        talk.send(talk.message("Ann", "do you like tea?"))
        for number in range(10):
            assert talk.send(talk.message("Ann", f"more {number}"))[0] == "joined"
        assert talk.send(talk.message("Ann", "so?", mentions_us=False))[0] == "heard"
        admission, delivery = talk.send(talk.message("Ann", "and which?"))
        assert admission == "taken"
        await talk.app.receiver.forget_messages([first.id])
        await talk.model.wait_for(lambda: delivery.text)
        assert talk.lines[-3:] == ["Ann: so?", "> yes", "Ann: and which?"]


async def test_a_call_that_joined_is_answered_where_the_first_was_deleted(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW, Text("green"))
        first = talk.message("Zoe", "tell me a story")
        talk.send(first)
        await talk.model.wait_for_requests(1)
        question = talk.message("Ann", "do you like tee?")
        _, unused = talk.send(question)
        talk.send(talk.message("Ann", "I mean", mentions_us=False))
        _, delivery = talk.send(talk.message("Ann", "which tea do you like?"))
        await talk.app.receiver.forget_messages([question.id, first.id])
        await talk.model.wait_for(lambda: delivery.text)
        assert talk.lines == ["Ann: I mean", "Ann: which tea do you like?"]
        assert unused.text == ""


async def test_what_says_nothing_joins_no_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW)
        talk.send(talk.message("Zoe", "tell me a story"))
        await talk.model.wait_for_requests(1)
        talk.send(talk.message("Ann", "and me?"))
        assert talk.send(talk.message("Ann", "\u200b ", mentions_us=False))[0] == "heard"
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)


async def test_a_message_of_a_full_member_starts_joins_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.queue(SLOW)
        talk.send(talk.message("Zoe", "tell me a story"))
        await talk.model.wait_for_requests(1)
        talk.send(talk.message("Ann", "and me?"))
        await talk.level("Ann", PrivacyLevel.FULL)
        assert talk.send(talk.message("Ann", "hello?"))[0] == "heard"
        await talk.app.receiver.queue.close(grace_s=0, cancel_s=1)


@pytest.mark.parametrize(("everywhere", "answered"), [(True, False), (False, True)])
async def test_going_full_ends_the_turns_where_it_holds(
    tmp_path: Path, *, everywhere: bool, answered: bool
) -> None:
    async with open_talk(tmp_path) as talk:
        here, there = GuildId(500), GuildId(501)
        elsewhere = talk.place("elsewhere", guild=there)
        talk.model.on(lambda _: Text("I see", delay=0.1))
        _, ended = talk.send(talk.message("Ann", "hello"))
        _, other = talk.send(talk.message("Ann", "hello", place=elsewhere))
        await talk.model.wait_for_requests(2)
        await talk.level("Ann", PrivacyLevel.FULL, GuildId(0) if everywhere else here)
        await talk.app.receiver.queue.close(grace_s=2, cancel_s=1)
        assert ended.text == ""
        assert bool(other.text) == answered


async def test_own_messages_and_those_for_others_take_no_turn(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert talk.send(talk.own("my own words"))[0] == "heard"
        assert talk.send(talk.message("Ann", "hello Ben", mentions_us=False))[0] == "heard"
        assert talk.model.chats == []

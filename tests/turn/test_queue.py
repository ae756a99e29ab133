"""One turn at a time in a channel: order, bound, joining, taking back, closing."""

import asyncio
import logging
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

    def __init__(self, limit: int = 10) -> None:
        self.queue = TurnQueue(self._run, limit=limit)
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
        delivery = cast("Delivery", None)
        return self.queue.submit(
            TurnRequest(message=message, delivery=delivery, history=RecordedHistory())
        )

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
    assert turns.queue.join(turns.message("and more", by=7))
    assert turns.queue.join(turns.message("still more", by=7))
    assert not turns.queue.join(turns.message("not mine", by=8))
    assert not turns.queue.join(turns.message("elsewhere", 2, by=7))
    await turns.end("first")
    request = await turns.begins("question")
    assert [m.text for m in request.messages] == ["question", "and more", "still more"]
    await turns.queue.close(grace_s=0, cancel_s=1)


async def test_nothing_joins_a_turn_that_runs() -> None:
    turns = Turns()
    turns.submit("question", by=7)
    await turns.begins("question")
    assert not turns.queue.join(turns.message("too late", by=7))
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
    turns.queue = TurnQueue(run, limit=10)
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

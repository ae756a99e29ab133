from __future__ import annotations

from typing import Literal

import pytest

from bot.discord_io.splitter import split
from bot.turn.messages import Undeliverable
from tests.discord_io.room import ONE, PATIENT, SEND, Room, long_text
from tests.fakes import Permission

Drop = Literal["before", "after"]


# --- nothing is sent twice ----------------------------------------------------------------------


async def test_a_503_is_tried_again(room: Room) -> None:
    room.server.fault("POST", SEND, status=503)
    await (await room.reply(PATIENT)).finish("Hello.")
    assert room.contents == ["Hello."]
    assert [call.status for call in room.server.calls_to("POST", SEND)] == [503, 200]


@pytest.mark.parametrize("drop", ["before", "after"])
async def test_a_connection_reset_while_sending_never_makes_two_messages(
    room: Room, drop: Drop
) -> None:
    room.server.fault("POST", SEND, drop=drop)
    delivered = await (await room.reply(PATIENT)).finish("Hello.")
    assert room.contents == ["Hello."]
    assert delivered.message_ids == (room.messages[0].id,)


@pytest.mark.parametrize("drop", ["before", "after"])
async def test_a_connection_reset_between_two_messages_doubles_neither(
    room: Room, drop: Drop
) -> None:
    delivery = await room.reply(PATIENT)
    await delivery.show(split(long_text(2))[0])
    await room.server.wait_for(lambda: len(room.messages) == 1)
    room.server.fault("POST", SEND, drop=drop)
    await delivery.finish(long_text(2))
    assert room.contents == list(split(long_text(2)))


async def test_every_try_of_a_message_carries_the_same_nonce(room: Room) -> None:
    room.server.fault("POST", SEND, drop="after")
    await (await room.reply(PATIENT)).finish(long_text(2))
    first, again, second = (call.body for call in room.server.calls_to("POST", SEND))
    assert room.question is not None
    assert first["nonce"] == again["nonce"] == f"{room.question.id}-0"
    assert second["nonce"] == f"{room.question.id}-1"
    assert first["enforce_nonce"] is True


async def test_a_message_that_was_sent_unknown_to_us_is_found_again_and_brought_up_to_date(
    room: Room,
) -> None:
    """Every try to send it failed, although the last one had its effect."""
    room.server.fault("POST", SEND, drop="after")
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_until_called("POST", SEND)
    delivered = await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]
    assert delivered.message_ids == (room.messages[0].id,)


@pytest.mark.parametrize("drop", ["before", "after"])
async def test_an_edit_whose_connection_was_reset_is_made_again(room: Room, drop: Drop) -> None:
    delivery = await room.reply(PATIENT)
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, drop=drop)
    await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]


async def test_a_429_on_order_is_left_to_the_library(room: Room) -> None:
    room.server.fault("POST", SEND, status=429, retry_after=0.1)
    await (await room.reply()).finish("Hello.")
    assert room.contents == ["Hello."]


# --- nothing is lost ----------------------------------------------------------------------------


async def test_an_edit_that_fails_while_streaming_is_made_up_for_at_the_end(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, status=503)
    await delivery.show("Hello Alice")
    await room.wait_until_called("PATCH", ONE)
    await delivery.finish("Hello Alice")
    assert room.contents == ["Hello Alice"]


async def test_an_edit_that_had_its_effect_unknown_to_us_is_undone_when_the_text_goes_back(
    room: Room,
) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, drop="after")
    await delivery.show("Hello Alice")
    await room.wait_for_text("Hello Alice")
    await room.wait_until_idle(delivery)
    await delivery.finish("Hello")
    assert room.contents == ["Hello"]


async def test_the_next_text_makes_up_for_a_failed_edit(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, status=503)
    await delivery.show("Hello Al")
    await room.wait_until_idle(delivery)
    await delivery.show("Hello Alice")
    await room.wait_for_text("Hello Alice")
    await delivery.finish("Hello Alice")


async def test_a_500_is_tried_again_by_the_library(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, status=500)
    await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]


async def test_what_cannot_be_edited_in_the_end_is_sent_anew(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    old = room.messages[0]
    room.server.fault("PATCH", ONE, status=503, times=9)
    delivered = await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]
    assert old.deleted
    assert delivered.message_ids == (room.messages[0].id,)


async def test_when_the_old_message_cannot_be_deleted_either_the_reply_is_whole_all_the_same(
    room: Room,
) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("PATCH", ONE, status=503, times=9)
    room.server.fault("DELETE", ONE, status=503, times=9)
    delivered = await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello", "Hello Alice."]
    assert delivered.text == "Hello Alice."


async def test_a_message_that_a_moderator_deleted_is_sent_anew_at_the_end(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    await room.server.delete(room.messages[0])
    for text in ("Hello Al", "Hello Alic", "Hello Alice"):
        await delivery.show(text)
        await room.wait_until_idle(delivery)
    assert room.messages == []
    assert len(room.server.calls_to("PATCH", ONE)) == 1
    await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]


async def test_a_deleted_message_takes_the_later_ones_along_so_that_the_order_stays(
    room: Room,
) -> None:
    delivery = await room.reply()
    await delivery.show(long_text(3))
    await room.wait_for_text(long_text(3))
    await room.server.delete(room.messages[1])
    text = long_text(3).replace("words", "lines")
    delivered = await delivery.finish(text)
    assert (room.text, delivered.text) == (text, text)


async def test_a_surplus_message_that_is_gone_already_is_no_fault(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show(long_text(2))
    await room.wait_for_text(long_text(2))
    await room.server.delete(room.messages[1])
    await delivery.finish("Short.")
    assert room.contents == ["Short."]


async def test_a_surplus_message_that_is_not_deleted_at_once_is_deleted_in_the_end(
    room: Room,
) -> None:
    delivery = await room.reply()
    await delivery.show(long_text(2))
    await room.wait_for_text(long_text(2))
    room.server.fault("DELETE", ONE, status=503)
    await delivery.show("Short")
    await room.wait_until_called("DELETE", ONE)
    await delivery.finish("Short.")
    assert room.contents == ["Short."]


# --- where the bot may not ----------------------------------------------------------------------


async def test_without_permission_a_reply_is_undeliverable(room: Room) -> None:
    delivery = await room.reply()
    room.server.overwrite(room.channel, room.server.bot_role(), deny=Permission.SEND_MESSAGES)
    await delivery.start()
    with pytest.raises(Undeliverable):
        await delivery.finish("Hello.")


async def test_a_channel_that_is_gone_makes_a_reply_undeliverable(room: Room) -> None:
    delivery = await room.reply()
    room.server.delete_channel(room.channel)
    with pytest.raises(Undeliverable):
        await delivery.finish("Hello.")


async def test_a_refused_reply_is_not_asked_for_with_every_text(room: Room) -> None:
    delivery = await room.reply()
    refusal = room.server.fault("POST", SEND, status=403, code=50013, times=99)
    for end in range(1, 12):
        await delivery.show("Hello Alice."[:end])
        await room.wait_until_idle(delivery)
    with pytest.raises(Undeliverable):
        await delivery.finish("Hello Alice.")
    assert refusal.hits == 2


async def test_a_reply_whose_end_is_refused_is_what_stands(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show(split(long_text(2))[0])
    await room.server.wait_for(lambda: len(room.messages) == 1)
    room.server.fault("POST", SEND, status=403, code=50013, times=9)
    delivered = await delivery.finish(long_text(2))
    assert delivered.text == split(long_text(2))[0] == room.text


async def test_a_message_that_can_be_neither_edited_nor_replaced_still_stands(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.fault("*", SEND, status=403, code=50001, times=9)
    room.server.fault("*", ONE, status=403, code=50001, times=9)
    delivered = await delivery.finish("Hello Alice.")
    assert (delivered.text, delivered.message_ids) == ("Hello", (room.messages[0].id,))


async def test_a_thread_archived_meanwhile_gets_the_rest_anew(room: Room) -> None:
    thread = room.server.thread(room.channel, "talk", members=[room.server.bot])
    room.channel = thread
    delivery = await room.reply()
    await delivery.show("Hello")
    await room.wait_for_text("Hello")
    room.server.archive(thread)
    await delivery.finish("Hello Alice.")
    assert room.contents == ["Hello Alice."]


async def test_closed_direct_messages_make_a_reply_undeliverable(room: Room) -> None:
    room.channel = room.server.direct(room.server.alice)
    delivery = await room.reply()
    room.server.alice.accepts_direct_messages = False
    with pytest.raises(Undeliverable):
        await delivery.finish("Hello.")


async def test_a_reply_in_direct_messages_refers_to_the_question(room: Room) -> None:
    room.channel = room.server.direct(room.server.alice)
    await (await room.reply()).finish("Hello.")
    assert room.contents == ["Hello."]
    assert room.messages[0].reference is not None

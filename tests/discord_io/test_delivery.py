from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from itertools import pairwise

import pytest

from bot.config.sections import DeliveryConfig
from bot.discord_io import delivery as delivery_module
from bot.discord_io.pacing import Pacing
from bot.discord_io.splitter import split
from bot.identifiers import LineageId, MessageId
from bot.turn.messages import Delivered, Footer, TurnKey, Undeliverable
from tests.discord_io.room import ONE, SEND, Listener, Room, long_text
from tests.fakes import LoopbackDiscord, Permission
from tests.fakes.discord.interactions import find_component

# --- the usual way ------------------------------------------------------------------------------


async def test_a_reply_is_one_message_that_refers_to_the_question(room: Room) -> None:
    delivery = await room.reply()
    delivered = await delivery.finish("Hello Alice.")
    (message,) = room.messages
    assert message.content == "Hello Alice."
    assert message.reference is not None
    assert message.reference.message is room.question
    assert delivered == Delivered(
        message_ids=(message.id,), text="Hello Alice.", sent_at=message.created_at
    )


async def test_the_text_grows_in_the_first_message(room: Room) -> None:
    delivery = await room.reply()
    for text in ("He", "Hello", "Hello Alice"):
        await delivery.show(text)
        await room.wait_for_text(text)
    await delivery.finish("Hello Alice.")
    assert room.messages[0].revisions == ["He", "Hello", "Hello Alice", "Hello Alice."]


async def test_texts_that_come_faster_than_the_pace_are_skipped(room: Room) -> None:
    delivery = await room.reply()
    text = ""
    for number in range(500):
        text += f"{number} "
        await delivery.show(text)
        await asyncio.sleep(0)
    await delivery.finish(text)
    assert room.text == text
    assert len(room.messages[0].revisions) < 50


async def test_what_is_shown_already_is_not_sent_again(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Hello.")
    await room.wait_for_text("Hello.")
    await delivery.finish("Hello.")
    assert room.server.calls_to("PATCH", ONE) == []


async def test_a_long_reply_continues_in_more_messages(room: Room) -> None:
    text = long_text(3)
    delivery = await room.reply()
    delivered = await delivery.finish(text)
    assert room.text == text
    assert delivered.text == text
    assert delivered.message_ids == tuple(message.id for message in room.messages)
    assert len(delivered.message_ids) == 3


async def test_only_the_first_message_of_a_long_reply_refers_to_the_question(room: Room) -> None:
    await (await room.reply()).finish(long_text(2))
    assert [message.reference is None for message in room.messages] == [False, True]


async def test_a_message_that_is_full_is_never_edited_again(room: Room) -> None:
    text = long_text(3)
    delivery = await room.reply()
    for end in range(500, len(text), 500):
        await delivery.show(text[:end])
        await asyncio.sleep(0.03)
    await delivery.finish(text)
    assert room.text == text
    for message, piece in zip(room.messages, split(text), strict=True):
        assert message.revisions.count(piece) == 1


async def test_code_that_crosses_a_border_is_fenced_in_both_messages(room: Room) -> None:
    text = "```py\n" + "x = 1\n" * 500 + "```"
    await (await room.reply()).finish(text)
    for content in room.contents:
        assert re.fullmatch(r"```py\n(x = 1\n)+```", content)


async def test_a_blank_text_is_not_shown(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show(" \n")
    await delivery.finish(" \nYes.")
    assert room.messages[0].revisions == [" \nYes."]


async def test_a_reply_without_any_text_cannot_be_delivered(room: Room) -> None:
    with pytest.raises(Undeliverable):
        await (await room.reply()).finish(" \n")
    assert room.messages == []


# --- starting again -----------------------------------------------------------------------------


async def test_a_shorter_text_takes_the_surplus_messages_away(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show(long_text(3))
    await room.wait_for_text(long_text(3))
    first = room.messages[0]
    await delivery.show("Again")
    await room.wait_for_text("Again")
    delivered = await delivery.finish("Again, shorter.")
    assert room.messages == [first]
    assert (room.text, delivered.text) == ("Again, shorter.", "Again, shorter.")


async def test_a_text_that_shrinks_and_grows_again_is_whole_in_the_end(room: Room) -> None:
    delivery = await room.reply()
    for text in (long_text(2), "No.", long_text(4), "Or", long_text(3)):
        await delivery.show(text)
        await asyncio.sleep(0.05)
    await delivery.finish(long_text(3))
    assert room.text == long_text(3)


# --- too long for messages ----------------------------------------------------------------------


async def test_eight_messages_are_still_messages(room: Room) -> None:
    await (await room.reply()).finish(long_text(8))
    assert room.text == long_text(8)


async def test_nine_messages_become_a_file_with_a_line(room: Room) -> None:
    text = long_text(9)
    delivered = await (await room.reply()).finish(text)
    (message,) = room.messages
    assert message.content == "My answer is too long for messages, so it is in this file."
    assert [(one.name, one.content) for one in message.attachments] == [("reply.md", text.encode())]
    assert (delivered.text, delivered.message_ids) == (text, (message.id,))


async def test_a_stream_stops_at_eight_messages_and_then_becomes_the_file(room: Room) -> None:
    text = long_text(12)
    delivery = await room.reply()
    await delivery.show(text)
    await room.wait_until_idle(delivery)
    assert room.contents == list(split(text))[:8]
    first = room.messages[0]
    await delivery.finish(text)
    assert room.messages == [first]
    assert first.attachments[0].content.decode() == text


async def test_where_files_are_not_allowed_a_long_reply_stays_in_messages(room: Room) -> None:
    room.server.overwrite(room.channel, room.server.bot_role(), deny=Permission.ATTACH_FILES)
    text = long_text(9)
    delivery = await room.reply()
    await delivery.show(text)
    await room.server.wait_for(lambda: len(room.messages) == 8)
    room.server.fault("PATCH", ONE, status=403, code=50013)
    delivered = await delivery.finish(text)
    assert (room.text, delivered.text) == (text, text)


# --- the footer ---------------------------------------------------------------------------------


async def test_a_footer_stands_under_the_last_message_in_small_type(room: Room) -> None:
    delivered = await (await room.reply()).finish(
        "Hello.", footer=Footer(text="Saved.\nUndo with a word.")
    )
    assert room.contents == ["Hello.\n-# Saved.\n-# Undo with a word."]
    assert delivered.text == "Hello."


@pytest.mark.parametrize(("spare", "messages"), [(10, 1), (9, 2)])
async def test_a_footer_that_does_not_fit_is_a_message_of_its_own(
    room: Room, spare: int, messages: int
) -> None:
    text = "x" * (2000 - spare)
    delivered = await (await room.reply()).finish(text, footer=Footer(text="Saved."))
    assert len(room.messages) == messages
    assert room.text.endswith("-# Saved.")
    assert delivered.text == text


async def test_a_footer_stays_where_the_file_was_not_allowed(room: Room) -> None:
    room.server.overwrite(room.channel, room.server.bot_role(), deny=Permission.ATTACH_FILES)
    text = long_text(9)
    await (await room.reply()).finish(text, footer=Footer(text="Saved."))
    assert room.text == f"{text}\n-# Saved."


async def test_what_can_be_undone_has_a_button_under_its_last_message(room: Room) -> None:
    footer = Footer(text="Saved.", undoes=TurnKey(message=MessageId(77), lineage=LineageId(3)))
    delivery = await room.reply()
    await delivery.show(long_text(2))
    await room.wait_for_text(long_text(2))
    await delivery.finish(long_text(2), footer=footer)
    first, last = room.messages
    assert find_component(first.components, "Undo") is None
    button = find_component(last.components, "Undo")
    assert button is not None
    assert button["custom_id"] == "undo:77:3"
    assert room.client.persistent_views == []  # nothing is kept for it


# --- pings --------------------------------------------------------------------------------------


async def test_nothing_in_a_reply_notifies_anybody(room: Room) -> None:
    everyone = room.server.role("readers", mentionable=True)
    room.server.allow_bot(Permission.MENTION_EVERYONE | room.server.bot_permissions)
    text = f"@everyone @here {everyone.mention} {room.server.alice.mention}"
    delivery = await room.reply()
    await delivery.show(text)
    await room.wait_for_text(text)
    await delivery.finish(f"{text} again")
    assert not room.messages[0].pings
    for call in room.server.calls_to("PATCH", ONE) + room.server.calls_to("POST", SEND):
        assert call.body["allowed_mentions"] == {"parse": []}


async def test_with_the_reply_ping_only_the_asking_person_is_notified(room: Room) -> None:
    delivery = await room.reply(pings_author=True)
    await delivery.finish(f"@everyone {room.server.owner.mention}")
    assert room.messages[0].pings.user_ids == {room.server.alice.id}
    assert not room.messages[0].pings.everyone


# --- typing -------------------------------------------------------------------------------------


async def test_typing_is_shown_from_the_start_to_the_end(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "TYPING_EVERY_S", 0.02)
    delivery = await room.reply()
    await delivery.start()
    await room.server.wait_for(lambda: len(room.server.bot_typed_in) >= 3)
    await delivery.show("Hm")
    await room.wait_for_text("Hm")
    typed = len(room.server.bot_typed_in)
    await room.server.wait_for(lambda: len(room.server.bot_typed_in) > typed)
    await delivery.finish("Hm.")
    assert delivery._typing is None


async def test_typing_that_fails_once_goes_on(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "TYPING_EVERY_S", 0.02)
    room.server.fault("POST", "/typing$", status=503)
    delivery = await room.reply()
    await delivery.start()
    await room.server.wait_for(lambda: len(room.server.bot_typed_in) >= 2)
    await delivery.finish("Yes.")


async def test_typing_that_is_refused_does_not_hinder_the_reply(room: Room) -> None:
    room.server.fault("POST", "/typing$", status=403, code=50013)
    delivery = await room.reply()
    await delivery.start()
    await room.wait_until_called("POST", "/typing$")
    await delivery.finish("Yes.")
    assert room.text == "Yes."


# --- where a message cannot be a reply ----------------------------------------------------------


async def test_a_question_that_was_deleted_gets_a_plain_message(room: Room) -> None:
    delivery = await room.reply()
    assert room.question is not None
    await room.server.delete(room.question)
    await delivery.finish("Too late?")
    assert [(one.content, one.reference) for one in room.messages] == [("Too late?", None)]
    assert len(room.server.calls_to("POST", SEND)) == 1


async def test_where_the_past_may_not_be_read_the_reply_is_a_plain_message(room: Room) -> None:
    room.server.overwrite(
        room.channel, room.server.bot_role(), deny=Permission.READ_MESSAGE_HISTORY
    )
    await (await room.reply()).finish("Hello.")
    assert [(one.content, one.reference) for one in room.messages] == [("Hello.", None)]


# --- cancelling ---------------------------------------------------------------------------------


async def test_abandoning_gives_what_stands(room: Room) -> None:
    delivery = await room.reply()
    await delivery.start()
    await delivery.show("I think")
    await room.wait_for_text("I think")
    await delivery.show("I think that this is not shown any more")
    delivered = await delivery.abandon()
    assert delivered is not None
    assert delivered.text == room.text
    assert delivered.message_ids == (room.messages[0].id,)


async def test_abandoning_before_anything_was_sent_gives_nothing(room: Room) -> None:
    delivery = await room.reply()
    await delivery.start()
    assert await delivery.abandon() is None
    await delivery.show("Too late.")
    assert room.messages == []


async def test_abandoning_waits_for_the_message_that_is_being_sent(room: Room) -> None:
    room.server.fault("POST", SEND, delay=0.2)
    delivery = await room.reply()
    await delivery.show("On its way")
    await room.server.wait_for(lambda: room.server.calls_to("POST", SEND))
    delivered = await delivery.abandon()
    assert delivered is not None
    assert room.contents == ["On its way"]


async def test_abandoning_does_not_wait_for_ever(room: Room) -> None:
    room.server.fault("POST", SEND, delay=3)
    delivery = await room.reply()
    await delivery.show("Stuck")
    await room.server.wait_for(lambda: room.server.calls_to("POST", SEND))
    async with asyncio.timeout(1):
        assert await delivery.abandon() is None


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_cancelled_finish_leaves_neither_task_nor_typing(
    room: Room, *, is_streamed: bool
) -> None:
    room.server.fault("POST", SEND, delay=3)
    delivery = await room.reply()
    await delivery.start()
    if is_streamed:
        await delivery.show("Stuck")
    finishing = asyncio.create_task(delivery.finish("Stuck for long"))
    await room.server.wait_for(lambda: room.server.calls_to("POST", SEND))
    finishing.cancel()
    with suppress(asyncio.CancelledError):
        await finishing
    assert finishing.cancelled()
    assert (delivery._typing, delivery._writer) == (None, None)


async def test_what_stands_is_known_after_a_cancelled_finish(room: Room) -> None:
    delivery = await room.reply()
    await delivery.show("Well")
    await room.wait_for_text("Well")
    room.server.fault("PATCH", ONE, delay=3)
    finishing = asyncio.create_task(delivery.finish("Well, this takes long"))
    await room.server.wait_for(lambda: room.server.calls_to("PATCH", ONE))
    finishing.cancel()
    with suppress(asyncio.CancelledError):
        await finishing
    delivered = await delivery.abandon()
    assert delivered is not None
    assert delivered.message_ids == (room.messages[0].id,)


# --- the pace -----------------------------------------------------------------------------------


async def test_a_stream_stays_within_discords_limit_on_edits(
    server: LoopbackDiscord, client: Listener
) -> None:
    """Five edits in five seconds and channel: the loopback Discord answers a sixth with 429."""
    room = Room(server, client)
    delivery = await room.reply(DeliveryConfig())
    text = ""
    for number in range(260):
        text += f"word {number}, "
        await delivery.show(text)
        await asyncio.sleep(0.025)
    await delivery.finish(text)
    edits = server.calls_to("PATCH", ONE)
    assert room.text == text
    assert server.rate_limited == []
    assert len(edits) >= 6
    assert all(b.received_at - a.received_at >= 1.0 for a, b in pairwise(edits))


async def test_two_replies_in_a_channel_share_its_pace(room: Room) -> None:
    pacing = Pacing(0.2)
    replies = [await room.reply(), await room.reply()]
    for delivery in replies:
        delivery._pacing = pacing
        await delivery.show("a")
    await room.server.wait_for(lambda: len(room.messages) == 2)
    await asyncio.gather(*(delivery.finish("a b") for delivery in replies))
    first, second = room.server.calls_to("PATCH", ONE)
    assert second.received_at - first.received_at >= 0.2

"""What of a channel is captured: the ring, the cursor, and what may never be in them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.privacy.levels import PrivacyLevel
from tests.fakes import Text
from tests.talk import GUILD, FakeClock, Talk, open_talk

PREFIX = "MADELEINE__"


async def captured(talk: Talk, channel: str = "general") -> list[object]:
    """The texts of working memory in order of time."""
    number = talk.place(channel).channel_id
    rows = await talk.rows(
        "SELECT content FROM buffer_entries b JOIN origins o ON o.id = b.origin_id"
        f" WHERE o.channel_id = {number} ORDER BY said_at, b.id"
    )
    return [row["content"] for row in rows]


async def test_the_first_turn_fetches_the_past_once_and_later_turns_do_not(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.history.messages = tuple(talk.message("Ben", f"earlier {n}") for n in range(12))
        await talk.say("Ann", "hello")
        assert talk.lines[-12:] == [f"Ben: earlier {n}" for n in range(1, 12)] + ["Ann: hello"]
        await talk.say("Ann", "and again")
        assert talk.history.asked == 1


async def test_each_channel_fetches_its_own_past(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        await talk.say("Ann", "hello", "garden")
        await talk.say("Ann", "hello", "garden")
        assert talk.history.asked == 2


async def test_of_what_was_overheard_the_newest_twelve_messages_are_captured(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        for number in range(13):
            talk.overhear("Ben", f"chatter {number}")
        await talk.say("Ann", "what did he say?")
        kept = [text for text in await captured(talk) if str(text).startswith("chatter")]
        # The message that started the turn is one of the twelve.
        assert kept == [f"chatter {n}" for n in range(2, 13)]


async def test_what_fits_the_ring_is_captured_whole(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        for number in range(11):
            talk.overhear("Ben", f"chatter {number}")
        await talk.say("Ann", "what did he say?")
        kept = [text for text in await captured(talk) if str(text).startswith("chatter")]
        assert kept == [f"chatter {n}" for n in range(11)]


async def test_nothing_is_heard_where_no_turn_was_taken(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello", "garden")
        talk.overhear("Ben", "a private word")
        assert talk.app.services.rings.messages(talk.place().channel_id) == ()


async def test_a_channel_that_was_quiet_for_a_day_is_no_longer_heard(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        used_at = talk.clock.now()
        heard = talk.message("Ben", "is anybody here?", mentions_us=False)
        talk.clock.time = used_at + timedelta(hours=24)
        talk.app.services.rings.hear(heard)
        assert talk.app.services.rings.messages(talk.place().channel_id) == ()
        await talk.say("Ann", "hello again")
        assert talk.history.asked == 2


async def test_a_channel_where_a_turn_ran_within_a_day_is_heard(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        talk.clock.pass_(hours=23, minutes=59, seconds=57)
        talk.overhear("Ben", "is anybody here?")
        await talk.say("Ann", "hello again")
        assert "is anybody here?" in await captured(talk)
        assert talk.history.asked == 1


async def test_what_the_cursor_has_passed_never_comes_back(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        old = talk.overhear("Ben", "never opened")
        talk.history.messages = (old, talk.message("Ben", "the first"))
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        await talk.app.services.database.write(
            lambda tx: tx.execute("DELETE FROM buffer_entries WHERE content = 'the first'")
        )
        talk.app.services.rings.doubt_all()
        await talk.say("Ann", "and now?")
        assert talk.history.asked == 2
        assert "the first" not in await captured(talk)
        assert "the first" not in talk.prompt.text


async def test_a_restart_fetches_again_and_cuts_at_the_cursor(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.model.queue(Text("hm"))
        talk.history.messages = (talk.message("Ben", "before"),)
        await talk.say("Ann", "hello")
        past = (*talk.history.messages, talk.message("Ben", "while away"))
        await talk.app.services.database.write(
            lambda tx: tx.execute("DELETE FROM buffer_entries WHERE content = 'before'")
        )
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.history.messages = past
        await talk.say("Ann", "I am back")
        assert talk.history.asked == 1
        assert talk.lines == ["Ann: hello", "> hm", "Ben: while away", "Ann: I am back"]


async def test_after_events_were_lost_the_past_is_read_once_more(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        missed = talk.message("Ben", "nobody heard this")
        talk.history.messages = (missed,)
        talk.app.services.rings.doubt_all()
        await talk.say("Ann", "anything new?")
        await talk.say("Ann", "nothing else?")
        assert talk.history.asked == 2
        assert (await captured(talk)).count("nobody heard this") == 1


async def test_what_was_heard_stays_but_with_the_text_that_the_past_has(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        talk.people["Ben"] = replace(talk.person("Ben"), name="Captain")
        heard = talk.overhear("Ben", "I come at five")
        account = replace(heard.author, name="Ben", of_account=True)
        talk.history.messages = (replace(heard, author=account, text="I come at six"),)
        talk.app.services.rings.doubt_all()
        await talk.say("Ann", "when?")
        assert talk.lines[-2:] == ["Captain: I come at six", "Ann: when?"]


async def test_an_accounts_name_shows_only_those_who_are_known_by_no_other(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.people["Ben"] = replace(talk.person("Ben"), name="Captain")
        await talk.say("Ben", "ahoy", "harbour")
        talk.history.messages = tuple(
            replace(message, author=replace(message.author, name=name, of_account=True))
            for message, name in (
                (talk.message("Ben", "land"), "ben_1"),
                (talk.message("Cleo", "water"), "Cleo"),
            )
        )
        await talk.say("Ann", "hello")
        assert talk.lines == ["Captain: land", "Cleo: water", "Ann: hello"]


async def test_own_replies_read_back_after_a_restart_are_not_captured_twice(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.model.queue(Text("a warm welcome"))
        await talk.say("Ann", "hello")
        [reply] = await talk.rows("SELECT message_id FROM turn_replies")
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.history.messages = (talk.own("a warm welcome", id=reply["message_id"]),)
        await talk.say("Ann", "again")
        assert (await captured(talk)).count("a warm welcome") == 1


async def test_an_apology_read_back_after_a_restart_is_no_part_of_the_talk(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.model.queue(*[Text("")] * 3)
        report = await talk.say("Ann", "hello")
        assert report is not None
        [reply] = await talk.rows("SELECT message_id FROM turn_replies")
    async with open_talk(tmp_path, clock=clock) as talk:
        talk.history.messages = (talk.own(report.reply, id=reply["message_id"]),)
        await talk.say("Ann", "again")
        assert report.reply not in await captured(talk)


async def test_messages_that_arrive_while_the_reply_is_written_stand_in_order_of_time(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:

        def meanwhile(_: object) -> Text:
            talk.overhear("Ben", "I was quicker")
            talk.clock.pass_(seconds=1)
            return Text("a slow answer")

        talk.model.on(meanwhile)
        await talk.say("Ann", "hello")
        assert await captured(talk) == ["hello", "a slow answer"]
        talk.model.clear()
        await talk.say("Ann", "thank you")
        assert talk.lines == [
            "Ann: hello",
            "Ben: I was quicker",
            "> a slow answer",
            "Ann: thank you",
        ]


async def test_the_message_that_started_the_turn_is_in_the_prompt_although_the_ring_lost_it(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        waiting = talk.message("Ben", "is there any tea left?")
        for number in range(13):
            talk.overhear("Cleo", f"chatter {number}")
        await talk.say("Ann", "a turn in between")
        await talk.take(waiting)
        assert talk.lines[-1] == "Ben: is there any tea left?"
        assert (await captured(talk)).count("is there any tea left?") == 1


async def test_a_question_that_a_handoff_took_while_it_waited_is_answered(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        waiting, added = (talk.message("Ben", text) for text in ("is there tea?", "green tea"))
        talk.overhear("Ben", "is anybody there?")
        talk.app.services.rings.hear(waiting)
        for number in range(30):
            await talk.say("Ann", f"chatter {number}")
        await talk.handoffs()
        assert "is there tea?" not in await captured(talk)
        assert await talk.take(waiting, joined=[added]) is not None
        assert talk.lines[-2:] == ["Ben: is there tea?", "Ben: green tea"]
        assert talk.lines[-3] == "> hm"
        assert "is there tea?" not in await captured(talk)


@pytest.mark.parametrize("window", [1_024, 4_096, 32_768])
async def test_a_question_followed_by_eighty_long_messages_is_in_the_prompt_of_any_window(
    tmp_path: Path, window: int
) -> None:
    roomy = {"MADELEINE__CONTEXT__RING_MESSAGES": "100"}
    async with open_talk(tmp_path, window=window, tools="none", environ=roomy) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        asked = [talk.message("Ben", f"{sign}? {'please ' * 100}") for sign in "abcdefghijk"]
        for number in range(80):
            talk.overhear("Cleo", f"chatter {number} {'and so on ' * 100}")
        await talk.take(asked[0], joined=asked[1:])
        shown = [line[5:7] for line in talk.lines if line.startswith("Ben: ")]
        assert shown[0] == "a?"
        assert shown[1:] == [f"{sign}?" for sign in "bcdefghijk"][-len(shown) + 1 :]
        assert all(line.startswith("Ben: ") for line in talk.lines[-len(shown) :])


async def test_a_full_member_is_in_no_ring_no_entry_and_no_short_term_memory(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ben", PrivacyLevel.FULL)
        talk.history.messages = (talk.message("Ben", "secret one"),)
        await talk.say("Ann", "hello")
        talk.overhear("Ben", "secret two")
        await talk.say("Ann", "hello again")
        assert "secret" not in talk.prompt.text
        assert not [text for text in await captured(talk) if "secret" in str(text)]
        ring = talk.app.services.rings.messages(talk.place().channel_id)
        assert {message.author.name for message in ring} == {"Ann"}


async def test_going_up_to_full_takes_what_was_heard_out_of_every_copy(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        talk.model.on(lambda _: Text("hm"))
        await talk.say("Ann", "hello")
        talk.overhear("Ben", "captured already")
        await talk.say("Ann", "and?")
        talk.overhear("Ben", "only in the ring")
        await talk.level("Ben", PrivacyLevel.FULL)
        await talk.say("Ann", "what did Ben say?")
        assert "captured already" not in talk.prompt.text
        assert "only in the ring" not in talk.prompt.text


async def test_a_level_for_one_server_leaves_the_other_servers_ring_alone(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        elsewhere = talk.place("elsewhere", guild=type(GUILD)(501))
        await talk.say("Ann", "hello", "elsewhere", place=elsewhere)
        heard = talk.message("Ben", "still mine to hear", place=elsewhere, mentions_us=False)
        talk.app.services.rings.hear(heard)
        await talk.level("Ben", PrivacyLevel.FULL, GUILD)
        await talk.say("Ann", "so?", "elsewhere", place=elsewhere)
        assert "Ben: still mine to hear" in talk.lines


async def test_a_member_who_went_full_while_their_turn_waited_is_not_answered(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        waiting = talk.message("Ben", "answer me")
        await talk.level("Ben", PrivacyLevel.FULL)
        assert await talk.take(waiting) is None
        assert talk.model.chats == []
        assert await talk.rows("SELECT * FROM buffer_entries") == []
        assert await talk.rows("SELECT * FROM turns") == []

"""One turn at a time in a channel, those that wait, and those that are taken back."""

import asyncio

import pytest

from tests.discord_e2e.stage import Stage
from tests.fakes import Message, ModelRequest, Stall, Text, User

BUSY = "\N{HOURGLASS WITH FLOWING SAND}"
SLOW = Text("a slow answer that goes on", breaks=Stall(after=1, seconds=30))
"""Goes on only when the model is told to (or the turn ends)."""


async def call(stage: Stage, user: User, text: str) -> Message:
    return await stage.discord.say(user, stage.discord.general, text, mention_bot=True)


async def held_up(stage: Stage, *, by: User | None = None) -> Message:
    """A turn that is under way and stays so until its message is deleted."""
    stage.model.queue(SLOW)
    question = await call(stage, by or stage.discord.owner, "tell me a long story")
    await stage.model.wait_for_requests(1)
    return question


async def everything_so_far(stage: Stage) -> None:
    """Wait until she has taken in what happened up to now."""
    await stage.ask("hello", by=stage.discord.owner, channel=stage.discord.channel("elsewhere"))


def asked(stage: Stage) -> list[str]:
    """The last line of every prompt."""
    return [chat.last_user.splitlines()[-1] for chat in stage.model.chats]


async def test_turns_of_one_channel_are_taken_one_after_the_other(stage: Stage) -> None:
    stage.model.on(lambda _: Text("I see", delay=0.05))
    people = [stage.discord.member(f"person{number}") for number in range(4)]
    for question in [await call(stage, user, f"asks {user.name}") for user in people]:
        await stage.reply_to(question)
    assert stage.model.most_at_once == 1
    assert asked(stage) == [f"{user.name}: asks {user.name}" for user in people]
    assert [chat.messages[-1]["role"] for chat in stage.model.chats] == ["user"] * 4


async def test_turns_of_two_channels_are_taken_at_once(stage: Stage) -> None:
    other = stage.discord.channel("other")
    here = await held_up(stage)
    assert "hello" in (await stage.ask("hello", channel=other)).content
    assert stage.discord.bot_messages(stage.discord.general)[0].id > here.id


async def test_what_a_person_adds_while_their_turn_waits_joins_it(stage: Stage) -> None:
    first = await held_up(stage)
    question = await call(stage, stage.discord.alice, "do you like tea?")
    await stage.chatter("green tea I mean", by=stage.discord.alice)
    await stage.discord.delete(first)
    await stage.reply_to(question)
    assert len(stage.model.chats) == 2
    assert stage.prompt.last_user.splitlines()[-2:] == [
        "Alice: do you like tea?",
        "Alice: green tea I mean",
    ]


async def test_when_ten_wait_the_next_one_is_told_with_a_reaction(stage: Stage) -> None:
    first = await held_up(stage)
    people = [stage.discord.member(f"person{number}") for number in range(11)]
    *waiting, refused = [await call(stage, user, "me too") for user in people]
    await stage.discord.wait_for(lambda: refused.reactions)
    assert list(refused.reactions) == [BUSY]
    assert [message.reactions for message in waiting] == [{}] * 10
    await stage.discord.delete(first)
    for question in waiting:
        await stage.reply_to(question)
    assert len(stage.model.chats) == 11


async def test_a_reaction_that_fails_is_no_matter(stage: Stage) -> None:
    first = await held_up(stage)
    fault = stage.discord.fault("PUT", "/reactions/", status=403, code=50013)
    people = [stage.discord.member(f"person{number}") for number in range(11)]
    questions = [await call(stage, user, "me too") for user in people]
    await stage.discord.wait_for(lambda: fault.hits)
    await stage.discord.delete(first)
    await stage.reply_to(questions[0])


async def test_deleting_the_message_ends_its_turn(stage: Stage) -> None:
    question = await held_up(stage)
    await stage.discord.delete(question)
    await stage.model.wait_for(lambda: stage.model.chats[0].aborted)
    assert await stage.end_of_turn(question) == "failed"
    assert "hello" in (await stage.ask("hello")).content


async def test_a_turn_whose_message_is_deleted_while_it_waits_is_never_taken(stage: Stage) -> None:
    first = await held_up(stage)
    question = await call(stage, stage.discord.alice, "never mind")
    after = await call(stage, stage.discord.member("bob"), "and me?")
    await everything_so_far(stage)
    await stage.discord.delete(question)
    await stage.discord.delete(first)
    await stage.reply_to(after)
    assert asked(stage)[2:] == ["bob: and me?"]
    assert "never mind" not in stage.prompt.text


async def test_a_message_that_joined_and_was_deleted_is_not_in_the_prompt(stage: Stage) -> None:
    first = await held_up(stage)
    question = await call(stage, stage.discord.alice, "do you like tea?")
    [added] = await stage.chatter("or maybe not", by=stage.discord.alice)
    await everything_so_far(stage)
    await stage.discord.delete(added)
    await stage.discord.delete(first)
    await stage.reply_to(question)
    assert "or maybe not" not in stage.prompt.text


async def test_a_message_edited_while_its_turn_waits_is_answered_as_it_is_now(
    stage: Stage,
) -> None:
    first = await held_up(stage)
    question = await call(stage, stage.discord.alice, "do you like tee?")
    await everything_so_far(stage)
    await stage.discord.edit(question, f"{stage.discord.bot.mention} do you like tea?")
    await stage.discord.delete(first)
    await stage.reply_to(question)
    assert asked(stage)[-1] == "Alice: do you like tea?"
    assert "tee" not in stage.prompt.text


async def test_deleted_messages_leave_the_next_prompt(stage: Stage) -> None:
    stage.model.on(lambda _: Text("I see"))
    reply = await stage.ask("my number is 4711")
    overheard, *more = await stage.chatter("one", "two", "three", by=stage.discord.owner)
    await stage.ask("go on")
    assert "my number is 4711" in stage.prompt.text
    question = next(m for m in stage.discord.general.history if "4711" in m.content)
    await stage.discord.delete(question)
    await stage.discord.delete(overheard)
    await stage.discord.bulk_delete(more[:1])
    await stage.discord.wait_for(lambda: not stage.rows(TWO_OR_4711))
    await stage.ask("what is my number?")
    assert "4711" not in stage.prompt.text
    assert [line in stage.prompt.text for line in ("Olga: one", "Olga: two", "Olga: three")] == [
        False,
        False,
        True,
    ]
    assert reply.content == "I see"


TWO_OR_4711 = "SELECT 1 FROM buffer_entries WHERE content LIKE '%4711%' OR content = 'two'"


async def test_edited_messages_are_in_the_next_prompt_as_they_are_now(stage: Stage) -> None:
    stage.model.on(lambda _: Text("I see"))
    [overheard] = await stage.chatter("the tee is ready", by=stage.discord.owner)
    await stage.ask("hello")
    assert "Olga: the tee is ready" in stage.prompt.text
    text = f"the tea is ready, {stage.discord.alice.mention}"
    await stage.discord.edit(overheard, text)
    await stage.discord.wait_for(
        lambda: stage.rows("SELECT 1 FROM buffer_entries WHERE content LIKE 'the tea%'")
    )
    await stage.ask("and now?")
    assert "Olga: the tea is ready, Alice" in stage.prompt.text
    assert "tee" not in stage.prompt.text


async def test_a_link_preview_that_comes_later_changes_nothing(stage: Stage) -> None:
    [overheard] = await stage.chatter("see https://example.org", by=stage.discord.owner)
    await stage.ask("hello")
    overheard.embeds = [{"type": "link", "title": "An example"}]
    stage.discord.message_event("MESSAGE_UPDATE", overheard)
    await stage.ask("and now?")
    assert "Olga: see https://example.org\n" in stage.prompt.text
    assert stage.rows("SELECT 1 FROM buffer_entries WHERE version > 1") == []


@pytest.mark.parametrize("size", [1, 2])
async def test_a_reply_that_is_deleted_leaves_the_next_prompt(stage: Stage, size: int) -> None:
    stage.model.queue(Text("a bad answer " * (100 * size), chunk_size=400))
    await stage.ask("hello")
    await stage.discord.delete(stage.discord.bot_messages(stage.discord.general)[-1])
    await stage.discord.wait_for(
        lambda: not stage.rows("SELECT 1 FROM buffer_entries WHERE persona_id IS NOT NULL")
    )
    await stage.ask("and now?")
    assert "a bad answer" not in stage.prompt.text


async def test_bots_that_answer_each_other_stop_after_three_exchanges(empty_stage: Stage) -> None:
    empty_stage.settings["DISCORD__ANSWER_OTHER_BOTS"] = "true"
    beeper = empty_stage.discord.member("beeper", is_bot=True)
    async with empty_stage.madeleine():
        for number in range(5):
            question = await call(empty_stage, beeper, f"beep {number}")
            if number < 3:
                await empty_stage.reply_to(question)
        await empty_stage.ask("stop that")
        assert "beeper: beep 4" in empty_stage.prompt.text
    assert asked(empty_stage) == [*(f"beeper: beep {n}" for n in range(3)), "Alice: stop that"]


async def test_messages_in_a_burst_are_all_in_the_prompt_once(stage: Stage) -> None:
    """As many people speak at once as the ring holds; none is lost, none doubled."""
    people = [stage.discord.member(f"person{number}") for number in range(5)]
    await asyncio.gather(*(stage.chatter(f"I am {p.name}", by=p) for p in people))
    await stage.ask("who is here?")

    def times(request: ModelRequest, text: str) -> int:
        return request.text.count(text)

    assert [times(stage.prompt, f"{p.name}: I am {p.name}") for p in people] == [1] * 5


async def test_a_turn_is_replying_while_its_reply_is_on_screen(stage: Stage) -> None:
    question = await held_up(stage)
    await stage.discord.wait_for(lambda: stage.discord.bot_messages(stage.discord.general))
    state = "SELECT 1 FROM turns WHERE message_id = ? AND state = 'replying'"
    await stage.discord.wait_for(lambda: stage.rows(state, question.id))
    await stage.discord.delete(question)
    assert await stage.end_of_turn(question) == "failed"


async def test_a_second_call_is_answered_where_the_first_is_deleted(stage: Stage) -> None:
    first = await held_up(stage)
    question = await call(stage, stage.discord.alice, "do you like tee?")
    again = await call(stage, stage.discord.alice, "do you like tea?")
    await everything_so_far(stage)
    await stage.discord.delete(question)
    await stage.discord.delete(first)
    await stage.reply_to(again)
    reply = stage.discord.bot_messages(stage.discord.general)[-1]
    assert reply.reference is not None
    assert reply.reference.message_id == again.id
    assert asked(stage)[-1] == "Alice: do you like tea?"
    assert "tee" not in stage.prompt.text


async def test_what_was_edited_to_nothing_was_never_said(stage: Stage) -> None:
    stage.model.on(lambda _: Text("I see"))
    [overheard] = await stage.chatter("a slip of the tongue", by=stage.discord.owner)
    await stage.ask("hello")
    assert stage.rows(SLIP)
    await stage.discord.edit(overheard, "\u200b")
    await stage.discord.wait_for(lambda: not stage.rows(SLIP))
    await stage.ask("and now?")
    assert "Olga" not in stage.prompt.text


SLIP = "SELECT 1 FROM buffer_entries WHERE content LIKE 'a slip%'"


async def test_an_invisible_direct_message_is_not_answered(stage: Stage) -> None:
    direct = stage.discord.direct(stage.discord.alice)
    await stage.discord.say(stage.discord.alice, direct, "\u200b")
    assert "are you there?" in (await stage.ask("are you there?", channel=direct)).content
    assert len(stage.model.chats) == 1
    assert stage.count("turns") == 1


async def test_a_bare_mention_is_answered(stage: Stage) -> None:
    question = await call(stage, stage.discord.alice, "")
    await stage.reply_to(question)
    assert asked(stage) == ["Alice: Madeleine"]

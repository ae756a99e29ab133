"""What a person may ask about themselves: to be erased, to get it all, to be told what is kept."""

import json

from tests.discord_e2e.stage import Stage
from tests.discord_e2e.test_memory import memories, teach
from tests.fakes import Message, User


async def asked(stage: Stage, command: str, by: User | None = None, **options: object) -> Message:
    person = by or stage.discord.alice
    used = await stage.discord.slash(person, stage.discord.general, command, **options)
    return await used.reply()


async def test_nothing_is_erased_before_it_is_confirmed(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    question = await asked(stage, "privacy erase")
    assert question.is_ephemeral
    assert "memories about you: 1" in question.content
    assert "messages of our talk: 2" in question.content
    assert len(memories(stage)) == 1


async def test_whoever_confirms_is_erased_and_still_answered(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    bob = stage.discord.member("bob")
    await teach(stage, "bob likes rum", by=bob)
    question = await asked(stage, "privacy erase")
    pressed = await stage.discord.click(stage.discord.alice, question, "Erase for good")
    assert (await pressed.reply(containing="It is erased")).content == "It is erased."
    assert [text.rpartition(" ")[2] for text in memories(stage)] == ["rum"]
    found = stage.database.read_bytes()
    assert b"green tea" not in found
    assert b"likes rum" in found
    await stage.ask("do you know me?")
    assert "green tea" not in stage.prompt.text


async def test_one_server_alone_can_be_erased(stage: Stage) -> None:
    question = await asked(stage, "privacy erase", where="server")
    assert question.content.startswith("This erases for good, on this server:")


async def test_all_that_is_held_comes_as_a_file_in_a_direct_message(stage: Stage) -> None:
    await teach(stage, "Alice likes green tea")
    answer = await asked(stage, "privacy export")
    assert answer.content == "I have sent it to you as a direct message."
    [message] = stage.discord.bot_messages(stage.discord.direct(stage.discord.alice))
    [file] = message.attachments
    document = json.loads(file.content)
    [memory] = document["tables"]["personal_memories"]
    assert memory["content"].endswith("likes green tea")


async def test_who_takes_no_direct_messages_is_told_so(stage: Stage) -> None:
    stage.discord.fault("POST", r"/users/@me/channels", status=403, times=5)
    answer = await asked(stage, "privacy export")
    assert answer.content.startswith("I cannot send you direct messages.")


async def test_the_notice_tells_what_is_kept(stage: Stage) -> None:
    answer = await asked(stage, "privacy notice")
    assert "up to 12 messages from just before" in answer.content
    assert "the last 8 of a room stay" in answer.content
    assert "14 days" in answer.content

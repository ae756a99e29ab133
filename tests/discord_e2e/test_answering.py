"""When she answers, and how the answer comes."""

from tests.discord_e2e.stage import Stage
from tests.fakes import MessageKind, Text


async def test_a_mention_is_answered_with_a_reply_that_grows_by_edits(stage: Stage) -> None:
    stage.model.queue(Text("Good morning to you too", chunk_delay=0.05))
    question = await stage.discord.say(
        stage.discord.alice, stage.discord.general, "good morning", mention_bot=True
    )
    reply = await stage.reply_to(question)
    assert reply.content == "Good morning to you too"
    assert len(reply.revisions) > 2
    assert all(reply.content.startswith(shorter) for shorter in reply.revisions)
    assert reply.reference is not None
    assert reply.reference.message_id == question.id
    assert stage.discord.bot_typed_in == [stage.discord.general]
    assert reply.kind is MessageKind.REPLY

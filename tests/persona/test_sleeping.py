"""A persona who is paused takes no turn; one who is asleep answers who calls her."""

from pathlib import Path

import pytest

from bot.persona.personas import PersonaState
from tests.talk import GUILD, Talk, open_talk

SILENT = (PersonaState.UNCONSCIOUS, PersonaState.INACTIVE, PersonaState.DEAD)


async def put(talk: Talk, state: PersonaState) -> None:
    personas = talk.app.services.personas
    await personas.set_state(await personas.main(GUILD), state)


@pytest.mark.parametrize("state", SILENT)
async def test_a_persona_who_answers_nobody_is_silent(tmp_path: Path, state: PersonaState) -> None:
    async with open_talk(tmp_path) as talk:
        await put(talk, state)
        assert await talk.say("Ann", "hello") is None
        assert talk.last is not None
        assert (talk.last.text, talk.last.shown) == ("", [])
        assert talk.model.requests == []
        assert await talk.rows("SELECT 1 FROM turns UNION ALL SELECT 1 FROM buffer_entries") == []


@pytest.mark.parametrize(
    "call", [{}, {"mentions_us": False, "replies_to_us": True}], ids=["mention", "reply"]
)
async def test_a_persona_asleep_answers_who_calls_her(
    tmp_path: Path, call: dict[str, object]
) -> None:
    async with open_talk(tmp_path) as talk:
        await put(talk, PersonaState.ASLEEP)
        assert await talk.say("Ann", "hello", **call) is not None


async def test_a_persona_who_was_woken_answers_again(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for state in SILENT:
            await put(talk, state)
            assert await talk.say("Ann", "are you there?") is None
            await put(talk, PersonaState.ACTIVE)
            assert await talk.say("Ann", "and now?") is not None


async def test_a_pause_in_one_server_holds_nowhere_else(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await put(talk, PersonaState.UNCONSCIOUS)
        assert await talk.say("Ann", "hello", "@ann") is not None

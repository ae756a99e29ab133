"""A person gets everything that is held of them, and nobody else's."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.memory.export import export_of
from bot.privacy.user_data import USER_DATA, Holds
from tests.memory.shelf import Shelf
from tests.memory.test_erasure import ANN, ORDER, plant
from tests.talk import Talk, open_talk

NOT_TOLD = {"embeddings", "erasures"}


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as talk:
        yield talk


async def exported(talk: Talk, name: str | None = None) -> dict[str, list[dict[str, object]]]:
    user = ANN if name is None else talk.person(name).id
    document = json.loads(await export_of(talk.app.services.database, user, talk.clock.now()))
    assert document["person"] == f"{user}"
    assert document["format"] == 1
    return document["tables"]


async def test_a_row_of_every_table_that_names_a_person_is_told(talk: Talk) -> None:
    await plant(talk)
    told = await exported(talk)
    of_people = {t for (t, _), holds in USER_DATA.items() if holds is Holds.PERSON}
    assert (of_people & set(ORDER)) - NOT_TOLD <= told.keys()


async def test_every_text_that_is_held_of_a_person_is_told(talk: Talk) -> None:
    needles = await plant(talk)
    told = json.dumps(await exported(talk))
    computed = {"needle-personal_memories-content_hash", "needle-embeddings-vector"}
    assert [needle for needle in needles if needle not in told] == sorted(computed)[::-1]


async def test_what_is_about_them_comes_with_who_told_it(talk: Talk, tmp_path: Path) -> None:
    shelf = Shelf(talk)
    await shelf.keep("likes rum", about="Ann", by="Ben")
    told = await exported(talk, "Ann")
    assert [row["content"] for row in told["personal_memories"]] == ["likes rum"]
    assert [row["said_by"] for row in told["memory_sources"]] == [talk.person("Ben").id]


async def test_nothing_of_others_is_told(talk: Talk) -> None:
    shelf = Shelf(talk)
    await shelf.keep("likes rum", about="Ben", by="Ben")
    await shelf.keep("the shed is green", by="Ben")
    await talk.say("Ben", "what a day")
    await talk.say("Ann", "hello")
    told = json.dumps(await exported(talk, "Ann"))
    assert "hello" in told
    assert not any(text in told for text in ("rum", "shed", "what a day"))

"""The checks of a new memory are made in their order: of two faults the earlier one is told."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from bot.i18n import catalogue
from bot.memory.refusals import MemoryRefused, RefusalCode
from bot.privacy.levels import PrivacyLevel
from bot.prompts import prompt
from tests.memory.shelf import Shelf
from tests.talk import open_talk

TWO_AT_MOST = {"MADELEINE__MEMORY__LTM_PER_PARTITION": "2"}
KEY = "the key is ghp_" + "a1B2" * 9
NAMES_BEN = "Ben likes tea"


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with open_talk(tmp_path, environ=TWO_AT_MOST) as talk:
        shelf = Shelf(talk)
        await talk.say("Ben", "hello")  # his name is known
        await talk.level("Ben", PrivacyLevel.PARTIAL)
        yield shelf


async def refused(shelf: Shelf, content: str, **how: object) -> str:
    with pytest.raises(MemoryRefused) as caught:
        await shelf.keep(content, **how)  # type: ignore[arg-type]
    return caught.value.code


async def fill(shelf: Shelf, lineage: int | None = None) -> None:
    for text in ("Chess is on Fridays", "Pizza is on Mondays"):
        await shelf.keep(text, lineage=lineage, by_person=True)


async def test_content_comes_before_scope(shelf: Shelf) -> None:
    for content, code in ((" ", "blank"), ("x" * 1_001, "too_long"), (KEY, "credential")):
        assert await refused(shelf, content, may_teach=False) == code
    assert await refused(shelf, "Chess is on Fridays", may_teach=False) == "managers_only"


async def test_length_comes_before_keys(shelf: Shelf) -> None:
    assert await refused(shelf, KEY + " x" * 500) == "too_long"


async def test_scope_comes_before_privacy(shelf: Shelf) -> None:
    assert await refused(shelf, NAMES_BEN, may_teach=False) == "managers_only"
    assert await refused(shelf, NAMES_BEN) == "privacy"


async def test_privacy_comes_before_the_lineage(shelf: Shelf) -> None:
    assert await refused(shelf, NAMES_BEN, lineage=0) == "privacy"
    assert await refused(shelf, "Chess is on Fridays", lineage=0) == "global_lineage"


async def test_the_lineage_comes_before_the_limit(shelf: Shelf) -> None:
    await fill(shelf, lineage=0)
    assert await refused(shelf, "Go is on Tuesdays", lineage=0) == "global_lineage"
    assert await refused(shelf, "Go is on Tuesdays", lineage=0, by_person=True) == "full"


async def test_the_limit_comes_before_what_is_similar(shelf: Shelf) -> None:
    await shelf.keep("Chess is on Fridays at the club")
    assert await refused(shelf, "Chess is on Fridays at the clubs") == "similar"
    await shelf.keep("Pizza is on Mondays")
    assert await refused(shelf, "Chess is on Fridays at the clubs") == "full"


async def test_what_is_known_here_is_a_success_though_no_more_fits(shelf: Shelf) -> None:
    await fill(shelf)
    assert (await shelf.keep("chess is on fridays.")).known_before


# --- a change


async def test_of_a_change_content_comes_before_rights_before_privacy(shelf: Shelf) -> None:
    kept = await shelf.keep("Chess is on Fridays")

    async def why(content: str, by: str) -> str:
        with pytest.raises(MemoryRefused) as caught:
            await shelf.change(kept, content, by=by)
        return caught.value.code

    assert await why(KEY, "Cleo") == "credential"
    assert await why(NAMES_BEN, "Cleo") == "not_yours"
    assert await why(NAMES_BEN, "Ann") == "privacy"
    assert await shelf.of_server() == ["Chess is on Fridays"]


async def test_of_a_change_privacy_comes_before_the_lineage(shelf: Shelf) -> None:
    kept = await shelf.keep("Chess is on Fridays", lineage=0, by_person=True)
    for content, code in ((NAMES_BEN, "privacy"), ("Go is on Tuesdays", "global_lineage")):
        with pytest.raises(MemoryRefused) as caught:
            await shelf.change(kept, content)
        assert caught.value.code == code


# --- their texts


@pytest.mark.parametrize("code", get_args(RefusalCode))
def test_every_code_has_a_text_for_people_and_one_for_the_model(code: str) -> None:
    assert f"memory.refused.{code}" in catalogue().texts("en-US")
    assert prompt(f"refused.{code}")

"""Undo: what the model changed in a turn is taken back, by whoever has a right to that."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.features import Flag
from bot.memory.long_term import Memory, Undone
from bot.memory.refusals import MemoryRefused
from bot.privacy.levels import PrivacyLevel
from tests.fakes import Text, ToolCalls
from tests.memory.shelf import Shelf
from tests.talk import Talk, open_talk

CREATE, UPDATE = "create_long_term_memory", "update_long_term_memory"
TEA = {"content": "Ann likes tea", "scope": "target_user", "target": "Ann"}
CHESS = {"content": "Chess is on Fridays", "scope": "server_wide", "target": ""}


@dataclass
class Table:
    """Turns in which the model changes memory, and people who undo that."""

    talk: Talk

    @property
    def shelf(self) -> Shelf:
        return Shelf(self.talk)

    async def turn(self, text: str, *calls: tuple[str, dict[str, str]], by: str = "Ann") -> None:
        self.talk.model.queue(*[ToolCalls([call]) for call in calls], Text("done"))
        await self.talk.say(by, text)

    async def undo(
        self, *, by: str = "Ann", channel: str = "general", manager: bool = False
    ) -> list[tuple[str, str]]:
        """Undo the last turn."""
        turn = self.talk.last.undoes
        assert turn is not None, "the reply has nothing to undo"
        listening = await self.shelf.listening(channel)
        actor = self.shelf.actor(by, manager=manager)
        undone = await self.shelf.memory.undo(turn, actor, listening)
        return [(one.kind, self.shown(one)) for one in undone]

    def shown(self, one: Undone) -> str:
        return one.text.replace(f"{{p:{self.talk.person('Ann').id}}}", "Ann")

    async def refused(self, **how: object) -> str:
        before = await self.kept()
        with pytest.raises(MemoryRefused) as caught:
            await self.undo(**how)  # type: ignore[arg-type]
        assert await self.kept() == before
        return caught.value.code

    async def kept(self, channel: str = "general") -> list[Memory]:
        here = await self.shelf.listening(channel)
        memory = self.shelf.memory
        ann = self.talk.person("Ann").id
        found = [*await memory.held_about(ann, here), *await memory.server_memories(here)]
        return sorted(found, key=lambda one: one.id)

    async def texts(self) -> list[str]:
        ann = f"{{p:{self.talk.person('Ann').id}}}"
        return [one.content.replace(ann, "Ann") for one in await self.kept()]


@pytest.fixture
async def table(tmp_path: Path) -> AsyncIterator[Table]:
    async with open_talk(tmp_path) as talk:
        yield Table(talk)


# --- what is taken back


async def test_what_was_saved_goes(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    assert await table.texts() == ["Ann likes tea"]
    assert await table.undo() == [("saved", "Ann likes tea")]
    assert await table.kept() == []
    assert await table.talk.rows("SELECT * FROM memories") == []


async def test_what_another_said_too_stays_their_word(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.shelf.keep(f"{{p:{table.talk.person('Ann').id}}} likes tea", about="Ann", by="Ben")
    await table.undo()
    (left,) = await table.kept()
    assert {source.said_by for source in left.sources} == {table.talk.person("Ben").id}
    assert left.author == table.talk.person("Ben").id


async def test_what_was_changed_says_again_what_it_said(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    (before,) = await table.kept()
    await table.turn("no, coffee", (UPDATE, {"id": "M1", "content": "Ann likes coffee"}))
    (changed,) = await table.kept()
    assert [former.content for former in changed.former] == [before.content]
    assert await table.undo() == [("updated", "Ann likes tea")]
    assert await table.kept() == [before]


async def test_of_two_changes_the_earlier_former_text_stays(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("no, coffee", (UPDATE, {"id": "M1", "content": "Ann likes coffee"}))
    before = await table.kept()
    await table.turn("no, cocoa", (UPDATE, {"id": "M1", "content": "Ann likes cocoa"}))
    await table.undo()
    assert await table.kept() == before


async def test_what_the_model_dropped_by_itself_comes_back_with_all_it_had(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("no, coffee", (UPDATE, {"id": "M1", "content": "Ann likes coffee"}))
    before = await table.kept()
    await table.turn("I am tired", (UPDATE, {"id": "M1", "content": ""}))
    assert await table.kept() == []
    assert await table.undo() == [("forgotten", "Ann likes coffee")]
    assert await table.kept() == before


async def test_all_changes_of_a_turn_go_together(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    before = await table.kept()
    await table.turn(
        "no, coffee, and chess is on Fridays",
        (UPDATE, {"id": "M1", "content": "Ann likes coffee"}),
        (CREATE, CHESS),
        (UPDATE, {"id": "M1", "content": "Ann likes strong coffee"}),
    )
    kinds = [kind for kind, _ in await table.undo()]
    assert kinds == ["updated", "saved", "updated"]
    assert await table.kept() == before


async def test_a_change_to_what_another_memory_says_leaves_both_as_they_were(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("I play go", (CREATE, {**TEA, "content": "Ann plays go"}))
    before = await table.kept()
    # M1 is the one that was changed last.
    await table.turn("no go, tea", (UPDATE, {"id": "M1", "content": "Ann likes tea"}))
    assert await table.texts() == ["Ann likes tea"]
    await table.undo()
    assert await table.kept() == before


# --- what cannot be taken back


async def test_it_is_undone_once(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.undo()
    assert await table.refused() == "undo_nothing"


async def test_what_people_ask_to_forget_is_gone(table: Table) -> None:
    await table.talk.switch(Flag.NOTICES, on=False)  # else they are asked first
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("please forget that I like tea", (UPDATE, {"id": "M1", "content": ""}))
    assert await table.talk.rows("SELECT * FROM memories") == []
    assert table.talk.last.undoes is None
    rows = await table.talk.rows("SELECT * FROM memory_changes WHERE former IS NOT NULL")
    assert rows == []


async def test_what_was_changed_since_is_left_alone(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    turn = table.talk.last.undoes
    await table.turn("no, coffee", (UPDATE, {"id": "M1", "content": "Ann likes coffee"}))
    table.talk.last.undoes = turn
    assert await table.refused() == "undo_changed"


async def test_of_several_changes_all_are_left_where_one_cannot_be_undone(table: Table) -> None:
    await table.turn("tea and chess", (CREATE, TEA), (CREATE, CHESS))
    (tea, _) = await table.kept()
    await table.shelf.change(tea.id, "Ann likes milk")
    assert await table.refused() == "undo_changed"


@pytest.mark.parametrize(("hours", "comes_back"), [(23, True), (25, False)])
async def test_what_was_dropped_is_kept_for_a_day(
    table: Table, hours: int, *, comes_back: bool
) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("I am tired", (UPDATE, {"id": "M1", "content": ""}))
    table.talk.clock.pass_(hours=hours)
    await table.shelf.memory.drop_old_changes()
    if comes_back:
        await table.undo()
        assert await table.texts() == ["Ann likes tea"]
    else:
        assert await table.refused() == "undo_nothing"


@pytest.mark.parametrize(("days", "can"), [(29, True), (31, False)])
async def test_what_was_saved_can_be_undone_for_a_month(
    table: Table, days: int, *, can: bool
) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    table.talk.clock.pass_(hours=24 * days)
    await table.shelf.memory.drop_old_changes()
    if can:
        await table.undo()
    else:
        assert await table.refused() == "undo_nothing"


async def test_nothing_comes_back_about_who_went_private(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    await table.turn("no, coffee", (UPDATE, {"id": "M1", "content": "Ann likes coffee"}))
    await table.talk.level("Ann", PrivacyLevel.PARTIAL)
    assert await table.refused() == "privacy"


async def test_no_more_come_back_than_there_may_be(tmp_path: Path) -> None:
    one = {"MADELEINE__MEMORY__LTM_PER_PARTITION": "1"}
    async with open_talk(tmp_path, environ=one) as talk:
        table = Table(talk)
        await table.turn("I like tea", (CREATE, TEA))
        await table.turn("I am tired", (UPDATE, {"id": "M1", "content": ""}))
        turn = talk.last.undoes
        await table.turn("I play go", (CREATE, {**TEA, "content": "Ann plays go"}))
        talk.last.undoes = turn
        assert await table.refused() == "full"


async def test_what_is_known_again_gets_its_sources_back(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    (before,) = await table.kept()
    await table.turn("I am tired", (UPDATE, {"id": "M1", "content": ""}))
    turn = table.talk.last.undoes
    await table.turn("I do like tea", (CREATE, TEA))
    table.talk.last.undoes = turn
    await table.undo()
    (after,) = await table.kept()
    assert before.sources[0] in after.sources
    assert len(after.sources) == 2


# --- who may


@pytest.mark.parametrize(
    ("call", "by", "manager", "refusal"),
    [
        (TEA, "Ann", False, None),
        (TEA, "Ben", False, None),
        (TEA, "Cleo", False, "not_yours"),
        (TEA, "Cleo", True, "not_yours"),
        (CHESS, "Ben", False, None),
        (CHESS, "Cleo", False, "not_yours"),
        (CHESS, "Cleo", True, None),
    ],
)
async def test_who_made_it_whom_it_is_about_and_managers_for_the_server(
    table: Table, call: dict[str, str], by: str, refusal: str | None, *, manager: bool
) -> None:
    await table.talk.say("Ann", "hello")
    await table.turn("Ann likes tea, chess is on Fridays", (CREATE, call), by="Ben")
    if refusal is None:
        await table.undo(by=by, manager=manager)
        assert await table.kept() == []
    else:
        assert await table.refused(by=by, manager=manager) == refusal


async def test_where_it_is_not_heard_there_is_nothing_to_undo(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    assert await table.refused(channel="elsewhere") == "undo_nothing"


# --- what a memory said before


async def test_a_former_text_is_known_where_it_was_said(table: Table) -> None:
    shelf = table.shelf
    kept = await shelf.keep("Ann likes tea", about="Ann", channel="private")
    await shelf.keep("Ann likes tea", about="Ann")  # a second source, said in public
    here, private = await shelf.listening(), await shelf.listening("private")
    both = replace(
        here, audience=replace(here.audience, heard=here.audience.heard | private.audience.heard)
    )
    source = await shelf.source("Ann")
    await shelf.memory.update(kept.id, "Ann likes coffee", shelf.actor("Ann"), source, both)
    await shelf.change(kept, "Ann likes cocoa")
    (memory,) = await table.kept()
    assert [former.content for former in memory.former] == ["Ann likes coffee", "Ann likes tea"]


async def test_what_was_said_in_private_is_not_told_where_it_was_corrected(table: Table) -> None:
    shelf = table.shelf
    kept = await shelf.keep("Ann is unwell", about="Ann", channel="private")
    here, private = await shelf.listening(), await shelf.listening("private")
    both = replace(
        here, audience=replace(here.audience, heard=here.audience.heard | private.audience.heard)
    )
    source = await shelf.source("Ann")
    await shelf.memory.update(kept.id, "Ann is well", shelf.actor("Ann"), source, both)
    (memory,) = await table.kept()
    assert (memory.content, memory.former) == ("Ann is well", ())
    await table.talk.say("Ann", "how am I?")
    assert "Ann is well" in table.talk.prompt.system
    assert "unwell" not in table.talk.prompt.system


async def test_a_former_text_goes_with_the_word_of_who_said_it(table: Table) -> None:
    await table.turn("I like tea", (CREATE, TEA))
    (kept,) = await table.kept()
    await table.shelf.change(kept.id, "Ann likes coffee")
    await table.shelf.memory.forget(
        kept.id, table.shelf.actor("Ann"), await table.shelf.listening()
    )
    assert await table.talk.rows("SELECT * FROM memory_versions") == []
    assert await table.talk.rows("SELECT * FROM version_sources") == []

"""The tools of long-term memory: whom a fact is about, and every reason why it is not kept."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.errors import StorageUnavailable
from bot.features import Flag
from bot.identifiers import LineageId
from bot.memory.refusals import RefusalCode
from bot.privacy.levels import PrivacyLevel
from bot.prompts import prompt, prompt_keys
from tests.fakes import ModelRequest, Reply, Text, ToolCalls
from tests.talk import FakeClock, Talk, open_talk

CREATE, UPDATE = "create_long_term_memory", "update_long_term_memory"
PLEASE = "please remember that"
NOT_SAVED = "I have not saved this."
IMPATIENT = {"MADELEINE__STORAGE__BUSY_TIMEOUT_MS": "20"}


async def told(
    talk: Talk, name: str = "Ann", said: str = PLEASE, channel: str = "general", **call: object
) -> tuple[str, str]:
    """One turn with one call of the create tool: its outcome, and what the model was told."""
    talk.model.queue(ToolCalls([(CREATE, {"content": "Ann sings", **call})]), Text("hm"))
    return await _result(talk, name, said, channel)


async def changed(
    talk: Talk, content: str, *, memory: str = "M1", name: str = "Ann", target: str = ""
) -> tuple[str, str]:
    """The same with the update tool."""
    arguments = {"id": memory, "content": content, "target": target}
    talk.model.queue(ToolCalls([(UPDATE, arguments)]), Text("hm"))
    return await _result(talk, name, PLEASE, "general")


async def _result(talk: Talk, name: str, said: str, channel: str) -> tuple[str, str]:
    report = await talk.say(name, said, channel)
    assert report is not None
    [result] = talk.prompt.tool_results
    [call] = report.tool_calls
    # Only what was kept may be called saved.
    assert (call.outcome == "ok") != (report.footer == NOT_SAVED)
    return call.outcome, result


async def personal(talk: Talk) -> list[tuple[str, str]]:
    """Every personal memory: about whom, and what."""
    names = {person.id: name for name, person in talk.people.items()}
    rows = await talk.rows("SELECT user_id, content FROM personal_memories ORDER BY id")
    texts: list[tuple[str, str]] = []
    for row in rows:
        text = str(row["content"])
        for user, name in names.items():
            text = text.replace(f"{{p:{user}}}", name)
        texts.append((names[row["user_id"]], text))  # pyright: ignore[reportArgumentType]
    return texts


async def about_the_server(talk: Talk) -> list[object]:
    rows = await talk.rows("SELECT content FROM server_memories ORDER BY id")
    return [row["content"] for row in rows]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another program holds the file: nothing can be written."""
    with closing(sqlite3.connect(folder / "madeleine.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


# --- whom it is about


@pytest.mark.parametrize(
    ("target", "about"),
    [
        ("", "Ann"),
        ("  ", "Ann"),
        ("U1", "Benjamin"),
        ("u1", "Benjamin"),
        ("Ann", "Ann"),
        ("benjamin", "Benjamin"),
        ("@Benjamin", "Benjamin"),
        ("Benjamine", "Benjamin"),
    ],
)
async def test_a_target_is_a_handle_or_a_name_or_nearly_one(
    tmp_path: Path, target: str, about: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Benjamin", "hello")
        assert await told(talk, scope="target_user", target=target) == ("ok", "Saved.")
        assert await personal(talk) == [(about, "Ann sings")]


@pytest.mark.parametrize("target", ["Madeleine", "madeleine "])
async def test_the_bot_itself_means_the_server(tmp_path: Path, target: str) -> None:
    async with open_talk(tmp_path) as talk:
        outcome, _ = await told(talk, content="tea is at five", target=target)
        assert outcome == "ok"
        assert await about_the_server(talk) == ["tea is at five"]


async def test_a_name_that_nobody_bears_is_asked_about(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        outcome, text = await told(talk, target="Zebulon")
        assert outcome == "retry"
        assert "nobody here is called Zebulon" in text
        assert "Ann" not in text  # nobody is proposed who is called quite otherwise
        assert await personal(talk) == []


async def test_names_that_are_too_much_alike_are_named_back(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for name in ("Christina", "Christine", "Christiana", "Christian"):
            await talk.say(name, "hello")
        outcome, text = await told(talk, target="Christin")
        assert outcome == "retry"
        named = [
            name for name in ("Christina", "Christine", "Christiana", "Christian") if name in text
        ]
        assert 2 <= len(named) <= 3
        assert "could be" in text


async def test_somebody_who_is_only_spoken_of_cannot_be_a_target(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Cleopatra", "hello", "garden")
        outcome, _ = await told(talk, target="Cleopatra")
        assert outcome == "retry"
        assert await personal(talk) == []


# --- every refusal, with its own words


async def test_blank_content_is_refused(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        assert await told(talk, content=" \n ") == ("retry", prompt("refused.blank"))


@pytest.mark.parametrize(("length", "is_kept"), [(1_000, True), (1_001, False)])
async def test_a_thousand_characters_are_kept(tmp_path: Path, length: int, is_kept: bool) -> None:
    async with open_talk(tmp_path) as talk:
        outcome, text = await told(talk, content="x" * length)
        assert (outcome == "ok") == is_kept
        assert ("1001 characters; at most 1000" in text) != is_kept
        assert bool(await personal(talk)) == is_kept


@pytest.mark.parametrize("secret", ["ghp_" + "a1" * 18, "sk-" + "Ab3" * 10])
async def test_a_key_or_token_is_never_kept(tmp_path: Path, secret: str) -> None:
    async with open_talk(tmp_path) as talk:
        outcome, text = await told(talk, content=f"Ann's key is {secret}")
        assert (outcome, text) == ("retry", prompt("refused.credential"))
        assert await personal(talk) == []


async def test_nothing_server_wide_is_kept_from_a_direct_message(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        result = await told(talk, channel="@ann", scope="server_wide")
        assert result == ("retry", prompt("refused.no_server"))
        assert await told(talk, channel="@ann", content="Ann dances") == ("ok", "Saved.")
        assert await about_the_server(talk) == []


@pytest.mark.parametrize("level", [PrivacyLevel.PARTIAL, PrivacyLevel.FULL])
async def test_nothing_is_kept_about_a_person_who_is_not_open(
    tmp_path: Path, level: PrivacyLevel
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Benjamin", "hello")
        await talk.level("Benjamin", level)
        ben = talk.person("Benjamin")
        refused = ("retry", prompt("refused.privacy"))
        talk.model.queue(ToolCalls([(CREATE, {"content": "x", "target": "Benjamin"})]), Text("hm"))
        report = await talk.say("Ann", PLEASE, people=(ben,))
        assert report is not None
        assert (report.tool_calls[0].outcome, talk.prompt.tool_results[0]) == refused
        assert await told(talk, content="Benjamin sings", scope="server_wide") == refused
        assert await told(talk, content="a friend of benjamin", scope="target_user") == refused
        assert await personal(talk) == []
        assert await about_the_server(talk) == []


async def test_a_partial_person_may_tell_the_server_about_themselves(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.level("Ann", PrivacyLevel.PARTIAL)
        assert (await told(talk, scope="server_wide"))[0] == "ok"
        assert (await told(talk, scope="target_user", content="Ann dances"))[0] == "retry"
        assert await personal(talk) == []


async def test_a_change_that_names_a_partial_person_is_refused(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings with a friend", about="Ann")
        await talk.level("Ben", PrivacyLevel.PARTIAL)
        assert await changed(talk, "Ann sings with Ben") == ("retry", prompt("refused.privacy"))
        assert await personal(talk) == [("Ann", "Ann sings with a friend")]


async def test_the_global_lineage_is_never_written_by_a_model(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        personas = talk.app.services.personas
        guild = talk.place().guild_key
        persona = await personas.main(guild)
        personas._mains._values[guild] = replace(persona, lineage=LineageId(0))
        assert await told(talk) == ("retry", prompt("refused.global_lineage"))
        assert await personal(talk) == []


@pytest.mark.parametrize(("limit", "is_kept"), [(2, True), (1, False)])
async def test_a_full_partition_takes_no_more(tmp_path: Path, limit: int, is_kept: bool) -> None:
    environ = {"MADELEINE__MEMORY__LTM_PER_PARTITION": str(limit)}
    async with open_talk(tmp_path, environ=environ) as talk:
        await talk.teach("Ann was born in Rome", about="Ann")
        outcome, text = await told(talk)
        assert (outcome == "ok") == is_kept
        assert ("1 memories are kept here already" in text) != is_kept


async def test_a_near_duplicate_names_the_memory_to_change(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann was born in Rome", about="Ann")
        await talk.teach("the tall one likes a cup of green tea", about="Ann")
        outcome, text = await told(talk, content="the tall one likes the cup of green tea")
        assert outcome == "retry"
        assert text.startswith("Not saved: memory M1 says nearly the same.")


async def test_what_is_known_already_is_no_failure(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("sings", about="Ann")
        assert await told(talk, content="Sings!") == ("ok", prompt("done.known"))


async def test_a_memory_that_is_gone_meanwhile_is_not_found(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")

        def goes_meanwhile(request: ModelRequest) -> Reply | None:
            if request.tool_results:
                return None
            with closing(sqlite3.connect(tmp_path / "madeleine.db")) as other:
                other.execute("DELETE FROM memory_sources")
                other.commit()
            return ToolCalls([(UPDATE, {"id": "M1", "content": "Ann dances"})])

        talk.model.on(goes_meanwhile)
        talk.model.queue(Text("hm"))
        assert await _result(talk, "Ann", PLEASE, "general") == (
            "retry",
            "There is no memory M1 here.",
        )


async def test_another_persons_memory_is_not_changed(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ben sings", about="Ben", by="Ben")
        await talk.say("Ben", "hello")
        assert await changed(talk, "Ben dances") == ("retry", prompt("refused.not_yours"))
        assert await changed(talk, "") == ("retry", prompt("refused.not_yours"))
        assert (await changed(talk, "Ben dances", name="Ben"))[0] == "ok"


async def test_where_only_managers_may_teach_the_server_members_are_refused(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.MEMBER_TEACHING, on=False)
        refused = ("retry", prompt("refused.managers_only"))
        assert await told(talk, scope="server_wide") == refused
        assert (await told(talk, scope="target_user"))[0] == "ok"
        talk.person("Mia", manager=True)
        assert (await told(talk, "Mia", content="tea at five", scope="server_wide"))[0] == "ok"
        assert await about_the_server(talk) == ["tea at five"]


@pytest.mark.parametrize("target", ["", " ", "Ann", "u2"])
async def test_a_memory_is_changed_where_the_target_is_whom_it_is_about(
    tmp_path: Path, target: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.say("Benjamin", "hello")
        assert await changed(talk, "Ann dances", target=target) == ("ok", "Changed.")
        assert await personal(talk) == [("Ann", "Ann dances")]


@pytest.mark.parametrize("content", ["Ann dances", ""])
@pytest.mark.parametrize("target", ["Benjamin", "u1", "Madeleine", "Zebulon"])
async def test_a_memory_about_somebody_else_than_the_target_stays_as_it_is(
    tmp_path: Path, target: str, content: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.say("Benjamin", "hello")
        outcome, told = await changed(talk, content, target=target)
        assert (outcome, target in told) == ("retry", True)
        assert await personal(talk) == [("Ann", "Ann sings")]


@pytest.mark.parametrize(("target", "outcome"), [("", "ok"), ("madeleine", "ok"), ("Ann", "retry")])
async def test_what_the_server_knows_is_about_no_person(
    tmp_path: Path, target: str, outcome: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("tea is at five")
        assert (await changed(talk, "tea is at six", target=target))[0] == outcome
        known = ["tea is at six" if outcome == "ok" else "tea is at five"]
        assert await about_the_server(talk) == known


async def test_an_update_is_offered_with_a_target_that_may_be_left_out(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.say("Ann", "hello")
        [schema] = [
            tool["function"]["parameters"]
            for tool in talk.prompt.body["tools"]
            if tool["function"]["name"] == UPDATE
        ]
        assert set(schema["properties"]) == {"id", "content", "target"}
        assert schema["required"] == ["id", "content"]


async def test_an_unknown_id_names_those_there_are(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.teach("tea is at five")
        result = await changed(talk, "Ann dances", memory="M9")
        assert result == ("retry", "There is no such memory here. The ids are: M1, M2.")
        assert (await changed(talk, "tea is at six", memory=" m1 "))[0] == "ok"


@pytest.mark.parametrize("tool", [CREATE, UPDATE])
async def test_with_teaching_off_a_call_ends_without_touching_the_database(
    tmp_path: Path, tool: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.switch(Flag.SELF_TEACHING, on=False)
        arguments = {"id": "M1", "content": "Ann dances"}
        talk.model.queue(ToolCalls([(tool, arguments)]), Text("hm"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert talk.prompt.tool_results == [prompt("refused.teaching_off")]
        assert [call.outcome for call in report.tool_calls] == ["failed"]
        assert not {CREATE, UPDATE} & set(talk.model.chats[0].tool_names)
        assert await personal(talk) == [("Ann", "Ann sings")]


@pytest.mark.parametrize("tool", [CREATE, UPDATE])
async def test_a_database_that_cannot_be_written_is_told_honestly(
    tmp_path: Path, tool: str
) -> None:
    async with open_talk(tmp_path, environ=IMPATIENT) as talk:
        await talk.teach("Ann sings", about="Ann")
        arguments = {"id": "M1", "content": "Ann dances"}

        def while_locked(request: ModelRequest) -> Reply:
            if not request.tool_results:
                lock.__enter__()
                return ToolCalls([(tool, arguments)])
            lock.__exit__(None, None, None)
            return Text("hm")

        lock = locked(tmp_path)
        talk.model.on(while_locked)
        outcome, text = await _result(talk, "Ann", PLEASE, "general")
        assert (outcome, text) == ("failed", prompt("refused.storage"))
        assert await personal(talk) == [("Ann", "Ann sings")]


def test_every_refusal_has_its_own_words_for_the_model() -> None:
    codes: tuple[str, ...] = get_args(RefusalCode)
    assert {f"refused.{code}" for code in codes} <= prompt_keys()
    assert len({prompt(f"refused.{code}") for code in codes}) == len(codes)


# --- changes


@pytest.mark.parametrize("blank", ["", " ", " \u200b", "\u2060\n"])
async def test_blank_content_deletes(tmp_path: Path, blank: str) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": blank})]), Text("gone"))
        report = await talk.say("Ann", "I no longer sing at all")
        assert report is not None
        assert report.footer == "Forgotten: Ann sings"
        assert await talk.rows("SELECT * FROM memories") == []


async def test_what_people_ask_to_forget_is_shown_and_goes_once_they_confirm(
    tmp_path: Path,
) -> None:
    async with open_talk(tmp_path) as talk:
        memory = await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), Text("here it is"))
        report = await talk.say("Ann", "forget that I sing")
        assert report is not None
        assert report.footer == "Shall I forget this? Ann sings"
        assert report.undoes is None
        assert report.forgets is not None
        assert report.forgets.memories == (memory,)
        assert len(await talk.rows("SELECT * FROM memories")) == 1


async def test_nobody_is_asked_to_confirm_what_is_not_theirs(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        await talk.say("Ann", "hello")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), Text("I may not"))
        report = await talk.say("Ben", "forget that Ann sings")
        assert report is not None
        assert report.footer == ""


async def test_without_notices_what_people_ask_to_forget_goes_at_once(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.NOTICES, on=False)
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), Text("gone"))
        await talk.say("Ann", "forget that I sing")
        assert await talk.rows("SELECT * FROM memories") == []


async def test_a_change_is_shown_and_the_former_text_is_kept_with_its_end(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": "Ann dances"})]), Text("ok"))
        report = await talk.say("Ann", "I stopped singing, I dance")
        assert report is not None
        assert report.footer == "Changed: Ann dances"
        assert await personal(talk) == [("Ann", "Ann dances")]
        [old] = await talk.rows("SELECT content FROM memory_versions")
        assert old["content"] == "Ann sings"


async def test_a_memory_is_in_the_next_prompt_and_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_talk(tmp_path, clock=clock) as talk:
        await told(talk)
        await talk.say("Ann", "what do you know?")
        assert '"Ann sings"' in talk.prompt.system
    async with open_talk(tmp_path, clock=clock) as talk:
        await talk.say("Ann", "what do you know?")
        assert '"Ann sings"' in talk.prompt.system


async def test_the_id_may_be_a_number(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, '{"id": 1, "content": "Ann dances"}')]), Text("hm"))
        await talk.say("Ann", "hello")
        assert talk.prompt.tool_results == ["There is no such memory here. The ids are: M1."]


# --- what the line under a reply says, whatever the reply claims


async def test_a_wish_to_forget_that_nothing_came_of_is_told(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(Text("Done, I have forgotten it."))
        report = await talk.say("Ann", "please forget that I sing")
        assert report is not None
        assert report.footer == "I have not forgotten anything: /memory forget does it."


async def test_another_call_does_not_pass_for_saving(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": ""})]), Text("Saved!"))
        report = await talk.say("Ann", "please remember that I like tea")
        assert report is not None
        assert report.footer == "Forgotten: Ann sings\nI have not saved this."


async def test_half_of_what_was_asked_is_told_as_half(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.say("Ann", "hello")
        facts = [
            {"content": f"Ann likes {what}", "scope": "target_user", "target": "Ann"}
            for what in ("tea", "pie")
        ]
        memory, create = talk.app.services.long_term, talk.app.services.long_term.create

        async def full_from_the_second_on(*args: Any, **more: Any) -> Any:
            if await talk.rows("SELECT 1 FROM memories"):
                raise StorageUnavailable("the disk is full")
            return await create(*args, **more)

        memory.create = full_from_the_second_on
        talk.model.queue(ToolCalls([(CREATE, fact) for fact in facts]), Text("I saved both."))
        report = await talk.say("Ann", "remember that I like tea and that I like pie")
        assert report is not None
        assert report.footer == "Saved: Ann likes tea\nI have not saved all of this."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("actually I hate singing", "I have not saved this."),
        ("please forget that I sing", "I have not forgotten anything: /memory forget does it."),
    ],
)
async def test_a_store_that_fails_is_told_whatever_was_asked(
    tmp_path: Path, said: str, expected: str
) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.switch(Flag.NOTICES, on=False)
        await talk.teach("Ann sings", about="Ann")

        async def full(*_: Any, **__: Any) -> Any:
            raise StorageUnavailable("the disk is full")

        memory = talk.app.services.long_term
        memory.update = memory.forget = full
        content = "" if "forget" in said else "Ann hates singing"
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1", "content": content})]), Text("Done."))
        report = await talk.say("Ann", said)
        assert report is not None
        assert report.footer == expected


async def test_a_call_without_content_deletes_nothing(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        await talk.teach("Ann sings", about="Ann")
        talk.model.queue(ToolCalls([(UPDATE, {"id": "M1"})]), Text("hm"))
        report = await talk.say("Ann", "hello")
        assert report is not None
        assert [call.outcome for call in report.tool_calls] == ["retry"]
        assert len(await talk.rows("SELECT * FROM memories")) == 1

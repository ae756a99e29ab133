"""The terminal and Discord are one pipeline: the same lines, the same prompts, equal tables."""

import asyncio
import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.discord_e2e.stage import Stage
from tests.fakes import LoopbackModel, ModelRequest, Reply, Text, ToolCalls

LINES = (
    ("Ann", "general", "hello, I am new here"),
    ("Ben", "general", "please remember that I play the cello"),
    ("Ann", "general", "please remember that our server meets on Fridays"),
    ("Ann", "music", "does anybody here play an instrument?"),
    ("Ben", "general", "which instrument do I play?"),
    ("Ben", "general", "two\nlines, and {p:1} and @everyone"),
)
TABLES = {
    "buffer_entries": "kind, content, scene, pinned, version, tokens, author_id IS NULL",
    "personal_memories": "content, persona_lineage_id",
    "server_memories": "content, persona_lineage_id",
    "memory_sources": "1",
    "turns": "state, lineage_id, prompt_tokens, completion_tokens",
    "turn_replies": "position",
    "usage": "task, model, requests, prompt_tokens, completion_tokens",
    "origins": "kind",
    "personas": "name, lineage_id, prompt, is_main, state",
    "people": "display_name",
}


def scripted(request: ModelRequest) -> Reply:
    """A model that remembers when asked to, and else says how much it was told."""
    if request.tool_results:
        return Text("I will keep that in mind.")
    if "cello" in request.last_user and "remember" in request.last_user.splitlines()[-1]:
        fact = {"content": "Ben plays the cello", "scope": "target_user", "target": "Ben"}
        return ToolCalls([("create_long_term_memory", fact)])
    if "Fridays" in request.last_user.splitlines()[-1]:
        fact = {"content": "The server meets on Fridays", "scope": "server_wide", "target": ""}
        return ToolCalls([("create_long_term_memory", fact)])
    return Text(f"I was told {len(request.messages)} things.")


def tables(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """What stands in the tables, in order, ids aside."""
    with closing(sqlite3.connect(database)) as connection:
        return {
            table: sorted(
                tuple(re.sub(r"\{p:\d+\}", "{p}", str(cell)) for cell in row)
                for row in connection.execute(f"SELECT {columns} FROM {table}")
            )
            for table, columns in TABLES.items()
        }


async def through_the_terminal(folder: Path) -> tuple[list[ModelRequest], list[dict[str, object]]]:
    script = folder / "script.jsonl"
    lines = [{"user": user, "channel": channel, "text": text} for user, channel, text in LINES]
    script.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    async with LoopbackModel() as model:
        model.on(scripted)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "try", "--data", str(folder), "--script", str(script)),
            *("--base-url", model.base_url, "--model", "loopback-model"),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return model.chats, [json.loads(line) for line in output.decode().splitlines()]


async def test_the_same_lines_make_the_same_prompts_and_tables(
    empty_stage: Stage, tmp_path: Path
) -> None:
    stage = empty_stage
    stage.model.on(scripted)
    people = {name: stage.discord.member(name) for name in ("Ann", "Ben")}
    channels = {"general": stage.discord.general, "music": stage.discord.channel("music")}
    async with stage.madeleine():
        replies = [
            (await stage.ask(text, by=people[user], channel=channels[channel])).content
            for user, channel, text in LINES
        ]
    folder = tmp_path / "terminal"
    folder.mkdir()
    asked, results = await through_the_terminal(folder)

    assert [request.messages for request in asked] == [r.messages for r in stage.model.chats]
    assert [request.tool_names for request in asked] == [r.tool_names for r in stage.model.chats]
    assert tables(folder / "madeleine.db") == tables(stage.database)
    assert [reply.replace("\n-# ", "\n") for reply in replies] == [r["reply"] for r in results]
    assert [line["channel"] for line in results] == [channel for _, channel, _ in LINES]
    assert results[1]["tool_calls"] == [{"name": "create_long_term_memory", "outcome": "ok"}]

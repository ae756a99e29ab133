"""The real embedded model keeps a fact: what counts is the database, not its words."""

import asyncio
import importlib.util
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

CANNOT_START = 2
SCRIPT = (
    {"user": "Ann", "text": "hello there"},
    {"user": "Ann", "text": "please remember that my favourite tea is oolong"},
)


async def try_script(folder: Path, *lines: dict[str, str]) -> tuple[int, list[str], str]:
    """Run `madeleine try --script` as a person would; no config and no other model is set."""
    script = folder / "script.jsonl"
    script.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if "MADELEINE" not in key}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "try", "--data", str(folder), "--script", str(script)),
        "--yes",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode().splitlines(), errors.decode()


def memories(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "madeleine.db")) as database:
        rows = database.execute(
            "SELECT content FROM personal_memories UNION ALL SELECT content FROM server_memories"
        )
        return [row[0] for row in rows]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None,
    reason="the extra `local` (xllamacpp) is not installed",
)
async def test_the_embedded_model_keeps_what_it_was_asked_to_remember(tmp_path: Path) -> None:
    code, lines, errors = await try_script(tmp_path, *SCRIPT)
    if code == CANNOT_START:
        pytest.skip(f"the embedded model cannot be had here: {errors.strip()[-300:]}")
    assert code == 0, errors
    assert [sorted(json.loads(line)) for line in lines] == [["channel", "reply", "tool_calls"]] * 2
    [fact] = memories(tmp_path)
    assert "oolong" in fact
    assert "{p:" in fact
    code, _, errors = await try_script(tmp_path, {"user": "Ann", "text": "which tea do I like?"})
    assert code == 0, errors
    with closing(sqlite3.connect(tmp_path / "madeleine.db")) as database:
        states = database.execute("SELECT state FROM turns").fetchall()
    assert states == [("done",)] * 3
    assert memories(tmp_path) == [fact]

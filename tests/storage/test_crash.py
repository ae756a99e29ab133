"""kill -9 at any moment: what was acknowledged is there, and the file is sound."""

import asyncio
import random
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.storage.jobs import opened

KILLS = 50


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_fifty_killed_processes_lose_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "madeleine.db"
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.storage.crash_child", str(path), str(kill * 1_000_000)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 60)):
            acknowledged.add((await process.stdout.readline()).decode().strip())
        await asyncio.sleep(chance.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        rest = await process.stdout.read()
        await process.wait()
        acknowledged |= {line.decode() for line in rest.splitlines(keepends=False)[:-1]}
    async with opened(path) as database:
        kept = {row["key"] for row in await database.fetch_all("SELECT key FROM application_state")}
        assert {f"k{number}" for number in acknowledged if number} <= kept
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    plain.close()

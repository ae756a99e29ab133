"""kill -9 at any moment of runs: nothing acknowledged is lost, nothing is done twice.

`python -m tests.handoff.test_crash 200` kills 200 times and prints what was found.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.handoff.room import open_room, tell_everything
from tests.talk import START, FakeClock

KILLS = 50


@dataclass
class Told:
    """What the child was sure of before it died."""

    said: set[int] = field(default_factory=set[int])
    ran: set[str] = field(default_factory=set[str])
    undone: set[str] = field(default_factory=set[str])
    pid: int = 0
    deaths: int = 0
    runs: int = 0

    def hear(self, line: str) -> None:
        match line.split():
            case ["pid", pid]:
                self.pid = int(pid)
            case ["said", *ids]:
                self.said |= {int(entry) for entry in ids}
            case ["ran", run]:
                self.ran.add(run)
            case ["undone", run]:
                self.undone.add(run)
            case ["died"]:
                self.deaths += 1
            case ["embedding"]:
                self.runs += 1
            case ["open"]:
                pass
            case _:
                raise AssertionError(line)


@dataclass
class Found:
    """What is in the file."""

    runs: dict[str, dict[str, Any]]
    numbered: int
    waiting: set[int]
    pinned: set[int]
    archive: dict[int, str]
    sources: list[tuple[int, int, str]]
    episodes: dict[int, int | None]
    vectors: int
    integrity: str
    broken_references: int


def found_in(path: Path) -> Found:
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row

        def rows(sql: str) -> list[sqlite3.Row]:
            return file.execute(sql).fetchall()

        entries = rows("SELECT id, pinned FROM buffer_entries")
        last = rows("SELECT seq FROM sqlite_sequence WHERE name = 'buffer_entries'")
        return Found(
            runs={row["id"]: dict(row) for row in rows("SELECT * FROM handoff_runs")},
            numbered=last[0]["seq"] if last else 0,
            waiting={row["id"] for row in entries if not row["pinned"]},
            pinned={row["id"] for row in entries if row["pinned"]},
            archive={row["entry_id"]: row["run_id"] for row in rows("SELECT * FROM entry_archive")},
            sources=[
                (row["ledger_id"], row["entry_id"], row["run_id"])
                for row in rows("SELECT * FROM ledger_sources")
            ],
            episodes={
                row["id"]: row["embedding_dimension"]
                for row in rows("SELECT * FROM ledger_entries")
            },
            vectors=len(rows("SELECT * FROM embeddings")),
            integrity=rows("PRAGMA integrity_check")[0][0],
            broken_references=len(rows("PRAGMA foreign_key_check")),
        )


def assert_sound(found: Found, told: Told) -> None:
    """Nothing that was acknowledged is lost, and every entry is in one place."""
    assert found.integrity == "ok"
    assert found.broken_references == 0
    promoted = [entry for _, entry, _ in found.sources]
    assert len(promoted) == len(set(promoted))  # no entry in two episodes
    forgotten = {entry for entry in found.archive if entry not in set(promoted)}
    everywhere = [*found.waiting, *promoted, *forgotten]
    assert sorted(everywhere) == list(range(1, found.numbered + 1))
    assert told.said <= set(everywhere)
    assert found.pinned <= set(promoted)
    assert found.archive.keys().isdisjoint(found.waiting | found.pinned)
    assert {ledger for ledger, _, _ in found.sources} == found.episodes.keys()
    assert found.vectors == sum(dimension is not None for dimension in found.episodes.values())
    for run, row in found.runs.items():
        is_undone = row["state"] == "undone"
        assert is_undone or row["state"] == "committed"
        counted = sum(run == by for _, _, by in found.sources)
        assert counted == (0 if is_undone else row["promoted"])
        left = sum(found.archive[entry] == run for entry in forgotten)
        assert left == (0 if is_undone else row["forgotten"])
    assert told.ran <= found.runs.keys()
    assert {run for run in told.undone if found.runs[run]["state"] != "undone"} == set()


async def kill_at_random(folder: Path, kills: int, *, seed: int = 7) -> tuple[Told, Found]:
    """Kill so many children, each at another moment; the file is looked at after each death."""
    told, chance = Told(), random.Random(seed)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.handoff.crash_child", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    found = None
    for kill in range(kills):
        process.stdin.write(f"{kill}\n".encode())
        until = told.runs + chance.randrange(1, 5)
        while told.runs < until:
            told.hear((await process.stdout.readline()).decode())
            assert told.deaths == kill, "the child died before it was killed"
        # Vectors and commit take 5 to 15 ms: most of them are killed within, some in the next run.
        await asyncio.sleep(chance.random() * chance.choice((0.012, 0.012, 0.06)))
        os.kill(told.pid, signal.SIGKILL)
        while told.deaths <= kill:
            told.hear((await process.stdout.readline()).decode())
        found = await asyncio.to_thread(found_in, folder / "madeleine.db")
        assert_sound(found, told)
    process.stdin.close()
    assert await process.wait() == 0
    assert found is not None
    return told, found


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_fifty_killed_processes_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    told, found = await kill_at_random(tmp_path, KILLS)
    assert len(told.ran) > KILLS
    assert told.undone
    clock = FakeClock(time=START + timedelta(hours=KILLS * 12))
    async with open_room(tmp_path, clock=clock) as room:  # and it goes on
        await room.say("good morning")
        room.model.on(tell_everything)
        outcome = await room.worked()
        assert outcome.promoted + outcome.forgotten == len(found.waiting)


def main(kills: int) -> None:
    with TemporaryDirectory() as folder:
        told, found = asyncio.run(kill_at_random(Path(folder), kills, seed=kills))
    lines = {
        "kills": kills,
        "entries acknowledged": len(told.said),
        "entries in the file": found.numbered,
        "runs acknowledged": len(told.ran),
        "runs in the file": len(found.runs),
        "of them undone": sum(run["state"] == "undone" for run in found.runs.values()),
        "episodes": len(found.episodes),
        "entries promoted": len(found.sources),
        "entries forgotten by a run": sum(run["forgotten"] for run in found.runs.values()),
        "entries still pinned": len(found.pinned),
        "integrity_check": found.integrity,
    }
    for name, value in lines.items():
        sys.stdout.write(f"{name}: {value}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Benchmarks that are checks as well: what they count, and when they fail."""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import gatemem
from benchmarks.handoff import Cuts, Report, aims
from benchmarks.handoff_plain import read_plainly
from benchmarks.handoff_rooms import ROOMS, SCENE_SILENCE, Room

ROOT = Path(__file__).parents[1]
GOOD = Report(
    room="busy",
    entries=1000,
    turns=200,
    conversations=0,
    ours=50,
    reasons={"velocity": 50},
    aborted=0,
    plain=400,
    plain_at_turns=200,
    plain_longest=600,
    buffer=Cuts(p50=30, p95=40, max=45),
    section=Cuts(p50=900, p95=1500, max=2920),
    budget_tokens=2920,
    waited=0.009,
    behind_gap=0,
    episodes=200,
    forgotten=200,
    pinned=10,
    prompt_tokens=40_000,
    answer_tokens=15_000,
    seconds=10,
)
CONVERSATIONS = replace(GOOD, room="conversations", conversations=34, ours=34, plain=264)


def room(name: str) -> Room:
    return next(room for room in ROOMS if room.name == name)


def missed(report: Report) -> list[str]:
    return [aim.aim for aim in aims(report) if not aim.holds]


@pytest.mark.parametrize(
    "report",
    [
        GOOD,
        replace(GOOD, room="slow", ours=80, plain=399),
        replace(GOOD, room="night", ours=133, plain=400),
        replace(GOOD, room="night", ours=323, plain=970),
        replace(GOOD, room="night", ours=971, plain=971),
        CONVERSATIONS,
    ],
)
def test_a_room_at_its_limits_meets_its_aims(report: Report) -> None:
    assert missed(report) == []


@pytest.mark.parametrize(
    ("report", "aim"),
    [
        (replace(GOOD, ours=51), "at most 50 runs for 1,000 entries"),
        (replace(GOOD, room="steady", ours=51), "at most 50 runs for 1,000 entries"),
        (replace(GOOD, room="slow", ours=81, plain=399), "at most 80 runs for 1,000 entries"),
        (replace(GOOD, entries=999), "at most 50 runs for 1,000 entries"),
        (replace(GOOD, room="night", ours=134), "at most a third of the plain reading"),
        (replace(CONVERSATIONS, ours=33), "one run a conversation"),
        (replace(CONVERSATIONS, ours=35), "one run a conversation"),
        (replace(GOOD, budget_tokens=2919), "section within its budget"),
        (replace(GOOD, waited=0.01), "under 1 % of turns wait"),
        (replace(GOOD, aborted=1), "no run fails"),
    ],
)
def test_a_room_beyond_a_limit_misses_that_aim(report: Report, aim: str) -> None:
    assert missed(report) == [aim]


@pytest.mark.parametrize("played", ROOMS, ids=lambda room: room.name)
@pytest.mark.parametrize("most", [2, 8])
def test_turns_hold_every_line_once_and_end_with_the_reply(played: Room, most: int) -> None:
    turns = played.turns(510, most=most)
    lines = [line for turn in turns for line in turn]
    assert len(lines) == 510
    assert lines == sorted(lines, key=lambda line: line.at)
    assert all(2 <= len(turn) <= most + 1 for turn in turns)
    assert all(
        [line.by is None for line in turn] == [False] * (len(turn) - 1) + [True] for turn in turns
    )
    assert all(b.at - a.at < SCENE_SILENCE for turn in turns for a, b in pairwise(turn))


def test_a_conversation_ends_with_a_silence_and_only_whole_ones_are_played() -> None:
    lines = [line for turn in room("conversations").turns(119, most=8) for line in turn]
    assert len(lines) == 90
    gaps = [b.at - a.at for a, b in pairwise(lines)]
    assert [n for n, gap in enumerate(gaps, 1) if gap >= timedelta(hours=3)] == [30, 60]


@pytest.mark.parametrize(("name", "runs"), [("steady", 970), ("slow", 76)])
def test_read_plainly_a_line_behind_the_watermark_is_a_run(name: str, runs: int) -> None:
    """In a steady room one with every line but the first thirty; in a slow one by thirteens."""
    turns = room(name).turns(1000, most=2)
    assert read_plainly(room(name), turns).runs == runs


@pytest.mark.slow
async def test_the_benchmark_of_handoffs_plays_every_room(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    command = ["-m", "benchmarks.handoff", "--entries", "60", "--json", str(told)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    found = json.loads(told.read_text("utf-8"))
    assert [report["room"] for report in found["rooms"]] == [room.name for room in ROOMS]
    assert all(report["ours"] > 0 and report["episodes"] > 0 for report in found["rooms"])
    assert all(report["aborted"] == 0 for report in found["rooms"])
    assert process.returncode == (0 if all(aim["holds"] for aim in found["aims"]) else 1)
    assert all(aim["aim"] in printed.decode() for aim in found["aims"])


# --- gatemem


PEOPLE = [{"principal_id": name, "role": "r", "display_name": name} for name in ("ann", "ben")]
ROOMS_OF = {"project": ["ann"], "staff": ["ann", "ben"]}


def gatemem_set(folder: Path) -> None:
    """A set of one conversation: a secret of Ann's project, a public line, and the secret again."""
    said = [("ann", "project", "the code is K-7"), ("ben", "staff", "lunch at noon")]
    said.append(("ben", "staff", "somebody said K-7"))
    files: dict[str, list[dict[str, object]]] = {
        "access": [{"conversation": "c", "principals": PEOPLE, "derived_channels": ROOMS_OF}],
        "messages": [
            {
                "conversation": "c",
                "message_id": f"m{turn}",
                "turn": turn,
                "speaker": who,
                "speaker_id": who,
                "text": text,
                "visibility": {"channel": channel, "also": []},
            }
            for turn, (who, channel, text) in enumerate(said, 1)
        ],
        "forget": [{"conversation": "c", "turn": 2, "values": ["K-7"]}],
        "questions": [
            {"conversation": "c", "question_id": f"{who}{turn}", "asker": who, "as_of": turn}
            for who, turn in (("ann", 1), ("ben", 1), ("ann", 3), ("ben", 3))
        ],
    }
    for name, lines in files.items():
        text = "\n".join(map(json.dumps, lines))
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


async def test_gatemem_gives_what_the_asker_may_hear_and_nothing_that_was_forgotten(
    tmp_path: Path,
) -> None:
    gatemem_set(tmp_path)
    results = tmp_path / "results.jsonl"
    await gatemem.run(tmp_path, results, None)
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert {line["question_id"]: line["retrieved"] for line in lines} == {
        "ann1": ["m1"],
        "ben1": [],
        "ann3": ["m2"],
        "ben3": ["m2"],
    }

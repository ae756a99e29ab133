"""What handoffs cost, and what they keep working memory at, beside a plain reading of the rules.

    python -m benchmarks.handoff [--entries 10000] [--turn 8] [--window 8192] [--json FILE]

Real: the capture in a database file, the engine as the application builds it, its triggers, runs
and sweeps, the model's client over loopback HTTP. Not real: the clock; a model that answers
handoffs at once; and turns, of which only that remains what touches working memory: capture, the
look before, the size of the section, the reply, the look after. As in a real turn, what people say
is captured when a turn begins; `--turn` is the most lines of one, her reply among them: 8 makes
every fifth line hers, 2 every second. The prompt's budget is what full memory blocks leave of the
window. The plain reading (handoff_plain.py) is told the same lines.

Takes some minutes; a process for each core, each room in its own. Ends with 1 where an aim is not
met.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.handoff_plain import PlainReading, read_plainly
from benchmarks.handoff_play import Played, play
from benchmarks.handoff_rooms import ROOMS, Room

MOST_RUNS = {"busy": 50, "steady": 50, "slow": 80}
"""For 1,000 entries."""
PLAIN_IS_DEAR = (400, 970)
"""Where the plain reading makes so many runs for 1,000 entries, ours are at most a third."""
MOST_WAITING = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    entries: int
    turn: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """A quantity over time, as the prompts found it."""

    p50: float
    p95: float
    max: float

    @classmethod
    def of(cls, values: Sequence[int]) -> "Cuts":
        cuts = statistics.quantiles([*values, values[-1]], n=20, method="inclusive")
        return cls(p50=cuts[9], p95=cuts[18], max=max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One room. `ours`, `plain`, `plain_at_turns`: runs; all `*_tokens` but the budget are sums."""

    room: str
    entries: int
    turns: int
    conversations: int
    ours: int
    reasons: dict[str, int]
    aborted: int
    plain: int
    plain_at_turns: int
    plain_longest: int
    buffer: Cuts
    section: Cuts
    budget_tokens: int
    waited: float
    behind_gap: int
    episodes: int
    forgotten: int
    pinned: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float

    def per_1000(self, number: int) -> float:
        return number * 1000 / self.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    room: str
    aim: str
    found: str
    holds: bool


def report_on(room: Room, options: Options) -> Report:
    """Play a room and read it plainly."""
    started = time.perf_counter()
    turns = room.turns(options.entries, most=options.turn)
    with tempfile.TemporaryDirectory() as folder:
        played = asyncio.run(play(room, turns, options.window, Path(folder)))
    plain = read_plainly(room, turns)
    entries = sum(map(len, turns))
    return _report(room, entries, played, plain, time.perf_counter() - started)


def _report(
    room: Room, entries: int, played: Played, plain: PlainReading, seconds: float
) -> Report:
    samples = played.samples
    return Report(
        room=room.name,
        entries=entries,
        turns=len(samples),
        conversations=room.conversations(entries),
        ours=played.runs,
        reasons=played.runs_by_reason,
        aborted=played.aborted,
        plain=plain.runs,
        plain_at_turns=plain.runs_at_turns,
        plain_longest=plain.longest,
        buffer=Cuts.of([sample.entries for sample in samples]),
        section=Cuts.of([sample.section for sample in samples]),
        budget_tokens=played.budget,
        waited=sum(sample.waited for sample in samples) / len(samples),
        behind_gap=len(frozenset[int]().union(*(sample.hidden for sample in samples))),
        episodes=played.episodes,
        forgotten=played.forgotten,
        pinned=played.pinned,
        prompt_tokens=played.prompt_tokens,
        answer_tokens=played.answer_tokens,
        seconds=seconds,
    )


def aims(report: Report) -> Iterator[Aim]:
    """What is asked of a room, and whether it is so."""

    def aim(text: str, found: str, *, holds: bool) -> Aim:
        return Aim(room=report.room, aim=text, found=found, holds=holds)

    runs, plain = report.per_1000(report.ours), report.per_1000(report.plain)
    if report.room in MOST_RUNS:
        most = MOST_RUNS[report.room]
        yield aim(f"at most {most} runs for 1,000 entries", f"{runs:.1f}", holds=runs <= most)
    if report.conversations:
        found = f"{report.ours} runs, {report.conversations} conversations"
        yield aim("one run a conversation", found, holds=report.ours == report.conversations)
    if PLAIN_IS_DEAR[0] <= plain <= PLAIN_IS_DEAR[1]:
        share = runs / plain
        yield aim("at most a third of the plain reading", f"{share:.2f}", holds=share <= 1 / 3)
    section, budget = report.section.max, report.budget_tokens
    yield aim("section within its budget", f"{section:.0f} of {budget}", holds=section <= budget)
    found = f"{report.waited:.2%}"
    yield aim("under 1 % of turns wait", found, holds=report.waited < MOST_WAITING)
    yield aim("no run fails", f"{report.aborted}", holds=report.aborted == 0)


def print_rooms(options: Options) -> None:
    print(f"{options.entries} entries a room, turns of 2 to {options.turn} lines")
    for room in ROOMS:
        print(f"  {room.name:15}{room.about}")


def print_reports(reports: Sequence[Report]) -> None:
    print("\nRuns for 1,000 entries; the plain reading looks at every entry, or at turns alone")
    print(f"{'':15}{'ours':>8}{'plain':>8}{'ratio':>7}{'at turns':>10}{'ratio':>7}  why ours")
    for one in reports:
        ours, plain = one.per_1000(one.ours), one.per_1000(one.plain)
        at_turns = one.per_1000(one.plain_at_turns)
        ratios = [ours / max(plain, 1), ours / max(at_turns, 1)]
        why = ", ".join(f"{reason} {count}" for reason, count in one.reasons.items())
        print(
            f"{one.room:15}{ours:8.1f}{plain:8.1f}{ratios[0]:7.2f}"
            f"{at_turns:10.1f}{ratios[1]:7.2f}  {why}"
        )
    print("\nWorking memory as the prompts found it: entries, and tokens of the section")
    print(
        f"{'':15}{'p50':>6}{'p95':>6}{'max':>6}{'plain max':>11}{'tokens p95':>12}{'max':>7}"
        f"{'budget':>8}{'share':>7}{'waited':>8}{'in gap':>8}"
    )
    for one in reports:
        print(
            f"{one.room:15}{one.buffer.p50:6.0f}{one.buffer.p95:6.0f}{one.buffer.max:6.0f}"
            f"{one.plain_longest:11}{one.section.p95:12.0f}{one.section.max:7.0f}"
            f"{one.budget_tokens:8}{one.section.max / one.budget_tokens:7.0%}"
            f"{one.waited:8.2%}{one.behind_gap:8}"
        )
    print("\nWhat came of the entries, and the tokens of handoffs for 1,000 of them")
    print(
        f"{'':15}{'entries':>8}{'turns':>7}{'episodes':>10}{'forgotten':>11}{'pinned':>8}"
        f"{'prompts':>9}{'answers':>9}{'seconds':>9}"
    )
    for one in reports:
        print(
            f"{one.room:15}{one.entries:8}{one.turns:7}{one.episodes:10}{one.forgotten:11}"
            f"{one.pinned:8}{one.per_1000(one.prompt_tokens):9.0f}"
            f"{one.per_1000(one.answer_tokens):9.0f}{one.seconds:9.0f}"
        )


def print_aims(found: Sequence[Aim]) -> None:
    print("\nAims")
    for one in found:
        print(f"  {'holds' if one.holds else 'FAILS':7}{one.room:15}{one.aim}: {one.found}")


def play_all(options: Options) -> list[Report]:
    """The rooms, one process for each of the machine's cores."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        numbers = range(len(ROOMS))
        return list(pool.map(_report_on_number, numbers, [options] * len(ROOMS)))


def _report_on_number(number: int, options: Options) -> Report:
    """A room holds functions, which go to no other process; its number does."""
    return report_on(ROOMS[number], options)


def main() -> int:
    parser = argparse.ArgumentParser(description="What handoffs cost in five kinds of rooms.")
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--turn", type=int, default=8)
    parser.add_argument("--window", type=int, default=8_192)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = Options(entries=arguments.entries, turn=arguments.turn, window=arguments.window)
    reports = play_all(options)
    found = [aim for report in reports for aim in aims(report)]
    print_rooms(options)
    print_reports(reports)
    print_aims(found)
    if arguments.json:
        told = {
            "options": asdict(options),
            "rooms": [asdict(report) for report in reports],
            "aims": [asdict(aim) for aim in found],
        }
        arguments.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return 0 if all(aim.holds for aim in found) else 1


if __name__ == "__main__":
    sys.exit(main())

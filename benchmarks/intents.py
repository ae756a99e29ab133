"""How well the intent gate judges labelled sentences, and how fast.

    python -m benchmarks.intents PATH [--half even|odd] [--json FILE]

PATH is a file of JSON lines (`locale`, `text`, `expected`, `kind`) or a folder; a file whose
name begins with "forget" is judged by the forget gate. `--half` takes the lines whose text has an
even or an odd SHA-256: develop on one half, measure on the other.
"""

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.i18n import catalogue
from bot.memory.intent import (
    has_explicit_long_term_memory_intent,
    has_forget_intent,
    load_intent_packs,
)

Gate = Callable[[str], bool]
LONG_TEXT = 2_000
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    locale: str
    text: str
    expected: bool
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Counts of one group of lines; a ratio without a denominator is None."""

    name: str
    lines: int
    true_positives: int
    false_positives: int
    false_negatives: int

    @property
    def precision(self) -> float | None:
        return ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        return ratio(self.true_positives, self.true_positives + self.false_negatives)


def ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def read_lines(file: Path, half: str | None) -> list[Line]:
    rows = [json.loads(row) for row in file.read_text("utf-8").splitlines() if row.strip()]
    lines = [
        Line(locale=r["locale"], text=r["text"], expected=r["expected"], kind=r.get("kind", ""))
        for r in rows
    ]
    return [line for line in lines if half is None or half_of(line.text) == half]


def half_of(text: str) -> str:
    return ("even", "odd")[hashlib.sha256(text.encode()).digest()[0] % 2]


def score(name: str, lines: Sequence[Line], gate: Gate) -> Score:
    judged = [(line.expected, gate(line.text)) for line in lines]
    return Score(
        name=name,
        lines=len(lines),
        true_positives=judged.count((True, True)),
        false_positives=judged.count((False, True)),
        false_negatives=judged.count((True, False)),
    )


def scores(lines: Sequence[Line], gate: Gate) -> list[Score]:
    locales = list(dict.fromkeys(line.locale for line in lines))
    ours = [line for line in lines if line.locale in catalogue().locales]
    return [
        *(score(name, [line for line in lines if line.locale == name], gate) for name in locales),
        score("our locales", ours, gate),
        score("all", lines, gate),
    ]


def microseconds(texts: Iterable[str], gate: Gate) -> dict[str, float]:
    """p50 and p95 of a call, each text judged a few times."""
    taken: list[float] = []
    for text in texts:
        for _ in range(ROUNDS):
            begin = time.perf_counter_ns()
            gate(text)
            taken.append((time.perf_counter_ns() - begin) / 1_000)
    cuts = statistics.quantiles(taken, n=20, method="inclusive")
    return {"p50": round(cuts[9], 1), "p95": round(cuts[18], 1)}


def long_texts(lines: Sequence[Line]) -> list[str]:
    """The lines of one locale after the other, cut into texts of 2,000 characters."""
    whole = "\n".join(line.text for line in sorted(lines, key=lambda line: line.locale))
    return [whole[at : at + LONG_TEXT] for at in range(0, len(whole), LONG_TEXT)]


def report(file: Path, half: str | None) -> dict[str, object]:
    is_forget = file.name.startswith("forget")
    gate = has_forget_intent if is_forget else has_explicit_long_term_memory_intent
    lines = read_lines(file, half)
    found = scores(lines, gate)
    wrong = [line for line in lines if gate(line.text) != line.expected]
    timing = {
        "a line": microseconds([line.text for line in lines], gate),
        "2,000 characters of such lines": microseconds(long_texts(lines), gate),
    }
    print(f"\n{file.name}" + (f", {half} half" if half else ""))
    print_table(found)
    for line in wrong:
        verdict = "missed" if line.expected else "wrong"
        print(f"  {verdict:6} {line.locale:6} {line.kind:12} {line.text!r}")
    for name, cuts in timing.items():
        print(f"  {name}: p50 {cuts['p50']} us, p95 {cuts['p95']} us")
    return {
        "file": file.name,
        "half": half,
        "scores": [as_json(one) for one in found],
        "misjudged": [asdict(line) for line in wrong],
        "microseconds": timing,
    }


def print_table(found: Sequence[Score]) -> None:
    print(f"  {'':12} {'lines':>5} {'tp':>4} {'fp':>4} {'fn':>4} {'precision':>9} {'recall':>7}")
    for one in found:
        counts = f"{one.true_positives:4} {one.false_positives:4} {one.false_negatives:4}"
        ratios = f"{shown(one.precision):>9} {shown(one.recall):>7}"
        print(f"  {one.name:12} {one.lines:5} {counts} {ratios}")


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def as_json(one: Score) -> dict[str, object]:
    return {**asdict(one), "precision": one.precision, "recall": one.recall}


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge labelled sentences with the intent gate.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = sorted(options.path.glob("*.jsonl")) if options.path.is_dir() else [options.path]
    load_intent_packs()
    reports = [report(file, options.half) for file in files]
    if options.json:
        options.json.write_text(json.dumps(reports, ensure_ascii=False, indent=2), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

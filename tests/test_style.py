"""The shape of the code, where no linter holds it."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = sorted([*ROOT.glob("bot/**/*.py"), *ROOT.glob("cogs/**/*.py")])
TESTS = sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
LONGEST_FILE, LONGEST_TEST_FILE, LONGEST_FUNCTION = 400, 600, 60
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
BROAD_EXCEPTS = {"bot/background.py"}
"""The borders share one place that catches everything: bot.background.settle and run_all."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", CODE, ids=name)
def test_files_and_functions_are_short(path: Path) -> None:
    assert lines(path) <= LONGEST_FILE
    assert [f.name for f in functions(path) if length(f) > LONGEST_FUNCTION] == []


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_test_files_are_short_enough(path: Path) -> None:
    assert lines(path) <= LONGEST_TEST_FILE


def test_most_files_and_functions_are_shorter_still() -> None:
    assert statistics.median(lines(path) for path in CODE if path.name != "__init__.py") <= 120
    lengths = sorted(length(f) for path in CODE for f in functions(path))
    assert lengths[int(len(lengths) * 0.9)] <= 35


def test_modules_are_named_after_what_they_hold() -> None:
    assert [name(path) for path in CODE if path.stem in VAGUE or path.parent.name in VAGUE] == []


def test_everything_is_caught_at_one_border_only() -> None:
    broad: set[str] = set()
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (
                    isinstance(node.type, ast.Name)
                    and node.type.id in {"Exception", "BaseException"}
                )
            ):
                broad.add(name(path))
    assert broad <= BROAD_EXCEPTS


def test_the_project_speaks_of_itself_alone() -> None:
    """No lock file with addresses, no path of somebody's machine."""
    foreign = re.compile("|".join(("/wor" + "k/", "files.python" + "hosted", "/ro" + "ot/")))
    texts = [*CODE, *TESTS, *ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("locales/*.toml")]
    assert [name(p) for p in texts if foreign.search(p.read_text(encoding="utf-8"))] == []

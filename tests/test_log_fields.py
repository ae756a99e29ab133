"""Log events carry fields; a field that logging itself uses raises where the event is logged."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = sorted([*ROOT.glob("bot/**/*.py"), *ROOT.glob("cogs/**/*.py")])
RESERVED = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def fields() -> Iterator[tuple[str, str]]:
    """Every field of every log event, and where it is logged."""
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "extra":
                for key in ast.walk(node.value):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, f"{path.relative_to(ROOT)}:{node.value.lineno}"


def test_no_log_event_has_a_field_that_logging_uses_itself() -> None:
    assert [place for name, place in fields() if name in RESERVED] == []


def test_the_scan_finds_fields() -> None:
    assert {name for name, _ in fields()} >= {"reason", "message_id"}

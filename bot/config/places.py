"""Where a key was written: the parser keeps no lines, so they are found in the text."""

import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bot.config.reading import MAX_BYTES
from bot.config.schema import Loc


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Line numbers and environment variables by key."""

    path: Path | None
    lines: dict[Loc, int]
    variables: dict[Loc, str] = field(default_factory=dict[Loc, str])

    def find(self, loc: Loc) -> tuple[int, str]:
        """Where this key, or else the table around it, was written; the number sorts by place."""
        for end in range(len(loc), 0, -1):
            if name := self.variables.get(loc[:end]):
                return MAX_BYTES, f"environment variable {name}"
            if line := self.lines.get(loc[:end]):
                return line, f"{self.path} line {line}"
        inside = (name for key, name in self.variables.items() if key[: len(loc) - 1] == loc[:-1])
        if name := next(inside, None):
            return MAX_BYTES, f"environment variable {name}"
        return 0, str(self.path) if self.path else "defaults"


def find_lines(text: str) -> dict[Loc, int]:
    """The line of every key and table of a valid TOML text; what is inside `{}` is left out."""
    lines: dict[Loc, int] = {}
    table: Loc = ()
    arrays: Counter[Loc] = Counter()
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            header = _path(stripped)
            if header is None:
                continue
            table = header
            if stripped.startswith("[["):
                table = (*header, arrays[header])
                arrays[header] += 1
            lines.setdefault(table, number)
        elif key := _path(stripped.partition("=")[0] + "= 0"):
            lines.setdefault((*table, *key), number)
    return lines


def _path(snippet: str) -> Loc | None:
    """The keys of a one-line TOML text, outermost first; None where it is no such text."""
    try:
        inner: object = tomllib.loads(snippet)
    except (ValueError, RecursionError):
        return None
    path: list[str] = []
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(cast("dict[str, object]", inner).items()))
        path.append(name)
    return tuple(path) or None

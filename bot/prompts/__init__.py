"""Texts for the model. They are English, live in texts.toml, and are never shown to people."""

import tomllib
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "texts.toml"


@cache
def _texts() -> dict[str, str]:
    with _FILE.open("rb") as file:
        return dict(_flattened("", tomllib.load(file)))


def _flattened(prefix: str, table: dict[str, object]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            nested: dict[str, object] = dict(value)  # pyright: ignore[reportUnknownArgumentType] - TOML keys are text
            texts += _flattened(f"{prefix}{key}.", nested)
        else:
            texts.append((prefix + key, str(value).strip()))
    return texts


def prompt(key: str, **params: str | int) -> str:
    """The text under `key`, filled in. A missing key is a bug and raises KeyError."""
    text = _texts()[key]
    return text.format(**params) if params else text


def prompt_keys() -> frozenset[str]:
    """Every key there is, for the tests."""
    return frozenset(_texts())

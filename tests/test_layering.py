"""Imports point down one list of layers; only the transports know Discord."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "identifiers", "background", "audience", "i18n", "prompts", "clock"),
    ("config", "storage", "features"),
    ("llm", "persona", "privacy"),
    ("memory",),
    ("handoff",),
    ("tools",),
    ("turn",),
    ("check_line", "discord_io", "console_script", "console_commands", "console"),
    ("cogs",),
    ("app", "run", "check", "try_model", "try_console", "__main__"),
)
RANK = {
    name: (layer, place) for layer, names in enumerate(LAYERS) for place, name in enumerate(names)
}
KNOW_DISCORD = ("bot/discord_io/", "bot/app.py", "bot/run.py", "cogs/")
READ_WITHOUT_AUDIENCE = {"bot/privacy"}


def modules() -> list[Path]:
    return sorted([*ROOT.glob("bot/**/*.py"), *ROOT.glob("cogs/**/*.py")])


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "cogs" if parts[0] == "cogs" else parts[1] if len(parts) > 1 else ""


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(name: str) -> str | None:
    parts = name.split(".")
    if parts[0] == "cogs":
        return "cogs"
    return parts[1] if parts[0] == "bot" and len(parts) > 1 else None


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = package_of(path)
    if here == "__init__":
        return
    assert here in RANK, f"{here} is in no layer: add it to LAYERS where it belongs"
    for name in imported(path):
        there = ours(name)
        if there is None or there == here:
            continue
        assert there in RANK, f"{there} is in no layer"
        assert RANK[there] < RANK[here], f"{path.relative_to(ROOT)} imports {name} from above"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_transport_imports_discord(path: Path) -> None:
    if str(path.relative_to(ROOT)).startswith(KNOW_DISCORD):
        return
    assert not [name for name in imported(path) if name.split(".")[0] == "discord"]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_package_takes_private_names_of_another(path: Path) -> None:
    here = path.relative_to(ROOT).parts[:2]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            private = [n for n in names if n.startswith("_") and not n.startswith("__")]
            inside = tuple(node.module.split(".")[:2]) == tuple(
                part.removesuffix(".py") for part in here
            )
            assert not private or inside, f"{private} is private to {node.module}"


def test_a_gate_that_finds_an_upward_import_goes_red(tmp_path: Path) -> None:
    upward = tmp_path / "storage.py"
    upward.write_text("from bot.turn.pipeline import run_turn\n", encoding="utf-8")
    found = [ours(name) for name in imported(upward)]
    assert found == ["turn"]
    assert RANK["turn"] > RANK["storage"]

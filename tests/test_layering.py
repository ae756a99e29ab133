"""Imports point down one list of layers; only the transports know Discord."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "identifiers", "background", "audience", "i18n", "prompts", "clock"),
    ("config", "storage", "features", "guild_settings"),
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


# --- every read of memory takes an audience

MEMORY = ("bot/memory/", "bot/handoff/")
TABLES = (
    r"(buffer_entries|entry_archive|short_term_memories|ledger_\w+"
    r"|memories|server_memories|personal_memories|memory_sources|memory_versions|version_sources)\b"
)
QUERY = re.compile(
    rf"^(?!\s*(DELETE|INSERT|UPDATE)\b).*\b(FROM|JOIN)\s+({TABLES}|\?)|\b{TABLES}.*\bRETURNING\b",
    re.DOTALL,
)
HANDOFF = "turns what one room holds into episodes of that room; it tells nobody"
READ_WITHOUT_AUDIENCE = {
    "bot.handoff.by_hand": HANDOFF,
    "bot.handoff.commit": HANDOFF,
    "bot.handoff.engine": HANDOFF,
    "bot.handoff.handover": HANDOFF,
    "bot.handoff.look": HANDOFF,
    "bot.handoff.restore": "an operator undoes a handoff; it tells nobody",
    "bot.memory.buffers.due_buffers": "for the handoff: which rooms, not what was said",
    "bot.memory.erasure": "a person erases what is held of them; it tells them how much that is",
    "bot.memory.export": "a person gets what is held of them, and nobody else's",
    "bot.memory.forgetting": "whoever may forget it is told how much that is, and of what kind",
    "bot.memory.ledger.forget_messages": "within a write that deletes",
    "bot.memory.ledger.forget_person": "within a write that deletes",
    "bot.memory.ledger.open_matters": "for the handoff of one room; Ledger asks for the audience",
    "bot.memory.long_term_rows": "rows beneath LongTermMemory, which holds them against Listening",
    "bot.memory.short_term_rows": "rows beneath ShortTermMemory, which asks for the audience",
    "bot.memory.working.WorkingMemory.forget_author": "within a write that deletes",
    "bot.memory.working.add_entries": "within a write: when somebody last spoke",
    "bot.memory.working.forgetting": "within a write that deletes",
    "bot.memory.working.handed_over": "within a capture: which messages, not what was said",
    "bot.memory.working.newest_entries": "beneath ShortTermMemory, which asks for the audience",
    "bot.memory.working.oldest_entries": "for the handoff of one room",
}
"""Functions, or all of a module, with the reason."""


@dataclass(frozen=True)
class Function:
    """A function of a module, or a method of a class in it."""

    module: str
    owner: str
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.module, self.owner, self.node.name)))

    @property
    def is_public(self) -> bool:
        return not self.node.name.startswith("_") and not self.owner.startswith("_")

    @property
    def takes_audience(self) -> bool:
        given = self.node.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
        hints = (ast.unparse(one.annotation) for one in every if one.annotation)
        return any(re.search(r"\b(Audience|Listening)\b", hint) for hint in hints)

    @cached_property
    def called(self) -> set[str]:
        return {ast.unparse(n.func) for n in ast.walk(self.node) if isinstance(n, ast.Call)}

    def calls(self, other: "Function") -> bool:
        """Whether it calls the other by a name that means the other here."""
        name, here = other.node.name, self.module == other.module
        if other.owner:
            return here and self.owner == other.owner and f"self.{name}" in self.called
        if name.startswith("_"):
            return here and name in self.called
        return not self.called.isdisjoint((name, f"{other.module.rpartition('.')[2]}.{name}"))


def functions(body: list[ast.stmt], module: str, owner: str = "") -> Iterator[Function]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(module, owner, node)
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, module, node.name)


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text in it, with a ? for whatever is filled in."""
    filled = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {part for node in filled for part in node.values}
    for node in filled:
        yield "".join(str(p.value) if isinstance(p, ast.Constant) else "?" for p in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def queries_memory(tree: ast.AST, fragments: Collection[str] = ()) -> bool:
    """Whether a text in it reads a table of memory; a name that is filled in may be any table."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return not names.isdisjoint(fragments) or any(map(QUERY.search, texts(tree)))


def reads_without_audience(sources: Mapping[str, str]) -> set[str]:
    """The public functions that read memory, directly or through others, and take no audience."""
    deaf: list[Function] = []
    reading: list[Function] = []
    for name, source in sources.items():
        module = ast.parse(source)
        fragments = {
            target.id
            for node in module.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and queries_memory(node)
            for target in ast.walk(node)
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
        }
        mine = [one for one in functions(module.body, name) if not one.takes_audience]
        deaf += mine
        reading += [one for one in mine if queries_memory(one.node, fragments)]
    for found in reading:  # grows while it is gone through
        reading += [one for one in deaf if one not in reading and one.calls(found)]
    return {one.name for one in reading if one.is_public}


def memory_sources() -> dict[str, str]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in modules()
        if path.relative_to(ROOT).as_posix().startswith(MEMORY)
    }


def test_every_read_of_memory_takes_an_audience() -> None:
    found = reads_without_audience(memory_sources())
    excepted = {
        name for name in found for one in READ_WITHOUT_AUDIENCE if f"{name}.".startswith(f"{one}.")
    }
    assert sorted(found - excepted) == [], "let it take an Audience, or a Listening"


def test_the_exceptions_are_there() -> None:
    sources = memory_sources()
    there = {*sources}
    for module, source in sources.items():
        there |= {one.name for one in functions(ast.parse(source).body, module)}
    assert sorted(READ_WITHOUT_AUDIENCE.keys() - there) == []


ALL_OF_THEM = """
class Memories:
    async def all_memories(self):
        return await self._database.fetch_all("SELECT * FROM server_memories")
"""
IN_PIECES = """
_ALL = "SELECT * FROM personal_memories"

async def of(db, user):
    return await db.fetch_all(f"{_ALL} WHERE user_id = ?", (user,))
"""
BY_THE_HAND_OF_ANOTHER = """
class Memories:
    async def all_memories(self):
        return await self._database.read(lambda db: self._all(db))

    async def _all(self, db):
        return await _find(db)

async def _find(db):
    return await db.fetch_all("WITH a AS (SELECT * FROM ledger_entries) SELECT * FROM a")
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (ALL_OF_THEM, {"m.Memories.all_memories"}),
        (ALL_OF_THEM.replace("(self)", "(self, audience: Audience)"), set()),
        (ALL_OF_THEM.replace("(self)", "(self, *, listening: Listening)"), set()),
        (ALL_OF_THEM.replace("server_memories", "people"), set()),
        (
            ALL_OF_THEM.replace("server_memories", "people JOIN memory_sources"),
            {"m.Memories.all_memories"},
        ),
        (
            ALL_OF_THEM.replace('"SELECT * FROM server_memories', 'f"SELECT * FROM {table}'),
            {"m.Memories.all_memories"},
        ),
        (ALL_OF_THEM.replace("SELECT *", "DELETE"), set()),
        (
            ALL_OF_THEM.replace(
                "SELECT * FROM server_memories", "DELETE FROM memories RETURNING id"
            ),
            {"m.Memories.all_memories"},
        ),
        (IN_PIECES, {"m.of"}),
        (IN_PIECES.replace("db, user", "db, user, listening: Listening"), set()),
        (BY_THE_HAND_OF_ANOTHER, {"m.Memories.all_memories"}),
        (BY_THE_HAND_OF_ANOTHER.replace("def _find(db", "def _find(db, audience: Audience"), set()),
    ],
)
def test_a_read_without_an_audience_is_found(source: str, found: set[str]) -> None:
    assert reads_without_audience({"m": source}) == found


def test_a_read_beneath_another_module_is_found() -> None:
    above = "async def everything(db):\n    return await rows.read_all(db)\n"
    rows = "async def read_all(db):\n    return await db.fetch_all('SELECT * FROM memories')\n"
    assert reads_without_audience({"memory": above, "rows": rows}) == {
        "memory.everything",
        "rows.read_all",
    }

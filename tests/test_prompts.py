"""The texts for the model: each is used, each that is used is there, and filled in whole."""

import ast
import json
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.prompts import prompt, prompt_keys
from tests.talk import open_talk
from tests.tools.test_short_term import tool_context

ROOT = Path(__file__).parents[1]
CODE = sorted([*ROOT.glob("bot/**/*.py"), *ROOT.glob("cogs/**/*.py")])
Function = ast.FunctionDef | ast.AsyncFunctionDef


def trees() -> Iterator[ast.Module]:
    for path in CODE:
        yield ast.parse(path.read_text(encoding="utf-8"))


def calls_of(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def keys_of(node: ast.expr, function: ast.AST) -> Iterator[str]:
    """The keys that an expression can be; an f-string as a pattern."""
    match node:
        case ast.Constant(value=str(key)):
            yield re.escape(key)
        case ast.IfExp():
            yield from keys_of(node.body, function)
            yield from keys_of(node.orelse, function)
        case ast.JoinedStr():
            yield "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+"
                for part in node.values
            )
        case ast.Name():
            for assigned in ast.walk(function):
                if isinstance(assigned, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == node.id
                    for target in assigned.targets
                ):
                    yield from keys_of(assigned.value, function)
        case _:
            raise AssertionError(f"which text is {ast.unparse(node)}?")


def uses() -> Iterator[tuple[str, ast.Call]]:
    """Every key (or pattern of keys) that the code asks for, with the call that does."""
    for tree in trees():
        for function in ast.walk(tree):
            if isinstance(function, Function):
                for call in calls_of(function, "prompt"):
                    for key in keys_of(call.args[0], function):
                        yield key, call


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_that_is_asked_for_is_there() -> None:
    known = prompt_keys()
    asked = {key for key, _ in uses()}
    assert len(asked) > 30
    assert [key for key in asked if not any(re.fullmatch(key, one) for one in known)] == []


def test_every_text_that_is_there_is_asked_for() -> None:
    asked = {key for key, _ in uses()}
    assert [one for one in prompt_keys() if not any(re.fullmatch(key, one) for key in asked)] == []


def test_every_text_is_filled_in_whole_and_with_nothing_left_over() -> None:
    for key, call in uses():
        if any(keyword.arg is None for keyword in call.keywords):
            continue  # the refusals, below
        given = {keyword.arg for keyword in call.keywords}
        for one in prompt_keys():
            if re.fullmatch(key, one) and (given or "example" not in one):
                assert placeholders(prompt(one)) == given, one


def test_every_refusal_gives_what_its_text_wants() -> None:
    raised: dict[str, set[str]] = {}
    for tree in trees():
        for call in calls_of(tree, "MemoryRefused"):
            assert isinstance(call.args[0], ast.Constant)
            given = {str(keyword.arg) for keyword in call.keywords}
            raised.setdefault(str(call.args[0].value), set()).update(given)
    assert len(raised) > 10
    for code, given in raised.items():
        assert placeholders(prompt(f"refused.{code}")) <= given, code


async def test_every_tool_describes_itself_and_each_of_its_arguments(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        context = await tool_context(talk, "Mood")
        described: set[str] = set()
        for name, tool in talk.app.services.tools._tools.items():
            parameters = tool.parameters(context)
            assert tool.spec(context).description
            arguments: list[str] = list(parameters["properties"])  # pyright: ignore[reportArgumentType]
            described |= {f"tools.{name}.{part}" for part in ("description", *arguments)}
        assert described == {key for key in prompt_keys() if key.startswith("tools.")}


@pytest.mark.parametrize("key", ["examples.teach_assistant", "examples.chat_assistant"])
def test_the_examples_are_what_the_schema_allows(key: str) -> None:
    example = json.loads(prompt(key))
    assert next(iter(example)) == "action"
    assert example["action"] in ("reply", "create_long_term_memory")


def test_a_missing_text_is_a_bug() -> None:
    with pytest.raises(KeyError):
        prompt("system.no_such_text")

"""`madeleine try` as a person runs it: which model it talks with, and how it ends."""

import asyncio
import json
import os
import pty
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from bot.i18n import t
from tests.fakes import LoopbackModel, Stall, Text

CTRL_C = b"\x03"
HELLO = {"user": "Ann", "text": "hello"}


@pytest.fixture
async def model() -> AsyncIterator[LoopbackModel]:
    async with LoopbackModel() as model:
        yield model


def environment(**settings: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if "MADELEINE" not in key}
    return {**kept, **{f"MADELEINE__{key}": value for key, value in settings.items()}}


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "bot", "try", "--data", str(folder / "data"), *arguments]


def script(folder: Path, *lines: dict[str, str], mark: str = "") -> tuple[str, str]:
    """The argument that names a script of these lines."""
    path = folder / "script.jsonl"
    path.write_text(mark + "\n".join(map(json.dumps, lines)), encoding="utf-8")
    return "--script", str(path)


async def tried(folder: Path, *arguments: str, **settings: str) -> tuple[int | None, str, str]:
    """Exit code, standard output and errors."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *command(folder, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env=environment(**settings),
    )
    output, errors = await asyncio.wait_for(child.communicate(), timeout=30)
    return child.returncode, output.decode(), errors.decode()


# --- which model


def configured(model: LoopbackModel) -> dict[str, str]:
    return {"LLM__CHAT__BASE_URL": model.base_url, "LLM__CHAT__MODEL": "configured"}


@pytest.mark.parametrize(
    ("arguments", "asked"), [((), "configured"), (("--model", "named"), "named")]
)
async def test_a_model_that_the_command_line_names_is_asked_instead_of_the_configured_one(
    tmp_path: Path, model: LoopbackModel, arguments: tuple[str, ...], asked: str
) -> None:
    told = await tried(tmp_path, *script(tmp_path, HELLO), *arguments, **configured(model))
    assert told[0] == 0, told
    assert [request.body["model"] for request in model.chats] == [asked]


async def test_a_server_that_the_command_line_names_is_asked_instead_of_the_configured_one(
    tmp_path: Path, model: LoopbackModel
) -> None:
    async with LoopbackModel() as other:
        named = ("--base-url", other.base_url, "--model", "named")
        code, *_ = await tried(tmp_path, *script(tmp_path, HELLO), *named, **configured(model))
        assert (code, len(model.chats), len(other.chats)) == (0, 0, 1)


async def test_a_file_that_the_command_line_names_is_run_instead_of_the_configured_model(
    tmp_path: Path, model: LoopbackModel
) -> None:
    missing = str(tmp_path / "none.gguf")
    named = ("--model-path", missing)
    code, _, told = await tried(tmp_path, *script(tmp_path, HELLO), *named, **configured(model))
    assert (code, model.chats) == (2, [])
    assert missing in told


@pytest.mark.parametrize(
    "address",
    ["localhost:11434", "ftp://127.0.0.1/v1", "http://", "", "http://ann:hunter2@127.0.0.1/v1"],
)
async def test_an_address_that_can_be_none_is_refused_at_once(tmp_path: Path, address: str) -> None:
    code, _, told = await tried(tmp_path, "--base-url", address, "--model", "any")
    assert (code, told.strip()) == (2, t("errors.base_url", "en-US"))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("other", ["--model", "--base-url"])
async def test_two_models_at_once_are_refused(tmp_path: Path, other: str) -> None:
    code, _, told = await tried(tmp_path, "--model-path", "a.gguf", other, "http://127.0.0.1/v1")
    assert (code, told.strip()) == (2, t("errors.model_twice", "en-US"))


async def test_a_named_model_that_no_server_here_has_is_not_replaced_by_another(
    tmp_path: Path,
) -> None:
    code, _, told = await tried(tmp_path, *script(tmp_path), "--model", "named")
    if code == 0:
        pytest.skip("a model server runs on this machine")
    assert (code, told.strip()) == (2, t("errors.model_server_missing", "en-US", model="named"))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
async def test_a_script_may_begin_with_a_byte_order_mark(
    tmp_path: Path, model: LoopbackModel, mark: str
) -> None:
    played = script(tmp_path, HELLO, mark=mark)
    code, output, told = await tried(tmp_path, *played, **configured(model))
    assert code == 0, told
    assert [json.loads(line)["channel"] for line in output.splitlines()] == ["general"]


# --- what a script tells


async def played(
    folder: Path, model: LoopbackModel, *lines: dict[str, str], **settings: str
) -> list[dict[str, object]]:
    """What a script of these lines gives, line by line."""
    settings = configured(model) | settings
    code, output, told = await tried(folder, *script(folder, *lines), **settings)
    assert code == 0, told
    return [json.loads(line) for line in output.splitlines()]


PLEASE = {"user": "Ann", "text": "remember that I hate Mondays, ok?"}


@pytest.mark.parametrize(
    ("fact", "outcome", "told"),
    [
        ("Ann hates Mondays.", "ok", "Fine.\nSaved: Ann hates Mondays."),
        ("Robin collects old radios.", "retry", "Fine.\nI have not saved this."),
    ],
)
async def test_what_stands_under_a_reply_is_part_of_it(
    tmp_path: Path, model: LoopbackModel, fact: str, outcome: str, told: str
) -> None:
    create = {
        "action": "create_long_term_memory",
        "content": fact,
        "scope": "target_user",
        "target": "Ann",
    }
    reply = {"action": "reply", "reply": "Fine."}
    model.queue(Text(json.dumps(create)), Text(json.dumps(reply)))
    [result] = await played(tmp_path, model, PLEASE, LLM__CHAT__TOOLS="structured")
    assert result["tool_calls"] == [{"name": "create_long_term_memory", "outcome": outcome}]
    assert result["reply"] == told


@pytest.mark.parametrize("nothing", ["", " ", "\u200b"])
async def test_a_line_that_says_nothing_gets_no_answer_and_no_word_of_a_level(
    tmp_path: Path, model: LoopbackModel, nothing: str
) -> None:
    silent = {"user": "Ann", "channel": "@ann", "text": nothing}
    [result] = await played(tmp_path, model, silent)
    assert (result["reply"], model.chats) == ("", [])


# --- how it ends, also while another program holds the database locked


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    database = folder / "data" / "madeleine.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@asynccontextmanager
async def chat(
    folder: Path, model: LoopbackModel
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A chat in a terminal of its own, at the prompt; gives the process and the keyboard."""
    keyboard, terminal = pty.openpty()
    child = await asyncio.create_subprocess_exec(
        *command(folder), stdin=terminal, stdout=terminal, env=environment(**configured(model))
    )
    os.close(terminal)
    screen = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(screen), os.fdopen(keyboard, "rb", buffering=0)
    )
    try:
        await asyncio.wait_for(screen.readuntil(b">"), timeout=20)
        yield child, keyboard
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
        transport.close()


async def ended_in_time(child: asyncio.subprocess.Process) -> int:
    begun = time.monotonic()
    await asyncio.wait_for(child.wait(), timeout=10)
    assert time.monotonic() - begun < 5
    assert child.returncode is not None
    return child.returncode


@pytest.mark.parametrize("typed", [b"/quit\r", CTRL_C])
async def test_a_chat_is_left_well_though_the_database_is_locked(
    tmp_path: Path, model: LoopbackModel, typed: bytes
) -> None:
    async with chat(tmp_path, model) as (child, keyboard):
        with locked(tmp_path):
            os.write(keyboard, typed)
            assert await ended_in_time(child) == 0


async def test_a_chat_is_left_well_in_the_middle_of_a_turn(
    tmp_path: Path, model: LoopbackModel
) -> None:
    model.queue(Text("one two three", breaks=Stall(after=2, seconds=60)))
    async with chat(tmp_path, model) as (child, keyboard):
        os.write(keyboard, b"hello\r")
        await model.wait_for_requests(1)
        with locked(tmp_path):
            child.send_signal(signal.SIGINT)
            assert await ended_in_time(child) == 0


async def test_a_script_that_is_interrupted_says_so(tmp_path: Path, model: LoopbackModel) -> None:
    model.queue(Text("one two three", breaks=Stall(after=2, seconds=60)))
    child = await asyncio.create_subprocess_exec(
        *command(tmp_path, *script(tmp_path, HELLO)),
        stdout=asyncio.subprocess.PIPE,
        env=environment(**configured(model)),
    )
    await model.wait_for_requests(1)
    child.send_signal(signal.SIGINT)
    assert await ended_in_time(child) == 130

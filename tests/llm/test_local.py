import asyncio
import importlib.util
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import platformdirs
import pytest

from bot.errors import StartupError
from bot.llm import local
from bot.llm.local import LocalModel
from bot.llm.model_file import cached_model, fetch_model

needs_library = pytest.mark.skipif(
    importlib.util.find_spec(local.LIBRARY) is None,
    reason="the extra `local` (xllamacpp) is not installed",
)

SERVING = """
import json, sys
print(json.dumps({"base_url": "http://127.0.0.1:9/v1", "api_key": "k", "model": "m"}), flush=True)
"""

FAKE_LIBRARY = """
import json, os, socket
from enum import Enum


class llama_flash_attn_type(Enum):
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1


class Part:
    pass


class CommonParams:
    def __init__(self):
        self.model = Part()


class Server:
    listening_address = "http://127.0.0.1:9"

    def __init__(self, params):
        os.write(1, b"noise of the library\\n")
        shown = vars(params) | {"model": params.model.path}
        watcher = socket.create_connection(("127.0.0.1", int(os.environ["WATCHER_PORT"])))
        watcher.sendall(json.dumps(shown, default=str).encode() + b"\\n")
        self.watcher = watcher
"""

PARENT = """
import asyncio, sys
from pathlib import Path
from bot.llm.local import LocalModel


async def main():
    model = await LocalModel.start(Path("unused"), command=sys.argv[1:])
    print("started", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
"""


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@asynccontextmanager
async def started(code: str, **options: float) -> AsyncIterator[LocalModel]:
    model = await LocalModel.start(Path("unused"), command=script(code), **options)
    try:
        yield model
    finally:
        await model.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_child_says_where_it_serves() -> None:
    async with started(SERVING + "sys.stdin.read()") as model:
        assert (model.base_url, model.api_key, model.model) == ("http://127.0.0.1:9/v1", "k", "m")


async def test_closing_ends_the_child_by_its_input() -> None:
    async with started(SERVING + "sys.stdin.read(); sys.exit(7)") as model:
        await model.close()
        assert (await model.ended()).params["code"] == 7
        assert not is_running(model.pid)


async def test_closing_twice_is_harmless() -> None:
    async with started(SERVING + "sys.stdin.read()") as model:
        await model.close()


async def test_a_child_that_keeps_on_is_terminated() -> None:
    async with started("import threading\n" + SERVING + "threading.Event().wait()") as model:
        await model.close()
        assert (await model.ended()).params["code"] == -signal.SIGTERM


async def test_a_child_that_will_not_be_terminated_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    async with started(deaf + SERVING + "while True: signal.pause()") as model:
        await model.close()
        assert (await model.ended()).params["code"] == -signal.SIGKILL


async def test_a_child_that_cannot_start_says_why() -> None:
    with pytest.raises(StartupError) as raised:
        async with started("import sys; print('no such model', file=sys.stderr); sys.exit(3)"):
            pass
    assert raised.value.key == "local.ended"
    assert raised.value.params == {"code": 3, "detail": "no such model"}


async def test_a_child_that_dies_later_says_why() -> None:
    async with started(SERVING + "sys.exit('out of memory')") as model:
        gone = await model.ended()
        assert gone.key == "local.ended"
        assert gone.params == {"code": 1, "detail": "out of memory"}


async def test_a_talkative_child_is_not_held_up_and_the_end_of_its_talk_is_kept() -> None:
    talk = "sys.stderr.write('x' * 1_000_000 + ' the end'); sys.stderr.flush(); sys.exit(1)"
    async with started(SERVING + talk) as model:
        detail = str((await model.ended()).params["detail"])
        assert len(detail) == local.TAIL_BYTES
        assert detail.endswith("x the end")


async def test_a_child_that_takes_too_long_is_ended() -> None:
    with pytest.raises(StartupError) as raised:
        async with started("import sys; sys.stdin.read()", ready_timeout_s=0.2):
            pass
    assert raised.value.key == "local.not_ready"


async def test_something_else_on_the_childs_output_is_refused() -> None:
    with pytest.raises(StartupError) as raised:
        async with started("import sys; print('hello', flush=True); sys.stdin.read()"):
            pass
    assert raised.value.key == "local.not_understood"
    assert raised.value.params == {"detail": "hello"}


async def test_a_start_that_is_cancelled_leaves_no_child(watcher: "Watcher") -> None:
    code = (
        "import socket, sys\n"
        f"watcher = socket.create_connection(('127.0.0.1', {watcher.port}))\n"
        "watcher.sendall(b'{}\\n'); sys.stdin.read()"
    )
    start = asyncio.create_task(LocalModel.start(Path("unused"), command=script(code)))
    await watcher.connected()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await watcher.child_gone()


async def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError) as raised:
        await LocalModel.start(tmp_path / "none.gguf")
    assert raised.value.key == "local.model_missing"
    assert raised.value.params == {"path": str(tmp_path / "none.gguf")}


async def test_a_missing_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LIBRARY", "a_library_that_is_not_there")
    (tmp_path / "model.gguf").touch()
    with pytest.raises(StartupError) as raised:
        await LocalModel.start(tmp_path / "model.gguf")
    assert raised.value.key == "local.not_installed"


@needs_library
async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_text("no model at all")
    with pytest.raises(StartupError) as raised:
        await LocalModel.start(tmp_path / "bad.gguf")
    assert raised.value.key == "local.ended"
    assert str(raised.value.params["detail"]).startswith("bad.gguf: ")


# Our own child, on a library that only says what it was given


class Watcher:
    """Hears from the fake library what it was given and, when the line breaks, that it is gone."""

    def __init__(self) -> None:
        self.port = 0
        self._connected: asyncio.Future[dict[str, object]] = asyncio.Future()
        self._gone = asyncio.Event()

    async def listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected.set_result(json.loads(await reader.readline()))
        await reader.read()
        self._gone.set()
        writer.close()

    async def connected(self) -> dict[str, object]:
        return await self._connected

    async def child_gone(self) -> None:
        await self._gone.wait()


@pytest.fixture
async def watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watcher]:
    watcher = Watcher()
    async with await asyncio.start_server(watcher.listen, "127.0.0.1", 0) as server:
        watcher.port = server.sockets[0].getsockname()[1]
        (tmp_path / "xllamacpp.py").write_text(FAKE_LIBRARY)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("WATCHER_PORT", str(watcher.port))
        yield watcher


OUR_CHILD = [
    sys.executable,
    "-m",
    "bot.llm.local",
    "--model",
    "/models/tiny.gguf",
    "--context",
    "512",
]


async def test_our_child_serves_with_the_settings_found_right(watcher: Watcher) -> None:
    model = await LocalModel.start(Path("unused"), command=OUR_CHILD)
    given = await watcher.connected()
    await model.close()
    assert given == {
        "model": "/models/tiny.gguf",
        "model_alias": "{'tiny'}",
        "n_ctx": 512,
        "n_batch": 128,
        "n_parallel": 1,
        "cache_ram_mib": 256,
        "flash_attn_type": "llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED",
        "verbosity": -1,
        "ui": False,
        "hostnames": ["127.0.0.1"],
        "port": 0,
        "api_keys": [model.api_key],
    }
    assert len(model.api_key) >= 32


async def test_the_noise_of_the_library_does_not_reach_the_answer(watcher: Watcher) -> None:
    model = await LocalModel.start(Path("unused"), command=OUR_CHILD)
    await model.close()
    assert (model.base_url, model.model) == ("http://127.0.0.1:9/v1", "tiny")
    assert (await model.ended()).params == {"code": 0, "detail": "noise of the library"}


async def test_our_child_leaves_ctrl_c_to_the_parent(watcher: Watcher) -> None:
    model = await LocalModel.start(Path("unused"), command=OUR_CHILD)
    os.kill(model.pid, signal.SIGINT)
    await model.close()
    assert (await model.ended()).params["code"] == 0


async def test_our_child_ends_when_its_parent_is_killed(watcher: Watcher) -> None:
    parent = await asyncio.create_subprocess_exec(
        *script(PARENT), *OUR_CHILD, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"started\n"
    parent.kill()
    await parent.wait()
    await watcher.child_gone()


# The real model


@pytest.fixture
async def real_model() -> Path:
    cache = Path(platformdirs.user_cache_dir("madeleine"))
    try:
        return await cached_model(cache) or await fetch_model(cache, lambda _progress: None)
    except StartupError as fault:
        pytest.skip(f"the embedded model cannot be had here: {fault.key} {fault.params}")


@needs_library
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_embedded_model_answers_in_a_strict_schema(real_model: Path) -> None:
    actions = ["reply", "create_long_term_memory"]
    schema = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions},
            "text": {"type": "string", "maxLength": 80},
        },
        "required": ["action", "text"],
        "additionalProperties": False,
    }
    question = {
        "messages": [{"role": "user", "content": "Hello! Who are you?"}],
        "max_tokens": 120,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "decision", "strict": True, "schema": schema},
        },
    }
    model = await LocalModel.start(real_model)
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=300) as client:
            url = f"{model.base_url}/chat/completions"
            refused = await client.post(url, json=question)
            key = {"Authorization": f"Bearer {model.api_key}"}
            answer = await client.post(url, json=question, headers=key)
    finally:
        await model.close()
    assert refused.status_code == 401
    assert answer.status_code == 200
    decision = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert list(decision) == ["action", "text"]
    assert decision["action"] in actions
    assert not is_running(model.pid)

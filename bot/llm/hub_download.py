"""A file from a model hub over HTTP, going on where an earlier attempt stopped.

The client is httpx2: the `openai` package brings it, so the model layer has one HTTP client.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx2

from bot.errors import Unavailable

CHUNK_BYTES = 1 << 20
MAX_ATTEMPTS = 50
TIMEOUT = httpx2.Timeout(30.0, connect=10.0)


async def download_from_hub(
    url: str, part: Path, size_bytes: int, progress: Callable[[int], None]
) -> None:
    """Leaves `size_bytes` bytes in `part`, keeping what it already holds.

    `progress` gets the bytes so far. A connection that breaks is taken up again as long as each
    attempt brings something.
    Raises Unavailable where the hub cannot be reached or offers a file of another size.
    """
    tls = await asyncio.to_thread(httpx2.create_ssl_context)  # 0.1 s
    async with httpx2.AsyncClient(verify=tls, follow_redirects=True, timeout=TIMEOUT) as client:
        for _ in range(MAX_ATTEMPTS):
            have = await asyncio.to_thread(_usable, part, size_bytes)
            if have == size_bytes:
                return
            try:
                await _continue(client, url, part, have, size_bytes, progress)
            except httpx2.HTTPError as fault:
                if await asyncio.to_thread(_usable, part, size_bytes) <= have:
                    raise Unavailable(f"{type(fault).__name__}: {fault}") from fault
    raise Unavailable("the connection broke too often")


async def _continue(
    client: httpx2.AsyncClient,
    url: str,
    part: Path,
    have: int,
    size_bytes: int,
    progress: Callable[[int], None],
) -> None:
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={have}-"}
    async with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
        start = have if response.status_code == HTTPStatus.PARTIAL_CONTENT else 0
        rest = response.headers.get("Content-Length", "")
        if rest != str(size_bytes - start):
            raise Unavailable(f"it offers a file of another size ({rest or 'unknown'} bytes)")
        done = start
        async for chunk in response.aiter_bytes(CHUNK_BYTES):
            await asyncio.to_thread(_write, part, done, chunk)
            done += len(chunk)
            progress(done)


def _usable(part: Path, size_bytes: int) -> int:
    """How many bytes of `part` to keep: none of a file that has more than the whole."""
    have = part.stat().st_size if part.exists() else 0
    return have if have <= size_bytes else 0


def _write(part: Path, offset: int, chunk: bytes) -> None:
    with part.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        file.write(chunk)

"""One REST request as it came in and was answered, and how it is read off the wire."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multidict import CIMultiDict

if TYPE_CHECKING:
    from aiohttp import BodyPartReader, web

    from tests.fakes.discord.records import JsonObject

API_PREFIX = "/api/v10"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    field: str
    name: str
    content: bytes
    content_type: str


@dataclass(slots=True, eq=False, kw_only=True)
class Call:
    """A request to the REST API. `status` is 0 until it is answered, -1 where it was reset."""

    method: str
    path: str
    json: Any = None
    files: list[UploadedFile] = field(default_factory=list)
    query: dict[str, str] = field(default_factory=dict)
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    status: int = 0
    answer: Any = None
    received_at: float = field(default_factory=time.monotonic)
    claimed: bool = False

    @property
    def body(self) -> JsonObject:
        """The JSON object that was sent; empty where none was."""
        return self.json if isinstance(self.json, dict) else {}

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status}"


async def read_call(request: web.Request) -> Call:
    call = Call(
        method=request.method,
        path=request.path.removeprefix(API_PREFIX),
        query=dict(request.query),
        headers=CIMultiDict(request.headers),
    )
    if request.content_type == "multipart/form-data":
        async for part in await request.multipart():
            await _read_part(part, call)  # type: ignore[arg-type]
    elif raw := await request.read():
        call.json = json.loads(raw)
    return call


async def _read_part(part: BodyPartReader, call: Call) -> None:
    if part.name == "payload_json":
        call.json = json.loads(await part.text())
        return
    call.files.append(
        UploadedFile(
            field=part.name or "",
            name=part.filename or "file",
            content=bytes(await part.read()),
            content_type=part.headers.get("Content-Type", "application/octet-stream"),
        )
    )

"""Writing answers and faults to the socket."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING

from aiohttp import web

from tests.fakes.connections import hang_up, reset
from tests.fakes.model.replies import (
    BadJson,
    ContextTooLong,
    CorruptEvent,
    Cut,
    Disconnect,
    ErrorEvent,
    Hang,
    Html,
    HttpError,
    Reset,
    Stall,
    StreamFault,
    WholeFault,
)

if TYPE_CHECKING:
    from tests.fakes.model.completions import Completion
    from tests.fakes.model.replies import JsonObject

JSON_TYPE = {"Content-Type": "application/json"}


async def send_fault(request: web.Request, fault: WholeFault) -> web.StreamResponse:
    match fault:
        case HttpError():
            return _http_error(fault)
        case ContextTooLong():
            return web.json_response(_context_too_long(fault), status=400)
        case Hang():
            await asyncio.sleep(fault.seconds)
            return _reset(request)
        case Reset():
            return _reset(request)
        case Html():
            return web.Response(text=fault.text, content_type="text/html")
        case BadJson():
            return web.Response(body=b'{"id": "chatcmpl-1", "choi', headers=JSON_TYPE)


def _http_error(fault: HttpError) -> web.Response:
    headers: dict[str, str] = {}
    if isinstance(fault.retry_after, datetime):
        moment = fault.retry_after.astimezone(UTC)
        headers["Retry-After"] = format_datetime(moment, usegmt=True)
    elif fault.retry_after is not None:
        headers["Retry-After"] = f"{fault.retry_after:g}"
    error = {"message": fault.message, "type": "loopback", "param": None, "code": fault.code}
    return web.json_response({"error": error}, status=fault.status, headers=headers)


def _context_too_long(fault: ContextTooLong) -> JsonObject:
    if fault.style == "llama.cpp":
        return {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": fault.prompt_tokens,
                "n_ctx": fault.context,
            }
        }
    return {
        "error": {
            "message": f"This model's maximum context length is {fault.context} tokens. However, "
            f"your messages resulted in {fault.prompt_tokens} tokens. Please reduce the length "
            "of the messages.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    }


def _reset(request: web.Request) -> web.Response:
    reset(request.transport)
    return web.Response()


# --- whole answers


async def send_whole(request: web.Request, completion: Completion) -> web.StreamResponse:
    """A request that does not stream meets the faults of a stream in their whole form."""
    match completion.reply.breaks:
        case Disconnect():
            return _reset(request)
        case Stall(seconds=seconds):
            await asyncio.sleep(seconds)
        case CorruptEvent():
            return await send_fault(request, BadJson())
        case ErrorEvent(message=message):
            return await send_fault(request, HttpError(500, message))
        case Cut() | None:
            pass
    answer = completion.whole
    if isinstance(completion.reply.breaks, Cut):
        answer["choices"][0]["finish_reason"] = None
    return web.json_response(answer)


# --- streams


async def send_stream(request: web.Request, completion: Completion) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await _event(response, completion.chunk({"role": "assistant", "content": ""}))
    reply = completion.reply
    for number, delta in enumerate(completion.deltas):
        if reply.breaks and number == reply.breaks.after:
            ends = await _break_stream(request, response, reply.breaks)
            if ends:
                return response
        await _event(response, completion.chunk(delta))
        await asyncio.sleep(reply.chunk_delay)
    if not await _breaks_at_end(request, response, completion):
        await _finish(response, completion)
    return response


async def _breaks_at_end(
    request: web.Request, response: web.StreamResponse, completion: Completion
) -> bool:
    """Whether a fault that comes after every piece ends the stream before its finish."""
    fault = completion.reply.breaks
    if fault is None or fault.after < len(completion.deltas):
        return False
    return await _break_stream(request, response, fault)


async def _finish(response: web.StreamResponse, completion: Completion) -> None:
    await _event(response, completion.finish)
    options = completion.request.body.get("stream_options") or {}
    if options.get("include_usage"):
        await _event(response, completion.usage_chunk)
    await response.write(b"data: [DONE]\n\n")


async def _break_stream(
    request: web.Request, response: web.StreamResponse, fault: StreamFault
) -> bool:
    """Commit the fault; whether the stream ends with it."""
    match fault:
        case Cut():
            return True
        case Disconnect():
            hang_up(request.transport)
            return True
        case CorruptEvent():
            await response.write(b'data: {"choices": [{"del\n\n')
            return False
        case Stall(seconds=seconds):
            await asyncio.sleep(seconds)
            return False
        case ErrorEvent(message=message):
            await _event(response, {"error": {"message": message, "type": "server_error"}})
            return True


async def _event(response: web.StreamResponse, payload: JsonObject) -> None:
    await response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")

"""What a failed request to a model server means: the openai client's errors as ModelFaults."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

import httpx2
import openai

from bot.errors import ContextTooLong, FaultKind, ModelFault

# httpx2's errors and OSError come through where the body of an error answer breaks off; ValueError
# is broken JSON or UTF-8 in a stream, which the openai client does not wrap.
REQUEST_ERRORS = (openai.OpenAIError, httpx2.RequestError, OSError, ValueError, RecursionError)

_DETAIL_CHARACTERS = 300
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|(?:prompt|input)(?: is)? too long|reduce the length"
    r"|(?:maximum number of|model|input) tokens? (?:limit|allowed|exceed)|maximum prompt length"
    r"|max_tokens must be at least 1, got -|`inputs` tokens",
    re.IGNORECASE,
)
_LIMITS = (
    r"context (?:length|size|window)(?::? \(?|:? (?:is|of) (?:only )?)(\d+)",
    r"(\d+) maximum",
    r"tokens allowed \(?(\d+)",
    r"limit:? (?:of )?(\d+)",
    r"must be <= (\d+)",
)
# Of the prompt alone where that is told; else with the answer that was asked for.
_ASKED = (
    r"(\d+) (?:tokens )?(?:in the messages|in your prompt|of text input|input tokens|`inputs`)",
    r"(?:resulted in|first|contains) (\d+) tokens",
    r"(?:request|token count) \((\d+)",
    r"too long:? (\d+)",
    r"requested:? (?:about )?(\d+)",
)


def fault_of(error: BaseException, now: datetime) -> ModelFault:
    """One of REQUEST_ERRORS as a ModelFault; `now` is for a Retry-After that is a date."""
    match error:
        case openai.APIStatusError():
            after = _retry_after_s(error.response.headers.get("retry-after", ""), now)
            return _told_fault(error.status_code, error.body, after)
        case openai.APITimeoutError():
            return ModelFault("timeout", "the server does not answer")
        case openai.APIConnectionError() | httpx2.RequestError() | OSError():
            return ModelFault("connection", f"the connection failed: {type(_root(error)).__name__}")
        case openai.APIError():
            return _told_fault(None, error.body, None)
        case _:
            return ModelFault("malformed", f"the answer is broken: {type(error).__name__}")


def told_fault(body: object) -> ModelFault:
    """The fault that an error object without a status tells of."""
    return _told_fault(None, body, None)


def _root(error: BaseException) -> BaseException:
    return error.__cause__ or error


def _told_fault(status: int | None, body: object, retry_after_s: float | None) -> ModelFault:
    code = _field(body, "code")
    if status is None and str(code).isdecimal():
        status = int(str(code))
    message = _message(body) or "no reason given"
    detail = f"{status or 'error'}: {message}"[:_DETAIL_CHARACTERS]
    if status in (None, 400, 413, 422, 500) and _is_too_long(status, body, message):
        return ContextTooLong(
            detail,
            limit=_count(_field(body, "n_ctx")) or _found(_LIMITS, message),
            asked=_count(_field(body, "n_prompt_tokens")) or _found(_ASKED, message),
        )
    return ModelFault(_kind(status, str(code)), detail, retry_after_s=retry_after_s)


def _kind(status: int | None, code: str) -> FaultKind:
    match status:
        case None:
            return "rate_limited" if code.startswith("rate_limit") else "server"
        case 401 | 402 | 403:
            return "auth"
        case 429:
            return "auth" if code == "insufficient_quota" else "rate_limited"
        case 408:
            return "timeout"
        case 409 | 425:
            return "server"
        case _:
            return "server" if status >= 500 else "rejected"


def _is_too_long(status: int | None, body: object, message: str) -> bool:
    told = f"{_field(body, 'code')} {_field(body, 'type')} {message}"
    return status == 413 or _TOO_LONG.search(told) is not None


def _found(patterns: tuple[str, ...], message: str) -> int | None:
    for pattern in patterns:
        if match := re.search(pattern, message, re.IGNORECASE):
            return int(match[1])
    return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _field(body: object, name: str) -> object:
    return cast("Mapping[str, object]", body).get(name) if isinstance(body, Mapping) else None


def _message(body: object) -> str:
    """The server's own sentence, never the whole body: that may repeat what people wrote."""
    if isinstance(body, str):
        return "a web page instead of a reason" if body.lstrip().startswith("<") else body
    for name in ("message", "error", "detail"):
        value = _field(body, name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            problems = cast("list[object]", value)
            return "; ".join(f"{_field(one, 'loc')} {_field(one, 'msg')}" for one in problems)
    return ""


def _retry_after_s(told: str, now: datetime) -> float | None:
    """Seconds to wait, of a Retry-After in seconds or as an HTTP date."""
    try:
        seconds = float(told)
    except ValueError:
        try:
            moment = parsedate_to_datetime(told)
        except ValueError:
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (aware - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None

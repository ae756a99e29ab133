"""Answers that are JSON: asking for them, and reading what models really write."""

import json
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bot.errors import ModelFault
from bot.llm.chat import (
    ChatMessage,
    ChatRequest,
    Finished,
    JsonSchema,
    Restarted,
    TextDelta,
)
from bot.llm.reasoning import without_reasoning
from bot.llm.routing import Route
from bot.llm.strict_schema import strict_schema
from bot.llm.surrogates import without_surrogates
from bot.prompts import prompt

M = TypeVar("M", bound=BaseModel)

MOST_PROBLEMS_TOLD = 8
_LONGEST_TOKEN = 16
"""Characters a token: a server that heeds `max_tokens` sends less."""

# A brace in prose or code is not taken for an object.
_OBJECT = re.compile(r'\{\s*["}]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)


def extract_object(text: str) -> str:
    """The first JSON object in a model's answer, written anew as valid JSON.

    Reasoning, code fences, prose, raw line ends in strings and lone surrogates are gone. Raises
    ValueError with a plain reason where there is no object, or it is cut off or broken.
    """
    text = without_reasoning(text)
    opening = _OBJECT.search(text)
    if opening is None:
        raise ValueError("there is no JSON object in it" if text.strip() else "it is empty")
    try:
        value, _ = _DECODER.raw_decode(text, opening.start())
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except json.JSONDecodeError as error:
        if _is_cut(text[opening.start() :]):
            raise ValueError("the JSON object is cut off before its end") from error
        place = error.pos - opening.start() + 1
        raise ValueError(f"the JSON is broken at character {place}: {error.msg}") from error
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    return without_surrogates(written)


def _is_cut(text: str) -> bool:
    rest = _STRING.sub("", text)
    return '"' in rest or sum(map(rest.count, "{[")) > sum(map(rest.count, "}]"))


def parse_answer(text: str, model: type[M]) -> M:
    """The answer as a `model`. Raises ValueError that lists what is wrong with it."""
    try:
        return model.model_validate_json(extract_object(text))
    except ValidationError as error:
        raise ValueError(_problems(error)) from error


def _problems(error: ValidationError) -> str:
    problems = [
        ": ".join(filter(None, (".".join(map(str, problem["loc"])), problem["msg"])))
        for problem in error.errors()
    ]
    more = len(problems) - MOST_PROBLEMS_TOLD
    told = problems[:MOST_PROBLEMS_TOLD] + ([f"and {more} more"] if more > 0 else [])
    return "; ".join(told)


async def ask_structured(
    route: Route,
    messages: tuple[ChatMessage, ...],
    model: type[M],
    *,
    max_tokens: int,
    repairs: int = 1,
    schema: JsonSchema | None = None,
    check: Callable[[M], None] | None = None,
    paid: Callable[[Finished], None] | None = None,
) -> M:
    """A `model` from the route's answer; `check` may refuse one with a ValueError.

    `schema`: a narrower one than the model's own. An answer that cannot be used is sent back
    `repairs` times with the reasons; `paid` is told of every answer. Raises
    `ModelFault("malformed")` where that does not help, and whatever the route raises.
    """
    request = ChatRequest(
        messages=messages, schema=schema or strict_schema(model), max_tokens=max_tokens
    )
    asked, problem = request, ""
    for _ in range(repairs + 1):
        text, finished = await _whole_answer(route, asked)
        if paid is not None and finished is not None:
            paid(finished)
        try:
            return _checked(text, model, check)
        except ValueError as error:
            problem = str(error)
            asked = _repairing(request, text, problem)
    raise ModelFault("malformed", problem)


def _checked(text: str, model: type[M], check: Callable[[M], None] | None) -> M:
    answer = parse_answer(text, model)
    if check is not None:
        check(answer)
    return answer


def _repairing(request: ChatRequest, answer: str, problem: str) -> ChatRequest:
    said = (ChatMessage(role="assistant", content=answer),) if answer.strip() else ()
    asked = ChatMessage(role="user", content=prompt("generation.malformed", problem=problem))
    return replace(request, messages=(*request.messages, *said, asked))


async def _whole_answer(route: Route, request: ChatRequest) -> tuple[str, Finished | None]:
    text, finished = "", None
    async with aclosing(route.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta():
                    text += event.text
                    if len(text) > request.max_tokens * _LONGEST_TOKEN:
                        raise ModelFault("malformed", "the answer has no end")
                case Restarted():
                    text = ""
                case Finished():
                    finished = event
    return text, finished

"""Puts a model's answer together out of the events of its stream."""

import json
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Literal

from bot.errors import ContextTooLong, ModelFault
from bot.llm.bare_decision import DecisionFilter
from bot.llm.chat import ChatRequest, Finished, Restarted, TextDelta, ToolCall, Usage
from bot.llm.markup import MarkupFilter
from bot.llm.reasoning import ReasoningFilter
from bot.llm.surrogates import SurrogateFilter, without_surrogates
from bot.llm.wire import CallDelta, Chunk, FunctionDelta
from bot.llm.written_calls import WrittenCall


class Answer:
    """One answer while it streams.

    Text that follows a schema is left as it is, but for reasoning: it is no text for people yet.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._surrogates = SurrogateFilter()
        self._reasoning = ReasoningFilter()
        self._is_for_people = request.schema is None
        self._offered = frozenset(tool.name for tool in request.tools)
        self._written = _Written(self._offered)
        self._ending: tuple[TextDelta | Restarted, ...] = ()
        self._calls = _Calls(sum(len(message.tool_calls) for message in request.messages))
        self._usage: Usage | None = None
        self._finish_reason: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the model said that it is done; only its usage may still come."""
        return self._finish_reason is not None

    def take(self, chunk: Chunk) -> Iterator[TextDelta | Restarted]:
        """What one more event of the stream adds to the text."""
        choice = chunk.choice
        if chunk.usage is not None:
            self._usage = chunk.usage.counted
        self._finish_reason = choice.finish_reason or self._finish_reason
        if choice.delta is not None:
            for call in choice.delta.tool_calls or ():
                self._calls.take(call)
            text = self._surrogates.feed(choice.delta.text)
            yield from self._seen(self._reasoning.feed(text))

    def end(self) -> Iterator[TextDelta | Restarted]:
        """The text that was held back until the end, once the answer is `finished`."""
        return iter(self._ending)

    def finished(self, provider: str, model: str) -> Finished:
        """The end of a whole answer. Raises ModelFault where it is none."""
        self._ending = tuple(self._held_back())
        # Beside calls that the server read itself, what is written in the text repeats them.
        if not self._calls:
            self._calls.take_written(self._written.calls)
        calls = self._calls.gathered()
        return Finished(
            reason=_reason(self._finish_reason, has_calls=bool(calls)),
            tool_calls=calls,
            usage=self._usage,
            provider=provider,
            model=model,
        )

    def _held_back(self) -> Iterator[TextDelta | Restarted]:
        yield from self._seen(self._reasoning.finish())
        if text := self._written.finish():
            yield TextDelta(text=text)

    def _seen(self, events: Iterator[TextDelta | Restarted]) -> Iterator[TextDelta | Restarted]:
        """The events without markup in their text."""
        for event in events:
            if not self._is_for_people:
                yield event
            elif isinstance(event, Restarted):
                self._written = _Written(self._offered)
                yield event
            elif text := self._written.feed(event.text):
                yield TextDelta(text=text)


class _Written:
    """What people see of a text, and the calls that stand in it as markup or as bare JSON."""

    def __init__(self, offered: Set[str]) -> None:
        self._markup = MarkupFilter(offered)
        self._decisions = DecisionFilter(offered)

    @property
    def calls(self) -> list[WrittenCall]:
        return self._markup.calls + self._decisions.calls

    def feed(self, piece: str) -> str:
        return self._decisions.feed(self._markup.feed(piece))

    def finish(self) -> str:
        return self._decisions.feed(self._markup.finish()) + self._decisions.finish()


def _reason(told: str | None, *, has_calls: bool) -> Literal["stop", "length", "tool_calls"]:
    match told:
        case None:
            raise ModelFault("cut", "the stream ended before the answer did")
        case "error":
            raise ModelFault("server", "the server gave the answer up")
        case "content_filter":
            raise ModelFault("rejected", "the provider's content filter stopped the answer")
        case "model_context_window_exceeded":
            raise ContextTooLong("the answer filled the context window")
        case "length" | "max_tokens" | "model_length":
            return "length"
        case _:
            # Ollama and llama.cpp say "stop" beside calls.
            return "tool_calls" if has_calls else "stop"


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str
    name: str = ""
    arguments: str = ""


class _Calls:
    """Gathers tool calls from deltas.

    Not all servers number them: some send whole calls without an index, or with index 0 for each
    (Ollama, Gemini), some without ids, some repeat id and name in every delta.
    """

    def __init__(self, earlier: int) -> None:
        self._earlier = earlier
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def take_written(self, calls: Iterable[WrittenCall]) -> None:
        """Take calls that the model wrote as text."""
        self._calls += [
            _Call(index=None, id="", name=call.name, arguments=call.arguments) for call in calls
        ]

    def take(self, delta: CallDelta) -> None:
        function = delta.function or FunctionDelta()
        call = self._continued(delta, function)
        if call is None:
            call = _Call(index=delta.index, id=delta.id or "")
            self._calls.append(call)
        call.id = call.id or delta.id or ""
        call.name = call.name or function.name or ""
        call.arguments += function.written

    def gathered(self) -> tuple[ToolCall, ...]:
        """The calls in order; one without an id of its own gets one, new in the conversation."""
        ids: set[str] = set()
        for number, call in enumerate(self._calls, self._earlier + 1):
            if not call.id or call.id in ids:
                call.id = f"call_{number}"
            ids.add(call.id)
        return tuple(
            ToolCall(id=call.id, name=call.name, arguments=without_surrogates(call.arguments))
            for call in self._calls
        )

    def _continued(self, delta: CallDelta, function: FunctionDelta) -> _Call | None:
        """The call that `delta` goes on with; None where it begins one."""
        call = self._newest(delta)
        if call is None or not (function.name and call.name):
            return call
        another = function.name != call.name
        after_a_whole_one = function.written.strip() and _is_whole(call.arguments)
        return None if another or after_a_whole_one else call

    def _newest(self, delta: CallDelta) -> _Call | None:
        for call in reversed(self._calls):
            same_place = delta.index is None or call.index == delta.index
            same_id = not (delta.id and call.id) or delta.id == call.id
            if same_place and same_id:
                return call
        return None


def _is_whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True

"""The tool loop: the model speaks, its calls are run, until it has answered."""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from bot.config import LlmConfig, TurnConfig
from bot.errors import ModelUnavailable
from bot.llm.chat import (
    ChatMessage,
    ChatRequest,
    Finished,
    Restarted,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from bot.llm.markup import MarkupFilter, without_markup
from bot.llm.reply_stream import ReplyStream
from bot.llm.routing import Route
from bot.prompts import prompt
from bot.tools.long_term import LONG_TERM_TOOLS
from bot.tools.port import Ok, Outcome, OutcomeName, ToolContext, outcome_name
from bot.tools.registry import ToolRegistry
from bot.turn.answer import Answer
from bot.turn.decision import Decision, decision_schema, read_decision
from bot.turn.report import ToolReport

log = logging.getLogger(__name__)

CUT_MARK = " […]"
Show = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class LoopState:
    """What the loop has come to so far. `messages` follow the prompt, which may be made anew."""

    answer: Answer
    messages: list[ChatMessage] = field(default_factory=list[ChatMessage])
    calls: list[ToolReport] = field(default_factory=list[ToolReport])
    finished: list[Finished] = field(default_factory=list[Finished])
    failures_in_a_row: int = 0
    empty_answers: int = 0
    continuations: int = 0
    passes: int = 0


class ToolLoop:
    """Runs the passes of one turn."""

    def __init__(
        self,
        route: Route,
        tools: ToolRegistry,
        context: ToolContext,
        config: TurnConfig,
        llm: LlmConfig,
        *,
        prompt_messages: tuple[ChatMessage, ...],
        show: Show,
    ) -> None:
        self._route = route
        self._tools = tools
        self._context = context
        self._config = config
        self._llm = llm
        self._prompt = prompt_messages
        self._show = show

    async def run(self, state: LoopState, *, max_tokens: int) -> None:
        """Go on until there is an answer; it stands in `state`. Raises what the route raises."""
        while state.passes < self._config.max_passes:
            finished, decision = await self._pass(state, max_tokens)
            state.passes += 1
            calls = (decision.call,) if decision.call else finished.tool_calls
            if calls:
                said = state.answer.pass_text.strip()
                state.answer.end_pass()
                await self._run_calls(state, calls, said)
            elif not self._goes_on(state, finished, decision.problem):
                return

    async def decide(self, state: LoopState, tools: tuple[ToolSpec, ...], max_tokens: int) -> None:
        """Ask once for a decision among `tools` alone, and run it. The answer stays as it is."""
        said = state.answer.text.strip()
        answered = (ChatMessage(role="assistant", content=said),) if said else ()
        asked = ChatMessage(role="user", content=prompt("generation.must_save"))
        request = ChatRequest(
            messages=(*self._prompt, *state.messages, *answered, asked),
            schema=decision_schema(tools, may_reply=False),
            max_tokens=max_tokens,
        )
        aside = replace(state, answer=Answer(""))
        text, _ = await self._stream(aside, request, shown=False)
        try:
            decision = read_decision(text, tools, state.passes)
        except ValueError as error:
            log.info("decision_malformed", extra={"reason": str(error)})
            return
        if decision.call is not None:
            await self._run_call(state, decision.call)

    def _offered(self) -> tuple[ToolSpec, ...]:
        """The tools of this pass. A small model that has kept a fact would keep it again."""
        if self._route.tools_mode == "none":
            return ()
        offered = self._tools.offered(self._context)
        if self._route.tools_mode == "structured" and self._context.progress.long_term_done:
            return tuple(tool for tool in offered if tool.name not in LONG_TERM_TOOLS)
        return offered

    def _may_call(self, state: LoopState) -> bool:
        """Whether calls are still run: not after too many, nor too many failures in a row."""
        return (
            len(state.calls) < self._config.max_tool_calls
            and state.failures_in_a_row < self._config.max_failures_in_a_row
        )

    async def _pass(self, state: LoopState, max_tokens: int) -> tuple[Finished, Decision]:
        last = state.passes + 1 >= self._config.max_passes
        offered = self._offered() if self._may_call(state) and not last else ()
        if self._route.tools_mode == "structured":
            return await self._structured_pass(state, offered, max_tokens)
        messages = (*self._prompt, *state.messages)
        request = ChatRequest(messages=messages, tools=offered, max_tokens=max_tokens)
        _, finished = await self._stream(state, request)
        return finished, Decision()

    async def _stream(
        self, state: LoopState, request: ChatRequest, *, shown: bool = True
    ) -> tuple[str, Finished]:
        """One request: its raw text, of which the reply is shown while it grows."""
        raw: list[str] = []
        reader, markup = ReplyStream(), MarkupFilter()
        async with aclosing(self._route.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        raw.append(text)
                        is_reply = request.schema is None
                        state.answer.add(text if is_reply else markup.feed(reader.feed(text)))
                        if shown and state.answer.pass_text:
                            await self._show(state.answer.text)
                    case Restarted():
                        raw.clear()
                        reader, markup = ReplyStream(), MarkupFilter()
                        state.answer.restart_pass()
                    case Finished():
                        state.finished.append(event)
                        return "".join(raw), event
        raise ModelUnavailable("the answer ended without an end")

    async def _structured_pass(
        self, state: LoopState, offered: tuple[ToolSpec, ...], max_tokens: int
    ) -> tuple[Finished, Decision]:
        request = ChatRequest(
            messages=(*self._prompt, *state.messages),
            schema=decision_schema(offered),
            temperature=0,
            max_tokens=max_tokens,
        )
        text, finished = await self._stream(state, request)
        try:
            decision = read_decision(text, offered, state.passes)
        except ValueError as error:
            if state.answer.pass_text.strip() and finished.reason == "length":
                return finished, Decision()
            log.info("decision_malformed", extra={"reason": str(error)})
            state.answer.restart_pass()
            return finished, Decision(problem=str(error))
        state.answer.restart_pass()
        state.answer.add(without_markup(decision.text))
        return finished, decision

    async def _run_calls(self, state: LoopState, calls: tuple[ToolCall, ...], said: str) -> None:
        native = self._route.tools_mode == "native"
        if native:
            state.messages.append(ChatMessage(role="assistant", content=said, tool_calls=calls))
        for call in calls:
            if self._may_call(state):
                message = (await self._run_call(state, call)).message
            else:
                message = prompt("refused.too_many_calls")
            state.messages += _results(call, message, native=native)

    async def _run_call(self, state: LoopState, call: ToolCall) -> Outcome:
        outcome = await self._tools.call(self._context, call)
        name: OutcomeName = outcome_name(outcome)
        state.calls.append(ToolReport(name=call.name, outcome=name))
        state.failures_in_a_row = 0 if isinstance(outcome, Ok) else state.failures_in_a_row + 1
        log.info("tool_called", extra={"tool": call.name, "outcome": name})
        return outcome

    def _goes_on(self, state: LoopState, finished: Finished, problem: str) -> bool:
        """Whether a pass without calls was no answer yet: it was empty, broken, or cut off."""
        if not state.answer.pass_text.strip():
            state.empty_answers += 1
            if state.answer.text.strip() or state.empty_answers > self._llm.empty_answer_retries:
                return False
            again = (
                prompt("generation.malformed", problem=problem)
                if problem
                else prompt("generation.again")
            )
            state.messages.append(ChatMessage(role="user", content=again))
            return True
        if finished.reason != "length":
            return False
        if state.continuations >= self._llm.length_continuations:
            state.answer.add(CUT_MARK)
            return False
        state.continuations += 1
        state.messages += [
            ChatMessage(role="assistant", content=state.answer.pass_text),
            ChatMessage(role="user", content=prompt("generation.continue")),
        ]
        state.answer.end_pass(joined=True)
        return True


def _results(call: ToolCall, message: str, *, native: bool) -> list[ChatMessage]:
    if native:
        return [ChatMessage(role="tool", content=message, tool_call_id=call.id)]
    made = json.dumps({"action": call.name, **_arguments(call)}, ensure_ascii=False)
    result = prompt("generation.tool_result", name=call.name, message=message)
    return [
        ChatMessage(role="assistant", content=made),
        ChatMessage(role="user", content=result),
    ]


def _arguments(call: ToolCall) -> dict[str, object]:
    try:
        arguments: object = json.loads(call.arguments)
    except json.JSONDecodeError:
        return {}
    return dict(arguments) if isinstance(arguments, dict) else {}  # pyright: ignore[reportUnknownArgumentType] - JSON keys are text

"""All tools, and the one way to call them."""

import asyncio
from collections.abc import Sequence

from rapidfuzz import process

from bot.background import Raised, report_bug, settle
from bot.llm.chat import ToolCall, ToolSpec
from bot.prompts import prompt
from bot.tools.port import Failed, Outcome, Retry, Tool, ToolContext


class ToolRegistry:
    """Knows the tools by name."""

    def __init__(self, tools: Sequence[Tool], *, timeout_s: float) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._timeout_s = timeout_s

    def offered(self, context: ToolContext) -> tuple[ToolSpec, ...]:
        """The tools of this turn, as they stand now."""
        return tuple(
            tool.spec(context) for tool in self._tools.values() if tool.is_available(context)
        )

    async def call(self, context: ToolContext, call: ToolCall) -> Outcome:
        """Run one call of the model. Whatever goes wrong is an outcome."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Retry(self._unknown(call.name))
        outcome = await settle(self._run(tool, context, call.arguments))
        if not isinstance(outcome, Raised):
            return outcome.value
        if isinstance(outcome.error, TimeoutError):
            return Failed(prompt("refused.timeout"))
        report_bug(f"tool_failed: {call.name}", outcome.error)
        return Failed(prompt("refused.bug"))

    async def _run(self, tool: Tool, context: ToolContext, raw_arguments: str) -> Outcome:
        async with asyncio.timeout(self._timeout_s):
            return await tool.call(context, raw_arguments)

    def _unknown(self, name: str) -> str:
        nearest = process.extractOne(name, list(self._tools))
        known = nearest[0] if nearest else "-"
        return prompt("refused.unknown_tool", name=name, nearest=known)

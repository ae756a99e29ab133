"""The tool with which the model refreshes what it notes about the conversation."""

from pydantic import BaseModel, Field

from bot.config import MemoryConfig
from bot.errors import Unavailable
from bot.features import Flag
from bot.llm.chat import JsonSchema
from bot.memory.content import is_blank
from bot.memory.refusals import MemoryRefused
from bot.memory.short_term import ShortTermMemory
from bot.prompts import prompt
from bot.tools.grounding import repeats_example
from bot.tools.port import Failed, Ok, Outcome, Retry, ToolContext, TypedTool, object_schema


class ShortTermArguments(BaseModel):
    """Arguments of update_short_term_memory. An empty category text clears that category."""

    summary: str | None = None
    categories: dict[str, str] = Field(default_factory=dict)


class UpdateShortTermMemory(TypedTool[ShortTermArguments]):
    """Writes the summary or the categories of this conversation, once a turn."""

    name = "update_short_term_memory"
    arguments = ShortTermArguments

    def __init__(self, memory: ShortTermMemory, config: MemoryConfig) -> None:
        self._memory = memory
        self._config = config

    def is_available(self, context: ToolContext) -> bool:
        """Not where the person asked for a lasting memory, nor switched off, nor done already."""
        return (
            not context.explicit_long_term_memory_intent
            and Flag.SHORT_TERM_MEMORY in context.flags
            and context.route_offers_short_term_memory
            and not context.progress.short_term_updated
        )

    def parameters(self, context: ToolContext) -> JsonSchema:
        """A summary, and the categories that this server defined."""
        fields: dict[str, JsonSchema] = {"summary": {"type": "string"}}
        if context.categories:
            fields["categories"] = {
                "type": "object",
                "properties": {
                    one.label: {"type": "string", "description": one.description}
                    for one in context.categories
                },
                "additionalProperties": False,
            }
        return object_schema(self.name, fields, required=())

    async def execute(self, context: ToolContext, arguments: ShortTermArguments) -> Outcome:
        """Write it, once every check has passed."""
        if context.explicit_long_term_memory_intent:
            return Failed(prompt("refused.explicit_intent"))
        if context.progress.short_term_updated:
            return Failed(prompt("refused.once_a_turn"))
        if not self.is_available(context):
            return Failed(prompt("refused.short_term_off"))
        summary = arguments.summary
        if summary is not None:
            summary = _as_kept(context, summary)
        categories = {
            label: _as_kept(context, text) for label, text in arguments.categories.items()
        }
        fault = self._fault(context, arguments)
        if fault is not None:
            return Retry(fault)
        if any(repeats_example(context, text) for text in (summary or "", *categories.values())):
            return Retry(prompt("refused.ungrounded"))
        try:
            await self._memory.update(
                context.origin,
                context.lineage,
                summary=summary,
                categories=categories,
                labels=[one.label for one in context.categories],
            )
        except MemoryRefused as refused:
            is_key = refused.code == "credential"
            return Retry(prompt("refused.credential") if is_key else prompt("refused.forgotten"))
        except Unavailable:
            return Failed(prompt("refused.storage"))
        context.progress.short_term_updated = True
        return Ok(prompt("done.noted"))

    def _fault(self, context: ToolContext, arguments: ShortTermArguments) -> str | None:
        if arguments.summary is None and not arguments.categories:
            return prompt("refused.nothing_to_note")
        limit = self._config.stm_max_characters
        texts = [arguments.summary or "", *arguments.categories.values()]
        longest = max(len(text.strip()) for text in texts)
        if longest > limit:
            return prompt("refused.too_long", limit=limit, length=longest)
        labels = [one.label for one in context.categories]
        unknown = sorted(set(arguments.categories) - set(labels))
        if unknown:
            known = ", ".join(labels) or "-"
            return prompt("refused.unknown_category", labels=", ".join(unknown), known=known)
        return None


def _as_kept(context: ToolContext, text: str) -> str:
    return "" if is_blank(text) else context.roster.hide(text.strip())

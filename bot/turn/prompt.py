"""The prompt of a turn: one system message, then working memory as the conversation."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.config import ContextConfig
from bot.features import Flag
from bot.identifiers import EntryId, MemoryId
from bot.llm.chat import ChatMessage
from bot.llm.tokens import estimate_message_tokens, estimate_tokens
from bot.memory.transcript import render_entries
from bot.persona.personas import Persona
from bot.prompts import prompt
from bot.turn.blocks import Blocks
from bot.turn.budget import Budget
from bot.turn.context import TurnContext
from bot.turn.history import fit_entries

COMPACT_BELOW = 2_048
"""Windows smaller than this get the short form of the rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the model is asked, and which memories it may name by which handle.

    `hidden`: entries that it had no room for. `space`: tokens that were left for the talk.
    """

    messages: tuple[ChatMessage, ...]
    shown: Mapping[str, MemoryId]
    hidden: tuple[EntryId, ...]
    space: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStyle:
    """What of the prompt depends on the route: are tools written as text, are examples shown."""

    tools_as_text: bool
    offers_tools: bool
    offers_short_term_memory: bool
    nudges: bool

    def examples(self) -> tuple[ChatMessage, ...]:
        """Example turns for a model that answers in JSON."""
        if not self.tools_as_text:
            return ()
        return (
            ChatMessage(role="user", content=prompt("examples.teach_user")),
            ChatMessage(role="assistant", content=prompt("examples.teach_assistant")),
            ChatMessage(role="user", content=prompt("examples.chat_user")),
            ChatMessage(role="assistant", content=prompt("examples.chat_assistant")),
        )


def needs_nudge(context: TurnContext, *, after_turns: int) -> bool:
    """Whether the conversation's note is due; never where the note could not be taken."""
    return (
        not context.explicit_long_term_memory_intent
        and Flag.SHORT_TERM_MEMORY in context.flags
        and context.room_note is not None
        and context.room_note.turns_since_refresh >= after_turns
    )


def assemble(
    context: TurnContext,
    blocks: Blocks,
    budget: Budget,
    style: PromptStyle,
    config: ContextConfig,
    *,
    ratio: float,
    tool_tokens: int,
) -> Prompt:
    """The messages of the prompt, and the handles that they show.

    Where all of it does not fit, blocks go in the order: other rooms, people, server; working
    memory keeps its last entries, and always the message that started the turn.
    """
    fixed = fixed_part(context.persona, style, compact=budget.window < COMPACT_BELOW)
    examples = style.examples()
    nudge = prompt("blocks.nudge") if style.nudges else ""
    spent = tool_tokens + sum(estimate_message_tokens(message, ratio) for message in examples)
    least = _least_for_talk(context, budget, ratio, config.unshortened_entries)
    while True:
        system = "\n\n".join(filter(None, (fixed, blocks.text, nudge)))
        first = ChatMessage(role="system", content=system)
        left = budget.prompt - spent - estimate_message_tokens(first, ratio)
        smaller = blocks.cut()
        if left >= least or smaller is None:
            break
        blocks = smaller
    space = max(1, min(left, budget.working_memory))
    keep = config.unshortened_entries
    entries = fit_entries(context.entries, context.view, budget=space, ratio=ratio, keep=keep)
    if len(entries) < len(context.entries):
        gap = ChatMessage(role="user", content=prompt("blocks.gap"))
        beside_gap = max(1, space - estimate_message_tokens(gap, ratio))
        entries = fit_entries(
            context.entries, context.view, budget=beside_gap, ratio=ratio, keep=keep
        )
    told = {entry.id for entry in entries}
    hidden = tuple(entry.id for entry in context.entries if entry.id not in told)
    messages = (first, *examples, *render_entries(entries, context.view, gap=bool(hidden)))
    return Prompt(messages=messages, shown=blocks.shown, hidden=hidden, space=space)


def fixed_part(persona: Persona, style: PromptStyle, *, compact: bool) -> str:
    """What stays the same from turn to turn, so that a server's prompt cache holds it."""
    parts = [
        prompt("system.rules_compact" if compact else "system.rules", name=persona.name),
        persona.prompt if not compact else "",
    ]
    if persona.sample_lines:
        parts.append("\n".join((prompt("blocks.samples"), *persona.sample_lines)))
    if style.tools_as_text:
        parts.append(prompt("system.structured_compact" if compact else "system.structured"))
    if style.offers_tools and not compact:
        parts.append(prompt("system.tools"))
        if style.offers_short_term_memory:
            parts.append(prompt("system.tools_short_term"))
    return "\n\n".join(filter(None, parts))


def _least_for_talk(context: TurnContext, budget: Budget, ratio: float, keep: int) -> int:
    """Room that the end of the talk must have before memory blocks may take theirs."""
    talk = sum(estimate_tokens(e.content, ratio) + 8 for e in context.entries[-keep:])
    return min(talk, budget.working_memory, budget.prompt // 3)

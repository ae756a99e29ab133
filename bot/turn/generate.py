"""The generate stage: prompt, tool loop, and the promise that "saved" means saved."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bot.errors import ContextTooLong, ModelUnavailable
from bot.features import Flag
from bot.i18n import t
from bot.identifiers import EntryId
from bot.llm.chat import Finished, Usage
from bot.llm.tokens import estimate_tool_tokens
from bot.memory.content import content_words
from bot.memory.long_term import Actor
from bot.tools.long_term import LONG_TERM_TOOLS
from bot.tools.port import MemoryChange, Progress, ToolContext
from bot.turn.blocks import Blocks, memory_blocks
from bot.turn.budget import Budget, plan_budget
from bot.turn.context import TurnContext
from bot.turn.messages import NO_FOOTER, AskedToForget, Footer
from bot.turn.prompt import Prompt, PromptStyle, assemble, needs_nudge
from bot.turn.quoting import unspoken_markers, with_names, without_loose_end
from bot.turn.report import ToolReport
from bot.turn.services import TurnServices
from bot.turn.tool_loop import LoopState, Show, ToolLoop

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The reply, its footer, what it took, and the entries for which its prompt had no room."""

    text: str
    footer: Footer
    calls: tuple[ToolReport, ...]
    finished: tuple[Finished, ...]
    hidden: tuple[EntryId, ...] = ()

    @property
    def usage(self) -> Usage:
        """All tokens of the turn together."""
        return sum((f.usage for f in self.finished if f.usage is not None), start=Usage())


async def generate(
    services: TurnServices, context: TurnContext, show: Show, state: LoopState
) -> Generated:
    """Have the model answer with its tools; how far it came stands in `state`.

    A prompt that the provider finds too long is halved once, with the estimate corrected. Raises
    what the route raises, unless something was kept before it failed: then that is the answer.
    """
    progress = Progress()
    try:
        try:
            return await _attempt(services, context, show, state, progress, halved=False)
        except ContextTooLong:
            state.answer.restart_pass()
            return await _attempt(services, context, show, state, progress, halved=True)
    except (ContextTooLong, ModelUnavailable):
        if not progress.changes:
            raise
        return _only_changes(context, state, progress)


def _only_changes(context: TurnContext, state: LoopState, progress: Progress) -> Generated:
    """The model kept something and then fell silent: the person hears what was kept."""
    return Generated(
        text=_told(progress.changes, context),
        footer=NO_FOOTER,
        calls=tuple(state.calls),
        finished=tuple(state.finished),
    )


async def _attempt(
    services: TurnServices,
    context: TurnContext,
    show: Show,
    state: LoopState,
    progress: Progress,
    *,
    halved: bool,
) -> Generated:
    """Go on from `state`: what was said and done before holds under a smaller prompt too."""
    budget = plan_budget(services.chat.window, services.config.context, halved=halved)
    blocks = memory_blocks(context, budget, services.chat.ratio)
    tool_context = _tool_context(services, context, blocks, progress)
    asked = _prompt(services, context, budget, blocks, tool_context)
    services.handoff.note_space(context.buffer, asked.space)
    tool_context = replace(tool_context, shown=asked.shown)
    markers = unspoken_markers(asked.shown, _talk(context))
    loop = ToolLoop(
        services.chat,
        services.tools,
        tool_context,
        services.config.turn,
        services.config.llm,
        prompt_messages=asked.messages,
        show=_with_names_if_streamed(context, show, markers),
    )
    await loop.run(state, max_tokens=budget.reply)
    footer = _changed(progress.changes, context)
    if context.explicit_long_term_memory_intent and not progress.fact_kept:
        footer = await _save_after_all(services, context, tool_context, loop, state, budget)
    footer = _honest(footer, progress, context, asked)
    text = with_names(state.answer.text, context.roster, markers).strip()
    if not text:
        raise ModelUnavailable("the model gave no answer")
    return Generated(
        text=text,
        footer=footer,
        calls=tuple(state.calls),
        finished=tuple(state.finished),
        hidden=asked.hidden,
    )


def _tool_context(
    services: TurnServices, context: TurnContext, blocks: Blocks, progress: Progress
) -> ToolContext:
    speaker = context.speaker
    provider = services.chat.provider
    return ToolContext(
        origin=context.origin,
        lineage=context.persona.lineage,
        listening=context.listening,
        actor=Actor(
            user=speaker.id,
            is_manager=speaker.is_manager,
            may_teach_server=Flag.MEMBER_TEACHING in context.flags,
        ),
        roster=context.roster,
        message_id=context.request.message.id,
        said_at=context.request.message.sent_at,
        flags=context.flags,
        explicit_long_term_memory_intent=context.explicit_long_term_memory_intent,
        forget_intent=context.forget_intent,
        schema_of_turn=provider.tools == "structured",
        route_offers_short_term_memory=provider.short_term_memory_tool,
        categories=context.categories,
        shown=blocks.shown,
        progress=progress,
        must_share_words=_spoken_words(context) if provider.tools == "structured" else None,
    )


def _spoken_words(context: TurnContext) -> frozenset[str]:
    """The words of the messages that this turn answers."""
    names = content_words(" ".join(p.name for p in context.roster.participants))
    said = content_words(" ".join(message.text for message in context.request.messages))
    return said - names


def _prompt(
    services: TurnServices,
    context: TurnContext,
    budget: Budget,
    blocks: Blocks,
    tool_context: ToolContext,
) -> Prompt:
    route = services.chat
    tools = services.tools.offered(tool_context) if route.tools_mode != "none" else ()
    offers_notes = any(tool.name == "update_short_term_memory" for tool in tools)
    native = route.tools_mode == "native"
    return assemble(
        context,
        blocks,
        budget,
        PromptStyle(
            tools_as_text=route.tools_mode == "structured",
            offers_tools=bool(tools),
            offers_short_term_memory=offers_notes,
            nudges=offers_notes
            and needs_nudge(context, after_turns=services.config.memory.nudge_after_turns),
        ),
        services.config.context,
        ratio=route.ratio,
        tool_tokens=sum(estimate_tool_tokens(tool, route.ratio) for tool in tools) * native,
    )


def _talk(context: TurnContext) -> Iterator[str]:
    """What people said and are called."""
    yield from (entry.content for entry in context.entries)
    yield from (message.text for message in context.request.messages)
    yield from (participant.name for participant in context.roster.participants)


def _with_names_if_streamed(context: TurnContext, show: Show, markers: frozenset[str]) -> Show:
    async def show_names(text: str) -> None:
        if Flag.STREAMING not in context.flags:
            return
        named = with_names(without_loose_end(text), context.roster, markers)
        if named:
            await show(named)

    return show_names


async def _save_after_all(
    services: TurnServices,
    context: TurnContext,
    tool_context: ToolContext,
    loop: ToolLoop,
    state: LoopState,
    budget: Budget,
) -> Footer:
    """They asked for a lasting memory and none was kept: ask once more, else say so plainly."""
    locale = context.request.message.locale
    if Flag.SELF_TEACHING not in context.flags:
        return Footer(text=t("turn.teaching_off", locale))
    tried = any(call.name in LONG_TERM_TOOLS for call in state.calls)
    if not tried and services.chat.tools_mode != "none":
        tools = services.tools.offered(replace(tool_context, schema_of_turn=True))
        wanted = tuple(tool for tool in tools if tool.name in LONG_TERM_TOOLS)
        try:
            await loop.decide(state, wanted, budget.reply)
        except (ModelUnavailable, ContextTooLong) as error:
            log.info("decision_failed", extra={"reason": type(error).__name__})
    if tool_context.progress.fact_kept:
        return _changed(tool_context.progress.changes, context)
    told = _changed(tool_context.progress.changes, context)
    return replace(told, text="\n".join(filter(None, (told.text, t("turn.not_saved", locale)))))


def _honest(footer: Footer, progress: Progress, context: TurnContext, prompt: Prompt) -> Footer:
    """The footer with what was asked for and not done, whatever the reply claims.

    It stands before what somebody is asked to confirm, which comes last.
    """
    locale = context.request.message.locale
    kinds = {change.kind for change in progress.changes}
    wished = context.forget_intent and bool(prompt.shown) and not kinds & {"forgotten", "asked"}
    line = ""
    if wished and (progress.long_term_failed or not footer):
        line = t("turn.not_forgotten", locale)
    elif progress.long_term_failed and progress.fact_kept:
        line = t("turn.not_all_saved", locale)
    elif progress.long_term_failed and not context.explicit_long_term_memory_intent:
        line = t("turn.not_saved", locale)
    if not line:
        return footer
    lines = footer.text.splitlines()
    asked = len(footer.forgets.memories) if footer.forgets else 0
    lines.insert(len(lines) - asked, line)
    return replace(footer, text="\n".join(lines))


def _changed(changes: list[MemoryChange], context: TurnContext) -> Footer:
    """The small last lines that say what was kept, changed or forgotten, to be undone there."""
    if Flag.NOTICES not in context.flags:
        return NO_FOOTER
    can_undo = any(change.can_undo for change in changes)
    asked = tuple(change.memory for change in changes if change.kind == "asked")
    changes = sorted(changes, key=lambda change: change.kind == "asked")
    return Footer(
        text=_told(changes, context),
        undoes=context.turn if can_undo else None,
        forgets=AskedToForget(lineage=context.persona.lineage, memories=asked) if asked else None,
    )


def _told(changes: list[MemoryChange], context: TurnContext) -> str:
    locale = context.request.message.locale
    return "\n".join(
        t(f"turn.{change.kind}", locale, text=" ".join(change.text.split())) for change in changes
    )

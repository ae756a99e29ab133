"""The tools that write long-term memory."""

from collections.abc import Awaitable
from typing import Literal

from pydantic import BaseModel, Field

from bot.audience import DIRECT_MESSAGES
from bot.errors import Unavailable
from bot.features import Flag
from bot.identifiers import MemoryId, UserId
from bot.llm.chat import JsonSchema
from bot.memory.checks import check_rights
from bot.memory.content import is_blank, normalised
from bot.memory.long_term import LongTermMemory, NewMemory, Scope
from bot.memory.refusals import MemoryRefused
from bot.memory.roster import Ambiguous
from bot.prompts import prompt
from bot.tools.grounding import check_grounded
from bot.tools.port import (
    Failed,
    MemoryChange,
    Ok,
    Outcome,
    Retry,
    ToolContext,
    TypedTool,
    object_schema,
)

MOST_ASKED = 5
"""Memories that one reply asks to confirm; a button names no more."""
SERVER_WIDE = "server_wide"
TARGET_USER = "target_user"


class CreateArguments(BaseModel):
    """Arguments of create_long_term_memory."""

    content: str
    scope: Literal["server_wide", "target_user"] = TARGET_USER
    target: str = ""


class UpdateArguments(BaseModel):
    """Arguments of update_long_term_memory. Blank content deletes; a call without any does not."""

    id: str = Field(coerce_numbers_to_str=True)
    content: str
    target: str = ""


def refusal_text(refused: MemoryRefused, context: ToolContext) -> str:
    """What the model is told of a refusal; memories are named by their handles."""
    params = dict(refused.params)
    if "id" in params:
        handles = {memory: handle for handle, memory in context.shown.items()}
        params["id"] = handles.get(MemoryId(int(params["id"])), str(params["id"]))
    return prompt(f"refused.{refused.code}", **{k: str(v) for k, v in params.items()})


def resolve_target(context: ToolContext, target: str) -> UserId | None:
    """Who is meant; None is the bot itself. Raises MemoryRefused where that is not clear."""
    if not target.strip():
        return context.actor.user
    if context.roster.is_own_name(target):
        return None
    found = context.roster.find(target)
    if not isinstance(found, Ambiguous):
        return found
    if not found.candidates:
        raise MemoryRefused("target_unknown", target=target)
    raise MemoryRefused("target_ambiguous", target=target, names=", ".join(found.candidates))


async def _guarded(context: ToolContext, change: Awaitable[Outcome]) -> Outcome:
    """The outcome of a change; what refuses it becomes words for the model."""
    try:
        outcome = await change
    except MemoryRefused as refused:
        return Retry(refusal_text(refused, context))
    except Unavailable:
        context.progress.long_term_failed = True
        return Failed(prompt("refused.storage"))
    if isinstance(outcome, Ok):
        context.progress.long_term_done = True
    return outcome


class CreateLongTermMemory(TypedTool[CreateArguments]):
    """Keeps a new fact."""

    name = "create_long_term_memory"
    arguments = CreateArguments

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory

    def is_available(self, context: ToolContext) -> bool:
        """Only where the server lets Madeleine teach herself."""
        return Flag.SELF_TEACHING in context.flags

    def parameters(self, context: ToolContext) -> JsonSchema:
        """In a direct message the only scope is the person."""
        direct = context.listening.server == DIRECT_MESSAGES
        scopes = [TARGET_USER] if direct else [TARGET_USER, SERVER_WIDE]
        fields: dict[str, JsonSchema] = {
            "content": {"type": "string"},
            "scope": {"type": "string", "enum": scopes},
            "target": {"type": "string"},
        }
        return object_schema(self.name, fields, required=("content", "scope", "target"))

    async def execute(self, context: ToolContext, arguments: CreateArguments) -> Outcome:
        """Keep the fact, once every check has passed."""
        if not self.is_available(context):
            return Failed(prompt("refused.teaching_off"))
        return await _guarded(context, self._create(context, arguments))

    async def _create(self, context: ToolContext, arguments: CreateArguments) -> Outcome:
        content = context.roster.hide(arguments.content.strip())
        self._memory.checks.content(content)
        check_grounded(context, content)
        subject = None
        if arguments.scope == TARGET_USER:
            subject = resolve_target(context, arguments.target)
        new = NewMemory(
            scope=Scope.SERVER if subject is None else Scope.PERSONAL,
            server=context.listening.server,
            subject=subject,
            lineage=context.lineage,
            content=content,
            source=context.source,
        )
        kept = await self._memory.create(new, context.actor, context.listening, turn=context.turn)
        context.progress.fact_kept = True
        if kept.known_before:
            return Ok(prompt("done.known"))
        context.progress.changes.append(
            MemoryChange(kind="saved", memory=kept.id, text=context.roster.show(content))
        )
        return Ok(prompt("done.saved"))


class UpdateLongTermMemory(TypedTool[UpdateArguments]):
    """Changes or deletes a fact that the prompt shows."""

    name = "update_long_term_memory"
    arguments = UpdateArguments

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory

    def is_available(self, context: ToolContext) -> bool:
        """Only where Madeleine may teach herself, and something is shown that could change."""
        return Flag.SELF_TEACHING in context.flags and bool(context.shown)

    def parameters(self, context: ToolContext) -> JsonSchema:
        """The ids are those that this prompt shows.

        Named in the schema only where that is built for the turn anyway: a native tool that stays
        the same from turn to turn keeps a provider's prompt cache.
        """
        known = {"enum": list(context.shown)} if context.schema_of_turn else {}
        fields: dict[str, JsonSchema] = {
            "id": {"type": "string", **known},
            "content": {"type": "string"},
            "target": {"type": "string"},
        }
        return object_schema(self.name, fields, required=("id", "content"))

    async def execute(self, context: ToolContext, arguments: UpdateArguments) -> Outcome:
        """Change or delete, once every check has passed. A `target` must be whom it is about."""
        if Flag.SELF_TEACHING not in context.flags:
            return Failed(prompt("refused.teaching_off"))
        return await _guarded(context, self._update(context, arguments))

    async def _update(self, context: ToolContext, arguments: UpdateArguments) -> Outcome:
        memory = context.shown.get(arguments.id.strip().upper())
        if memory is None:
            return Retry(prompt("refused.id_not_shown", ids=", ".join(context.shown) or "-"))
        if arguments.target.strip():
            found = await self._memory.find(memory, context.listening)
            if resolve_target(context, arguments.target) != found.subject:
                target = arguments.target.strip()
                return Retry(prompt("refused.other_target", id=arguments.id, target=target))
        content = context.roster.hide(arguments.content.strip())
        if is_blank(content) and context.forget_intent and Flag.NOTICES in context.flags:
            return await self._ask(context, memory)
        if is_blank(content):
            can_undo = not context.forget_intent  # what people ask to forget is gone
            old = await self._memory.forget(
                memory,
                context.actor,
                context.listening,
                turn=context.turn if can_undo else None,
            )
            change = MemoryChange(
                kind="forgotten",
                memory=memory,
                text=context.roster.show(old.content),
                can_undo=can_undo,
            )
            context.progress.changes.append(change)
            return Ok(prompt("done.forgotten"))
        check_grounded(context, content)
        old = await self._memory.update(
            memory,
            content,
            context.actor,
            context.source,
            context.listening,
            turn=context.turn,
        )
        context.progress.fact_kept = True
        if normalised(content) == normalised(old.content):
            return Ok(prompt("done.known"))
        context.progress.changes.append(
            MemoryChange(kind="updated", memory=memory, text=context.roster.show(content))
        )
        return Ok(prompt("done.updated"))

    async def _ask(self, context: ToolContext, memory: MemoryId) -> Outcome:
        """Have people confirm what they asked to forget: the model may have taken another."""
        already = [c.memory for c in context.progress.changes if c.kind == "asked"]
        if memory in already:
            return Ok(prompt("done.forget_asked"))
        if len(already) >= MOST_ASKED:
            return Failed(prompt("refused.too_many_calls"))
        found = await self._memory.find(memory, context.listening)
        check_rights(found, context.actor)
        asked = MemoryChange(
            kind="asked",
            memory=memory,
            text=context.roster.show(found.content),
            can_undo=False,
        )
        context.progress.changes.append(asked)
        return Ok(prompt("done.forget_asked"))


LONG_TERM_TOOLS = frozenset({CreateLongTermMemory.name, UpdateLongTermMemory.name})
"""The tools that keep something for good."""

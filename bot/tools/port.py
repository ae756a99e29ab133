"""What a tool is, what it is given, and what it can answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, TypeVar, assert_never

from pydantic import BaseModel, ValidationError

from bot.audience import Origin
from bot.features import Flag
from bot.identifiers import LineageId, MemoryId, MessageId
from bot.llm.chat import JsonSchema, ToolSpec
from bot.memory.categories import Category
from bot.memory.changes import TurnKey
from bot.memory.long_term import Actor, Listening, Source
from bot.memory.roster import Roster
from bot.prompts import prompt


@dataclass(frozen=True, slots=True)
class Ok:
    """Done, and on disk where it had to be."""

    message: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Not done; the model can do better with what the message says."""

    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Not done, and trying again will not help."""

    message: str


Outcome = Ok | Retry | Failed
OutcomeName = Literal["ok", "retry", "failed"]


def outcome_name(outcome: Outcome) -> OutcomeName:
    """The outcome's name in reports."""
    match outcome:
        case Ok():
            return "ok"
        case Retry():
            return "retry"
        case Failed():
            return "failed"
        case _:
            assert_never(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """What a tool changed in long-term memory, for the small last line of the reply.

    "asked": what people asked to forget goes once they confirm it. `can_undo`: it can come back.
    """

    kind: Literal["saved", "updated", "forgotten", "asked"]
    memory: MemoryId
    text: str
    can_undo: bool = True


@dataclass(slots=True)
class Progress:
    """What has been done in the turn so far.

    `long_term_done`: some call of a long-term tool went well; `fact_kept`: one that keeps a fact.
    `long_term_failed`: one could not be written.
    """

    short_term_updated: bool = False
    long_term_done: bool = False
    fact_kept: bool = False
    long_term_failed: bool = False
    changes: list[MemoryChange] = field(default_factory=list[MemoryChange])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The turn as tools see it. `shown` maps the handles of this prompt (M1) to memories.

    `schema_of_turn`: the tools are offered in a schema that is made anew for every turn.
    `must_share_words`: where it is set, a text may only be saved if it shares a word with it (a
    small model invents, or repeats its examples).
    """

    origin: Origin
    lineage: LineageId
    listening: Listening
    actor: Actor
    roster: Roster
    message_id: MessageId
    said_at: datetime
    flags: frozenset[Flag]
    explicit_long_term_memory_intent: bool
    forget_intent: bool = False
    schema_of_turn: bool = False
    route_offers_short_term_memory: bool
    categories: tuple[Category, ...] = ()
    shown: Mapping[str, MemoryId] = field(default_factory=dict[str, MemoryId])
    must_share_words: frozenset[str] | None = None
    progress: Progress = field(default_factory=Progress)

    @property
    def turn(self) -> TurnKey:
        """By what this turn is known again, to undo what it changed."""
        return TurnKey(message=self.message_id, lineage=self.lineage)

    @property
    def source(self) -> Source:
        """The message that started the turn, as the source of what is saved in it."""
        return Source(
            origin=self.origin.id,
            message_id=self.message_id,
            said_by=self.actor.user,
            said_at=self.said_at,
        )


A = TypeVar("A", bound=BaseModel)


class Tool(ABC):
    """Something the model may call. It answers with an Outcome and cannot raise into the loop."""

    name: str

    @abstractmethod
    def is_available(self, context: ToolContext) -> bool:
        """Whether the tool is offered in this turn."""

    @abstractmethod
    def parameters(self, context: ToolContext) -> JsonSchema:
        """The JSON schema of the arguments, as narrow as this turn allows."""

    @abstractmethod
    async def call(self, context: ToolContext, raw_arguments: str) -> Outcome:
        """Run it with arguments as the model wrote them: JSON text, maybe broken."""

    def spec(self, context: ToolContext) -> ToolSpec:
        """The tool as it is offered."""
        return ToolSpec(
            name=self.name,
            description=prompt(f"tools.{self.name}.description"),
            parameters=self.parameters(context),
        )


class TypedTool(Tool, Generic[A]):
    """A tool whose arguments are a pydantic model."""

    arguments: type[A]

    @abstractmethod
    async def execute(self, context: ToolContext, arguments: A) -> Outcome:
        """Do it. Guards are checked here again, whatever was offered."""

    async def call(self, context: ToolContext, raw_arguments: str) -> Outcome:
        """Parse and execute; arguments that do not parse are a Retry with the reason."""
        try:
            arguments = self.arguments.model_validate_json(raw_arguments or "{}")
        except ValidationError as error:
            return Retry(prompt("refused.arguments", reason=_in_words(error)))
        return await self.execute(context, arguments)


def _in_words(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    )


def object_schema(
    tool: str, properties: Mapping[str, JsonSchema], *, required: tuple[str, ...]
) -> JsonSchema:
    """An object schema whose fields are described in the prompt texts."""
    return {
        "type": "object",
        "properties": {
            name: {**schema, "description": prompt(f"tools.{tool}.{name}")}
            for name, schema in properties.items()
        },
        "required": list(required),
        "additionalProperties": False,
    }

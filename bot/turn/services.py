"""What the stages of a turn work with; built once, in app.py."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.clock import Clock
from bot.config import Config
from bot.features import Features
from bot.guild_settings import GuildSettings
from bot.handoff import HandoffEngine
from bot.handoff.by_hand import ByHand
from bot.identifiers import UserId
from bot.llm.routing import Route
from bot.memory.categories import Categories
from bot.memory.erasure import Erasures
from bot.memory.forgetting import Forgetting
from bot.memory.ledger import Ledger
from bot.memory.long_term import LongTermMemory
from bot.memory.people import People
from bot.memory.short_term import ShortTermMemory
from bot.memory.working import WorkingMemory
from bot.persona.personas import Personas
from bot.privacy.audiences import Audiences
from bot.privacy.forgotten import ForgottenValues
from bot.privacy.levels import Levels
from bot.privacy.origins import Origins
from bot.storage.database import Database
from bot.tools.registry import ToolRegistry
from bot.turn.allowance import Allowance
from bot.turn.late_writes import LateWrites
from bot.turn.ring import Rings


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices:
    """Everything a turn reads from and writes to. `own_identity`: the bot's user id, once known."""

    config: Config
    clock: Clock
    database: Database
    features: Features
    settings: GuildSettings
    levels: Levels
    origins: Origins
    audiences: Audiences
    people: People
    personas: Personas
    working: WorkingMemory
    short_term: ShortTermMemory
    categories: Categories
    long_term: LongTermMemory
    ledger: Ledger
    erasures: Erasures
    forgotten: ForgottenValues
    forgetting: Forgetting
    handoff: HandoffEngine
    by_hand: ByHand
    tools: ToolRegistry
    rings: Rings
    allowance: Allowance
    late_writes: LateWrites
    chat: Route
    own_identity: Callable[[], UserId | None]

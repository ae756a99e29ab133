"""Cooldowns and daily budgets: how much a person and a server may use."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.clock import Clock
from bot.config import BudgetsConfig
from bot.errors import Param
from bot.identifiers import GuildId, UserId
from bot.storage.database import Database

_REMEMBERED = 10_000
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a turn is not taken now; `key` names the text, which says when it will be."""

    key: str
    params: Mapping[str, Param]


class Allowance:
    """Says whether a turn may be taken. Budgets begin anew at midnight UTC; 0 is no limit."""

    def __init__(self, database: Database, clock: Clock, config: BudgetsConfig) -> None:
        self._database = database
        self._clock = clock
        self._config = config
        self._person_turns: OrderedDict[int, datetime] = OrderedDict()
        self._guild_turns: OrderedDict[int, datetime] = OrderedDict()

    async def refusal(self, user: UserId, guild: GuildId) -> Refusal | None:
        """Why this turn is not taken, or None; an allowed turn begins the cooldowns anew."""
        now = self._clock.now()
        config = self._config
        waits = max(
            _left(self._person_turns, user, config.person_cooldown_s, now),
            _left(self._guild_turns, guild, config.guild_cooldown_s, now) if guild else 0,
        )
        if waits:
            return Refusal(key="turn.cooldown", params={"count": waits})
        if await self._is_spent(
            "user_id", user, config.person_daily_tokens, config.person_daily_money
        ):
            return Refusal(key="turn.budget_person", params={"count": _hours_left(now)})
        if not await self.has_left(guild):
            return Refusal(key="turn.budget_guild", params={"count": _hours_left(now)})
        _note(self._person_turns, user, now)
        _note(self._guild_turns, guild, now)
        return None

    async def has_left(self, guild: GuildId) -> bool:
        """Whether a server's budget of the day lasts for work that nobody waits for."""
        config = self._config
        return not (
            guild
            and await self._is_spent(
                "guild_id", guild, config.guild_daily_tokens, config.guild_daily_money
            )
        )

    async def _is_spent(self, column: str, subject: int, tokens: int, money: int) -> bool:
        if not (tokens or money):
            return False
        row = await self._database.fetch_one(
            "SELECT sum(prompt_tokens + completion_tokens) AS tokens, sum(cost_micro) AS money"
            f" FROM usage WHERE day = ? AND {column} = ?",
            (self._clock.now().date().isoformat(), subject),
        )
        used_tokens, used_money = (row["tokens"] or 0, row["money"] or 0) if row else (0, 0)
        return bool((tokens and used_tokens >= tokens) or (money and used_money >= money))


def _left(turns: Mapping[int, datetime], subject: int, cooldown_s: int, now: datetime) -> int:
    """Whole seconds of the cooldown that are left."""
    last = turns.get(subject)
    if last is None:
        return 0
    return max(0, -((now - last - timedelta(seconds=cooldown_s)) // timedelta(seconds=1)))


def _note(turns: OrderedDict[int, datetime], subject: int, now: datetime) -> None:
    turns[subject] = now
    turns.move_to_end(subject)
    while len(turns) > _REMEMBERED:
        turns.popitem(last=False)


def _hours_left(now: datetime) -> int:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return max(1, -((now - midnight) // _HOUR))

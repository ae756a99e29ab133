"""What answers of models cost, booked by day, server, person and task."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.identifiers import GuildId, UserId
from bot.llm.chat import Finished
from bot.llm.routing import Route
from bot.storage.statements import Transaction

NOBODY = UserId(0)
"""Stands for the person where a model was asked on nobody's behalf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the requests to one model come to. Money in micro-units."""

    provider: str
    model: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_micro: int


def accounts_of(route: Route, finished: Sequence[Finished]) -> list[Account]:
    """One account for each model that answered."""
    accounts: dict[tuple[str, str], Account] = {}
    for answer in finished:
        key = (answer.provider, answer.model)
        before = accounts.get(key)
        prompt_tokens = answer.usage.prompt_tokens if answer.usage else 0
        completion_tokens = answer.usage.completion_tokens if answer.usage else 0
        accounts[key] = Account(
            provider=answer.provider,
            model=answer.model,
            requests=(before.requests if before else 0) + 1,
            prompt_tokens=(before.prompt_tokens if before else 0) + prompt_tokens,
            completion_tokens=(before.completion_tokens if before else 0) + completion_tokens,
            cost_micro=(before.cost_micro if before else 0) + route.cost(answer),
        )
    return list(accounts.values())


async def book(
    tx: Transaction,
    route: Route,
    finished: Sequence[Finished],
    *,
    guild: GuildId,
    user: UserId,
    now: datetime,
) -> None:
    """Add what was finished to the accounts of the day (UTC)."""
    for account in accounts_of(route, finished):
        await tx.execute(
            "INSERT INTO usage (day, guild_id, user_id, task, provider, model, requests,"
            " prompt_tokens, completion_tokens, cost_micro) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (day, guild_id, user_id, task, provider, model) DO UPDATE SET"
            " requests = requests + excluded.requests,"
            " prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
            " completion_tokens = completion_tokens + excluded.completion_tokens,"
            " cost_micro = cost_micro + excluded.cost_micro",
            (
                *(now.date().isoformat(), guild, user, route.task),
                *(account.provider, account.model, account.requests),
                *(account.prompt_tokens, account.completion_tokens, account.cost_micro),
            ),
        )

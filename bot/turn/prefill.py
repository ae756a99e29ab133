"""Lets a slow model read the part of the prompt that never changes, before anybody speaks."""

import logging
from contextlib import aclosing

from bot.background import Raised, settle
from bot.identifiers import GuildId
from bot.llm.chat import ChatMessage, ChatRequest
from bot.turn.prompt import COMPACT_BELOW, PromptStyle, fixed_part
from bot.turn.services import TurnServices

log = logging.getLogger(__name__)


async def prefill(services: TurnServices, guild: GuildId) -> None:
    """Ask for one token after the fixed part; the server keeps what it has read of it."""
    route = services.chat
    persona = await services.personas.main(guild)
    style = PromptStyle(
        tools_as_text=route.tools_mode == "structured",
        offers_tools=route.tools_mode != "none",
        offers_short_term_memory=route.provider.short_term_memory_tool,
        nudges=False,
    )
    fixed = fixed_part(persona, style, compact=route.window < COMPACT_BELOW)
    request = ChatRequest(
        messages=(ChatMessage(role="system", content=fixed), *style.examples()), max_tokens=1
    )

    async def read() -> None:
        async with aclosing(route.stream(request)) as events:
            async for _ in events:
                pass

    outcome = await settle(read())
    if isinstance(outcome, Raised):
        log.info("prefill_failed", extra={"reason": repr(outcome.error)})

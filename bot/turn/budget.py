"""How many tokens each part of a prompt may take, for a window of W tokens."""

from dataclasses import dataclass

from bot.config import ContextConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Token limits of one prompt. `working_memory` is the most; it gets what the rest leaves."""

    window: int
    reply: int
    fixed: int
    server: int
    personal: int
    recalled: int
    together: int
    short_term: int
    matters: int
    working_memory: int

    @property
    def prompt(self) -> int:
        """What may be asked with the reply still fitting."""
        return self.window - self.reply


def plan_budget(window: int, config: ContextConfig, *, halved: bool = False) -> Budget:
    """The limits for a window; below `full_blocks_from_tokens` memory shrinks in proportion.

    `halved` is for the one retry after a provider said that the prompt was too long.
    """
    share = min(1.0, window / config.full_blocks_from_tokens) * (0.5 if halved else 1.0)
    working = window * config.working_memory_fraction * (0.5 if halved else 1.0)
    return Budget(
        window=window,
        reply=min(config.reply_reserve_tokens, int(window * config.reply_reserve_fraction)),
        fixed=int(window * config.persona_fraction),
        server=int(config.server_memories_tokens * share),
        personal=int(config.personal_memories_tokens * share),
        recalled=int(config.recalled_tokens * share),
        together=int(config.memories_together_tokens * share),
        short_term=int(config.short_term_tokens * share),
        matters=int(config.matters_tokens * share),
        working_memory=int(working),
    )

"""Why a memory is not written: each reason has a code, and a text for people and the model."""

from typing import Literal

from bot.errors import Param, UserError

RefusalCode = Literal[
    "blank",
    "too_long",
    "credential",
    "forgotten",
    "no_server",
    "target_missing",
    "target_unknown",
    "target_ambiguous",
    "privacy",
    "global_lineage",
    "full",
    "similar",
    "ungrounded",
    "not_found",
    "not_yours",
    "managers_only",
    "undo_nothing",
    "undo_changed",
]


class MemoryRefused(UserError):
    """Nothing was written. `code` says why; people are shown `memory.refused.<code>`."""

    def __init__(self, code: RefusalCode, **params: Param) -> None:
        super().__init__(f"memory.refused.{code}", **params)
        self.code: RefusalCode = code

"""The intent gate: whether a message asks in so many words to remember something, or to forget it.

Pure and without a model. The phrases are the packs in the locale files.
"""

from functools import cache

from bot.i18n import catalogue
from bot.memory.intent._gate import Gate
from bot.memory.intent._pack import Intent, load_packs

__all__ = ["has_explicit_long_term_memory_intent", "has_forget_intent", "load_intent_packs"]


def has_explicit_long_term_memory_intent(text: str) -> bool:
    """Whether the message asks to remember something permanently."""
    return _gate("remember").matches(text)


def has_forget_intent(text: str) -> bool:
    """Whether the message asks to forget something that is remembered."""
    return _gate("forget").matches(text)


def load_intent_packs() -> None:
    """Compile every pack now; a faulty one raises ValueError here and not at the first message."""
    _gate("remember")
    _gate("forget")


@cache
def _gate(intent: Intent) -> Gate:
    return Gate(load_packs(catalogue(), intent))

"""What a small model wants to save must have been said: it invents, or repeats its examples."""

import json
from functools import cache
from typing import cast

from bot.memory.content import content_words
from bot.memory.refusals import MemoryRefused
from bot.prompts import prompt
from bot.tools.port import ToolContext

_STEM = 4
"""Words that share so many first letters are taken for forms of one word."""


def check_grounded(context: ToolContext, content: str) -> None:
    """Raise MemoryRefused where a text (as it is stored) shares no word with what was said.

    Only where the route asks for it; a text to delete has no words.
    """
    said, words = context.must_share_words, content_words(content)
    if said is not None and content and (not words & said or repeats_example(context, content)):
        raise MemoryRefused("ungrounded")


def repeats_example(context: ToolContext, content: str) -> bool:
    """Whether all words of a text are the example's, and not all of them were said."""
    said, words = context.must_share_words, content_words(content)
    if said is None or not words or not words <= _example_words():
        return False
    stems = {word[:_STEM] for word in said}
    return not all(word[:_STEM] in stems for word in words)


@cache
def _example_words() -> frozenset[str]:
    example = cast("dict[str, str]", json.loads(prompt("examples.teach_assistant")))
    return content_words(example["content"])

"""Sentences as people write them, by language: what each asks for, if anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.i18n import catalogue
from bot.memory.intent import has_explicit_long_term_memory_intent, has_forget_intent

FOLDER = Path(__file__).parent / "sentences"
INTENTS = {
    "remember": has_explicit_long_term_memory_intent,
    "forget": has_forget_intent,
}


def sentences(locale: str) -> Iterator[tuple[str, str]]:
    """What each sentence asks for, and the sentence."""
    for line in (FOLDER / f"{locale}.txt").read_text(encoding="utf-8").splitlines():
        asked, _, sentence = line.partition(": ")
        assert asked in (*INTENTS, "neither")
        yield asked, sentence


def test_there_are_sentences_in_every_language() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(catalogue().locales)
    assert all(len(list(sentences(locale))) > 50 for locale in catalogue().locales)


@pytest.mark.parametrize("locale", catalogue().locales)
@pytest.mark.parametrize("intent", list(INTENTS))
def test_who_asks_is_heard_and_nobody_else(locale: str, intent: str) -> None:
    asks = INTENTS[intent]
    misjudged = [text for asked, text in sentences(locale) if asks(text) != (asked == intent)]
    assert misjudged == []

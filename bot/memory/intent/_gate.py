"""Decides whether a message makes a request, by the packs of all locales: servers mix languages."""

from collections.abc import Sequence

from bot.memory.intent._pack import Pack
from bot.memory.intent._reading import WORD, fold, sentences
from bot.memory.intent._spelling import Spelling


class Gate:
    """Reads messages for one intent."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._packs = packs
        anchors = [text for pack in packs for text in (*pack.anchor_words, *pack.anchor_phrases)]
        known = [word for pack in packs for word in pack.vocabulary]
        self._spelling = Spelling(WORD.findall(" ".join(anchors)), known)

    def matches(self, text: str) -> bool:
        """Whether any sentence of the text makes the request. Most texts are dismissed by their words alone."""
        folded = " ".join(fold(text).split())
        words = set(WORD.findall(folded))
        misspelt = self._spelling.corrections(words)
        words.update(misspelt.values())
        concerned = [pack for pack in self._packs if pack.concerns(folded, words)]
        return bool(concerned) and any(
            _asks(concerned, _respelt(sentence, misspelt)) for sentence in sentences(text)
        )


def _asks(packs: Sequence[Pack], sentence: str) -> bool:
    words = set(WORD.findall(sentence))
    return any(pack.concerns(sentence, words) and pack.asks(sentence) for pack in packs)


def _respelt(sentence: str, misspelt: dict[str, str]) -> str:
    if not misspelt:
        return sentence
    return WORD.sub(lambda word: misspelt.get(word[0], word[0]), sentence)

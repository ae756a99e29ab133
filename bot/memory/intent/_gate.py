"""Decides whether a message makes a request, by the packs of all locales: servers mix languages."""

from collections.abc import Mapping, Sequence

from bot.memory.intent._pack import Pack
from bot.memory.intent._reading import WORD, fold, sentences
from bot.memory.intent._spelling import Spelling

Misspelt = Mapping[str, set[str]]


class Gate:
    """Reads messages for one intent."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._packs = packs
        anchors = [text for pack in packs for text in (*pack.anchor_words, *pack.anchor_phrases)]
        known = [word for pack in packs for word in pack.vocabulary]
        self._spelling = Spelling(WORD.findall(" ".join(anchors)), known)

    def matches(self, text: str) -> bool:
        """Whether any sentence makes the request. The words alone dismiss most texts."""
        folded = " ".join(fold(text).split())
        words = set(WORD.findall(folded))
        misspelt = self._spelling.corrections(words)
        words.update(*misspelt.values())
        concerned = [pack for pack in self._packs if pack.concerns(folded, words)]
        if not concerned:
            return False
        read = sentences(text)
        return any(_asks(pack, sentence, misspelt) for pack in concerned for sentence in read)


def _asks(pack: Pack, sentence: str, misspelt: Misspelt) -> bool:
    if misspelt:
        sentence = WORD.sub(lambda word: _respelt(word[0], misspelt, pack), sentence)
    return pack.concerns(sentence, set(WORD.findall(sentence))) and pack.asks(sentence)


def _respelt(word: str, misspelt: Misspelt, pack: Pack) -> str:
    """The word as this pack's language means it."""
    return min(misspelt.get(word, set()) & pack.vocabulary, default=word)

"""Decides whether a message makes a request, by the packs of all locales: servers mix languages."""

from collections.abc import Mapping, Sequence
from itertools import chain

from bot.memory.intent._index import AnchorIndex
from bot.memory.intent._pack import Pack
from bot.memory.intent._reading import WORD, fold, join_elisions, own_words, sentences, tokens
from bot.memory.intent._spelling import Spelling

Misspelt = Mapping[str, frozenset[str]]


class Gate:
    """Reads messages for one intent."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._index = AnchorIndex(packs)
        words = [word for pack in packs for word in pack.anchors.words]
        known = [word for pack in packs for word in pack.vocabulary]
        self._spelling = Spelling(words, known)

    def matches(self, text: str) -> bool:
        """Whether any sentence makes the request. The words alone dismiss most texts."""
        folded = fold(text)
        plain = join_elisions(folded)
        words = set(WORD.findall(plain))
        misspelt = self._spelling.corrections(words)
        words.update(*misspelt.values())
        anchors = self._index.found(plain, words)
        if not anchors:
            return False
        telling = {*misspelt, *chain.from_iterable(anchors.values())}
        own = own_words(folded)
        return any(
            _asked(tokens(sentence), anchors, misspelt)
            for sentence in dict.fromkeys(sentences(plain if own == folded else join_elisions(own)))
            if any(word in sentence for word in telling)
        )


def _asked(sentence: Sequence[str], anchors: Mapping[Pack, set[str]], misspelt: Misspelt) -> bool:
    meant = [word for token in sentence for word in misspelt.get(token, ())] if misspelt else []
    text = "".join((*sentence, *meant))
    return any(
        pack.asks(_respelt(sentence, misspelt, pack) if meant else sentence)
        for pack, found in anchors.items()
        if any(anchor in text for anchor in found)
    )


def _respelt(sentence: Sequence[str], misspelt: Misspelt, pack: Pack) -> list[str]:
    """The sentence as the language of this pack means it."""
    return [
        min(misspelt.get(word, frozenset()) & pack.vocabulary, default=word) for word in sentence
    ]

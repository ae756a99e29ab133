"""Which episodes are told again in a turn: those that have to do with what is asked."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.identifiers import OriginId, UserId
from bot.memory.content import content_words
from bot.memory.ledger import Episode

_MOST_EPISODES = 12
_LATELY = timedelta(hours=48)
_STEM = 5
"""Words that share so many first letters are taken for forms of one word."""
_OLD = 0.2
"""However old, an episode keeps that much of its recency."""
_PERSON = 0.5
_IMPORTANCE = 0.3
_RECENCY = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: its text, who is named in it, and where."""

    text: str
    people: frozenset[UserId]
    here: OriginId


def recall(
    episodes: Sequence[Episode], question: Question, now: datetime, *, hourly_decay: float
) -> tuple[Episode, ...]:
    """The episodes worth telling, best first.

    One is told for the words or people that it shares with the question; what happened lately in
    the same room is told as well, for there the talk goes on. Rare words count for more.
    """
    words = [_words(episode) for episode in episodes]
    asked = _stems(question.text)
    seen = Counter(word for found in words for word in found & asked)
    weight = {word: math.log(1 + len(episodes) / count) for word, count in seen.items()}
    whole = sum(weight.values()) or 1.0
    ranked: list[tuple[float, int, Episode]] = []
    for place, (episode, found) in enumerate(zip(episodes, words, strict=True)):
        shared = sum(weight[word] for word in found & asked) / whole
        shared += _PERSON * bool(episode.people & question.people)
        goes_on = episode.origin == question.here and now - episode.happened_until < _LATELY
        if shared or goes_on:
            score = shared + _gentle(episode, now, hourly_decay)
            ranked.append((score, place, episode))
    ranked.sort(key=lambda one: one[:2], reverse=True)
    return tuple(episode for _, _, episode in ranked[:_MOST_EPISODES])


def _gentle(episode: Episode, now: datetime, hourly_decay: float) -> float:
    """What importance and recency add; never enough to bring in what is unrelated."""
    hours = max(0.0, (now - episode.happened_until) / timedelta(hours=1))
    recency = max(_OLD, hourly_decay**hours)
    return _IMPORTANCE * episode.importance / 10 + _RECENCY * recency


def _words(episode: Episode) -> frozenset[str]:
    return _stems(" ".join((episode.content, *(quote.content for quote in episode.quotes))))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in content_words(text))

"""How many tokens a text costs, estimated without a tokenizer: none fits all models."""

import json
import math
import re
from dataclasses import dataclass

from bot.llm.chat import ChatMessage, ChatRequest, ToolSpec

# Weights are whole eighteenths of a token, so that sums are exact: 1 per 3.6 characters is 5/18.
_TOKEN = 18
_MESSAGE = 4 * _TOKEN
_LATIN = 5
_TWO_A_TOKEN = 9
_FOUR_BYTES = 24
_RARE_HAN = re.compile("[\U00020000-\U0003ffff]")


def _weights_by_block() -> bytes:
    """The weight of a character by its block of 256 code points, fine enough to tell scripts."""
    # Han, kana, Hangul are a token each; so are the three bytes of whatever is not named here.
    weights = bytearray([_TOKEN]) * 256
    for first, last, weight in (
        (0x00, 0x04, _LATIN),  # ASCII, Latin, Greek, Cyrillic
        (0x05, 0x0E, _TWO_A_TOKEN),  # Hebrew, Arabic, Indic, Thai
        (0x1D, 0x1F, _LATIN),  # more Latin, polytonic Greek
        (0xD8, 0xDF, _FOUR_BYTES // 2),  # one half of a surrogate pair
        (0xFB, 0xFD, _TWO_A_TOKEN),  # Hebrew and Arabic presentation forms
    ):
        weights[first : last + 1] = bytes([weight]) * (last + 1 - first)
    return bytes(weights)


_WEIGHTS = _weights_by_block()


def estimate_tokens(text: str, ratio: float) -> int:
    """Tokens that `text` costs, rounded up; `ratio` is what was learned about the model."""
    return _rounded(_weight(text), ratio)


def estimate_message_tokens(message: ChatMessage, ratio: float) -> int:
    """Tokens that one message of a prompt costs, its frame and its tool calls included."""
    return _rounded(_message_weight(message), ratio)


def estimate_tool_tokens(tool: ToolSpec, ratio: float) -> int:
    """Tokens that offering `tool` costs."""
    return _rounded(_tool_weight(tool), ratio)


def estimate_prompt_tokens(request: ChatRequest, ratio: float) -> int:
    """Tokens of the whole prompt: every message and every tool offered."""
    messages = sum(map(_message_weight, request.messages))
    return _rounded(messages + sum(map(_tool_weight, request.tools)), ratio)


def _rounded(weight: int, ratio: float) -> int:
    # 10 tokens times 1.1 is 11.000000000000002 in floating point: 11 tokens, not 12.
    return math.ceil(round(weight * ratio / _TOKEN, 6))


def _weight(text: str) -> int:
    if text.isascii():
        return len(text) * _LATIN
    blocks = text.encode("utf-16-le", "surrogatepass")[1::2]
    weight = sum(blocks.translate(_WEIGHTS))
    if 0xD8 in blocks:
        weight -= (_FOUR_BYTES - _TOKEN) * len(_RARE_HAN.findall(text))
    return weight


def _message_weight(message: ChatMessage) -> int:
    calls = sum(_weight(call.name) + _weight(call.arguments) for call in message.tool_calls)
    return _weight(message.content) + calls + _MESSAGE


def _tool_weight(tool: ToolSpec) -> int:
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    return _weight(tool.name) + _weight(tool.description) + _weight(schema) + _MESSAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioSettings:
    """Where a ratio starts, how far it may go, and how much one answer moves it."""

    start: float = 1.1
    lowest: float = 0.6
    highest: float = 1.8
    weight: float = 0.2


class TokenRatios:
    """What each (provider, model) really counts, against an estimate made with ratio 1."""

    def __init__(self, settings: RatioSettings) -> None:
        self._settings = settings
        self._learned: dict[tuple[str, str], float] = {}

    def ratio(self, provider: str, model: str) -> float:
        return self._learned.get((provider, model), self._settings.start)

    def learn(self, provider: str, model: str, *, estimated: int, reported: int) -> None:
        """Move the ratio a little towards what the provider counted."""
        if estimated > 0 and reported > 0:
            ratio = self.ratio(provider, model)
            seen = self._clamped(reported / estimated)
            self._learned[provider, model] = ratio + self._settings.weight * (seen - ratio)

    def correct_too_long(
        self, provider: str, model: str, *, estimated: int, limit: int | None, asked: int | None
    ) -> None:
        """Take over at once what a refused prompt teaches; `limit` and `asked` as it was told."""
        ratio = self.ratio(provider, model)
        if estimated > 0 and asked:
            ratio = asked / estimated
        elif estimated > 0 and limit:
            ratio = max(ratio * 1.1, limit / estimated)
        else:
            ratio *= 1.25
        self._learned[provider, model] = self._clamped(ratio)

    def _clamped(self, ratio: float) -> float:
        return min(max(ratio, self._settings.lowest), self._settings.highest)

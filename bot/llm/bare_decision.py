"""JSON decisions that a model writes in the place of an answer, read out of its text."""

import json
import re
from collections.abc import Set

from bot.llm.markup import without_markup
from bot.llm.reply_stream import ReplyStream
from bot.llm.tags import CodePlaces
from bot.llm.written_calls import WrittenCall, calls_in, read_calls

_BEGINNING = re.compile(r'(?:\[\s{0,20})?(?:\{\s{0,20}(?:"(\w{0,14})("?))?)?')
_FIRST_KEYS = ("action", "name", "tool", "function", "function_call", "tool_calls", "type", "id")
_PART = re.compile(r"[{\[\n]|[^{\[\n]+")
_CALL = re.compile(r'"(?:arguments|parameters)"\s*:')
_REPLY = "reply"
_REPLY_FIELDS = ("reply", "text", "content", "message", "response")
_LONGEST = 8_000
_MOST_TRIES = 4
"""Objects that began like a decision and were none; after them the answer is taken as it is."""


class DecisionFilter:
    """Holds back an object that begins a line like a decision, until it is known what it is.

    A call of an offered tool goes to `calls`; of a decision to reply its text is left; other
    decisions are left out. All other text passes as it comes.
    """

    def __init__(self, offered: Set[str] = frozenset()) -> None:
        self._offered = offered
        self._held = ""
        self._object = _ObjectEnd()
        self._code = CodePlaces()
        self._begins_line = True
        self._skips_separator = False
        self._tries = 0
        self.calls: list[WrittenCall] = []

    def feed(self, piece: str) -> str:
        """What one more piece adds to the text."""
        return self._read(self._held + piece, at_end=False)

    def finish(self) -> str:
        """What was held back until the answer's end was known."""
        return self._read(self._held, at_end=True)

    def _read(self, text: str, *, at_end: bool) -> str:
        seen: list[str] = []
        at = 0
        while part := _PART.match(text, at):
            end = self._decision_end(text, at, at_end=at_end)
            if end is None:
                break
            decided = self._decided(text[at:end]) if end > at else None
            if decided is None:
                self._tries += end > at
                seen.append(self._show(part[0]))
                at = part.end()
            else:
                seen.append(decided)
                self._begins_line = self._skips_separator = True
                at = end
            self._object = _ObjectEnd()
        self._held = text[at:]
        return "".join(seen)

    def _decision_end(self, text: str, at: int, *, at_end: bool) -> int | None:
        """Where what may be a decision ends: at once where it is none; None: not known yet."""
        if not self._begins_line or self._tries >= _MOST_TRIES or self._code.is_fenced:
            return at
        beginning = _BEGINNING.match(text, at)
        if beginning is None or beginning.end() == at:
            return at
        key, key_end = beginning.groups()
        if beginning.end() == len(text) and not key_end and not at_end:
            return None if any(first.startswith(key or "") for first in _FIRST_KEYS) else at
        if not key_end or key not in _FIRST_KEYS:
            return at
        end = self._object.find(text, at)
        if end is None and len(text) - at < _LONGEST:
            return len(text) if at_end else None
        if end is None:
            self._tries += 1
        return end or at

    def _decided(self, written: str) -> str | None:
        """What a decision says; None where it is none. Its calls are kept."""
        reply = _reply_in(written)
        if reply is not None:
            return without_markup(reply)
        calls = read_calls(written, self._offered).calls
        self.calls += calls
        return "" if calls or _states_a_call(written) else None

    def _show(self, text: str) -> str:
        if self._skips_separator:
            text = text.lstrip("\n ;,")
        if text:
            self._skips_separator = False
            self._code.read(text)
            self._begins_line = text == "\n" or (self._begins_line and text.isspace())
        return text


class _ObjectEnd:
    """Finds where a JSON value that streams in ends."""

    def __init__(self) -> None:
        self._looked = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def find(self, text: str, start: int) -> int | None:
        """The end of the value that begins at `start`, once it is there; `text` may have grown."""
        for position in range(start + self._looked, min(len(text), start + _LONGEST)):
            self._take(text[position])
            if not self._depth:
                return position + 1
        self._looked = min(len(text) - start, _LONGEST)
        return None

    def _take(self, sign: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._in_string:
            self._escaped = sign == "\\"
            self._in_string = sign != '"'
        elif sign == '"':
            self._in_string = True
        elif sign in "{[":
            self._depth += 1
        elif sign in "}]":
            self._depth -= 1


def _reply_in(written: str) -> str | None:
    """The text of a decision to reply, also of one that is cut off."""
    for field in _REPLY_FIELDS:
        reader = ReplyStream(text_field=field)
        text = reader.feed(written)
        if reader.action != _REPLY:
            return None
        if text:
            return text
    return ""


def _states_a_call(written: str) -> bool:
    try:
        value: object = json.loads(written, strict=False)
    except (ValueError, RecursionError):
        return _CALL.search(written) is not None
    return any(call.name.isidentifier() for call in calls_in(value))

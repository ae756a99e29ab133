"""A JSON object read while a model is still writing it."""

from typing import Literal

from bot.llm.surrogates import SurrogateFilter

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _StringReader:
    """Decodes the inside of one JSON string, piece by piece, up to its closing quote."""

    def __init__(self) -> None:
        self._escape = ""
        self._surrogates = SurrogateFilter()
        self.closed = False

    def read(self, text: str) -> tuple[str, str]:
        """What `text` adds to the string, and what follows the closing quote."""
        decoded = ""
        for position, character in enumerate(text):
            if self._escape:
                decoded += self._escaped(character)
            elif character == "\\":
                self._escape = character
            elif character == '"':
                self.closed = True
                return self._surrogates.feed(decoded), text[position + 1 :]
            else:
                decoded += character
        return self._surrogates.feed(decoded), ""

    def _escaped(self, character: str) -> str:
        self._escape += character
        if not self._escape.startswith("\\u"):
            self._escape = ""
            return _ESCAPES.get(character, character)
        if len(self._escape) < len("\\u0000"):
            return ""
        digits, self._escape = self._escape[2:], ""
        try:
            return chr(int(digits, 16))
        except ValueError:
            return ""


class ReplyStream:
    """Gives the text of one string field of the outermost object while it grows.

    `action` is the value of that field as soon as it is complete. What stands before the object is
    skipped; broken JSON gives less text, never an error: `parse_answer` judges the whole.
    """

    def __init__(self, *, text_field: str = "reply", action_field: str = "action") -> None:
        self._text_field = text_field
        self._action_field = action_field
        self._string: _StringReader | None = None
        self._depth = 0
        self._ended = False
        self._expects: Literal["key", "value"] = "key"
        self._key = ""
        self._written = ""
        self.action: str | None = None

    def feed(self, piece: str) -> str:
        """The text that `piece` adds."""
        added = ""
        while piece and not self._ended:
            if self._string is None:
                piece = self._structure(piece)
            else:
                decoded, piece = self._string.read(piece)
                added += self._take(decoded, self._string)
        return added

    def _structure(self, piece: str) -> str:
        """Read up to the next string; returns what follows its opening quote."""
        for position, character in enumerate(piece):
            match character:
                case "{" | "[" if self._depth or character == "{":
                    self._depth += 1
                case "}" | "]" if self._depth:
                    self._depth -= 1
                    self._ended = not self._depth
                case '"' if self._depth:
                    self._string = _StringReader()
                    return piece[position + 1 :]
                case ":" if self._depth == 1:
                    self._expects = "value"
                case "," if self._depth == 1:
                    self._expects = "key"
                case _:
                    pass
        return ""

    def _take(self, decoded: str, string: _StringReader) -> str:
        """Put what was decoded where it belongs; returns it where it is the text."""
        if string.closed:
            self._string = None
        if self._depth != 1:
            return ""
        if self._expects == "value" and self._key == self._text_field:
            return decoded
        self._written += decoded
        if string.closed:
            self._close_string(self._written)
            self._written = ""
        return ""

    def _close_string(self, written: str) -> None:
        if self._expects == "key":
            self._key = written
        elif self._key == self._action_field:
            self.action = written

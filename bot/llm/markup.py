"""Markup of chat templates that a model wrote as text: taken out of what people see, calls read."""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from bot.llm.tags import TagReader
from bot.llm.written_calls import WrittenCall, read_calls

# <name> in the forms that templates of models write; what only looks like HTML is none of them.
_CALLS = ("tool_call", "tool_calls", "function_call", "function_calls", "tool_use")
_CALLS_BY_NAME = ("function", "invoke")
_RESULTS = ("tool_response", "tool_result", "function_results")
_PLAIN = (*_CALLS, *_RESULTS, "start_of_turn", "end_of_turn", "s")
_NAMES = (*_PLAIN, *_CALLS_BY_NAME)
_IN_BRACKETS = ("INST", "TOOL_CALLS", "TOOL_RESULTS", "AVAILABLE_TOOLS", "ARGS", "THINK")
_FIXED = tuple(
    [f"[{slash}{name}]" for name in _IN_BRACKETS for slash in ("", "/")] + ["<<SYS>>", "<</SYS>>"]
)
_PREFIXES = ("antml:", "|dsml|")
_PREFIX = "(?:antml:|[|｜]dsml[|｜])?"
_WITH_MORE = rf"<{_PREFIX}(?:{'|'.join((*_CALLS, *_CALLS_BY_NAME))})[=\s(][^<>\n]{{0,120}}"
_TAG = re.compile(
    rf"</?{_PREFIX}(?:{'|'.join(_PLAIN)})>|</{_PREFIX}(?:{'|'.join(_CALLS_BY_NAME)})>"
    rf"|{_WITH_MORE}>|<[|｜][\w▁/.-]{{1,40}}[|｜]>",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(rf"(?i:{_TAG.pattern})|{'|'.join(map(re.escape, _FIXED))}")
_NAMED_BEGINNING = re.compile(_WITH_MORE, re.IGNORECASE)
_SPECIAL_BEGINNING = re.compile(r"<[|｜][\w▁/.-]{0,40}[|｜]?")
_ROLE = re.compile(r"[A-Za-z]*")

_TURN_ENDS = frozenset(
    f"|{name}|"
    for name in (
        *("im_end", "eot_id", "eom_id", "end", "return", "call", "endoftext", "end_of_text"),
        *("end_of_sentence", "end_of_turn"),
    )
)
_ROLE_FOLLOWS = frozenset(("|im_start|", "|start_header_id|", "start_of_turn"))
_CHANNELS = frozenset(("|start|", "|channel|"))
_OTHERS = frozenset(("|user|", "|system|", "|tool|", "|observation|"))
_OTHER_SPEAKER_ENDS = _ROLE_FOLLOWS | {"|assistant|"}
_OTHER_ROLES = frozenset(("user", "system", "tool", "human", "developer", "ipython"))
_MUTE_CHANNEL = re.compile(r"<[|｜]channel[|｜]>\s*(?:analysis|commentary)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What is being hidden, until one of `ends`; it may hold calls.

    `may_be_talk`: an opening tag that nothing follows may be a word about tags. `is_header`: of a
    channel, before its message.
    """

    ends: frozenset[str]
    parts: list[str] = field(default_factory=list[str])
    holds_calls: bool = True
    may_be_talk: bool = False
    is_header: bool = False

    @property
    def written(self) -> str:
        return "".join(self.parts)


class MarkupFilter:
    """Lets through what of a streamed answer people may see; `calls` are those it wrote as text.

    Only calls of `offered` tools count; other ones go like all markup. Markup in code stays.
    """

    def __init__(self, offered: Set[str] = frozenset()) -> None:
        self._offered = offered
        self._tags = TagReader(_ANY_TAG, _is_beginning)
        self._block: _Block | None = None
        self._role: str | None = None
        self._skips_space = False
        self._says_something = False
        self.calls: list[WrittenCall] = []

    def feed(self, piece: str) -> str:
        """What one more piece adds to the text."""
        return self._read(self._tags.feed(piece))

    def finish(self) -> str:
        """What was held back until the answer's end was known."""
        seen = self._read(self._tags.finish())
        block, self._block = self._block, None
        if block is None:
            return seen
        rest = ""
        if block.holds_calls:
            reading = read_calls(block.written, self._offered)
            self.calls += reading.calls
            if reading.end:
                rest = block.written[reading.end :].lstrip("}] \n")
            elif block.may_be_talk:
                rest = block.written
        return seen + self._show(_ANY_TAG.sub("", rest))

    def _read(self, parts: Iterator[str | re.Match[str]]) -> str:
        seen: list[str] = []
        for part in parts:
            if isinstance(part, str):
                seen.append(self._meet_text(part))
            else:
                self._meet_tag(part[0])
            self._tags.is_hiding = self._block is not None
        return "".join(seen)

    def _meet_text(self, text: str) -> str:
        if self._role is not None:
            role = _ROLE.match(text)
            letters = role[0] if role else ""
            self._role += letters
            text = text[len(letters) :]
            if text:
                self._end_role()
        if self._block is None:
            return self._show(text)
        self._block.parts.append(text)
        return ""

    def _meet_tag(self, tag: str) -> None:
        key = _key(tag)
        self._end_role()
        block = self._block
        if block is None:
            self._open(tag, key)
        elif block.is_header and key == "|message|":
            self._end_header(block, tag)
        elif key in block.ends:
            if block.holds_calls:
                self.calls += read_calls(block.written, self._offered).calls
            self._block = None
            self._open(tag, key)
        else:
            block.parts.append(tag)

    def _open(self, tag: str, key: str) -> None:
        """Begin what the tag opens; most are only left out."""
        self._skips_space |= not self._says_something
        if key in _ROLE_FOLLOWS:
            self._role = ""
        elif key in _CHANNELS:
            self._block = _Block(ends=_TURN_ENDS, parts=[tag], holds_calls=False, is_header=True)
        else:
            self._block = _block_of(tag, key)

    def _end_role(self) -> None:
        """The word after the beginning of a turn is whole: whose turn is it?"""
        if self._role is not None:
            if self._role.lower() in _OTHER_ROLES:
                self._block = _Block(ends=_OTHER_SPEAKER_ENDS, holds_calls=False)
            self._role, self._skips_space = None, True

    def _end_header(self, block: _Block, tag: str) -> None:
        """A channel's header is whole: people hear no thoughts, only what is said to them."""
        self._block = None
        if _MUTE_CHANNEL.search(block.written):
            self._block = _Block(ends=_TURN_ENDS | _CHANNELS, parts=[*block.parts, tag])

    def _show(self, text: str) -> str:
        if self._skips_space:
            text = text.lstrip()
        if text:
            self._skips_space = False
            self._says_something |= not text.isspace()
        return text


def without_markup(text: str) -> str:
    """The part of a whole text that people may see."""
    markup = MarkupFilter()
    return markup.feed(text) + markup.finish()


def _block_of(tag: str, key: str) -> _Block | None:
    """The block that a tag opens, where it opens one."""
    name = key.strip("|")
    if key in _CALLS or key in _CALLS_BY_NAME:
        return _Block(ends=_TURN_ENDS | {f"/{key}"}, parts=[tag], may_be_talk=True)
    if key in _RESULTS:
        return _Block(ends=_TURN_ENDS | {f"/{key}"}, holds_calls=False)
    if key == "[TOOL_CALLS]":
        return _Block(ends=_TURN_ENDS | {"/s"}, parts=[tag], may_be_talk=True)
    if key[0] == "[" and key[1] != "/" and key != "[ARGS]":
        return _Block(ends=frozenset((f"[/{key[1:]}",)), holds_calls=False)
    if key in _OTHERS:
        return _Block(ends=_OTHER_SPEAKER_ENDS, holds_calls=False)
    if key[0] == "|" and name.startswith("tool") and name.endswith(("begin", "start")):
        end = f"|{name.removesuffix('begin').removesuffix('start')}end|"
        return _Block(ends=_TURN_ENDS | {end}, parts=[tag])
    if name in ("python_tag", "tool_call", "tool_calls"):
        return _Block(ends=_TURN_ENDS | {f"|/{name}|"}, parts=[tag])
    if key == "<<SYS>>":
        return _Block(ends=frozenset(("<</SYS>>",)), holds_calls=False)
    return None


def _key(tag: str) -> str:
    """A tag's name in one spelling: tool_call, /tool_call, |im_end|, [INST], <<SYS>>."""
    if tag in _FIXED:
        return tag
    inside = tag[1:-1].lower().replace("｜", "|").replace("▁", "_")
    slash = "/" if inside.startswith("/") else ""
    inside = inside.removeprefix("/")
    for prefix in _PREFIXES:
        inside = inside.removeprefix(prefix) or prefix
    return inside if inside[0] == "|" else slash + re.split(r"[=\s(]", inside)[0]


def _is_beginning(text: str) -> bool:
    """Whether the text may turn out to be the beginning of a tag."""
    if any(tag.startswith(text) for tag in _FIXED):
        return True
    if text[0] == "[":
        return False
    if _SPECIAL_BEGINNING.fullmatch(text) or _NAMED_BEGINNING.fullmatch(text):
        return True
    inside = text[1:].lower().replace("｜", "|").removeprefix("/")
    if any(prefix.startswith(inside) for prefix in _PREFIXES):
        return True
    for prefix in _PREFIXES:
        inside = inside.removeprefix(prefix)
    return any(name.startswith(inside) for name in _NAMES)

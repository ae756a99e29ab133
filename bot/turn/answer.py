"""The reply while it grows over the passes of the tool loop."""

from bot.memory.quoting import without_hidden_signs


class Answer:
    """Joins what each pass said: text before a call stays, and is not said twice."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._said = ""
        self._gap = ""
        self._pass = ""

    @property
    def text(self) -> str:
        """The whole reply so far, without the name a model may set in front."""
        fresh = self.pass_text
        return f"{self._said}{self._gap}{fresh}" if fresh else self._said

    @property
    def pass_text(self) -> str:
        """What this pass adds: some models begin again with what they said before the call."""
        fresh = _without_name(self._pass, self._own_name)
        if self._gap:
            fresh = fresh.lstrip()
            if self._said.startswith(fresh):
                return ""
        rest = fresh.removeprefix(self._said)
        if rest[:1].isalnum() and self._said[-1:].isalnum():
            return fresh  # it only begins with the same letters
        return rest.lstrip() if self._gap else rest

    def add(self, text: str) -> None:
        """More text of this pass; signs that nobody sees are left out."""
        self._pass += without_hidden_signs(text)

    def restart_pass(self) -> None:
        """The pass begins anew: forget what it said."""
        self._pass = ""

    def end_pass(self, *, joined: bool = False) -> None:
        """The next pass follows; `joined`: it goes on in the middle of a sentence."""
        self._said = self.text if joined else self.text.rstrip()
        self._gap = "\n\n" if self._said and not joined else ""
        self._pass = ""


def _without_name(text: str, name: str) -> str:
    start = text.lstrip()
    for prefix in (f"{name}:", f"**{name}**:", f"**{name}:**"):
        if start.casefold().startswith(prefix.casefold()):
            return start[len(prefix) :].lstrip()
    return text

"""The reply while it grows over the passes of the tool loop."""

from bot.turn.quoting import without_hidden_signs


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
        fresh = self._fresh()
        text = f"{self._said}{self._gap}{fresh}" if fresh else self._said
        return _without_name(without_hidden_signs(text), self._own_name)

    def _fresh(self) -> str:
        """What this pass adds: some models begin again with what they said before the call."""
        if not self._gap:
            return self._pass.removeprefix(self._said)
        fresh = self._pass.lstrip()
        if self._said.startswith(fresh):
            return ""
        return fresh.removeprefix(self._said).lstrip()

    @property
    def pass_text(self) -> str:
        """What this pass has said."""
        return self._pass

    def add(self, text: str) -> None:
        """More text of this pass."""
        self._pass += text

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

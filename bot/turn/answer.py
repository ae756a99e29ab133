"""The reply while it grows over the passes of the tool loop."""

from bot.turn.quoting import without_hidden_signs


class Answer:
    """Joins what each pass said: text before a call stays, and is not said twice."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._said = ""
        self._pass = ""

    @property
    def text(self) -> str:
        """The whole reply so far, without the name a model may set in front."""
        fresh = self._pass
        if self._said and fresh.startswith(self._said):
            fresh = fresh[len(self._said) :]
        return _without_name(without_hidden_signs(self._said + fresh), self._own_name)

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
        text = self.text
        self._said = text if joined or not text.strip() else text.rstrip() + "\n\n"
        self._pass = ""


def _without_name(text: str, name: str) -> str:
    start = text.lstrip()
    for prefix in (f"{name}:", f"**{name}**:", f"**{name}:**"):
        if start.casefold().startswith(prefix.casefold()):
            return start[len(prefix) :].lstrip()
    return text

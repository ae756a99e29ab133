"""Scripts for the terminal: one JSON object a line."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.errors import StartupError

EXAMPLE = '{"user": "Ann", "channel": "general", "text": "hello"}'


class ScriptLine(BaseModel):
    """One line of a script. A channel that begins with @ is a direct message."""

    model_config = ConfigDict(extra="forbid")

    user: str = Field(min_length=1)
    channel: str = Field(default="general", min_length=1)
    text: str


def read_script(path: Path) -> Iterator[ScriptLine]:
    """The lines of a script. Raises StartupError that names the line which cannot be used."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()  # with or without a mark
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError("errors.script", path=str(path), reason=str(error)) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield ScriptLine.model_validate_json(line)
        except ValidationError as error:
            reason = "; ".join(fault["msg"] for fault in error.errors(include_url=False))
            raise StartupError(
                "console.bad_line", line=number, reason=reason, example=EXAMPLE
            ) from error

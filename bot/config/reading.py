"""Text files as they come from people: any size, any encoding, perhaps not a file at all."""

from pathlib import Path

from bot.errors import ConfigError, ConfigFault

# A config is a few kilobytes. The limit keeps a wrong path (a device) from filling memory.
MAX_BYTES = 262_144


def read_text(path: Path, *, key: str) -> str:
    """The text of a UTF-8 file; ConfigError with one fault where there is none to be had."""
    try:
        if path.is_dir():
            raise _refusal(path, key, "is a folder, not a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refusal(path, key, "does not exist") from None
    except PermissionError:
        raise _refusal(path, key, "may not be read by this user") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise _refusal(path, key, f"cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise _refusal(path, key, f"is larger than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _refusal(path, key, "is not UTF-8 text; save it as UTF-8", line) from None


def _refusal(path: Path, key: str, problem: str, line: int | None = None) -> ConfigError:
    source = str(path) if line is None else f"{path} line {line}"
    return ConfigError((ConfigFault(key=key, value=str(path), problem=problem, source=source),))

"""What is wrong, in words an operator can act on. What may be a secret is never shown."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from bot.config.schema import Loc, allowed, dotted, kind_at, nearest_key
from bot.config.values import VARIABLE
from bot.errors import ConfigFault

HIDDEN = "(hidden)"
_SHOWN_CHARACTERS = 60
_SECRET_KEY = re.compile(r"(token|key|secret|password|passwd|passphrase|credentials?|bearer)$")
_SECRET_VALUE = re.compile(
    r"(?=[\w-]*\d)[\w-]{20,}|\b(sk|pk|hf|ghp|xox[abp])[-_]\w|bearer |://.*[@?#]", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong at one place, before anybody has looked up where that place was written."""

    loc: Loc
    value: object = None
    problem: str


def looks_secret(name: str) -> bool:
    """Whether a key of this name would hold a secret: `token`, `api_key`, `botPassword`."""
    return _SECRET_KEY.search(re.sub(r"[\W_]", "", name).lower()) is not None


def shown(loc: Loc, value: object) -> str:
    """The value as a fault may show it: short, on one line, hidden where it may be a secret."""
    name = next((part for part in reversed(loc) if isinstance(part, str)), "")
    if value is None:
        return "(not set)"
    if value == HIDDEN:
        return HIDDEN
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**18 else "a very large number"
    text = str(value)
    unsafe = _SECRET_VALUE.search(text) or looks_secret(name)
    if unsafe or (name.endswith("_env") and not VARIABLE.fullmatch(text)):
        return HIDDEN
    short = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return json.dumps(short, ensure_ascii=False) if isinstance(value, str) else short


def shown_key(loc: Loc) -> str:
    """The key as a fault may show it; a secret pasted as a key is hidden too."""
    if kind_at(loc) is not None:
        return dotted(loc)
    name = str(loc[-1])
    safe = HIDDEN if _SECRET_VALUE.search(name) else ascii(name[:_SHOWN_CHARACTERS])[1:-1]
    return dotted((*loc[:-1], safe))


def secret_finding(loc: Loc) -> Finding:
    """A secret written where it does not belong."""
    where = (
        "put the key into an environment variable and name that variable in api_key_env"
        if loc[0] == "llm"
        else "put the token into the environment variable DISCORD_TOKEN, or into a file that"
        " discord.token_file names"
    )
    return Finding(
        loc=loc, value=HIDDEN, problem=f"looks like a secret, which never stands here; {where}"
    )


def unknown_finding(loc: Loc, value: object) -> Finding:
    """A key that no table has. Its text is not shown: it may be a secret under a misspelt key."""
    problem = f"is not a known key; the nearest is {nearest_key(loc)}"
    return Finding(loc=loc, value=HIDDEN if isinstance(value, str) else value, problem=problem)


def validation_findings(error: ValidationError) -> Iterator[Finding]:
    """One finding for each thing that pydantic refused."""
    for detail in error.errors(include_url=False):
        loc, value = detail["loc"], detail["input"]
        kind = kind_at(loc)
        if kind is None:
            yield unknown_finding(loc, value)
        elif detail["type"] == "missing":
            yield Finding(loc=loc, problem=f"is missing; it must be {allowed(kind)}")
        elif detail["type"] == "value_error":
            problem = str(detail.get("ctx", {})["error"])
            yield Finding(loc=loc, value=value, problem=problem)
        else:
            yield Finding(loc=loc, value=value, problem=f"must be {allowed(kind)}")


def describe_fault(fault: ConfigFault) -> str:
    """One line for the terminal."""
    return f"{fault.source}: {fault.key} = {fault.value}: {fault.problem}"

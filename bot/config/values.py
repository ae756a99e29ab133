"""The kinds of value a key can have that TOML does not know: addresses, amounts, folders, zones."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

MICRO_UNITS = 1_000_000
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([A-Z]{3})")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


class Section(BaseModel):
    """One table of the config: a plain value that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _variable_name(text: str) -> str:
    # Capitals only: a key or token pasted here by mistake is refused, and never shown.
    if not VARIABLE.fullmatch(text):
        raise ValueError(
            "must be the name of an environment variable, in capitals such as DISCORD_TOKEN;"
            " the secret itself belongs in that variable, not in this file"
        )
    return text


def _base_url(text: str) -> str:
    problem = "must be an address such as http://127.0.0.1:11434/v1"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError(problem) from None
    if not usable or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(problem)
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            f"{problem}, without a user, password or query; a key belongs in api_key_env"
        )
    return text.rstrip("/")


def _file_path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError("must be the path of a file")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError("must be the path of a file; the home folder is not known") from None


def _zone_name(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone such as UTC or Europe/Lisbon") from None
    return text


def _amount(value: object, info: ValidationInfo[object]) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            'must be an amount with its currency, such as "0.15 USD", or a whole number of'
            " micro-units (millionths)"
        )
    amount, currency = match.groups()
    expected = info.context
    if isinstance(expected, str) and currency != expected:
        raise ValueError(f"must be in {expected}, the currency that budgets.currency names")
    return int(Decimal(amount) * MICRO_UNITS)


VariableName = Annotated[str, AfterValidator(_variable_name)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
FilePath = Annotated[Path, BeforeValidator(_file_path)]
ZoneName = Annotated[str, AfterValidator(_zone_name)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="three capitals such as USD")]
# Money is integer micro-units. A text such as "0.15 USD" is read as 150,000 of them.
Micros = Annotated[int, BeforeValidator(_amount), Field(ge=0, le=10**15)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Similarity = Annotated[int, Field(ge=50, le=100)]

LocaleName = Literal[
    "bg", "cs", "da", "de", "el", "en-GB", "en-US", "es-419", "es-ES", "fi", "fr", "hi", "hr", "hu",
    "id", "it", "ja", "ko", "lt", "nl", "no", "pl", "pt-BR", "ro", "ru", "sv-SE", "th", "tr", "uk",
    "vi", "zh-CN", "zh-TW",
]  # fmt: skip

"""Every text a person reads, in their language: one TOML file for each locale, read once."""

import logging
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, Self, cast, get_args

log = logging.getLogger(__name__)

DEFAULT_LOCALE = "en-US"
LOCALES_FOLDER = Path(__file__).resolve().parents[1] / "locales"
"""Beside the package, in a checkout as in an installed wheel."""

PluralForm = Literal["one", "few", "many", "other"]
Plural = Mapping[PluralForm, str]
Text = str | Plural

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


def t(key: str, locale: str, /, **params: str | int | float) -> str:
    """The text of `key` in `locale`, `{name}` filled from `params`; `count` chooses a plural form.

    A missing text comes from the language's other region, then from en-US; missing there too, it is
    the key itself.
    """
    return catalogue().text(key, locale, params)


def terms(locale: str, key: str) -> list[str]:
    """The list that stands under `key` in `locale`; empty where there is none."""
    return list(catalogue().lists(locale).get(key, ()))


@cache
def catalogue() -> "Catalogue":
    """The locales that came with the program, read at the first call."""
    return Catalogue.load(LOCALES_FOLDER)


class Catalogue:
    """The texts and term lists of every locale, by dotted key."""

    def __init__(self, tables: Mapping[str, Mapping[str, object]]) -> None:
        self._texts: dict[str, dict[str, Text]] = {}
        self._lists: dict[str, dict[str, tuple[str, ...]]] = {}
        self._warned: set[tuple[str, str]] = set()
        for locale, table in tables.items():
            flat = dict(_flatten(table))
            self._texts[locale] = {k: v for k, v in flat.items() if not isinstance(v, tuple)}
            self._lists[locale] = {k: v for k, v in flat.items() if isinstance(v, tuple)}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `<locale>.toml` for every locale in `folder`.

        Raises ValueError or TypeError where a file holds anything but texts, lists and tables.
        """
        files = sorted(folder.glob("*.toml"))
        return cls({file.stem: tomllib.loads(file.read_text("utf-8")) for file in files})

    @property
    def locales(self) -> tuple[str, ...]:
        return tuple(self._texts)

    def texts(self, locale: str) -> Mapping[str, Text]:
        """Every text of a locale by its flat key, with nothing filled in."""
        return self._texts.get(locale, {})

    def lists(self, locale: str) -> Mapping[str, tuple[str, ...]]:
        """Every term list of a locale by its flat key."""
        return self._lists.get(locale, {})

    def text(self, key: str, locale: str, params: Mapping[str, str | int | float]) -> str:
        """The finished text; see `t`."""
        for candidate in self._fallbacks(locale):
            found = self._texts[candidate].get(key)
            if found is not None:
                return _fill(_choose(found, candidate, params.get("count")), params)
        self._warn_once(key, locale)
        return key

    def _fallbacks(self, locale: str) -> list[str]:
        language = language_of(locale)
        regions = [known for known in self._texts if language_of(known) == language]
        wanted = dict.fromkeys((locale, *regions, DEFAULT_LOCALE))
        return [known for known in wanted if known in self._texts]

    def _warn_once(self, key: str, locale: str) -> None:
        if (key, locale) not in self._warned:
            self._warned.add((key, locale))
            log.warning("text_missing", extra={"key": key, "locale": locale})


def language_of(locale: str) -> str:
    """The language without its region: "pt" of "pt-BR"."""
    return locale.partition("-")[0]


def placeholders(text: Text) -> frozenset[str]:
    """The names that a text wants filled in, over all its plural forms."""
    forms = (text,) if isinstance(text, str) else text.values()
    return frozenset(name for form in forms for name in PLACEHOLDER.findall(form))


def plural_form(locale: str, count: float) -> PluralForm:
    """The form that `locale` uses for `count`: the cardinal rules of the Unicode CLDR.

    A float counts as written with a fraction, as it is when filled in ("1.0").
    """
    return PLURAL_RULES.get(language_of(locale), _always_other)(count)


def _always_other(_count: float) -> PluralForm:
    return "other"


def _one_whole(count: float) -> PluralForm:
    return "one" if isinstance(count, int) and abs(count) == 1 else "other"


def _one_or_million(count: float) -> PluralForm:
    return "one" if abs(count) == 1 else _million(count)


def _below_two_or_million(count: float) -> PluralForm:
    return "one" if abs(count) < 2 else _million(count)


def _million(count: float) -> PluralForm:
    return "many" if isinstance(count, int) and count != 0 and count % 1_000_000 == 0 else "other"


def _russian(count: float) -> PluralForm:
    if not isinstance(count, int):
        return "other"
    tens, ones = abs(count) % 100, abs(count) % 10
    if ones == 1 and tens != 11:
        return "one"
    if ones in (2, 3, 4) and tens not in (12, 13, 14):
        return "few"
    return "many"


PLURAL_RULES: Mapping[str, Callable[[float], PluralForm]] = {
    "de": _one_whole,
    "en": _one_whole,
    "es": _one_or_million,
    "fr": _below_two_or_million,
    "id": _always_other,
    "ja": _always_other,
    "ko": _always_other,
    "pt": _below_two_or_million,
    "ru": _russian,
    "vi": _always_other,
    "zh": _always_other,
}


def _choose(text: Text, locale: str, count: str | float | None) -> str:
    if isinstance(text, str):
        return text
    form = plural_form(locale, count) if isinstance(count, int | float) else "other"
    return text.get(form, text["other"])


def _fill(text: str, params: Mapping[str, str | int | float]) -> str:
    return PLACEHOLDER.sub(lambda match: str(params.get(match[1], match[0])), text)


def _flatten(
    table: Mapping[str, object], prefix: str = ""
) -> Iterator[tuple[str, Text | tuple[str, ...]]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, list):
            yield key, _as_terms(key, cast("list[object]", value))
        elif isinstance(value, dict):
            inner = cast("dict[str, object]", value)
            if _is_plural(inner):
                yield key, cast("Plural", inner)
            else:
                yield from _flatten(inner, f"{key}.")
        else:
            raise TypeError(f"{key} is neither a text, a list of texts nor a table")


def _as_terms(key: str, values: list[object]) -> tuple[str, ...]:
    found = tuple(value for value in values if isinstance(value, str))
    if len(found) != len(values):
        raise ValueError(f"{key} holds something that is not a text")
    return found


def _is_plural(table: Mapping[str, object]) -> bool:
    forms = get_args(PluralForm)
    return "other" in table and all(
        name in forms and isinstance(value, str) for name, value in table.items()
    )

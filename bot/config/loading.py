"""From a file and the environment to a Config, or to every fault there is."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from bot.config.checks import ROUTES, cross_findings
from bot.config.faults import (
    HIDDEN,
    Finding,
    looks_secret,
    secret_finding,
    shown,
    shown_key,
    unknown_finding,
    validation_findings,
)
from bot.config.places import Places, find_lines
from bot.config.reading import read_text
from bot.config.schema import Kind, Loc, kind_at
from bot.config.sections import BudgetsConfig, Config
from bot.errors import ConfigError, ConfigFault

PREFIX = "MADELEINE__"
_DEEPEST_KEY = 6
_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

Table = dict[str, object]


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The defaults, then the TOML file, then `MADELEINE__SECTION__KEY`; an empty one is not set.

    ConfigError carries every fault found, in the order of the file, the environment's last.
    """
    text = "" if path is None else read_text(path, key="config")
    data = {} if path is None else _parse(text, path)
    places = Places(path=path, lines=find_lines(text))
    findings = list(_override(data, environ, places))
    findings += _take_out_secrets(data)
    config, refused = _validate(data)
    findings += refused
    findings += cross_findings(config, environ, {_removed(finding.loc) for finding in refused})
    if findings:
        findings.sort(key=lambda finding: places.find(finding.loc)[0])
        raise ConfigError(tuple(_fault(finding, places) for finding in findings))
    return config


def _fault(finding: Finding, places: Places) -> ConfigFault:
    return ConfigFault(
        key=shown_key(finding.loc),
        value=shown(finding.loc, finding.value),
        problem=finding.problem,
        source=places.find(finding.loc)[1],
    )


def _parse(text: str, path: Path) -> Table:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, _, position = str(error).partition(" (at ")
        line = re.match(r"line \d+", position)
        at = line.group() if line else f"line {text.rstrip().count(chr(10)) + 1}"
        problem, source = f"is not valid TOML: {reason}", f"{path} {at}"
    except ValueError:
        problem, source = "holds a number that is too long", str(path)
    except RecursionError:
        problem, source = "is nested too deep", str(path)
    fault = ConfigFault(key="config", value=str(path), problem=problem, source=source)
    raise ConfigError((fault,))


def _override(data: Table, environ: Mapping[str, str], places: Places) -> Iterator[Finding]:
    """Writes the environment's values into `data` and their names into `places`."""
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        loc: Loc = tuple(name.removeprefix(PREFIX).lower().split("__"))
        text, kind = environ[name], kind_at(loc)
        if not text.strip():
            continue
        places.variables[loc] = ascii(name)[1:-1]
        if not _is_unicode(name + text):
            yield Finding(loc=loc, value=HIDDEN, problem="is not UTF-8 text")
        elif kind is None:
            yield secret_finding(loc) if looks_secret(str(loc[-1])) else unknown_finding(loc, text)
        elif kind.section is not None:
            problem = "is a table; name one of its keys after two more underscores"
            yield Finding(loc=loc, value=text, problem=problem)
        else:
            _write(data, loc, _typed(text.strip(), kind))


def _is_unicode(text: str) -> bool:
    # Bytes of another encoding reach us as lone surrogates, which nothing can print or store.
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _typed(text: str, kind: Kind) -> object:
    """The text as the key's type; unchanged where it is none, so that validation says so."""
    try:
        if kind.element is not None:
            if text.startswith("["):
                return cast("object", json.loads(text))
            return [_typed(item.strip(), kind.element) for item in text.split(",")]
        if kind.form is int:
            return int(text)
        if kind.form is float:
            return float(text)
    except (ValueError, RecursionError):
        return text
    return _WORDS.get(text.lower(), text) if kind.form is bool else text


def _write(data: Table, loc: Loc, value: object) -> None:
    table = data
    for part in loc[:-1]:
        inner = table.setdefault(str(part), {})
        if not isinstance(inner, dict):
            return  # validation names what stands in the table's place
        table = cast("Table", inner)
    table[str(loc[-1])] = value


def _take_out_secrets(data: Table) -> Iterator[Finding]:
    """Removes what looks like a secret, so that no later fault can show it."""
    waiting: list[tuple[Loc, object]] = [((), data)]
    while waiting:
        loc, value = waiting.pop()
        if len(loc) >= _DEEPEST_KEY:
            continue
        if isinstance(value, list):
            items = cast("list[object]", value)
            waiting += [((*loc, number), item) for number, item in enumerate(items)]
        elif isinstance(value, dict):
            table = cast("Table", value)
            for key in list(table):
                inner: Loc = (*loc, key)
                if kind_at(inner) is None and looks_secret(key):
                    del table[key]
                    yield secret_finding(inner)
                else:
                    waiting.append((inner, table[key]))


def _validate(data: Table) -> tuple[Config, list[Finding]]:
    """The config, with defaults in the place of what was refused, and why it was refused."""
    currency = _currency(data)
    try:
        return Config.model_validate(data, context=currency), []
    except ValidationError as error:
        findings = list(validation_findings(error))
    for finding in findings:
        _remove(data, _removed(finding.loc))
    return Config.model_validate(data, context=currency), findings


def _currency(data: Table) -> str:
    """The currency that prices must be in, asked before validation reads the prices."""
    budgets = data.get("budgets")
    named = cast("Table", budgets).get("currency") if isinstance(budgets, dict) else None
    return named if isinstance(named, str) else BudgetsConfig().currency


def _removed(loc: Loc) -> Loc:
    """The smallest part of the config that can be left out with this key: a route goes whole."""
    if loc[0] == "llm" and len(loc) > 1 and loc[1] in ROUTES:
        return loc[:2]
    return next((loc[:end] for end, part in enumerate(loc) if isinstance(part, int)), loc)


def _remove(data: Table, loc: Loc) -> None:
    table = data
    for part in loc[:-1]:
        inner = table.get(str(part))
        if not isinstance(inner, dict):
            return
        table = cast("Table", inner)
    table.pop(str(loc[-1]), None)

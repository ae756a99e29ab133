"""Discord's own rules for the payload of application commands, translations included."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from tests.fakes.discord.refusals import Refusal, invalid_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.discord.records import JsonObject

CHAT, USER_MENU, MESSAGE_MENU = 1, 2, 3
SUBCOMMAND, SUBCOMMAND_GROUP, STRING, INTEGER, BOOLEAN = 1, 2, 3, 4, 5
USER, CHANNEL, ROLE, MENTIONABLE, NUMBER, ATTACHMENT = 6, 7, 8, 9, 10, 11

COMMAND_LIMITS = {CHAT: 100, USER_MENU: 15, MESSAGE_MENU: 15}
OPTIONS_LIMIT = 25
CHOICES_LIMIT = 25
CHOICE_TEXT_LIMIT = 100
NAME_LIMIT = 32
DESCRIPTION_LIMIT = 100
COMMAND_SIZE_LIMIT = 8000
OPTION_LENGTH_LIMIT = 6000
# Scripts whose vowel signs are no letters to Unicode, but allowed in names.
SCRIPTS_WITH_MARKS = (range(0x0900, 0x0980), range(0x0E00, 0x0E80))
LOCALES = frozenset(
    {"id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl"}
    | {"no", "pl", "pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi"}
    | {"th", "zh-CN", "ja", "zh-TW", "ko"}
)


def check_commands(commands: list[JsonObject]) -> None:
    """Refuse a list of commands, as PUT does: the faults are keyed by the command's index."""
    for kind, limit in COMMAND_LIMITS.items():
        if sum(_kind(command) == kind for command in commands) > limit:
            raise Refusal(400, 30032, f"Maximum number of application commands reached ({limit})")
    seen: set[tuple[int, str]] = set()
    for index, command in enumerate(commands):
        check_command(command, str(index))
        identity = (_kind(command), command["name"])
        if identity in seen:
            raise invalid_form(
                f"{index}.name",
                "APPLICATION_COMMANDS_DUPLICATE_NAME",
                "Application command names must be unique",
            )
        seen.add(identity)


def check_command(command: JsonObject, path: str) -> None:
    is_chat = _kind(command) == CHAT
    _check_names(command, path, is_chat=is_chat)
    if is_chat:
        _check_descriptions(command, path)
        _check_options(command.get("options") or [], f"{path}.options", depth=0)
    elif command.get("description") or command.get("options"):
        raise _invalid(f"{path}.description", "Context menu commands cannot have descriptions")
    if size_of(command) > COMMAND_SIZE_LIMIT:
        raise invalid_form(
            path,
            "APPLICATION_COMMAND_TOO_LARGE",
            f"Command exceeds maximum size ({COMMAND_SIZE_LIMIT})",
        )


def size_of(command: JsonObject) -> int:
    """Characters that count against 8,000: of each field the longest translation."""
    own = _longest(command, "name") + _longest(command, "description")
    own += len(str(command["value"])) if "value" in command else 0
    inner = [*(command.get("options") or []), *(command.get("choices") or [])]
    return own + sum(size_of(one) for one in inner)


def _longest(thing: JsonObject, field: str) -> int:
    return max(len(text) for _, text in _translations(thing, field))


def _translations(thing: JsonObject, field: str) -> Iterator[tuple[str, str]]:
    """The path and text of a field and of each of its translations."""
    yield field, thing.get(field) or ""
    for locale, text in (thing.get(f"{field}_localizations") or {}).items():
        yield f"{field}_localizations.{locale}", text


def _check_names(thing: JsonObject, path: str, *, is_chat: bool) -> None:
    for where, name in _translations(thing, "name"):
        if not 1 <= len(name) <= NAME_LIMIT:
            raise _bad_length(f"{path}.{where}", NAME_LIMIT)
        if is_chat and not _is_chat_name(name):
            raise invalid_form(
                f"{path}.{where}",
                "APPLICATION_COMMAND_INVALID_NAME",
                "Command name is invalid",
            )
    _check_locales(thing, path)


def _check_locales(thing: JsonObject, path: str) -> None:
    for field in ("name_localizations", "description_localizations"):
        for locale in thing.get(field) or {}:
            if locale not in LOCALES:
                raise invalid_form(
                    f"{path}.{field}",
                    "DICT_TYPE_KEYS",
                    f"Keys must be one of the known locales, not {locale!r}",
                )


def _is_chat_name(name: str) -> bool:
    return name == name.lower() and all(_is_name_character(one) for one in name)


def _is_name_character(character: str) -> bool:
    return (
        character in "-_'"
        or unicodedata.category(character)[0] in "LN"
        or any(ord(character) in script for script in SCRIPTS_WITH_MARKS)
    )


def _check_descriptions(thing: JsonObject, path: str) -> None:
    for where, description in _translations(thing, "description"):
        if not 1 <= len(description) <= DESCRIPTION_LIMIT:
            raise _bad_length(f"{path}.{where}", DESCRIPTION_LIMIT)


def _check_options(options: list[JsonObject], path: str, *, depth: int) -> None:
    if len(options) > OPTIONS_LIMIT:
        raise _bad_length(path, OPTIONS_LIMIT)
    names = [option.get("name") for option in options]
    if len(set(names)) != len(names):
        raise invalid_form(
            path, "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", "Option names must be unique"
        )
    nested = [option["type"] in (SUBCOMMAND, SUBCOMMAND_GROUP) for option in options]
    if any(nested) and not all(nested):
        raise _invalid(path, "Sub-command and other option types are mutually exclusive")
    _check_order(options, path)
    for index, option in enumerate(options):
        _check_option(option, f"{path}.{index}", depth=depth)


def _check_order(options: list[JsonObject], path: str) -> None:
    needed = [bool(option.get("required")) for option in options]
    if needed != sorted(needed, reverse=True):
        raise invalid_form(
            path,
            "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
            "Required options must be placed before non-required options",
        )


def _check_option(option: JsonObject, path: str, *, depth: int) -> None:
    _check_names(option, path, is_chat=True)
    _check_descriptions(option, path)
    kind = option["type"]
    if kind == SUBCOMMAND_GROUP and depth > 0:
        raise _invalid(path, "A sub-command group cannot contain sub-command groups")
    if kind == SUBCOMMAND and depth > 1:
        raise _invalid(path, "A sub-command cannot contain sub-commands")
    if kind == SUBCOMMAND_GROUP:
        _check_options(option.get("options") or [], f"{path}.options", depth=1)
        if any(inner["type"] != SUBCOMMAND for inner in option.get("options") or []):
            raise _invalid(path, "A sub-command group can only contain sub-commands")
    elif kind == SUBCOMMAND:
        _check_options(option.get("options") or [], f"{path}.options", depth=2)
    _check_choices(option, path)
    for bound in ("min_length", "max_length"):
        if not 0 <= (option.get(bound) or 0) <= OPTION_LENGTH_LIMIT:
            raise _invalid(f"{path}.{bound}", "int value should be between 0 and 6000")


def _check_choices(option: JsonObject, path: str) -> None:
    choices = option.get("choices") or []
    if choices and option.get("autocomplete"):
        raise _invalid(path, "An option cannot have choices and autocomplete")
    check_choices(choices, f"{path}.choices")


def check_choices(choices: list[JsonObject], path: str) -> None:
    """The choices of an option, or the answers of an autocomplete."""
    if len(choices) > CHOICES_LIMIT:
        raise _bad_length(path, CHOICES_LIMIT)
    for index, choice in enumerate(choices):
        texts = [*_translations(choice, "name"), ("value", str(choice["value"]))]
        for where, text in texts:
            if not 1 <= len(text) <= CHOICE_TEXT_LIMIT:
                raise _bad_length(f"{path}.{index}.{where}", CHOICE_TEXT_LIMIT)
        _check_locales(choice, f"{path}.{index}")


def _kind(command: JsonObject) -> int:
    return command.get("type", CHAT)


def _bad_length(path: str, limit: int) -> Refusal:
    return invalid_form(path, "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {limit} in length.")


def _invalid(path: str, message: str) -> Refusal:
    return invalid_form(path, "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", message)

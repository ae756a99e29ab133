"""The application's registered commands: global ones and those of single guilds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.discord.command_rules import (
    CHAT,
    SUBCOMMAND,
    SUBCOMMAND_GROUP,
    check_command,
    check_commands,
)
from tests.fakes.discord.refusals import Refusal

if TYPE_CHECKING:
    from tests.fakes.discord.records import JsonObject
    from tests.fakes.discord.snowflakes import Snowflakes

CREATES_A_DAY = 200


class CommandBook:
    """`everywhere` are the global commands; `puts` and `creates` count what was asked of Discord.

    A command whose kind and name exist already is changed and keeps its id: no create.
    """

    def __init__(self, snowflakes: Snowflakes, application_id: int) -> None:
        self._snowflakes = snowflakes
        self._application_id = application_id
        self.everywhere: list[JsonObject] = []
        self.in_guild: dict[int, list[JsonObject]] = {}
        self.puts = 0
        self.creates: dict[int | None, int] = {}

    def of(self, guild_id: int | None) -> list[JsonObject]:
        return self.everywhere if guild_id is None else self.in_guild.get(guild_id, [])

    def replace_all(self, guild_id: int | None, commands: list[JsonObject]) -> list[JsonObject]:
        """Bulk overwrite: what is not named is gone."""
        check_commands(commands)
        self.puts += 1
        kept = [self._registered(guild_id, command) for command in commands]
        self._keep(guild_id, kept)
        return kept

    def add(self, guild_id: int | None, command: JsonObject) -> JsonObject:
        """Create one command, or replace the one of the same kind and name."""
        check_command(command, "command")
        registered = self._registered(guild_id, command)
        others = [one for one in self.of(guild_id) if one["id"] != registered["id"]]
        self._keep(guild_id, [*others, registered])
        return registered

    def remove(self, guild_id: int | None, command_id: int) -> None:
        others = [one for one in self.of(guild_id) if one["id"] != str(command_id)]
        if len(others) == len(self.of(guild_id)):
            raise Refusal(404, 10063, "Unknown application command")
        self._keep(guild_id, others)

    def _keep(self, guild_id: int | None, commands: list[JsonObject]) -> None:
        if guild_id is None:
            self.everywhere = commands
        else:
            self.in_guild[guild_id] = commands

    def _registered(self, guild_id: int | None, command: JsonObject) -> JsonObject:
        kind = command.get("type", CHAT)
        known = (
            one["id"]
            for one in self.of(guild_id)
            if (one["type"], one["name"]) == (kind, command["name"])
        )
        registered: JsonObject = {
            "description": "",
            "default_member_permissions": None,
            "nsfw": False,
            "contexts": None,
            "integration_types": None,
            "dm_permission": True,
            **command,
            "type": kind,
            "id": next(known, None) or self._new_id(guild_id),
            "application_id": str(self._application_id),
            "version": str(self._snowflakes.next()),
        }
        return registered | ({"guild_id": str(guild_id)} if guild_id else {})

    def _new_id(self, guild_id: int | None) -> str:
        created = self.creates[guild_id] = self.creates.get(guild_id, 0) + 1
        if created > CREATES_A_DAY:
            raise Refusal(
                429, 30034, "Max number of daily application command creates has been reached (200)"
            )
        return str(self._snowflakes.next())

    # --- looking up

    def find(self, name: str, guild_id: int | None, kind: int = CHAT) -> JsonObject | None:
        """The command that a name means in a guild or direct message; the guild's own first."""
        own = self.of(guild_id) if guild_id is not None else []
        return next(
            (one for one in [*own, *self.everywhere] if (one["type"], one["name"]) == (kind, name)),
            None,
        )


def walk(command: JsonObject, steps: list[str]) -> list[JsonObject] | None:
    """The options on the way to a sub-command, by name; None where the way does not exist."""
    way: list[JsonObject] = []
    here = command
    for step in steps:
        inner = [
            one
            for one in here.get("options") or []
            if one["name"] == step and one["type"] in (SUBCOMMAND, SUBCOMMAND_GROUP)
        ]
        if not inner:
            return None
        here = inner[0]
        way.append(here)
    needs_more = any(
        one["type"] in (SUBCOMMAND, SUBCOMMAND_GROUP) for one in here.get("options") or []
    )
    return None if needs_more else way


def without_translations(command: JsonObject) -> JsonObject:
    """A command as GET gives it unless translations are asked for."""
    kept = {key: value for key, value in command.items() if not key.endswith("_localizations")}
    for inner in ("options", "choices"):
        if inner in kept:
            kept[inner] = [without_translations(one) for one in kept[inner] or []]
    return kept

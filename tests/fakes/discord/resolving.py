"""What a person enters in a command, as the client checks it and puts it on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.discord import wire
from tests.fakes.discord.calls import UploadedFile
from tests.fakes.discord.command_rules import (
    ATTACHMENT,
    BOOLEAN,
    CHANNEL,
    INTEGER,
    MENTIONABLE,
    NUMBER,
    ROLE,
    STRING,
    USER,
)
from tests.fakes.discord.permissions import guild_permissions
from tests.fakes.discord.records import Channel, Role, User

if TYPE_CHECKING:
    from tests.fakes.discord.posting import MessageWorld
    from tests.fakes.discord.records import Guild, JsonObject, Message

VALUE_TYPES: dict[int, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    BOOLEAN: (bool,),
    NUMBER: (int, float),
    USER: (User,),
    CHANNEL: (Channel,),
    ROLE: (Role,),
    MENTIONABLE: (User, Role),
    ATTACHMENT: (UploadedFile,),
}


class NotPossible(Exception):
    """Discord's client would not let a person do this; no request would ever be sent."""


class Resolved:
    """The objects that the ids of an interaction stand for."""

    def __init__(self, world: MessageWorld, guild: Guild | None) -> None:
        self._world = world
        self._guild = guild
        self._found: JsonObject = {}

    @property
    def payload(self) -> JsonObject:
        return {"resolved": self._found} if self._found else {}

    def id_of(self, thing: User | Channel | Role | UploadedFile) -> str:
        match thing:
            case User():
                self._add("users", thing.id, wire.user_payload(thing))
                if self._guild and (member := self._guild.members.get(thing.id)):
                    granted = {"permissions": str(int(guild_permissions(member)))}
                    without_user = wire.member_payload(member, with_user=False)
                    self._add("members", thing.id, without_user | granted)
            case Channel():
                self._add("channels", thing.id, wire.channel_payload(thing) | {"permissions": "0"})
            case Role():
                self._add("roles", thing.id, wire.role_payload(thing))
            case UploadedFile():
                attachment = self._world.attachment(thing)
                self._add("attachments", attachment.id, wire.attachment_payload(attachment))
                return str(attachment.id)
        return str(thing.id)

    def add_message(self, message: Message) -> None:
        """The target of a message menu: its content is readable without any intent."""
        payload = wire.message_payload(message, self._world.bot, reads_content=True)
        self._add("messages", message.id, payload)

    def _add(self, kind: str, thing_id: int, payload: JsonObject) -> None:
        self._found.setdefault(kind, {})[str(thing_id)] = payload


def entered_options(
    declared: list[JsonObject],
    entered: dict[str, object],
    resolved: Resolved,
    *,
    focused: str | None = None,
) -> list[JsonObject]:
    """The options with their values, refused where the client would refuse them.

    While a person still types (`focused`), nothing is checked and required options may be missing.
    """
    known = {option["name"]: option for option in declared}
    if unknown := set(entered) - set(known):
        raise NotPossible(f"there is no option {sorted(unknown)}; there is {sorted(known)}")
    missing = [
        name for name, option in known.items() if option.get("required") and name not in entered
    ]
    if missing and focused is None:
        raise NotPossible(f"the required options {missing} are missing")
    options: list[JsonObject] = []
    for name, value in entered.items():
        if focused is None:
            _check_value(known[name], value)
        payload = {"name": name, "type": known[name]["type"], "value": _wire(value, resolved)}
        options.append(payload | ({"focused": True} if name == focused else {}))
    return options


def _wire(value: object, resolved: Resolved) -> object:
    if isinstance(value, User | Channel | Role | UploadedFile):
        return resolved.id_of(value)
    return value


def _check_value(option: JsonObject, value: object) -> None:
    kind, name = option["type"], option["name"]
    expected = VALUE_TYPES[kind]
    if not isinstance(value, expected) or (isinstance(value, bool) and kind != BOOLEAN):
        raise NotPossible(f"{name} takes {[one.__name__ for one in expected]}, not {value!r}")
    choices = [choice["value"] for choice in option.get("choices") or []]
    if choices and value not in choices:
        raise NotPossible(f"{name} is one of {choices}, not {value!r}")
    kinds = option.get("channel_types")
    if kinds and isinstance(value, Channel) and value.kind not in kinds:
        raise NotPossible(f"{name} takes channels of kind {kinds}, not {value.kind!r}")
    if isinstance(value, str):
        _check_range(name, len(value), option.get("min_length"), option.get("max_length", 6000))
    elif isinstance(value, int | float) and kind != BOOLEAN:
        _check_range(name, value, option.get("min_value"), option.get("max_value"))


def _check_range(name: str, value: float, least: float | None, most: float | None) -> None:
    if (least is not None and value < least) or (most is not None and value > most):
        raise NotPossible(f"{name} must be between {least} and {most}, not {value}")

"""What people do with an application: commands, menus, buttons, lists, forms."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tests.fakes.discord import wire
from tests.fakes.discord.acting import ActingWorld
from tests.fakes.discord.command_book import CommandBook, walk
from tests.fakes.discord.command_rules import CHAT, MESSAGE_MENU, USER_MENU
from tests.fakes.discord.events import Event
from tests.fakes.discord.interactions import Interaction, InteractionKind, find_component
from tests.fakes.discord.message_rules import BUTTON, LINK_STYLE, STRING_SELECT, all_components
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.resolving import NotPossible, Resolved, entered_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.fakes.discord.records import Channel, JsonObject, Message, Role, User

TEXT_INPUT, LABEL, TEXT_DISPLAY = 4, 18, 10
ATTACHMENT_LIMIT = 10 * 1024 * 1024
IN_GUILD, IN_DIRECT_MESSAGE = 0, 1
GUILD_INSTALLED, USER_INSTALLED = 0, 1


class InteractingWorld(ActingWorld):
    """`commands` are the registered ones; `interactions` all that happened, by their tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.commands = CommandBook(self.snowflakes, self.bot.id)
        self.interactions: dict[str, Interaction] = {}

    # --- commands

    async def slash(
        self, user: User, channel: Channel, command: str, /, **options: object
    ) -> Interaction:
        """Let somebody use a slash command: `slash(alice, general, "memory show", page=2)`.

        Options that are people, channels, roles or files are given as such.
        """
        return self._use_command(InteractionKind.COMMAND, user, channel, command, options, None)

    async def autocomplete(
        self, user: User, channel: Channel, command: str, focused: str, /, **options: object
    ) -> Interaction:
        """Let somebody type in the option `focused`; read the offer with `choices()`."""
        options.setdefault(focused, "")
        return self._use_command(
            InteractionKind.AUTOCOMPLETE, user, channel, command, options, focused
        )

    async def message_menu(self, user: User, message: Message, name: str) -> Interaction:
        """Let somebody use a command from a message's context menu."""
        self._must_see(user, message)
        command = self._offered(user, message.channel, name, MESSAGE_MENU)
        resolved = Resolved(self, message.guild)
        resolved.add_message(message)
        target = {"target_id": str(message.id)}
        return self._command(user, message.channel, command, resolved, target)

    async def user_menu(self, user: User, channel: Channel, target: User, name: str) -> Interaction:
        """Let somebody use a command from a person's context menu."""
        command = self._offered(user, channel, name, USER_MENU)
        resolved = Resolved(self, channel.guild)
        return self._command(
            user, channel, command, resolved, {"target_id": resolved.id_of(target)}
        )

    def _use_command(
        self,
        kind: InteractionKind,
        user: User,
        channel: Channel,
        name: str,
        entered: dict[str, object],
        focused: str | None,
    ) -> Interaction:
        first, *steps = name.split()
        command = self._offered(user, channel, first, CHAT)
        way = walk(command, steps)
        if way is None:
            raise NotPossible(f"there is no command {name!r}")
        resolved = Resolved(self, channel.guild)
        declared = (way[-1] if way else command).get("options") or []
        options = entered_options(declared, entered, resolved, focused=focused)
        for step in reversed(way):
            options = [{"name": step["name"], "type": step["type"], "options": options}]
        return self._command(user, channel, command, resolved, {"options": options}, kind=kind)

    def _command(
        self,
        user: User,
        channel: Channel,
        command: JsonObject,
        resolved: Resolved,
        data: JsonObject,
        *,
        kind: InteractionKind = InteractionKind.COMMAND,
    ) -> Interaction:
        frame = {key: command[key] for key in ("id", "name", "type", "guild_id") if key in command}
        return self._interact(kind, user, channel, {**frame, **data, **resolved.payload})

    def _offered(self, user: User, channel: Channel, name: str, kind: int) -> JsonObject:
        """The command, if Discord's client would offer it to this person in this place."""
        guild = channel.guild
        command = self.commands.find(name, guild.id if guild else None, kind)
        if command is None:
            raise NotPossible(f"there is no command {name!r}")
        if not self.can(user, channel, Permission.USE_APPLICATION_COMMANDS):
            raise NotPossible(f"{user.name} may not use commands here")
        contexts = command["contexts"]
        context = IN_GUILD if guild else IN_DIRECT_MESSAGE
        if contexts is not None and context not in contexts:
            raise NotPossible(f"{name!r} is not offered in this kind of place")
        installs = command["integration_types"] or [GUILD_INSTALLED]
        if self._is_foreign(channel) and USER_INSTALLED not in installs:
            raise NotPossible(f"{name!r} is not offered where the bot is no member")
        needed = command["default_member_permissions"]
        if guild and needed is not None and not self._has(user, channel, Permission(int(needed))):
            raise NotPossible(f"{name!r} is not offered to {user.name}")
        return command

    def _has(self, user: User, channel: Channel, needed: Permission) -> bool:
        """Commands that need nothing in particular ("0") are for administrators."""
        return self.can(user, channel, needed or Permission.ADMINISTRATOR)

    def _is_foreign(self, channel: Channel) -> bool:
        return channel.guild is not None and self.bot.id not in channel.guild.members

    # --- components

    async def click(self, user: User, message: Message, button: str) -> Interaction:
        """Let somebody press a button, named by its label or custom id."""
        component = self._usable(user, message, button)
        if component["type"] != BUTTON or component.get("style") == LINK_STYLE:
            raise NotPossible(f"{button!r} is no button that the bot hears of")
        data = {"custom_id": component["custom_id"], "component_type": BUTTON}
        return self._interact(
            InteractionKind.COMPONENT, user, message.channel, data, source=message
        )

    async def select(
        self,
        user: User,
        message: Message,
        menu: str,
        *values: str | User | Channel | Role,
    ) -> Interaction:
        """Let somebody choose in a list, named by its placeholder or custom id."""
        component = self._usable(user, message, menu)
        least, most = component.get("min_values", 1), component.get("max_values", 1)
        if not least <= len(values) <= most:
            raise NotPossible(f"{menu!r} takes {least} to {most} values, not {len(values)}")
        resolved = Resolved(self, message.guild)
        if component["type"] == STRING_SELECT:
            offered = [option["value"] for option in component["options"]]
            if not set(values) <= set(offered):
                raise NotPossible(f"{menu!r} offers {offered}, not {values}")
        chosen = [one if isinstance(one, str) else resolved.id_of(one) for one in values]
        data = {
            "custom_id": component["custom_id"],
            "component_type": component["type"],
            "values": chosen,
            **resolved.payload,
        }
        return self._interact(
            InteractionKind.COMPONENT, user, message.channel, data, source=message
        )

    def _usable(self, user: User, message: Message, name: str) -> JsonObject:
        self._must_see(user, message)
        component = find_component(message.components, name)
        if component is None:
            there = [one.get("label") or one.get("custom_id") for one in _named(message)]
            raise NotPossible(f"there is no component {name!r}; there is {there}")
        if component.get("disabled"):
            raise NotPossible(f"{name!r} is disabled")
        return component

    def _must_see(self, user: User, message: Message) -> None:
        if message.deleted or message not in self.visible_to(user, message.channel):
            raise NotPossible(f"{user.name} does not see {message!r}")

    # --- forms

    async def submit_modal(
        self, opened_by: Interaction, values: Mapping[str, str | Sequence[str]]
    ) -> Interaction:
        """Let the person fill in the form that an interaction opened, by label or custom id."""
        form = await opened_by.modal()
        left = dict(values)
        components = [_filled(one, left) for one in form["components"]]
        if left:
            raise NotPossible(f"the form has no field {sorted(left)}")
        data: JsonObject = {"custom_id": form["custom_id"], "components": components}
        return self._interact(
            InteractionKind.MODAL_SUBMIT,
            opened_by.user,
            opened_by.channel,
            data,
            source=opened_by.source,
        )

    # --- sending

    def _interact(
        self,
        kind: InteractionKind,
        user: User,
        channel: Channel,
        data: JsonObject,
        *,
        source: Message | None = None,
    ) -> Interaction:
        interaction_id, token = self.snowflakes.next(), secrets.token_hex(16)
        payload: JsonObject = {
            "id": str(interaction_id),
            "application_id": str(self.bot.id),
            "type": int(kind),
            "token": token,
            "version": 1,
            "data": data,
            "locale": user.locale,
            "attachment_size_limit": ATTACHMENT_LIMIT,
            "entitlements": [],
            **self._place(user, channel),
        }
        if source:
            payload["message"] = wire.message_payload(source, self.bot, reads_content=True)
        interaction = Interaction(
            id=interaction_id,
            token=token,
            kind=kind,
            user=user,
            channel=channel,
            payload=payload,
            changes=self.changes,
            source=source,
            user_installed=self._is_foreign(channel),
        )
        self.interactions[token] = interaction
        self.publish(
            Event(name="INTERACTION_CREATE", data=payload, guild=channel.guild, channel=channel)
        )
        return interaction

    def _place(self, user: User, channel: Channel) -> JsonObject:
        """Where it happens, and what user and bot may do there."""
        allowed = str(int(self.permissions(user, channel)))
        place: JsonObject = {
            "channel_id": str(channel.id),
            "channel": wire.channel_payload(channel) | {"permissions": allowed},
            "app_permissions": str(int(self.permissions(self.bot, channel))),
        }
        guild = channel.guild
        if guild is None:
            return place | {
                "user": wire.user_payload(user),
                "context": IN_DIRECT_MESSAGE,
                "authorizing_integration_owners": {str(GUILD_INSTALLED): "0"},
            }
        member = wire.member_payload(guild.members[user.id]) | {"permissions": allowed}
        owners = (
            {str(USER_INSTALLED): str(user.id)}
            if self._is_foreign(channel)
            else {str(GUILD_INSTALLED): str(guild.id)}
        )
        return place | {
            "guild_id": str(guild.id),
            "guild": {"id": str(guild.id), "locale": guild.locale, "features": []},
            "guild_locale": guild.locale,
            "member": member,
            "context": IN_GUILD,
            "authorizing_integration_owners": owners,
        }


def _named(message: Message) -> list[JsonObject]:
    return [one for one in all_components(message.components) if one.get("custom_id")]


def _filled(component: JsonObject, left: dict[str, str | Sequence[str]]) -> JsonObject:
    """A component of a form with what was entered; used entries are taken out of `left`."""
    if component["type"] == LABEL:
        inner = {**component["component"], "label": component["label"]}
        return {"type": LABEL, "id": component.get("id", 0), "component": _filled(inner, left)}
    if "components" in component:
        rows = [_filled(one, left) for one in component["components"]]
        return {"type": component["type"], "id": component.get("id", 0), "components": rows}
    if component["type"] == TEXT_DISPLAY:
        return {"type": TEXT_DISPLAY, "id": component.get("id", 0)}
    names = [key for key in (component["custom_id"], component.get("label")) if key in left]
    entered = left.pop(names[0]) if names else component.get("value") or ""
    frame = {"type": component["type"], "id": component.get("id", 0)}
    frame["custom_id"] = component["custom_id"]
    if component["type"] != TEXT_INPUT:
        return {**frame, "values": list(entered)}
    _check_entry(component, str(entered))
    return {**frame, "value": entered}


def _check_entry(field: JsonObject, text: str) -> None:
    least = field.get("min_length", 1) if field.get("required", True) else 0
    most = field.get("max_length", 4000)
    if not least <= len(text) <= most:
        raise NotPossible(f"{field.get('label')!r} takes {least} to {most} characters")

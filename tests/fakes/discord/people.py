"""The people's half of the world: users, guilds, their members and roles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.fakes.discord import wire
from tests.fakes.discord.events import Event
from tests.fakes.discord.permissions import DEFAULT_BOT, DEFAULT_EVERYONE, Permission
from tests.fakes.discord.records import Guild, Member, Role, User
from tests.fakes.discord.snowflakes import Snowflakes
from tests.fakes.waiting import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class PeopleWorld:
    """Users and guilds. `bot_permissions` is what the bot's own role grants where it joins."""

    def __init__(self) -> None:
        self.snowflakes = Snowflakes()
        self.changes = Changes()
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.bot_permissions = DEFAULT_BOT
        self.publish: Callable[[Event], None] = _to_nobody
        self.bot = self.user("Madeleine", is_bot=True)
        self.owner = self.user("owner", display_name="Olga")
        self.home = self.guild("home", owner=self.owner)

    # --- people

    def user(
        self,
        name: str,
        *,
        display_name: str | None = None,
        is_bot: bool = False,
        locale: str = "en-US",
    ) -> User:
        """Somebody on Discord, in no guild yet."""
        user = User(
            id=self.snowflakes.next(),
            name=name,
            display_name=display_name,
            is_bot=is_bot,
            locale=locale,
        )
        self.users[user.id] = user
        return user

    def member(
        self,
        who: str | User,
        *,
        guild: Guild | None = None,
        roles: Iterable[Role] = (),
        nick: str | None = None,
        display_name: str | None = None,
        is_bot: bool = False,
        locale: str = "en-US",
    ) -> User:
        """Let a new user (by name) or a known one join a guild; gives the user."""
        user = (
            who
            if isinstance(who, User)
            else self.user(who, display_name=display_name, is_bot=is_bot, locale=locale)
        )
        place = guild or self.home
        member = Member(
            user=user, guild=place, joined_at=datetime.now(UTC), roles=list(roles), nick=nick
        )
        place.members[user.id] = member
        data = wire.member_payload(member) | {"guild_id": str(place.id)}
        self.publish(Event(name="GUILD_MEMBER_ADD", data=data, guild=place))
        return user

    def membership(self, user: User, guild: Guild | None = None) -> Member:
        return (guild or self.home).members[user.id]

    def assign_roles(self, user: User, *roles: Role, guild: Guild | None = None) -> None:
        """Replace a member's roles."""
        member = self.membership(user, guild)
        member.roles = list(roles)
        self._member_changed(member)

    def rename(self, user: User, nick: str | None, *, guild: Guild | None = None) -> None:
        """Give a member a nickname in a guild, or take it away."""
        member = self.membership(user, guild)
        member.nick = nick
        self._member_changed(member)

    def leave(self, user: User, guild: Guild | None = None) -> None:
        place = guild or self.home
        del place.members[user.id]
        data = {"guild_id": str(place.id), "user": wire.user_payload(user)}
        self.publish(Event(name="GUILD_MEMBER_REMOVE", data=data, guild=place, user_id=user.id))

    def _member_changed(self, member: Member) -> None:
        data = wire.member_payload(member) | {"guild_id": str(member.guild.id)}
        self.publish(
            Event(name="GUILD_MEMBER_UPDATE", data=data, guild=member.guild, user_id=member.user.id)
        )

    # --- guilds and roles

    def guild(
        self,
        name: str = "second",
        *,
        owner: User | None = None,
        everyone: Permission = DEFAULT_EVERYONE,
        locale: str = "en-US",
        with_bot: bool = True,
    ) -> Guild:
        """A server; the bot joins it with a role of its own that carries `bot_permissions`."""
        owner = owner or self.owner
        guild = Guild(
            id=self.snowflakes.next(),
            name=name,
            owner_id=owner.id,
            joined_at=datetime.now(UTC),
            locale=locale,
        )
        guild.roles[guild.id] = Role(
            id=guild.id, name="@everyone", permissions=everyone, position=0
        )
        self.guilds[guild.id] = guild
        self.member(owner, guild=guild)
        if with_bot:
            self.invite_bot(guild)
        return guild

    def invite_bot(self, guild: Guild, *, permissions: Permission | None = None) -> None:
        """Let the bot join: GUILD_CREATE."""
        granted = self.bot_permissions if permissions is None else permissions
        own_role = Role(
            id=self.snowflakes.next(),
            name=self.bot.name,
            permissions=granted,
            position=1,
            managed=True,
        )
        guild.roles[own_role.id] = own_role
        guild.members[self.bot.id] = Member(
            user=self.bot, guild=guild, joined_at=datetime.now(UTC), roles=[own_role]
        )
        self.publish(Event(name="GUILD_CREATE", guild=guild))

    def remove_bot(self, guild: Guild) -> None:
        """Throw the bot out: GUILD_DELETE."""
        self.publish(Event(name="GUILD_DELETE", data={"id": str(guild.id)}, guild=guild))
        del guild.members[self.bot.id]

    def bot_role(self, guild: Guild | None = None) -> Role:
        """The managed role that carries the bot's permissions."""
        return self.membership(self.bot, guild).roles[0]

    def allow_bot(self, permissions: Permission, guild: Guild | None = None) -> None:
        """Set what the bot's own role grants in a guild, instead of the invitation's."""
        place = guild or self.home
        role = self.bot_role(place)
        role.permissions = permissions
        self._role_event("GUILD_ROLE_UPDATE", place, role)

    def role(
        self,
        name: str,
        permissions: Permission = Permission.NONE,
        *,
        guild: Guild | None = None,
        mentionable: bool = False,
    ) -> Role:
        place = guild or self.home
        role = Role(
            id=self.snowflakes.next(),
            name=name,
            permissions=permissions,
            position=len(place.roles),
            mentionable=mentionable,
        )
        place.roles[role.id] = role
        self._role_event("GUILD_ROLE_CREATE", place, role)
        return role

    def change_role(self, role: Role, permissions: Permission) -> None:
        """Set what a role grants, @everyone's (`guild.everyone`) included."""
        guild = next(one for one in self.guilds.values() if role.id in one.roles)
        role.permissions = permissions
        self._role_event("GUILD_ROLE_UPDATE", guild, role)

    def delete_role(self, role: Role) -> None:
        guild = next(one for one in self.guilds.values() if role.id in one.roles)
        del guild.roles[role.id]
        for member in guild.members.values():
            member.roles = [one for one in member.roles if one is not role]
        data = {"guild_id": str(guild.id), "role_id": str(role.id)}
        self.publish(Event(name="GUILD_ROLE_DELETE", data=data, guild=guild))

    def _role_event(self, name: str, guild: Guild, role: Role) -> None:
        data = {"guild_id": str(guild.id), "role": wire.role_payload(role)}
        self.publish(Event(name=name, data=data, guild=guild))


def _to_nobody(event: Event) -> None:
    """Before the gateway is there, nobody listens."""

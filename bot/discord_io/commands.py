"""What all slash commands share: who asked, from where, and how errors are answered."""

import discord

from bot.audience import Origin
from bot.discord_io.audience import place_of
from bot.discord_io.client import MadeleineBot
from bot.discord_io.intake import other_names
from bot.discord_io.paging import Pages
from bot.discord_io.splitter import split
from bot.errors import Denied, UserError
from bot.features import Flag
from bot.identifiers import GuildId, UserId
from bot.memory.long_term import Actor, Listening
from bot.turn.messages import Person

Interaction = discord.Interaction[MadeleineBot]


def locale_of(interaction: Interaction) -> str:
    """The language of the person who gave the command."""
    return interaction.locale.value


def person_of(interaction: Interaction) -> Person:
    """Who gave the command."""
    user = interaction.user
    return Person(
        id=UserId(user.id),
        name=user.display_name,
        other_names=other_names(user),
        is_manager=interaction.permissions.manage_guild,
    )


def guild_of(interaction: Interaction) -> GuildId:
    """The server where a command was given. Raises UserError in a direct message."""
    if interaction.guild_id is None:
        raise UserError("errors.command.server_only")
    return GuildId(interaction.guild_id)


async def origin_of(interaction: Interaction) -> Origin:
    """Where the command was given. Raises UserError where that is no place to talk in."""
    channel = interaction.channel
    if channel is None or isinstance(channel, discord.CategoryChannel | discord.ForumChannel):
        raise UserError("errors.command.no_channel")
    return await interaction.client.services.origins.of(place_of(channel))


async def listening_of(interaction: Interaction) -> Listening:
    """From where a command reads memories: all that whoever gave it can read."""
    services = interaction.client.services
    if isinstance(interaction.user, discord.Member):
        interaction.client.rooms.meet(interaction.user)
    origin = await origin_of(interaction)
    persona = await services.personas.main(origin.guild_id)
    audience = await services.audiences.of_person(origin, UserId(interaction.user.id))
    return Listening(server=origin.guild_id, lineage=persona.lineage, audience=audience)


async def actor_of(interaction: Interaction, listening: Listening) -> Actor:
    """On whose behalf a command changes memory."""
    person = person_of(interaction)
    services = interaction.client.services
    return Actor(
        user=person.id,
        is_manager=person.is_manager,
        may_teach_server=await services.features.enabled(listening.server, Flag.MEMBER_TEACHING),
    )


def require_manager(interaction: Interaction) -> None:
    """Raise Denied for everybody else; Discord's own check can be set aside by a server."""
    if not interaction.permissions.manage_guild:
        raise Denied("errors.command.managers_only")


def require_keeper(interaction: Interaction) -> None:
    """Raise Denied for whoever does not look after the room: a direct message is the person's."""
    if interaction.guild_id is not None:
        require_manager(interaction)


def require_speaker(interaction: Interaction) -> None:
    """Raise Denied for whoever may not write where the command was given."""
    allowed = interaction.permissions
    in_thread = isinstance(interaction.channel, discord.Thread)
    may_write = allowed.send_messages_in_threads if in_thread else allowed.send_messages
    if interaction.guild_id is not None and not may_write:
        raise Denied("errors.command.speakers_only")


async def answer(interaction: Interaction, text: str) -> None:
    """Answer a deferred command, for its author alone; what is long, in pages."""
    pages = list(split(text))
    if len(pages) > 1:
        pager = Pages(pages, reader=interaction.user.id, locale=locale_of(interaction))
        await pager.open(interaction)
    else:
        await interaction.followup.send(pages[0], ephemeral=True)

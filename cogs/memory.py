"""/memory: what Madeleine keeps, seen and mended by people."""

from datetime import datetime
from zoneinfo import ZoneInfo

from discord import app_commands
from discord.ext import commands

from bot.audience import DIRECT_MESSAGES
from bot.clock import naturalize_time
from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import (
    Interaction,
    actor_of,
    answer,
    listening_of,
    locale_of,
    person_of,
    require_keeper,
)
from bot.discord_io.translation import text
from bot.i18n import t
from bot.identifiers import MemoryId, UserId
from bot.memory.long_term import Listening, Memory, NewMemory, Scope, Source
from bot.memory.references import show_names, typed_text
from bot.memory.retelling import Reader, Retold, retell
from bot.memory.short_term_rows import ShortTermText
from bot.turn.handoff_answers import hand_over, health_rows

ABOUT = [
    app_commands.Choice(name=text("memory.about.me"), value="me"),
    app_commands.Choice(name=text("memory.about.server"), value="server"),
]
LONGEST_TEXT = 1_000


class MemoryCommands(
    commands.GroupCog, group_name=text("memory.name"), group_description=text("memory.description")
):
    """Shows, teaches and forgets memories, as they are heard where the command is given."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    @app_commands.command(
        name=text("memory.show.name"), description=text("memory.show.description")
    )
    async def show(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        person, locale = person_of(interaction), locale_of(interaction)
        listening = await listening_of(interaction)
        services = self._bot.services
        about_you = await services.long_term.held_about(person.id, listening)
        about_server = await services.long_term.server_memories(listening)
        note = await services.short_term.of_room(listening.audience, listening.lineage)
        zone = await services.settings.zone(listening.server)
        blocks = (
            self._block("ui.memory.about_you", about_you, zone, locale),
            self._block("ui.memory.about_server", about_server, zone, locale),
            self._note(note.text, zone, locale) if note and note.text else "",
            *_told(await self._retold(listening, zone, locale), locale),
        )
        await answer(interaction, "\n".join(filter(None, blocks)) or t("ui.memory.nothing", locale))

    @app_commands.command(
        name=text("memory.teach.name"), description=text("memory.teach.description")
    )
    @app_commands.rename(
        content=text("memory.teach.content.name"), about=text("memory.teach.about.name")
    )
    @app_commands.describe(
        content=text("memory.teach.content.description"),
        about=text("memory.teach.about.description"),
    )
    @app_commands.choices(about=ABOUT)
    async def teach(
        self,
        interaction: Interaction,
        content: app_commands.Range[str, 1, LONGEST_TEXT],
        about: str = "me",
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        person, listening = person_of(interaction), await listening_of(interaction)
        origin = listening.audience.here
        if listening.server != DIRECT_MESSAGES:
            origin = (await self._bot.services.origins.of_server(listening.server)).id
        new = NewMemory(
            scope=Scope.SERVER if about == "server" else Scope.PERSONAL,
            server=listening.server,
            subject=None if about == "server" else person.id,
            lineage=listening.lineage,
            content=typed_text(content.strip()),
            source=Source(
                origin=origin,
                message_id=None,
                said_by=person.id,
                said_at=interaction.created_at,
            ),
            by_person=True,
        )
        actor = await actor_of(interaction, listening)
        kept = await self._bot.services.long_term.create(new, actor, listening)
        key = "ui.memory.known" if kept.known_before else "ui.memory.taught"
        await answer(interaction, t(key, locale_of(interaction)))

    @app_commands.command(
        name=text("memory.forget.name"), description=text("memory.forget.description")
    )
    @app_commands.rename(memory=text("memory.forget.id.name"))
    @app_commands.describe(memory=text("memory.forget.id.description"))
    async def forget(
        self, interaction: Interaction, memory: app_commands.Range[int, 1, 2**53]
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        listening = await listening_of(interaction)
        actor = await actor_of(interaction, listening)
        old = await self._bot.services.long_term.forget(MemoryId(memory), actor, listening)
        done = t("ui.memory.forgot", locale_of(interaction), text=_mentions(old.content))
        await answer(interaction, done)

    @app_commands.command(
        name=text("memory.handoff.name"), description=text("memory.handoff.description")
    )
    async def handoff(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)  # a run may take minutes
        require_keeper(interaction)
        listening = await listening_of(interaction)
        done = await hand_over(self._bot.services, listening, locale_of(interaction))
        await answer(interaction, done)

    @app_commands.command(
        name=text("memory.health.name"), description=text("memory.health.description")
    )
    async def health(self, interaction: Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        require_keeper(interaction)
        listening, locale = await listening_of(interaction), locale_of(interaction)
        rows = await health_rows(self._bot.services, listening, locale)
        lines = [t("ui.health.row", locale, label=row.label, value=row.value) for row in rows]
        await answer(interaction, "\n".join(lines) or t("ui.health.unknown", locale))

    async def _retold(self, listening: Listening, zone: ZoneInfo, locale: str) -> Retold:
        services = self._bot.services
        persona = await services.personas.main(listening.server)
        reader = Reader(
            name_of=_mention,
            persona=persona.id,
            persona_name=persona.name,
            now=services.clock.now(),
            zone=zone,
            locale=locale,
        )
        return await retell(
            services.ledger, services.database, listening.audience, listening.lineage, reader
        )

    def _block(
        self, heading: str, memories: tuple[Memory, ...], zone: ZoneInfo, locale: str
    ) -> str:
        lines = [self._line(memory, zone, locale) for memory in memories]
        return "\n".join((t(heading, locale), *lines)) if lines else ""

    def _line(self, memory: Memory, zone: ZoneInfo, locale: str) -> str:
        """A memory with its number, its age and who told it."""
        return t(
            "ui.memory.line",
            locale,
            id=memory.id,
            text=_mentions(memory.content),
            age=self._age(memory.updated_at, zone, locale),
            person=_mention(memory.author),
        )

    def _note(self, note: ShortTermText, zone: ZoneInfo, locale: str) -> str:
        lines = [f"{label}: {text}" for label, text in note.categories.items()]
        written = _mentions("\n".join(filter(None, (*lines, note.summary))))
        age = self._age(note.written_at, zone, locale)
        return t("ui.memory.note", locale, text=written, age=age)

    def _age(self, moment: datetime, zone: ZoneInfo, locale: str) -> str:
        return naturalize_time(self._bot.services.clock.now(), moment, zone, locale)


def _told(retold: Retold, locale: str) -> tuple[str, str]:
    """Open matters, and what happened; each with its heading, or empty."""
    more = [t("ui.memory.more", locale, count=retold.more)] if retold.more else []
    matters, episodes = retold.matters, (*retold.episodes, *more)
    return (
        "\n".join((t("ui.memory.matters", locale), *matters)) if matters else "",
        "\n".join((t("ui.memory.episodes", locale), *episodes)) if episodes else "",
    )


def _mentions(content: str) -> str:
    """A stored text for Discord, which shows a person's name of the day by itself."""
    return show_names(content, _mention)


def _mention(user: UserId) -> str:
    return f"<@{user}>"


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(MemoryCommands(bot))

"""What is remembered as lines for Discord: numbered, dated, with links to what was said."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.audience import DIRECT_MESSAGES
from bot.clock import naturalize_time
from bot.i18n import t
from bot.identifiers import ChannelId, OriginId, UserId
from bot.memory.long_term import Listening, Memory, Source
from bot.memory.references import show_names
from bot.memory.retelling import Reader, retell
from bot.memory.working import Entry
from bot.persona.personas import Persona
from bot.turn.services import TurnServices

_MARKUP = re.compile(r"\[[^\]\n]*\]\(https://[^)\s]*\)|<@\d+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLines:
    """Tells what is heard where somebody asks, in their language."""

    services: TurnServices
    listening: Listening
    asker: UserId
    persona: Persona
    zone: ZoneInfo
    locale: str

    @classmethod
    async def of(
        cls, services: TurnServices, listening: Listening, asker: UserId, locale: str
    ) -> "MemoryLines":
        """For somebody who asks in a room."""
        return cls(
            services=services,
            listening=listening,
            asker=asker,
            persona=await services.personas.main(listening.server),
            zone=await services.settings.zone(listening.server),
            locale=locale,
        )

    async def blocks(self, tier: str = "") -> list[list[str]]:
        """What one tier holds; without one, all of them but the talk itself."""
        tiers = {
            "me": self.about_asker,
            "server": self.about_server,
            "note": self.note,
            "episodes": self.happened,
            "working": self.working,
        }
        wanted = [tier] if tier else ["me", "server", "note", "episodes"]
        return [block for name in wanted if (block := await tiers[name]())]

    async def about_asker(self) -> list[str]:
        """What is known of whoever asks."""
        memories = await self.services.long_term.held_about(self.asker, self.listening)
        return await self.memories("ui.memory.about_you", memories)

    async def about_server(self) -> list[str]:
        """What is known of the server."""
        memories = await self.services.long_term.server_memories(self.listening)
        return await self.memories("ui.memory.about_server", memories)

    async def memories(self, heading: str, memories: Sequence[Memory]) -> list[str]:
        """Memories under a heading, a line each; nothing where there is none."""
        if not memories:
            return []
        sources = {s.origin for memory in memories for s in memory.sources}
        channels = await self.services.origins.channels(sources)
        return [t(heading, self.locale), *(self._memory(one, channels) for one in memories)]

    async def note(self) -> list[str]:
        """What is noted of the conversation here."""
        listening = self.listening
        found = await self.services.short_term.of_room(listening.audience, listening.lineage)
        if found is None or found.text is None:
            return []
        known = await self.services.categories.of(listening.server)
        noted = found.text.categories
        lines = [f"{one.label}: {noted[one.label]}" for one in known if one.label in noted]
        text = mentioned("\n".join(filter(None, (*lines, found.text.summary))))
        age = self._age(found.text.written_at)
        return [t("ui.memory.note", self.locale, text=text, age=age)] if text else []

    async def happened(self) -> list[str]:
        """Open matters, and what happened; each with its heading."""
        reader = Reader(
            name_of=mention,
            persona=self.persona.id,
            persona_name=self.persona.name,
            now=self.services.clock.now(),
            zone=self.zone,
            locale=self.locale,
        )
        told = await retell(
            self.services.ledger,
            self.services.database,
            self.listening.audience,
            self.listening.lineage,
            reader,
        )
        more = [t("ui.memory.more", self.locale, count=told.more)] if told.more else []
        matters, episodes = list(told.matters), [*told.episodes, *more]
        return [
            *([t("ui.memory.matters", self.locale), *matters] if matters else []),
            *([t("ui.memory.episodes", self.locale), *episodes] if episodes else []),
        ]

    async def working(self) -> list[str]:
        """The talk in this room as she has it before her, oldest first."""
        audience, lineage = self.listening.audience, self.listening.lineage
        entries = await self.services.working.entries(audience, lineage)
        channels = await self.services.origins.channels([audience.here])
        lines = [self.entry(entry, channels.get(audience.here)) for entry in entries]
        return [t("ui.memory.working", self.locale), *lines] if lines else []

    def entry(self, entry: Entry, channel: ChannelId | None) -> str:
        """One thing that was said."""
        said_by = self.persona.name if entry.author is None else mention(entry.author)
        link = self._link(channel, entry.message_id)
        return t(
            "ui.memory.said",
            self.locale,
            person=said_by,
            text=mentioned(" ".join(entry.content.split())),
            age=self._age(entry.said_at),
            source=f" {link}" if link else "",
        )

    def _memory(self, memory: Memory, channels: Mapping[OriginId, ChannelId]) -> str:
        """A memory with its number, its age, who told it and where, and what it said before."""
        line = t(
            "ui.memory.line",
            self.locale,
            id=memory.id,
            text=mentioned(memory.content),
            age=self._age(memory.updated_at),
            person=mention(memory.author),
        )
        was = [
            t(
                "ui.memory.former",
                self.locale,
                text=mentioned(former.content),
                age=self._age(former.ended_at),
            )
            for former in memory.former[:1]
        ]
        return " ".join((line, *self._links(memory.sources, channels), *was))

    def _links(
        self, sources: Iterable[Source], channels: Mapping[OriginId, ChannelId]
    ) -> list[str]:
        links = (self._link(channels.get(one.origin), one.message_id) for one in sources)
        return list(filter(None, links))[:1]

    def _link(self, channel: ChannelId | None, message: int | None) -> str:
        if channel is None or not message:
            return ""
        guild = self.listening.server
        place = "@me" if guild == DIRECT_MESSAGES else str(guild)
        url = f"https://discord.com/channels/{place}/{channel}/{message}"
        return t("ui.memory.source", self.locale, url=url)

    def _age(self, moment: datetime) -> str:
        return naturalize_time(self.services.clock.now(), moment, self.zone, self.locale)


def words_of(line: str) -> str:
    """What a line says, without its links and mentions."""
    return _MARKUP.sub(" ", line)


def mentioned(content: str) -> str:
    """A stored text for Discord, which shows a person's name of the day by itself."""
    return show_names(content, mention)


def mention(user: UserId) -> str:
    """A person, for Discord."""
    return f"<@{user}>"

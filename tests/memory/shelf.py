"""Long-term memory as a test handles it: short words for what a member does with it."""

from dataclasses import dataclass

from bot.identifiers import GuildId, LineageId, MemoryId
from bot.memory.long_term import Actor, Kept, Listening, LongTermMemory, Memory
from bot.memory.long_term_rows import NewMemory, Scope, Source
from tests.talk import GUILD, Talk


@dataclass
class Shelf:
    """Members who keep, change and forget memories, each by name, in a channel by name."""

    talk: Talk

    @property
    def memory(self) -> LongTermMemory:
        return self.talk.app.services.long_term

    def actor(self, name: str, *, manager: bool = False, may_teach: bool = True) -> Actor:
        user = self.talk.person(name).id
        return Actor(user=user, is_manager=manager, may_teach_server=may_teach)

    async def listening(
        self, channel: str = "general", *, guild: GuildId = GUILD, lineage: int | None = None
    ) -> Listening:
        services = self.talk.app.services
        place = self.talk.place(channel, guild=guild)
        origin = await services.origins.of(place)
        main = (await services.personas.main(place.guild_key)).lineage
        return Listening(
            server=origin.guild_id,
            lineage=main if lineage is None else LineageId(lineage),
            audience=await services.audiences.of_room(origin),
        )

    async def source(self, by: str, channel: str = "general", *, guild: GuildId = GUILD) -> Source:
        here = await self.listening(channel, guild=guild)
        return Source(
            origin=here.audience.here,
            message_id=self.talk.next_id(),
            said_by=self.talk.person(by).id,
            said_at=self.talk.clock.now(),
        )

    async def keep(
        self,
        content: str,
        *,
        about: str | None = None,
        by: str = "Ann",
        channel: str = "general",
        guild: GuildId = GUILD,
        lineage: int | None = None,
        by_person: bool = False,
        **actor: bool,
    ) -> Kept:
        """Keep a memory about a person, or about the server where nobody is named."""
        here = await self.listening(channel, guild=guild, lineage=lineage)
        new = NewMemory(
            scope=Scope.SERVER if about is None else Scope.PERSONAL,
            server=here.server,
            subject=None if about is None else self.talk.person(about).id,
            lineage=here.lineage,
            content=content,
            source=await self.source(by, channel, guild=guild),
            by_person=by_person,
        )
        return await self.memory.create(new, self.actor(by, **actor), here)

    async def change(
        self,
        kept: Kept | MemoryId,
        content: str,
        *,
        by: str = "Ann",
        channel: str = "general",
        lineage: int | None = None,
        **actor: bool,
    ) -> Memory:
        """Give a memory another text."""
        here = await self.listening(channel, lineage=lineage)
        source = await self.source(by, channel)
        number = kept.id if isinstance(kept, Kept) else kept
        return await self.memory.update(number, content, self.actor(by, **actor), source, here)

    async def forget(
        self, kept: Kept, *, by: str = "Ann", channel: str = "general", **actor: bool
    ) -> Memory:
        """Forget a memory as far as that member may."""
        here = await self.listening(channel)
        return await self.memory.forget(kept.id, self.actor(by, **actor), here)

    async def about(
        self,
        name: str,
        channel: str = "general",
        *,
        guild: GuildId = GUILD,
        lineage: int | None = None,
    ) -> list[str]:
        """What is known of a person in a channel."""
        here = await self.listening(channel, guild=guild, lineage=lineage)
        found = await self.memory.personal_memories(self.talk.person(name).id, here)
        return sorted(memory.content for memory in found)

    async def of_server(
        self, channel: str = "general", *, guild: GuildId = GUILD, lineage: int | None = None
    ) -> list[str]:
        """What is known of the server in a channel."""
        here = await self.listening(channel, guild=guild, lineage=lineage)
        return sorted(memory.content for memory in await self.memory.server_memories(here))

    async def written(self) -> None:
        """Wait until every write that is queued is on disk."""

        async def nothing(_: object) -> None:
            return None

        await self.talk.app.services.database.write(nothing)

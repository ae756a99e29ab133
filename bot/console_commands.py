"""What begins with a slash in the terminal."""

import re
from zoneinfo import ZoneInfo

from bot.clock import naturalize_time
from bot.errors import StorageUnavailable, UserError
from bot.features import Flag
from bot.i18n import t
from bot.identifiers import MemoryId, UserId
from bot.memory.changes import TurnKey
from bot.memory.long_term import Actor, Listening, Memory, NewMemory, Scope, Source
from bot.memory.references import show_names, typed_text
from bot.memory.refusals import MemoryRefused
from bot.memory.retelling import Reader, Retold, retell
from bot.memory.searching import matching
from bot.privacy.levels import EVERYWHERE, PrivacyLevel
from bot.turn.handoff_answers import hand_over, health_rows
from bot.turn.messages import AskedToForget, IncomingMessage
from bot.turn.reception import Receiver
from bot.turn.services import TurnServices

LONGEST_NUMBER = 18
_NUMBERED = re.compile(r"(\d{1,18})\s+(.+)", re.DOTALL | re.ASCII)
"""Digits of a memory's number that the database can hold."""


class ConsoleCommands:
    """Runs a command of the person at the terminal; what it answers is text."""

    def __init__(self, services: TurnServices, receiver: Receiver, locale: str) -> None:
        self._services = services
        self._receiver = receiver
        self._locale = locale
        self.last_change: TurnKey | None = None
        self.asked_to_forget: AskedToForget | None = None

    async def run(self, text: str, message: IncomingMessage) -> str:
        """Run `/memory ...`, `/undo`, `/scene`, `/features ...`, `/privacy ...` or `/help`."""
        command, _, rest = text.partition(" ")
        words = rest.split(maxsplit=1)
        try:
            match command:
                case "/help":
                    return t("console.help", self._locale)
                case "/memory":
                    return await self._memory(words, message)
                case "/undo":
                    return await self._undo(message)
                case "/forget":
                    return await self._forget(message)
                case "/scene":
                    return await self._begin_scene(message)
                case "/features":
                    return await self._features(words, message)
                case "/privacy":
                    return await self._privacy(words, message)
                case _:
                    return t("console.unknown_command", self._locale, command=command)
        except UserError as error:
            return t(error.key, self._locale, **error.params)
        except StorageUnavailable:
            return t("turn.storage", self._locale)

    async def _memory(self, words: list[str], message: IncomingMessage) -> str:
        listening = await self._listening(message)
        match words:
            case ["teach", content]:
                return await self._teach(content, message, listening)
            case ["forget", number] if number.isdecimal() and len(number) <= LONGEST_NUMBER:
                actor = Actor(user=message.author.id, is_manager=True)
                old = await self._services.long_term.forget(MemoryId(int(number)), actor, listening)
                return t("console.forgot", self._locale, text=self._shown(old, message))
            case ["search", wanted]:
                return await self._search(wanted, message, listening)
            case ["edit", rest] if (found := _NUMBERED.fullmatch(rest)) is not None:
                return await self._edit(MemoryId(int(found[1])), found[2], message, listening)
            case ["forget" | "edit", *_]:
                return t("console.need_number", self._locale)
            case ["handoff"]:
                return await hand_over(self._services, listening, self._locale)
            case ["health"]:
                return await self._health(listening)
            case _:
                return await self._show(message, listening)

    async def _teach(self, content: str, message: IncomingMessage, listening: Listening) -> str:
        server = await self._services.origins.of_server(listening.server)
        source = Source(
            origin=server.id, message_id=None, said_by=message.author.id, said_at=message.sent_at
        )
        new = NewMemory(
            scope=Scope.SERVER,
            server=listening.server,
            subject=None,
            lineage=listening.lineage,
            content=typed_text(content),
            source=source,
            by_person=True,
        )
        actor = Actor(user=message.author.id, is_manager=True)
        kept = await self._services.long_term.create(new, actor, listening)
        key = "console.taught_before" if kept.known_before else "console.taught"
        return t(key, self._locale)

    async def _show(self, message: IncomingMessage, listening: Listening) -> str:
        personal = await self._services.long_term.held_about(message.author.id, listening)
        server = await self._services.long_term.server_memories(listening)
        zone = await self._services.settings.zone(listening.server)
        told = await self._retold(message, listening, zone)
        more = [t("ui.memory.more", self._locale, count=told.more)] if told.more else []
        blocks = (
            ("console.about_you", [self._line(memory, message, zone) for memory in personal]),
            ("console.about_server", [self._line(memory, message, zone) for memory in server]),
            ("console.matters", told.matters),
            ("console.episodes", (*told.episodes, *more)),
        )
        lines = [
            line
            for heading, block in blocks
            if block
            for line in (t(heading, self._locale), *block)
        ]
        return "\n".join(lines) or t("console.nothing", self._locale)

    async def _search(self, words: str, message: IncomingMessage, listening: Listening) -> str:
        told = (await self._show(message, listening)).splitlines()
        found = matching(words, told, lambda line: line)
        return "\n".join(found) or t("ui.memory.not_found", self._locale, words=words)

    async def _edit(
        self, memory: MemoryId, content: str, message: IncomingMessage, listening: Listening
    ) -> str:
        old = await self._services.long_term.find(memory, listening)
        source = Source(
            origin=old.sources[0].origin,  # heard where it was heard before
            message_id=None,
            said_by=message.author.id,
            said_at=message.sent_at,
        )
        actor = Actor(user=message.author.id, is_manager=True)
        written = typed_text(content)
        await self._services.long_term.update(memory, written, actor, source, listening)
        return t("ui.memory.changed", self._locale, text=content)

    async def _undo(self, message: IncomingMessage) -> str:
        """Take back what the last reply changed in memory."""
        if self.last_change is None:
            raise MemoryRefused("undo_nothing")
        listening = await self._listening(message)
        actor = Actor(user=message.author.id, is_manager=True)
        undone = await self._services.long_term.undo(self.last_change, actor, listening)
        self.last_change = None
        return "\n".join(
            t(
                f"ui.undo.{one.kind}",
                self._locale,
                text=show_names(one.text, lambda user: self._name(user, message)),
            )
            for one in undone
        )

    async def _forget(self, message: IncomingMessage) -> str:
        """Forget what the last reply asked to confirm."""
        asked, self.asked_to_forget = self.asked_to_forget, None
        if asked is None:
            return t("console.need_number", self._locale)
        listening = await self._listening(message)
        actor = Actor(user=message.author.id, is_manager=True)
        forget = self._services.long_term.forget
        old = [await forget(memory, actor, listening) for memory in asked.memories]
        return "\n".join(
            t("console.forgot", self._locale, text=self._shown(one, message)) for one in old
        )

    async def _retold(
        self, message: IncomingMessage, listening: Listening, zone: ZoneInfo
    ) -> Retold:
        services = self._services
        persona = await services.personas.main(listening.server)
        reader = Reader(
            name_of=lambda user: self._name(user, message),
            persona=persona.id,
            persona_name=persona.name,
            now=message.sent_at,
            zone=zone,
            locale=self._locale,
        )
        return await retell(
            services.ledger, services.database, listening.audience, listening.lineage, reader
        )

    async def _health(self, listening: Listening) -> str:
        rows = await health_rows(self._services, listening, self._locale)
        lines = [
            t("console.health", self._locale, label=row.label, value=row.value) for row in rows
        ]
        return "\n".join(lines) or t("ui.health.unknown", self._locale)

    async def _begin_scene(self, message: IncomingMessage) -> str:
        origin = await self._services.origins.of(message.place)
        await self._services.handoff.begin_scene(origin.id, origin.guild_id)
        return t("ui.scene.begun", self._locale)

    def _line(self, memory: Memory, message: IncomingMessage, zone: ZoneInfo) -> str:
        age = naturalize_time(message.sent_at, memory.updated_at, zone, self._locale)
        text = self._shown(memory, message)
        return t("console.memory", self._locale, id=memory.id, text=text, age=age)

    def _shown(self, memory: Memory, message: IncomingMessage) -> str:
        return show_names(memory.content, lambda user: self._name(user, message))

    def _name(self, user: UserId, message: IncomingMessage) -> str:
        is_you = user == message.author.id
        return message.author.name if is_you else t("people.someone", self._locale)

    async def _features(self, words: list[str], message: IncomingMessage) -> str:
        guild = message.place.guild_key
        match words:
            case [name, ("on" | "off") as state] if name in set(Flag):
                await self._services.features.switch(
                    guild, Flag(name), enabled=state == "on", by=message.author.id
                )
            case [name, *_]:
                return t("console.unknown_feature", self._locale, name=name)
            case _:
                pass
        states = await self._services.features.states(guild)
        return "\n".join(
            t(
                "console.feature",
                self._locale,
                name=flag.value,
                state=t("console.on" if state.enabled else "console.off", self._locale),
            )
            for flag, state in states.items()
        )

    async def _privacy(self, words: list[str], message: IncomingMessage) -> str:
        if words:
            name = words[0].upper()
            if name not in PrivacyLevel.__members__:
                return t("console.unknown_level", self._locale)
            level = PrivacyLevel[name]
            await self._receiver.set_level(
                message.author, EVERYWHERE, level, seen_in=message.place.guild_key
            )
        current = self._services.levels.of(message.author.id, message.place.guild_key)
        key = "console.full" if current is PrivacyLevel.FULL else "console.level"
        return t(key, self._locale, level=current.name)

    async def _listening(self, message: IncomingMessage) -> Listening:
        origin = await self._services.origins.of(message.place)
        persona = await self._services.personas.main(message.place.guild_key)
        audience = await self._services.audiences.of_person(origin, message.author.id)
        return Listening(server=origin.guild_id, lineage=persona.lineage, audience=audience)

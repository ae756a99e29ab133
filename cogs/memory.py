"""/memory: what Madeleine keeps, seen and mended by people."""

from collections.abc import Sequence
from dataclasses import replace

from discord import app_commands
from discord.ext import commands

from bot.audience import DIRECT_MESSAGES
from bot.discord_io.client import MadeleineBot
from bot.discord_io.commands import (
    Interaction,
    actor_of,
    answer,
    guild_of,
    listening_of,
    locale_of,
    origin_of,
    person_of,
    require_keeper,
    require_manager,
    require_speaker,
)
from bot.discord_io.forgetting import are_numbers, ask_to_forget
from bot.discord_io.forms import Confirm, TextForm
from bot.discord_io.memory_lines import MemoryLines, mentioned, words_of
from bot.discord_io.translation import text
from bot.errors import UserError
from bot.handoff.by_hand import LONGEST_MATTER, MOST_LINES
from bot.i18n import t
from bot.identifiers import LedgerId, MemoryId
from bot.memory.buffers import BufferKey
from bot.memory.checks import check_rights, may_change
from bot.memory.long_term import Listening, Memory, NewMemory, Scope, Source
from bot.memory.references import referenced_people, show_names, typed_text
from bot.memory.searching import matching
from bot.turn.handoff_answers import hand_over, health_rows

ABOUT = [
    app_commands.Choice(name=text("memory.about.me"), value="me"),
    app_commands.Choice(name=text("memory.about.server"), value="server"),
]
TIERS = [
    app_commands.Choice(name=text(f"memory.tiers.{tier}"), value=tier)
    for tier in ("me", "server", "note", "episodes", "working")
]
ACTIONS = [
    app_commands.Choice(name=text(f"memory.actions.{action}"), value=action)
    for action in ("list", "define", "remove")
]
LONGEST_TEXT = 1_000
LONGEST_CHOICE = 100
MOST_CHOICES = 25
NOTE = "note"
"""Stands for the note on the conversation where memories are named by their numbers."""


class MemoryCommands(
    commands.GroupCog, group_name=text("memory.name"), group_description=text("memory.description")
):
    """Shows, teaches, mends and forgets memories, as they are heard where the command is given."""

    def __init__(self, bot: MadeleineBot) -> None:
        self._bot = bot

    # --- reading

    @app_commands.command(
        name=text("memory.show.name"), description=text("memory.show.description")
    )
    @app_commands.rename(tier=text("memory.show.tier.name"))
    @app_commands.describe(tier=text("memory.show.tier.description"))
    @app_commands.choices(tier=TIERS)
    async def show(self, interaction: Interaction, tier: str = "") -> None:
        await interaction.response.defer(ephemeral=True)
        lines = await self._lines(interaction)
        told = [line for block in await lines.blocks(tier) for line in block]
        nothing = t("ui.memory.nothing", locale_of(interaction))
        await answer(interaction, "\n".join(told) or nothing)

    @app_commands.command(
        name=text("memory.search.name"), description=text("memory.search.description")
    )
    @app_commands.rename(words=text("memory.search.words.name"))
    @app_commands.describe(words=text("memory.search.words.description"))
    async def search(
        self, interaction: Interaction, words: app_commands.Range[str, 1, 100]
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        lines = await self._lines(interaction)
        told = [line for block in await lines.blocks() for line in block[1:] or block]
        told += (await lines.working())[1:]
        found = matching(words, told, words_of)
        nothing = t("ui.memory.not_found", locale_of(interaction), words=words)
        await answer(interaction, "\n".join(found) or nothing)

    # --- teaching and mending

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
        new = NewMemory(
            scope=Scope.SERVER if about == "server" else Scope.PERSONAL,
            server=listening.server,
            subject=None if about == "server" else person.id,
            lineage=listening.lineage,
            content=typed_text(content.strip()),
            source=await self._source(interaction, listening),
            by_person=True,
        )
        actor = await actor_of(interaction, listening)
        kept = await self._bot.services.long_term.create(new, actor, listening)
        key = "ui.memory.known" if kept.known_before else "ui.memory.taught"
        await answer(interaction, t(key, locale_of(interaction)))

    @app_commands.command(
        name=text("memory.edit.name"), description=text("memory.edit.description")
    )
    @app_commands.rename(
        memory=text("memory.edit.id.name"), content=text("memory.edit.content.name")
    )
    @app_commands.describe(
        memory=text("memory.edit.id.description"),
        content=text("memory.edit.content.description"),
    )
    async def edit(
        self,
        interaction: Interaction,
        memory: str,
        content: app_commands.Range[str, 1, LONGEST_TEXT] | None = None,
    ) -> None:
        if content is None:  # a form must be the first answer, so that nothing can be deferred
            before = await self._present_text(interaction, memory)

            async def changed(form: Interaction, text: str) -> None:
                await self._change(form, memory, text)

            title = t("ui.memory.edit_title", locale_of(interaction))
            await interaction.response.send_modal(TextForm(title, before, changed))
            return
        await interaction.response.defer(ephemeral=True)
        await self._change(interaction, memory, content)

    @app_commands.command(
        name=text("memory.forget.name"), description=text("memory.forget.description")
    )
    @app_commands.rename(memories=text("memory.forget.id.name"))
    @app_commands.describe(memories=text("memory.forget.id.description"))
    async def forget(
        self, interaction: Interaction, memories: app_commands.Range[str, 1, 200]
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        listening = await listening_of(interaction)
        actor = await actor_of(interaction, listening)
        typed = memories.replace(",", " ").split()
        if not are_numbers(typed):
            await ask_to_forget(interaction, memories, actor)
            return
        find = self._bot.services.long_term.find
        numbers = [_number(word) for word in typed]
        found = [await find(number, listening) for number in dict.fromkeys(numbers)]
        for memory in found:
            check_rights(memory, actor)
        if len(found) == 1:
            await self._forget(interaction, found)
            return

        async def agreed(pressed: Interaction) -> None:
            await self._forget(pressed, found)

        locale = locale_of(interaction)
        lines = "\n".join(f"`{memory.id}` {mentioned(memory.content)}" for memory in found)
        question = t("ui.memory.forget_all", locale, count=len(found), memories=lines)
        await Confirm(t("ui.memory.forget_button", locale), agreed).send(interaction, question)

    @edit.autocomplete("memory")
    async def _editable(
        self, interaction: Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        note = app_commands.Choice(
            name=t("ui.memory.note_choice", locale_of(interaction)), value=NOTE
        )
        offered = await self._choices(interaction, typed, rewords=True)
        return [*offered[: MOST_CHOICES - 1], note]

    @forget.autocomplete("memories")
    async def _forgettable(
        self, interaction: Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        return await self._choices(interaction, typed, rewords=False)

    # --- managing

    @app_commands.command(
        name=text("memory.categories.name"), description=text("memory.categories.description")
    )
    @app_commands.rename(
        action=text("memory.categories.action.name"),
        label=text("memory.categories.label.name"),
        about=text("memory.categories.about.name"),
    )
    @app_commands.describe(
        action=text("memory.categories.action.description"),
        label=text("memory.categories.label.description"),
        about=text("memory.categories.about.description"),
    )
    @app_commands.choices(action=ACTIONS)
    async def categories(
        self,
        interaction: Interaction,
        action: str = "list",
        label: app_commands.Range[str, 1, 32] | None = None,
        about: app_commands.Range[str, 1, 100] | None = None,
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        guild, locale = guild_of(interaction), locale_of(interaction)
        categories = self._bot.services.categories
        done = ""
        if action != "list":
            require_manager(interaction)
            if action == "define":
                by = person_of(interaction).id
                defined = await categories.define(guild, label or "", about or "", by)
                done = t("ui.categories.defined", locale, label=defined.label)
            else:
                removed = await categories.remove(guild, label or "")
                done = t("ui.categories.removed", locale, label=removed.label)
        known = [
            t("ui.categories.line", locale, label=one.label, description=one.description)
            for one in await categories.of(guild)
        ]
        shown = known or [t("ui.categories.nothing", locale)]
        await answer(interaction, "\n".join(filter(None, (done, *shown))))

    @app_commands.command(name=text("memory.pin.name"), description=text("memory.pin.description"))
    @app_commands.rename(
        matter=text("memory.pin.text.name"),
        lines=text("memory.pin.lines.name"),
        close=text("memory.pin.close.name"),
    )
    @app_commands.describe(
        matter=text("memory.pin.text.description"),
        lines=text("memory.pin.lines.description"),
        close=text("memory.pin.close.description"),
    )
    async def pin(
        self,
        interaction: Interaction,
        matter: app_commands.Range[str, 1, LONGEST_MATTER] | None = None,
        lines: app_commands.Range[int, 1, MOST_LINES] = 3,
        close: app_commands.Range[int, 1, 2**53] | None = None,
    ) -> None:
        await interaction.response.defer(ephemeral=True)
        require_keeper(interaction)
        listening, locale = await listening_of(interaction), locale_of(interaction)
        services, done = self._bot.services, ""
        key = BufferKey(origin=listening.audience.here, lineage=listening.lineage)
        if matter is not None:
            entries = await services.working.entries(listening.audience, listening.lineage)
            await services.by_hand.pin(key, typed_text(matter), entries[-lines:])
            done = t("ui.pin.done", locale)
        elif close is not None:
            closed = await services.by_hand.close(key, LedgerId(close))
            done = t("ui.pin.closed", locale, text=mentioned(closed.content))
        known = await services.ledger.open_matters(listening.audience, listening.lineage)
        told = [
            t("ui.pin.line", locale, id=one.id, text=mentioned(one.content)) for one in known
        ] or [t("ui.pin.nothing", locale)]
        await answer(interaction, "\n".join(filter(None, (done, *told))))

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

    # --- what these share

    async def _lines(self, interaction: Interaction) -> MemoryLines:
        listening, locale = await listening_of(interaction), locale_of(interaction)
        asker = person_of(interaction).id
        return await MemoryLines.of(self._bot.services, listening, asker, locale)

    async def _source(self, interaction: Interaction, listening: Listening) -> Source:
        """What a person writes by command is told to the whole server."""
        origin = listening.audience.here
        if listening.server != DIRECT_MESSAGES:
            origin = (await self._bot.services.origins.of_server(listening.server)).id
        return Source(
            origin=origin,
            message_id=None,
            said_by=person_of(interaction).id,
            said_at=interaction.created_at,
        )

    async def _present_text(self, interaction: Interaction, memory: str) -> str:
        listening = await listening_of(interaction)
        if memory == NOTE:
            short_term = self._bot.services.short_term
            note = await short_term.of_room(listening.audience, listening.lineage)
            return mentioned(note.summary) if note else ""
        found = await self._bot.services.long_term.find(_number(memory), listening)
        check_rights(found, await actor_of(interaction, listening), rewords=True)
        return mentioned(found.content)

    async def _change(self, interaction: Interaction, memory: str, content: str) -> None:
        """Give a memory, or the note on the conversation, another text."""
        listening, locale = await listening_of(interaction), locale_of(interaction)
        services = self._bot.services
        written = typed_text(content.strip())
        if memory == NOTE:
            require_speaker(interaction)
            origin, by = await origin_of(interaction), person_of(interaction).id
            await services.short_term.edit(origin, listening.lineage, summary=written, by=by)
            await answer(interaction, t("ui.memory.noted", locale))
            return
        actor = await actor_of(interaction, listening)
        old = await services.long_term.find(_number(memory), listening)
        source = await self._source(interaction, listening)
        if all(known.origin != source.origin for known in old.sources):
            # It was not told to the whole server: nor is what it says now.
            source = replace(source, origin=listening.audience.here)
        await services.long_term.update(old.id, written, actor, source, listening)
        await answer(interaction, t("ui.memory.changed", locale, text=mentioned(written)))

    async def _forget(self, interaction: Interaction, memories: Sequence[Memory]) -> None:
        listening = await listening_of(interaction)
        actor = await actor_of(interaction, listening)
        gone: list[str] = []
        for memory in memories:
            old = await self._bot.services.long_term.forget(memory.id, actor, listening)
            gone.append(t("ui.memory.forgot", locale_of(interaction), text=mentioned(old.content)))
        await answer(interaction, "\n".join(gone))

    async def _choices(
        self, interaction: Interaction, typed: str, *, rewords: bool
    ) -> list[app_commands.Choice[str]]:
        """What this person may change here, the best fit first."""
        listening = await listening_of(interaction)
        actor = await actor_of(interaction, listening)
        long_term = self._bot.services.long_term
        heard = [
            *await long_term.held_about(actor.user, listening),
            *await long_term.server_memories(listening),
        ]
        mine = [memory for memory in heard if may_change(memory, actor, rewords=rewords)]
        people = {user for memory in mine for user in referenced_people(memory.content)}
        names = await self._bot.services.people.names(listening.server, people)
        someone = t("people.someone", locale_of(interaction))
        shown = [(m, show_names(m.content, lambda u: names.get(u, someone))) for m in mine]
        if typed.strip():
            shown = matching(typed, shown, lambda one: f"{one[0].id} {one[1]}")
        return [
            app_commands.Choice(name=f"{m.id} {said}"[:LONGEST_CHOICE], value=str(m.id))
            for m, said in shown[:MOST_CHOICES]
        ]


def _number(typed: str) -> MemoryId:
    """The number of a memory. Raises UserError where it is none."""
    if not (typed.isdecimal() and typed.isascii() and len(typed) <= 15):
        raise UserError("errors.command.memory_number", typed=typed[:40])
    return MemoryId(int(typed))


async def setup(bot: MadeleineBot) -> None:
    """Called by discord.py when the cog is loaded."""
    await bot.add_cog(MemoryCommands(bot))

"""Interactions: commands, menus, buttons, lists and forms, with who sees the answers."""

from __future__ import annotations

import discord
import pytest
from discord import app_commands

from tests.fakes import LoopbackDiscord, NotPossible, Permission, ResponseKind
from tests.fakes_selftest.conftest import ListeningClient


@pytest.fixture
async def commands(client: ListeningClient) -> app_commands.CommandTree:
    """A tree with commands of every shape, registered."""
    tree = client.tree
    memory = app_commands.Group(name="memory", description="What is remembered")
    pages = app_commands.Group(name="pages", description="Pages", parent=memory)

    @memory.command(description="Show it")
    async def show(interaction: discord.Interaction, person: discord.User, page: int = 1) -> None:
        await interaction.response.send_message(f"{person.name}, page {page}", ephemeral=True)

    @pages.command(description="Count them")
    async def count(interaction: discord.Interaction) -> None:
        await interaction.response.defer(ephemeral=True)
        await interaction.followup.send("many")
        await interaction.followup.send("very many", ephemeral=True)

    @memory.command(description="Find it")
    async def find(interaction: discord.Interaction, words: str) -> None:
        await interaction.response.send_message(f"looking for {words} ({interaction.locale})")

    @find.autocomplete("words")
    async def offer(
        interaction: discord.Interaction, current: str
    ) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=current.upper(), value=current)]

    @tree.command(description="Answer late")
    async def late(interaction: discord.Interaction) -> None:
        """The test answers."""

    tree.add_command(memory)
    await tree.sync()
    return tree


pytestmark = pytest.mark.usefixtures("commands")


async def test_an_ephemeral_answer_is_seen_by_one_person(server: LoopbackDiscord) -> None:
    bob = server.member("bob")
    used = await server.slash(server.alice, server.general, "memory show", person=bob, page=3)
    answer = await used.reply()

    assert answer.content == "bob, page 3"
    assert used.response_kind is ResponseKind.MESSAGE
    assert server.visible_to(server.alice, server.general) == [answer]
    assert server.visible_to(bob, server.general) == []


async def test_ephemeral_answers_are_not_in_the_history(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    used = await server.slash(server.alice, server.general, "memory show", person=server.alice)
    answer = await used.reply()
    channel = client.channel(server.general.id)
    assert [one async for one in channel.history()] == []
    with pytest.raises(discord.NotFound):
        await channel.fetch_message(answer.id)


async def test_an_ephemeral_answer_is_announced_as_if_it_were_a_direct_message(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await server.slash(server.alice, server.general, "memory show", person=server.alice)
    await server.wait_for(lambda: client.heard)
    assert client.heard[0].flags.ephemeral
    assert client.heard[0].guild is None
    assert client.heard[0].author == client.user


async def test_a_deferred_answer_fills_its_placeholder_first(server: LoopbackDiscord) -> None:
    used = await server.slash(server.alice, server.general, "memory pages count")
    first, second = await server.wait_for(lambda: used.messages[1:] and used.messages)

    assert used.response_kind is ResponseKind.DEFERRED_MESSAGE
    assert (first, first.content) == (used.original, "many")
    assert (used.followups, second.content) == ([second], "very many")
    assert first.visible_only_to is server.alice


async def test_the_locale_is_that_of_the_person(server: LoopbackDiscord) -> None:
    server.alice.locale = "pt-BR"
    used = await server.slash(server.alice, server.general, "memory find", words="tea")
    assert (await used.reply()).content == "looking for tea (pt-BR)"


async def test_autocomplete_offers_choices(server: LoopbackDiscord) -> None:
    typed = await server.autocomplete(
        server.alice, server.general, "memory find", "words", words="te"
    )
    assert await typed.choices() == [{"name": "TE", "value": "te"}]


async def test_commands_work_in_direct_messages(server: LoopbackDiscord) -> None:
    room = server.direct(server.alice)
    used = await server.slash(server.alice, room, "memory find", words="tea")
    await used.reply(containing="tea")


async def listening(client: ListeningClient, command: str) -> list[discord.Interaction]:
    """Collect the interactions of a command instead of answering them."""
    collected: list[discord.Interaction] = []

    @client.event
    async def on_interaction(interaction: discord.Interaction) -> None:
        if interaction.command and interaction.command.name == command:
            collected.append(interaction)

    return collected


async def test_a_second_answer_is_refused_with_40060(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    collected = await listening(client, "late")
    await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    await collected[0].response.send_message("once")
    collected[0].response._response_type = None
    with pytest.raises(discord.HTTPException, match="40060"):
        await collected[0].response.send_message("twice")


@pytest.mark.parametrize(("age", "accepted"), [(2.5, True), (3.1, False)])
async def test_an_answer_later_than_three_seconds_is_refused_with_10062(
    server: LoopbackDiscord, client: ListeningClient, age: float, *, accepted: bool
) -> None:
    collected = await listening(client, "late")
    used = await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    used.grow_older(age)
    if accepted:
        await collected[0].response.send_message("in time")
        return
    with pytest.raises(discord.NotFound, match="10062"):
        await collected[0].response.send_message("too late")
    assert not used.acknowledged


async def test_a_token_lives_for_fifteen_minutes(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    collected = await listening(client, "late")
    used = await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    await collected[0].response.defer()
    used.grow_older(14.9 * 60)
    await collected[0].edit_original_response(content="just in time")
    used.grow_older(6)
    used.grow_older(1)
    with pytest.raises(discord.HTTPException, match="50027"):
        await collected[0].followup.send("too late")


async def test_a_followup_before_any_answer_is_refused(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    collected = await listening(client, "late")
    await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    with pytest.raises(discord.NotFound, match="10015"):
        await collected[0].followup.send("too early")


async def test_the_original_answer_is_edited_read_and_deleted(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    collected = await listening(client, "late")
    used = await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    await collected[0].response.send_message("first", ephemeral=True)
    await collected[0].edit_original_response(content="second")
    assert (await collected[0].original_response()).content == "second"
    assert used.original.visible_only_to is server.alice

    await collected[0].delete_original_response()
    assert used.messages == []


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("unknown", {}),
        ("memory", {}),
        ("memory nothing", {}),
        ("memory show", {}),
        ("memory show", {"person": "bob"}),
        ("memory find", {"words": "tea", "more": 1}),
    ],
    ids=["no command", "a group", "no subcommand", "missing", "wrong type", "unknown option"],
)
async def test_what_the_client_would_not_send_is_not_possible(
    server: LoopbackDiscord, command: str, options: dict[str, object]
) -> None:
    with pytest.raises(NotPossible):
        await server.slash(server.alice, server.general, command, **options)


async def test_commands_need_the_right_to_use_them(server: LoopbackDiscord) -> None:
    server.overwrite(server.general, server.alice, deny=Permission.USE_APPLICATION_COMMANDS)
    with pytest.raises(NotPossible, match="may not use commands"):
        await server.slash(server.alice, server.general, "late")


async def test_commands_for_managers_are_offered_to_managers(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    @client.tree.command(description="For managers")
    @app_commands.default_permissions(manage_guild=True)
    @app_commands.guild_only()
    async def manage(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("managed")

    await client.tree.sync()
    with pytest.raises(NotPossible):
        await server.slash(server.alice, server.general, "manage")
    with pytest.raises(NotPossible):
        await server.slash(server.owner, server.direct(server.owner), "manage")
    server.assign_roles(server.alice, server.role("manager", Permission.MANAGE_GUILD))
    await (await server.slash(server.alice, server.general, "manage")).reply(containing="managed")


async def test_where_the_bot_is_no_member_a_user_installed_command_has_five_followups(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    @client.tree.command(description="Anywhere")
    @app_commands.allowed_installs(guilds=True, users=True)
    async def anywhere(interaction: discord.Interaction) -> None:
        """The test answers."""

    await client.tree.sync()
    collected = await listening(client, "anywhere")
    foreign = server.guild("foreign", with_bot=False)
    server.member(server.alice, guild=foreign)
    room = server.channel("room", guild=foreign)
    with pytest.raises(NotPossible, match="no member"):
        await server.slash(server.alice, room, "late")
    used = await server.slash(server.alice, room, "anywhere")
    await server.wait_for(lambda: collected)
    await collected[0].response.send_message("here too")
    for number in range(5):
        await collected[0].followup.send(str(number))
    with pytest.raises(discord.HTTPException, match="40094"):
        await collected[0].followup.send("one too many")
    assert len(used.messages) == 6


async def test_a_message_menu_reads_its_target_without_the_content_intent(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    @client.tree.context_menu(name="Why did you say that?")
    async def why(interaction: discord.Interaction, message: discord.Message) -> None:
        await interaction.response.send_message(message.content, ephemeral=True)

    await client.tree.sync()
    message = await server.say(server.alice, server.general, "the target")
    used = await server.message_menu(server.alice, message, "Why did you say that?")
    assert (await used.reply()).content == "the target"


async def test_a_user_menu_names_its_target(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    @client.tree.context_menu(name="Who is this?")
    async def who(interaction: discord.Interaction, member: discord.Member) -> None:
        await interaction.response.send_message(member.display_name)

    await client.tree.sync()
    used = await server.user_menu(server.alice, server.general, server.owner, "Who is this?")
    assert (await used.reply()).content == "Olga"


# --- components


class Panel(discord.ui.View):
    """A button, a disabled one, a list of words and a list of people."""

    def __init__(self) -> None:
        super().__init__(timeout=30)
        self.chosen: list[str] = []

    @discord.ui.button(label="Next", custom_id="panel:next")
    async def next_page(self, interaction: discord.Interaction, _: discord.ui.Button) -> None:
        await interaction.response.edit_message(content="page 2")

    @discord.ui.button(label="Later", disabled=True)
    async def later(self, interaction: discord.Interaction, _: discord.ui.Button) -> None:
        raise AssertionError("a disabled button cannot be pressed")

    @discord.ui.button(label="Rename")
    async def rename(self, interaction: discord.Interaction, _: discord.ui.Button) -> None:
        await interaction.response.send_modal(NameForm())

    @discord.ui.select(
        placeholder="Level", options=[discord.SelectOption(label=one) for one in ("OPEN", "FULL")]
    )
    async def level(self, interaction: discord.Interaction, menu: discord.ui.Select) -> None:
        self.chosen = menu.values
        await interaction.response.defer()

    @discord.ui.select(cls=discord.ui.UserSelect, placeholder="Person")
    async def person(self, interaction: discord.Interaction, menu: discord.ui.UserSelect) -> None:
        await interaction.response.send_message(menu.values[0].name, ephemeral=True)


class NameForm(discord.ui.Modal, title="A new name"):
    name = discord.ui.TextInput(label="Name", max_length=10)

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"now {self.name.value}", ephemeral=True)


@pytest.fixture
async def panel(server: LoopbackDiscord, client: ListeningClient) -> Panel:
    panel = Panel()
    await client.channel(server.general.id).send("page 1", view=panel)
    return panel


@pytest.mark.parametrize("name", ["Next", "panel:next"], ids=["label", "custom id"])
async def test_a_button_changes_its_message(
    server: LoopbackDiscord, panel: Panel, name: str
) -> None:
    message = server.bot_messages(server.general)[0]
    clicked = await server.click(server.alice, message, name)
    assert await clicked.answered() is ResponseKind.UPDATE
    assert message.content == "page 2"


@pytest.mark.parametrize("name", ["Later", "Nowhere", "Level"])
async def test_a_button_that_cannot_be_pressed_is_not_possible(
    server: LoopbackDiscord, panel: Panel, name: str
) -> None:
    message = server.bot_messages(server.general)[0]
    with pytest.raises(NotPossible):
        await server.click(server.alice, message, name)


async def test_nobody_presses_what_they_do_not_see(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    collected = await listening(client, "late")
    used = await server.slash(server.alice, server.general, "late")
    await server.wait_for(lambda: collected)
    await collected[0].response.send_message("for you", view=Panel(), ephemeral=True)
    await server.click(server.alice, used.original, "Next")
    with pytest.raises(NotPossible, match="does not see"):
        await server.click(server.owner, used.original, "Next")


async def test_choices_of_a_list_arrive(server: LoopbackDiscord, panel: Panel) -> None:
    message = server.bot_messages(server.general)[0]
    await (await server.select(server.alice, message, "Level", "FULL")).answered()
    assert panel.chosen == ["FULL"]
    used = await server.select(server.alice, message, "Person", server.owner)
    assert (await used.reply()).content == "owner"
    with pytest.raises(NotPossible, match="offers"):
        await server.select(server.alice, message, "Level", "HALF")
    with pytest.raises(NotPossible, match="values"):
        await server.select(server.alice, message, "Level", "OPEN", "FULL")


async def test_a_form_is_filled_in(server: LoopbackDiscord, panel: Panel) -> None:
    message = server.bot_messages(server.general)[0]
    opened = await server.click(server.alice, message, "Rename")
    assert (await opened.modal())["title"] == "A new name"
    with pytest.raises(NotPossible, match="10 characters"):
        await server.submit_modal(opened, {"Name": "x" * 11})
    submitted = await server.submit_modal(opened, {"Name": "Ada"})
    assert (await submitted.reply()).content == "now Ada"


async def test_components_are_held_to_their_limits(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="one", custom_id="same"))
    view.add_item(discord.ui.Button(label="two", custom_id="same"))
    with pytest.raises(discord.HTTPException, match="duplicated"):
        await client.channel(server.general.id).send("twins", view=view)

"""Registering commands: Discord's rules for payloads, translations included, and its counts."""

from __future__ import annotations

from typing import Any

import discord
import pytest
from discord import app_commands

from tests.fakes import LoopbackDiscord
from tests.fakes_selftest.conftest import ListeningClient


def command(**changes: Any) -> dict[str, Any]:
    return {"name": "memory", "description": "What is remembered", "type": 1, **changes}


def option(**changes: Any) -> dict[str, Any]:
    return {"name": "words", "description": "What to look for", "type": 3, **changes}


async def put(client: ListeningClient, *commands: dict[str, Any]) -> list[dict[str, Any]]:
    """What discord.py sends to register commands, without its own checks."""
    return await client.http.bulk_upsert_global_commands(client.application_id, list(commands))


@pytest.mark.parametrize(
    "fine",
    [
        command(name="a" * 32),
        command(name="記憶"),
        command(name="ความจำ"),
        command(description="d" * 100),
        command(name_localizations={"ja": "記憶", "pt-BR": "memória", "es-419": "memoria"}),
        command(options=[option(name=f"o{n}") for n in range(25)]),
        command(options=[option(choices=[{"name": "n" * 100, "value": "v" * 100}])]),
        command(type=3, name="Why did you say that?", description=""),
    ],
)
async def test_what_discord_accepts_is_registered(
    server: LoopbackDiscord, client: ListeningClient, fine: dict[str, Any]
) -> None:
    await put(client, fine)
    assert server.commands.everywhere[0]["name"] == fine["name"]
    assert server.commands.everywhere[0].get("name_localizations") == fine.get("name_localizations")


@pytest.mark.parametrize(
    "wrong",
    [
        command(name="a" * 33),
        command(name=""),
        command(name="Memory"),
        command(name="two words"),
        command(description=""),
        command(description="d" * 101),
        command(name_localizations={"pt-BR": "Memória"}),
        command(name_localizations={"ja": "記" * 33}),
        command(name_localizations={"xx": "memory"}),
        command(description_localizations={"ja": "d" * 101}),
        command(description_localizations={"ja": ""}),
        command(options=[option(name=f"o{n}") for n in range(26)]),
        command(options=[option(), option()]),
        command(options=[option(description_localizations={"de": "d" * 101})]),
        command(options=[option(), option(name="more", required=True)]),
        command(options=[option(choices=[{"name": "n", "value": "v"}] * 26)]),
        command(options=[option(choices=[{"name": "n" * 101, "value": "v"}])]),
        command(options=[option(choices=[{"name": "n", "value": "v"}], autocomplete=True)]),
        command(options=[option(), option(name="sub", type=1)]),
        command(type=3, name="Why?", description="not here"),
        command(
            options=[
                option(name=f"o{n}", choices=[{"name": "n" * 100, "value": "v" * 100}] * 2)
                for n in range(20)
            ]
        ),
    ],
)
async def test_what_discord_refuses_is_refused(
    server: LoopbackDiscord, client: ListeningClient, wrong: dict[str, Any]
) -> None:
    with pytest.raises(discord.HTTPException, match="50035"):
        await put(client, wrong)
    assert server.commands.everywhere == []


@pytest.mark.parametrize(("longest", "accepted"), [(99, True), (100, False)])
async def test_a_command_has_8000_characters_counting_the_longest_translation(
    server: LoopbackDiscord, client: ListeningClient, longest: int, *, accepted: bool
) -> None:
    def choices(count: int) -> list[dict[str, str]]:
        return [{"name": f"{n:0100}", "value": f"{n:0100}"} for n in range(count)]

    translated = {"de": "d" * longest, "ja": "j" * 50}
    full = command(
        name="m",
        description="d",
        options=[
            option(name="a", description="d", choices=choices(25)),  # 5,002 characters
            option(name="b", description="d", choices=choices(14)),  # 2,802
            option(name="c", description="d" * 93),  # 94
            option(name="e", description="d", description_localizations=translated),
        ],
    )
    if accepted:
        await put(client, full)
        return
    with pytest.raises(discord.HTTPException, match="8000"):
        await put(client, full)


@pytest.mark.parametrize(("kind", "limit"), [(1, 100), (2, 15), (3, 15)])
async def test_there_is_room_for_so_many_commands(
    server: LoopbackDiscord, client: ListeningClient, kind: int, limit: int
) -> None:
    described = {"description": "d" if kind == 1 else ""}
    commands = [command(type=kind, name=f"c{n}", **described) for n in range(limit + 1)]
    await put(client, *commands[:limit])
    with pytest.raises(discord.HTTPException, match="30032"):
        await put(client, *commands)


async def test_names_are_unique_in_each_kind(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await put(client, command(), command(type=3, description=""))
    with pytest.raises(discord.HTTPException, match="unique"):
        await put(client, command(), command())


async def test_puts_and_creates_are_counted(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    first = await put(client, command())
    again = await put(client, command(description="Otherwise"), command(name="new"))
    assert first[0]["id"] == again[0]["id"]
    assert server.commands.puts == 2
    assert server.commands.creates == {None: 2}


async def test_commands_of_a_guild_come_before_global_ones(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    for guild in (None, discord.Object(server.home.id)):

        @client.tree.command(name="where", description="Where", guild=guild)
        async def where(interaction: discord.Interaction) -> None:
            await interaction.response.send_message(str(interaction.command_failed))

        await client.tree.sync(guild=guild)
    own = server.commands.of(server.home.id)[0]
    assert server.commands.find("where", server.home.id) is own
    assert server.commands.find("where", None) is server.commands.everywhere[0]


async def test_translations_come_back_only_when_asked_for(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    await put(client, command(name_localizations={"ja": "記憶"}))
    route = discord.http.Route("GET", f"/applications/{client.application_id}/commands")
    plain = await client.http.request(route)
    translated = await client.http.request(route, params={"with_localizations": "true"})
    assert "name_localizations" not in plain[0]
    assert translated[0]["name_localizations"] == {"ja": "記憶"}


async def test_discord_py_reports_the_refusal_of_a_translation(
    server: LoopbackDiscord, client: ListeningClient
) -> None:
    class Shouting(app_commands.Translator):
        async def translate(
            self, string: app_commands.locale_str, locale: discord.Locale, context: object
        ) -> str | None:
            return "MEMORY" if locale is discord.Locale.german else None

    @client.tree.command(name=app_commands.locale_str("memory"), description="d")
    async def memory(interaction: discord.Interaction) -> None:
        """Never used."""

    await client.tree.set_translator(Shouting())
    with pytest.raises(app_commands.CommandSyncFailure, match="name is invalid"):
        await client.tree.sync()

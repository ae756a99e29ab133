"""A second process against the loopback Discord."""

from __future__ import annotations

import asyncio
import sys

from tests.fakes import LoopbackDiscord

# What child.py does, with a small client in place of the bot.
ECHO = """
import os, sys, discord
from tests.fakes.discord.pointing import discord_py_pointed_at

client = discord.Client(intents=discord.Intents(guilds=True, messages=True, message_content=True))

@client.event
async def on_message(message):
    if message.author != client.user:
        await message.channel.send("from afar: " + message.content)

with discord_py_pointed_at(sys.argv[1], sys.argv[2]):
    client.run(os.environ["DISCORD_TOKEN"], log_handler=None)
"""


async def test_a_child_process_connects_is_killed_and_connects_again() -> None:
    async with LoopbackDiscord() as server:
        for _ in range(2):
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ECHO, server.api_url, server.gateway.url),
                env=server.environment(),
            )
            await server.wait_until_connected()
            question = await server.say(server.alice, server.general, "hello")
            await server.wait_for_reply(
                server.general, after=question, containing="from afar: hello"
            )
            child.kill()
            await child.wait()
            await server.wait_for(lambda: not server.gateway.is_connected)
        assert server.gateway.identifies == 2


async def test_the_bots_own_command_line_names_the_loopback_addresses() -> None:
    async with LoopbackDiscord() as server:
        command = server.child_command("run", "--config", "c.toml")
    assert command[:3] == [sys.executable, "-m", "tests.fakes.discord.child"]
    assert command[3:5] == [server.api_url, server.gateway.url]
    assert command[5:] == ["--", "run", "--config", "c.toml"]
    assert server.environment(TZ="UTC")["DISCORD_TOKEN"] == server.token

"""The least a Discord bot can do: answer each mention. A ceiling to measure by."""

import asyncio
import sys

import discord

from tests.fakes.discord.pointing import discord_py_pointed_at


async def main(api_url: str, gateway_url: str, token: str) -> None:
    intents = discord.Intents(guilds=True, guild_messages=True, message_content=True)
    client = discord.Client(intents=intents, allowed_mentions=discord.AllowedMentions.none())

    @client.event
    async def on_message(message: discord.Message) -> None:
        if client.user in message.mentions:
            await message.channel.send("pong")

    with discord_py_pointed_at(api_url, gateway_url):
        await client.start(token)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))

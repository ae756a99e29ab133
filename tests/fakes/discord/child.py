"""The bot as a process of its own, pointed at a loopback Discord.

    python -m tests.fakes.discord.child API_URL GATEWAY_URL -- run --config FILE

The arguments after `--` are the bot's own. `LoopbackDiscord.child_command` writes this line.
"""

from __future__ import annotations

import sys

from bot.__main__ import main as bot_main
from tests.fakes.discord.pointing import discord_py_pointed_at


def main(argv: list[str]) -> int:
    api_url, gateway_url, separator, *bot_argv = argv
    if separator != "--":
        raise SystemExit("usage: python -m tests.fakes.discord.child API_URL GATEWAY_URL -- ARGS")
    with discord_py_pointed_at(api_url, gateway_url):
        return bot_main(bot_argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

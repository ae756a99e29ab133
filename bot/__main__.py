"""The command line: `madeleine run`, `try` and `check`."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bot.check import check
from bot.config import Config, describe_fault, load_config
from bot.errors import ConfigError, StartupError
from bot.i18n import t
from bot.run import run_discord
from bot.try_console import try_console
from bot.try_model import ModelWishes

CANNOT_START = 2


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 well, 1 `check` found something, 2 cannot start."""
    arguments = _parser().parse_args(argv)
    environ = dict(os.environ)
    if arguments.command == "try" and arguments.data is not None:
        environ["MADELEINE__STORAGE__PATH"] = str(arguments.data / "madeleine.db")
    locale = "en-US"
    try:
        config = load_config(arguments.config, environ)
        locale = config.locale.default
        _log_to_stderr(config, quiet=arguments.command == "try")
        return asyncio.run(_run(arguments, config, environ))
    except ConfigError as error:
        for fault in error.faults:
            print(describe_fault(fault), file=sys.stderr)
    except StartupError as error:
        print(t(error.key, locale, **error.params), file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return CANNOT_START


async def _run(arguments: argparse.Namespace, config: Config, environ: Mapping[str, str]) -> int:
    match arguments.command:
        case "run":
            return await run_discord(config, environ)
        case "check":
            return await check(config, environ)
        case _:
            wishes = ModelWishes(
                base_url=arguments.base_url,
                model=arguments.model,
                model_path=arguments.model_path,
                agrees=arguments.yes,
            )
            return await try_console(config, environ, wishes, script=arguments.script)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="madeleine", description="A chatbot that remembers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="answer in Discord")
    run.add_argument("--config", type=Path, required=True, metavar="FILE", help="the config file")
    checks = commands.add_parser("check", help="say what is missing, and how to mend it")
    checks.add_argument("--config", type=Path, metavar="FILE", help="the config file")
    tries = commands.add_parser("try", help="talk in this terminal: no token, no account")
    tries.add_argument("--config", type=Path, metavar="FILE", help="a config file, if you have one")
    tries.add_argument("--data", type=Path, metavar="DIR", help="where memory is kept")
    tries.add_argument("--base-url", metavar="URL", help="a model server, such as .../v1")
    tries.add_argument("--model", metavar="NAME", help="the model on that server")
    tries.add_argument("--model-path", type=Path, metavar="FILE", help="a GGUF file to run here")
    tries.add_argument("--script", type=Path, metavar="FILE", help="play JSON lines from a file")
    tries.add_argument("--yes", action="store_true", help="agree to download the small model")
    return parser


def _log_to_stderr(config: Config, *, quiet: bool) -> None:
    """In a chat in the terminal only what is wrong may interrupt."""
    logging.basicConfig(
        level="ERROR" if quiet else config.logging.level,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )


if __name__ == "__main__":
    sys.exit(main())

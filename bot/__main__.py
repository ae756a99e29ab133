"""The command line: `madeleine run`, `try`, `check` and `restore-run`."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bot.check import check
from bot.clock import SystemClock
from bot.config import Config, describe_fault, load_config
from bot.errors import ConfigError, StartupError, StorageUnavailable, UserError
from bot.handoff.restore import restore_run
from bot.i18n import t
from bot.identifiers import RunId
from bot.privacy.levels import Levels, PrivacyLevel
from bot.run import run_discord
from bot.storage.database import Database
from bot.try_console import try_console
from bot.try_model import ModelWishes

log = logging.getLogger(__name__)

REFUSED = 1
CANNOT_START = 2
INTERRUPTED = 130


class EventFormatter(logging.Formatter):
    """An event with its fields behind it: `late_writes_lost writes=3`."""

    _own = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime"))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        fields = (f"{key}={value}" for key, value in vars(record).items() if key not in self._own)
        return " ".join((super().formatMessage(record), *fields))


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit code.

    0 well, 1 `check` found something or `restore-run` may not, 2 cannot start.
    """
    arguments = _parser().parse_args(argv)
    environ = dict(os.environ)
    if arguments.command in ("try", "restore-run") and arguments.data is not None:
        environ["MADELEINE__STORAGE__PATH"] = str(arguments.data / "madeleine.db")
    locale = "en-US"
    try:
        config = load_config(arguments.config, environ)
        locale = config.locale.default
        _log_to_stderr(config, quiet=arguments.command in ("try", "check"))
        return asyncio.run(_run(arguments, config, environ))
    except ConfigError as error:
        for fault in error.faults:
            print(describe_fault(fault), file=sys.stderr)
    except StartupError as error:
        print(t(error.key, locale, **error.params), file=sys.stderr)
    except KeyboardInterrupt:
        is_chat = arguments.command == "try" and arguments.script is None
        return 0 if is_chat else INTERRUPTED  # Ctrl-C is one way to leave a chat
    return CANNOT_START


async def _run(arguments: argparse.Namespace, config: Config, environ: Mapping[str, str]) -> int:
    match arguments.command:
        case "run":
            return await run_discord(config, environ)
        case "check":
            return await check(config, environ)
        case "restore-run":
            return await _restore_run(config, RunId(arguments.run))
        case _:
            wishes = ModelWishes(
                base_url=arguments.base_url,
                model=arguments.model,
                model_path=arguments.model_path,
                agrees=arguments.yes,
            )
            return await try_console(config, environ, wishes, script=arguments.script)


async def _restore_run(config: Config, run: RunId) -> int:
    path, clock = config.storage.database_path, SystemClock()
    try:
        if not path.exists():  # opening it would make one
            raise UserError("errors.restore.unknown", run=run)
        database = await Database.open(path, busy_timeout_ms=config.storage.busy_timeout_ms)
        try:
            levels = Levels(database, clock, PrivacyLevel[config.privacy.default_level])
            await levels.load()
            days = config.handoff.archive_days
            restored = await restore_run(database, clock, levels, run, days=days)
        finally:
            await database.close()
    except StorageUnavailable as error:
        raise StartupError(
            "errors.storage.cannot_write", path=str(path), reason=error.reason
        ) from error
    except UserError as error:
        print(t(error.key, config.locale.default, **error.params), file=sys.stderr)
        return REFUSED
    counted = {"entries": restored.entries, "episodes": restored.episodes}
    log.info("handoff_undone", extra={"run": run, **counted})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="madeleine", description="A chatbot that remembers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="answer in Discord")
    run.add_argument("--config", type=Path, required=True, metavar="FILE", help="the config file")
    checks = commands.add_parser("check", help="say what is missing, and how to mend it")
    checks.add_argument("--config", type=Path, metavar="FILE", help="the config file")
    restores = commands.add_parser("restore-run", help="undo a handoff: what it took comes back")
    restores.add_argument("run", metavar="ID", help="the run, as the log names it")
    restores.add_argument("--config", type=Path, metavar="FILE", help="the config file")
    restores.add_argument("--data", type=Path, metavar="DIR", help="where memory is kept")
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
    """A chat in the terminal, or a table of findings, is interrupted only by what is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level="ERROR" if quiet else config.logging.level, handlers=[handler])


if __name__ == "__main__":
    sys.exit(main())

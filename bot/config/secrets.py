"""Secrets come from the environment or a file, and stay wrapped: their repr shows nothing."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from bot.config.faults import HIDDEN
from bot.config.providers import ProviderConfig, RouteConfig
from bot.config.reading import read_text
from bot.config.sections import Config
from bot.errors import ConfigError, ConfigFault


def resolve_secret(
    environ: Mapping[str, str], *, key: str, variable: str | None, file: Path | None = None
) -> SecretStr | None:
    """The secret, stripped: the variable's where it is set, else the file's, else None.

    ConfigError, naming `key`, where the file cannot be read or what is there cannot be a secret.
    """
    if variable and (text := environ.get(variable, "").strip()):
        source = f"environment variable {variable}"
    elif file is not None:
        text, source = read_text(file, key=key).strip(), str(file)
    else:
        return None
    # Anything else would break the HTTP header it is sent in, in a message that quotes it.
    if not text or not all("!" <= letter <= "~" for letter in text):
        problem = "must be one line of plain letters, digits and signs, without spaces"
        raise ConfigError((ConfigFault(key=key, value=HIDDEN, problem=problem, source=source),))
    return SecretStr(text)


def find_token(config: Config, environ: Mapping[str, str]) -> SecretStr | None:
    """The bot's token, or None; ConfigError where what is there cannot be one."""
    variable, file = config.discord.token_env, config.discord.token_file
    return resolve_secret(environ, key="discord.token_file", variable=variable, file=file)


def resolve_token(config: Config, environ: Mapping[str, str]) -> SecretStr:
    """The bot's token; ConfigError that says where to put it where there is none."""
    token = find_token(config, environ)
    if token is None:
        problem = (
            "is needed to connect: put the bot's token into the environment variable"
            f" {config.discord.token_env}, or into a file that discord.token_file names"
        )
        raise ConfigError(
            (ConfigFault(key="token", value="(not set)", problem=problem, source="environment"),)
        )
    return token


def resolve_api_key(provider: ProviderConfig, environ: Mapping[str, str]) -> SecretStr | None:
    """The provider's key; None for a server that wants none."""
    return resolve_secret(environ, key="api_key_env", variable=provider.api_key_env)


def require_chat(config: Config) -> RouteConfig:
    """The chat route; ConfigError that says what to write where there is none."""
    if config.llm.chat is None:
        problem = "is needed: name a model server with base_url and model in [llm.chat]"
        raise ConfigError(
            (ConfigFault(key="llm.chat", value="(not set)", problem=problem, source="config"),)
        )
    return config.llm.chat


def run_faults(config: Config, environ: Mapping[str, str]) -> tuple[ConfigFault, ...]:
    """What is still missing to connect to Discord, beyond a config that is right in itself."""
    faults: tuple[ConfigFault, ...] = ()
    try:
        resolve_token(config, environ)
    except ConfigError as error:
        faults += error.faults
    try:
        require_chat(config)
    except ConfigError as error:
        faults += error.faults
    return faults

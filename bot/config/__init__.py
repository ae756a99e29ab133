"""The configuration: one TOML file, then the environment; secrets from environment or file only.

Faults are written for the operator who starts the program, before any locale is known: in English.
"""

from bot.config.faults import describe_fault
from bot.config.loading import load_config
from bot.config.providers import LlmConfig, ProviderConfig, RouteConfig, ToolStyle
from bot.config.secrets import (
    find_token,
    require_chat,
    resolve_api_key,
    resolve_secret,
    resolve_token,
    run_faults,
)
from bot.config.sections import (
    BudgetsConfig,
    Config,
    ContextConfig,
    DeliveryConfig,
    DiscordConfig,
    FeaturesConfig,
    HandoffConfig,
    LocaleConfig,
    LoggingConfig,
    MemoryConfig,
    PrivacyConfig,
    RecallConfig,
    StorageConfig,
    TurnConfig,
)

__all__ = [
    "BudgetsConfig",
    "Config",
    "ContextConfig",
    "DeliveryConfig",
    "DiscordConfig",
    "FeaturesConfig",
    "HandoffConfig",
    "LlmConfig",
    "LocaleConfig",
    "LoggingConfig",
    "MemoryConfig",
    "PrivacyConfig",
    "ProviderConfig",
    "RecallConfig",
    "RouteConfig",
    "StorageConfig",
    "ToolStyle",
    "TurnConfig",
    "describe_fault",
    "find_token",
    "load_config",
    "require_chat",
    "resolve_api_key",
    "resolve_secret",
    "resolve_token",
    "run_faults",
]

"""Every other table of the config; `config.example.toml` says what each key means."""

from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import Field

from bot.config.providers import LlmConfig
from bot.config.values import (
    Currency,
    FilePath,
    Fraction,
    LocaleName,
    Micros,
    Section,
    Similarity,
    VariableName,
    ZoneName,
)


class DiscordConfig(Section):
    token_env: VariableName = "DISCORD_TOKEN"  # noqa: S105 - a name, not the secret
    token_file: FilePath | None = None
    sync_commands: bool = True
    message_content_intent: bool = True
    reply_ping: bool = False
    answer_other_bots: bool = False
    shutdown_turns_ms: int = Field(default=2_500, ge=0, le=60_000)
    shutdown_cancel_ms: int = Field(default=1_000, ge=0, le=60_000)
    shutdown_close_ms: int = Field(default=1_000, ge=0, le=60_000)


class StorageConfig(Section):
    path: FilePath | None = None
    readers: int = Field(default=2, ge=1, le=8)
    queue_size: int = Field(default=1_024, ge=1, le=100_000)
    batch: int = Field(default=256, ge=1, le=10_000)
    busy_timeout_ms: int = Field(default=5_000, ge=0, le=60_000)
    capture_queue_size: int = Field(default=1_000, ge=1, le=100_000)

    @property
    def database_path(self) -> Path:
        """`path`, or where it is not set: madeleine.db in the user's data folder."""
        return self.path or platformdirs.user_data_path("madeleine") / "madeleine.db"


class TurnConfig(Section):
    timeout_s: int = Field(default=180, ge=1, le=3_600)
    max_passes: int = Field(default=8, ge=1, le=100)
    max_tool_calls: int = Field(default=16, ge=1, le=1_000)
    tool_timeout_s: int = Field(default=30, ge=1, le=600)
    max_failures_in_a_row: int = Field(default=3, ge=1, le=100)
    queue_size: int = Field(default=10, ge=0, le=1_000)
    joined_max: int = Field(default=10, ge=0, le=100)
    bot_exchanges: int = Field(default=3, ge=0, le=100)


class ContextConfig(Section):
    reply_reserve_tokens: int = Field(default=1_024, ge=16, le=100_000)
    reply_reserve_fraction: Annotated[float, Field(ge=0.01, le=0.9)] = 0.25
    persona_fraction: Annotated[float, Field(ge=0.01, le=0.9)] = 0.25
    working_memory_fraction: Annotated[float, Field(ge=0.01, le=1)] = 0.6
    server_memories_tokens: int = Field(default=400, ge=0, le=100_000)
    personal_memories_tokens: int = Field(default=500, ge=0, le=100_000)
    recalled_tokens: int = Field(default=600, ge=0, le=100_000)
    memories_together_tokens: int = Field(default=1_500, ge=0, le=300_000)
    short_term_tokens: int = Field(default=500, ge=0, le=100_000)
    matters_tokens: int = Field(default=200, ge=0, le=100_000)
    full_blocks_from_tokens: int = Field(default=8_192, ge=1_024, le=1_000_000)
    unshortened_entries: int = Field(default=8, ge=1, le=100)
    other_channels: int = Field(default=3, ge=0, le=50)
    ring_messages: int = Field(default=12, ge=1, le=100)
    fetched_messages: int = Field(default=12, ge=1, le=100)
    active_channel_hours: int = Field(default=24, ge=1, le=720)


class MemoryConfig(Section):
    stm_messages: int = Field(default=10, ge=1, le=100)
    stm_raw_ttl_hours: int = Field(default=12, ge=1, le=720)
    stm_summary_ttl_hours: int = Field(default=24, ge=1, le=720)
    stm_elsewhere_hours: int = Field(default=24, ge=0, le=720)
    stm_max_entries: int = Field(default=10_000, ge=1, le=1_000_000)
    stm_retention_days: int = Field(default=90, ge=1, le=3_650)
    stm_max_characters: int = Field(default=1_500, ge=1, le=10_000)
    stm_max_categories: int = Field(default=5, ge=0, le=25)
    nudge_after_turns: int = Field(default=5, ge=1, le=1_000)
    ltm_max_characters: int = Field(default=1_000, ge=1, le=10_000)
    ltm_per_partition: int = Field(default=100, ge=1, le=10_000)
    target_similarity: Similarity = 90
    target_margin: int = Field(default=5, ge=0, le=50)
    target_candidates: int = Field(default=3, ge=1, le=25)
    duplicate_similarity: Similarity = 92
    duplicate_nearest: int = Field(default=50, ge=1, le=1_000)
    undo_days: int = Field(default=30, ge=1, le=365)
    undo_forgotten_hours: int = Field(default=24, ge=1, le=168)


class HandoffConfig(Section):
    ceiling_fraction: Fraction = 0.6
    early_fraction: Annotated[float, Field(ge=0.1, le=1)] = 0.75
    kept_fraction: Annotated[float, Field(ge=0.1, le=0.9)] = 0.5
    velocity_entries: int = Field(default=20, ge=1, le=1_000)
    scene_silence_min: int = Field(default=45, ge=1, le=10_080)
    idle_turns: int = Field(default=5, ge=1, le=1_000)
    idle_turn_min: int = Field(default=6, ge=1, le=1_440)
    sweep_min: int = Field(default=6, ge=1, le=1_440)
    keep_entries: int = Field(default=8, ge=1, le=1_000)
    fresh_min: int = Field(default=30, ge=0, le=1_440)
    velocity_candidates: int = Field(default=12, ge=1, le=1_000)
    voluntary_candidates: int = Field(default=4, ge=1, le=1_000)
    ceiling_candidates: int = Field(default=1, ge=1, le=1_000)
    crowded_entries: int = Field(default=40, ge=1, le=10_000)
    crowded_keep_entries: int = Field(default=20, ge=1, le=10_000)
    wait_s: int = Field(default=8, ge=0, le=120)
    run_timeout_s: int = Field(default=300, ge=1, le=3_600)
    runs_per_provider: int = Field(default=2, ge=1, le=100)
    one_slot_quiet_s: int = Field(default=60, ge=0, le=3_600)
    window_fraction: Annotated[float, Field(ge=0.05, le=0.9)] = 0.4
    max_candidates: int = Field(default=60, ge=1, le=1_000)
    repair_calls: int = Field(default=1, ge=0, le=10)
    omit_all_entries: int = Field(default=8, ge=0, le=1_000)
    back_off_min: tuple[Annotated[int, Field(ge=1, le=10_080)], ...] = Field(
        default=(1, 5, 25, 360), min_length=1, max_length=20, strict=False
    )
    involuntary_retry_min: int = Field(default=5, ge=1, le=1_440)
    archive_days: int = Field(default=14, ge=1, le=3_650)
    pin_days: int = Field(default=7, ge=1, le=3_650)
    max_matters: int = Field(default=6, ge=1, le=100)


class RecallConfig(Section):
    vector_wait_ms: int = Field(default=150, ge=0, le=10_000)
    hourly_decay: Annotated[float, Field(ge=0.5, le=1)] = 0.99


class PrivacyConfig(Section):
    default_level: Literal["OPEN", "PARTIAL", "FULL"] = "OPEN"
    roles_cache_min: int = Field(default=10, ge=0, le=1_440)
    erase_after_days: int = Field(default=30, ge=0, le=365)
    erase_slice_rows: int = Field(default=500, ge=1, le=100_000)
    backup_days: int = Field(default=30, ge=1, le=3_650)


class DeliveryConfig(Section):
    edit_interval_ms: int = Field(default=1_000, ge=0, le=60_000)
    message_characters: int = Field(default=2_000, ge=300, le=2_000)
    max_messages: int = Field(default=8, ge=1, le=50)
    send_retries: int = Field(default=3, ge=0, le=10)


class BudgetsConfig(Section):
    """Amounts for a day; 0 is no limit. Money is integer micro-units of `currency`."""

    currency: Currency = "USD"
    person_cooldown_s: int = Field(default=0, ge=0, le=86_400)
    guild_cooldown_s: int = Field(default=0, ge=0, le=86_400)
    person_daily_tokens: int = Field(default=0, ge=0, le=10**12)
    guild_daily_tokens: int = Field(default=0, ge=0, le=10**12)
    person_daily_money: Micros = 0
    guild_daily_money: Micros = 0


class FeaturesConfig(Section):
    """What a feature is where a server has not said otherwise."""

    self_teaching_enabled: bool = True
    short_term_memory_enabled: bool = True
    handoff_enabled: bool = True
    recall_enabled: bool = True
    streaming_enabled: bool = True
    notices_enabled: bool = True
    images_enabled: bool = False
    member_teaching_enabled: bool = True


class LocaleConfig(Section):
    default: LocaleName = "en-US"
    zone: ZoneName = "UTC"


class LoggingConfig(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class Config(Section):
    """The whole configuration; `Config()` is the defaults."""

    discord: DiscordConfig = DiscordConfig()
    storage: StorageConfig = StorageConfig()
    llm: LlmConfig = LlmConfig()
    turn: TurnConfig = TurnConfig()
    context: ContextConfig = ContextConfig()
    memory: MemoryConfig = MemoryConfig()
    handoff: HandoffConfig = HandoffConfig()
    recall: RecallConfig = RecallConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    budgets: BudgetsConfig = BudgetsConfig()
    features: FeaturesConfig = FeaturesConfig()
    locale: LocaleConfig = LocaleConfig()
    logging: LoggingConfig = LoggingConfig()

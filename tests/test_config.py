"""The configuration: its defaults, its faults, and what never leaks from it."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.config import (
    Config,
    ProviderConfig,
    RouteConfig,
    describe_fault,
    load_config,
    require_chat,
    resolve_api_key,
    resolve_secret,
    resolve_token,
    run_faults,
)
from bot.config.checks import AT_MOST
from bot.config.reading import MAX_BYTES
from bot.config.schema import Kind, dotted, kind_at, known_keys
from bot.errors import ConfigError, ConfigFault

Write = Callable[[str | bytes], Path]

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
TOKEN = ".".join(("MTIzNDU2Nzg5MDEyMzQ1Njc4", "Gabcde", "-".join(["s3cr3t"] * 4)))
CHAT = '[llm.chat]\nbase_url = "http://127.0.0.1:1234/v1"\nmodel = "m"\n'

# Every default that the behaviour page names, by its section there.
BEHAVIOUR = {
    # 2: when it answers
    "turn.bot_exchanges": 3, "turn.queue_size": 10, "discord.answer_other_bots": False,
    "budgets.person_cooldown_s": 0, "budgets.guild_cooldown_s": 0, "budgets.person_daily_tokens": 0,
    "budgets.guild_daily_tokens": 0, "budgets.person_daily_money": 0,
    "budgets.guild_daily_money": 0,
    # 3: context
    "context.active_channel_hours": 24, "context.ring_messages": 12, "context.fetched_messages": 12,
    "context.other_channels": 3, "context.reply_reserve_tokens": 1_024,
    "context.reply_reserve_fraction": 1 / 4, "context.persona_fraction": 1 / 4,
    "context.server_memories_tokens": 400, "context.personal_memories_tokens": 500,
    "context.recalled_tokens": 600, "context.memories_together_tokens": 1_500,
    "context.short_term_tokens": 500, "context.matters_tokens": 200,
    "context.working_memory_fraction": 0.6, "context.full_blocks_from_tokens": 8_192,
    "context.unshortened_entries": 8, "llm.token_ratio_min": 0.6, "llm.token_ratio_max": 1.8,
    "llm.token_ratio_start": 1.1,
    # 5: short-term memory
    "memory.stm_messages": 10, "memory.stm_raw_ttl_hours": 12, "memory.stm_summary_ttl_hours": 24,
    "memory.stm_elsewhere_hours": 24, "memory.stm_max_entries": 10_000,
    "memory.stm_retention_days": 90, "memory.stm_max_characters": 1_500,
    "memory.stm_max_categories": 5, "memory.nudge_after_turns": 5,
    # 6: long-term memory
    "memory.ltm_max_characters": 1_000, "memory.ltm_per_partition": 100,
    "memory.target_similarity": 90, "memory.target_candidates": 3, "memory.duplicate_nearest": 50,
    "memory.duplicate_similarity": 92, "memory.undo_days": 30, "memory.undo_forgotten_hours": 24,
    # 7: tool loop
    "turn.max_passes": 8, "turn.max_tool_calls": 16, "turn.tool_timeout_s": 30,
    "llm.stream_stall_s": 120, "turn.timeout_s": 180, "turn.max_failures_in_a_row": 3,
    "llm.empty_answer_retries": 2, "llm.length_continuations": 1,
    # 8: privacy
    "privacy.default_level": "OPEN", "privacy.roles_cache_min": 10, "privacy.erase_slice_rows": 500,
    "privacy.erase_after_days": 30, "privacy.backup_days": 30,
    # 9: working memory, handoff, ledger
    "handoff.keep_entries": 8, "handoff.ceiling_fraction": 0.6, "handoff.velocity_entries": 20,
    "handoff.scene_silence_min": 45, "handoff.idle_turns": 5, "handoff.idle_turn_min": 6,
    "handoff.sweep_min": 6, "handoff.fresh_min": 30, "handoff.velocity_candidates": 12,
    "handoff.voluntary_candidates": 4, "handoff.ceiling_candidates": 1,
    "handoff.crowded_entries": 40, "handoff.crowded_keep_entries": 20, "handoff.wait_s": 8,
    "handoff.runs_per_provider": 2, "handoff.one_slot_quiet_s": 60, "handoff.window_fraction": 0.4,
    "handoff.max_candidates": 60, "handoff.repair_calls": 1, "handoff.omit_all_entries": 8,
    "handoff.back_off_min": (1, 5, 25, 6 * 60), "handoff.involuntary_retry_min": 5,
    "handoff.archive_days": 14, "handoff.pin_days": 7, "handoff.max_matters": 6,
    "recall.hourly_decay": 0.99, "recall.vector_wait_ms": 150,
    # 10 to 12: zones, delivery, features
    "locale.zone": "UTC", "locale.default": "en-US", "delivery.edit_interval_ms": 1_000,
    "delivery.message_characters": 2_000, "delivery.max_messages": 8,
    "features.self_teaching_enabled": True, "features.short_term_memory_enabled": True,
    "features.handoff_enabled": True, "features.recall_enabled": True,
    "features.streaming_enabled": True, "features.notices_enabled": True,
    "features.images_enabled": False, "features.member_teaching_enabled": True,
    # The storage page.
    "storage.batch": 256, "storage.busy_timeout_ms": 5_000,
    "discord.token_env": "DISCORD_TOKEN",
}  # fmt: skip


def value_at(config: Config, key: str) -> object:
    return reduce(getattr, key.split("."), config)


def faults_of(path: Path | None, environ: Mapping[str, str] | None = None) -> list[ConfigFault]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ or {})
    return list(caught.value.faults)


def problems_of(path: Path) -> set[str]:
    try:
        load_config(path, {})
    except ConfigError as error:
        return {fault.problem for fault in error.faults}
    return set()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    path = tmp_path / "config.toml"

    def to_file(text: str | bytes) -> Path:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to_file


@pytest.mark.parametrize(("key", "default"), BEHAVIOUR.items())
def test_each_default_of_the_behaviour_page_is_a_key(key: str, default: object) -> None:
    assert value_at(Config(), key) == default


def test_the_example_is_exactly_the_defaults() -> None:
    written = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert written == Config().model_dump(mode="json", exclude_none=True)
    assert load_config(EXAMPLE, {}) == Config()


def test_the_example_says_what_every_key_means() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = {}
    section = ""
    for before, line in zip(["", *lines], lines, strict=False):
        if header := re.fullmatch(r"(?:# )?\[([a-z.]+)\]", line):
            section = header[1]
        elif key := re.match(r"(?:# )?([a-z_]+) = ", line):
            found[f"{section}.{key[1]}"] = before
    keys = {dotted(key) for key in known_keys() if not kind_at(key).section}
    assert set(found) == keys
    for key, comment in found.items():
        assert re.match(r"# .{8,}[^=]$", comment), f"{key} has no line of meaning"


def test_the_example_is_still_right_with_every_line_in_use(write: Write) -> None:
    text = re.sub(r"(?m)^# (\[llm|[a-z_]+ = )", r"\1", EXAMPLE.read_text(encoding="utf-8"))
    config = load_config(write(text), {"LLM_API_KEY": "k"})
    for route in (config.llm.chat, config.llm.handoff, config.llm.embeddings):
        bare = {"base_url": route.base_url, "model": route.model, "api_key_env": "LLM_API_KEY"}
        assert route == RouteConfig(**bare, short_term_memory_tool=True)
    assert config.discord.token_file == Path("/run/secrets/discord_token")


def test_without_file_and_environment_the_config_is_the_defaults_and_cannot_change() -> None:
    assert load_config(None, {"PATH": "/bin", "MADELEINE_OTHER": "x"}) == Config()
    with pytest.raises(ValidationError):
        Config().memory.stm_messages = 3


def test_the_database_lies_in_the_users_data_folder_unless_named(write: Write) -> None:
    assert Config().storage.database_path.name == "madeleine.db"
    named = load_config(write('[storage]\npath = "~/m.db"'), {}).storage.database_path
    assert named == Path.home() / "m.db"


@pytest.mark.parametrize(
    ("host", "setting", "takes"),
    [
        ("api.novelai.net", None, False),
        ("NovelAI.net.", None, False),
        ("novelai.net", True, True),
        ("notnovelai.net", None, True),
        ("novelai.net.example.org", None, True),
        ("127.0.0.1:1234", None, True),
        ("127.0.0.1:1234", False, False),
    ],
)
def test_novelai_takes_no_tool(host: str, setting: bool | None, takes: bool) -> None:
    given = {"base_url": f"https://{host}/v1", "short_term_memory_tool": setting}
    assert ProviderConfig(**given, model="m").takes_short_term_memory_tool is takes


def test_a_route_asks_its_own_provider_first(write: Write) -> None:
    path = write(CHAT + '[[llm.chat.fallbacks]]\nbase_url = "http://b/v1/"\nmodel = "two"\n')
    chat = load_config(path, {}).llm.chat
    assert [provider.model for provider in chat.providers] == ["m", "two"]
    assert chat.providers[1].base_url == "http://b/v1"


NUMBERS = [
    (dotted(key), kind)
    for key in known_keys()
    if (kind := kind_at(key)).form in (int, float) and kind.section is None
]


@pytest.mark.parametrize(("key", "kind"), NUMBERS, ids=[key for key, _ in NUMBERS])
def test_every_number_has_a_range_and_names_it(key: str, kind: Kind, write: Write) -> None:
    section, _, name = key.rpartition(".")
    chat = CHAT if section == "llm.chat" else CHAT.replace("chat", section.removeprefix("llm."))
    head = chat if section in ("llm.chat", "llm.handoff", "llm.embeddings") else f"[{section}]\n"
    step = 1 if kind.form is int else 0.001
    low, high = kind.limit("ge"), kind.limit("le")
    problem = f"must be a {'whole ' if step == 1 else ''}number from {low:,} to {high:,}"
    for value in (low - step, high + step):
        [fault] = faults_of(write(f"{head}{name} = {value}"))
        assert (fault.key, fault.problem) == (key, problem)
        assert fault.value == (f"{value:,}" if step == 1 else str(value))
    for value in (low, high):
        assert problem not in problems_of(write(f"{head}{name} = {value}"))


def test_zero_switches_the_ceiling_off(write: Write) -> None:
    assert load_config(write("[handoff]\nceiling_fraction = 0"), {}).handoff.ceiling_fraction == 0


@pytest.mark.parametrize(
    ("text", "key", "value", "problem"),
    [
        ("[memory]\nstm_messages = 2.5", "memory.stm_messages", "2.5", "whole number"),
        ("[memory]\nstm_messages = '9'", "memory.stm_messages", '"9"', "whole number"),
        ("[memory]\nstm_messages = true", "memory.stm_messages", "true", "whole number"),
        ("[memory]\nstm_messages = []", "memory.stm_messages", "a list", "whole number"),
        ("[memory]\nstm_messages = {}", "memory.stm_messages", "a table", "whole number"),
        ("[recall]\nhourly_decay = nan", "recall.hourly_decay", "nan", "number from 0.5 to 1"),
        ("[recall]\nhourly_decay = 1e999", "recall.hourly_decay", "inf", "number from 0.5 to 1"),
        ("[logging]\nlevel = 'LOUD'", "logging.level", '"LOUD"', "one of DEBUG, INFO"),
        ("[features]\nimages_enabled = 1", "features.images_enabled", "1", "true or false"),
        ("[locale]\nzone = 'Mars/Base'", "locale.zone", '"Mars/Base"', "such as UTC"),
        ("[locale]\nzone = '../etc'", "locale.zone", '"../etc"', "such as UTC"),
        ("[locale]\ndefault = 'tlh'", "locale.default", '"tlh"', "one of bg"),
        ("[storage]\npath = ''", "storage.path", '""', "path of a file"),
        ("[storage]\npath = 7", "storage.path", "7", "path of a file"),
        ('[storage]\npath = "a\\u0000b"', "storage.path", '"a\\u0000b"', "path of a file"),
        ("memory = 3", "memory", "3", "must be a table"),
        ("[handoff]\nback_off_min = []", "handoff.back_off_min", "a list", "list of 1 to 20"),
        ("[handoff]\nback_off_min = [1, 0]", "handoff.back_off_min[1]", "0", "1 to 10,080"),
        ("[budgets]\ncurrency = 'euro'", "budgets.currency", '"euro"', "three capitals"),
        ("[discord]\ntoken_env = 'lower'", "discord.token_env", "(hidden)", "in capitals"),
        (CHAT + "tools = 'magic'", "llm.chat.tools", '"magic"', "one of native, structured, none"),
        (CHAT + "fallbacks = 3", "llm.chat.fallbacks", "3", "list of 0 to 10"),
        (CHAT + "[llm.chat.extra]\na = 1", "llm.chat.extra", "a table", "not a known key"),
        ("[llm.chat]\nbase_url = 'http://x'", "llm.chat.model", "(not set)", "is missing"),
        (CHAT.replace('"m"', '""'), "llm.chat.model", '""', "1 to 200 characters"),
        (CHAT + "api_key_env = 'UNSET'", "llm.chat.api_key_env", '"UNSET"', "is not set"),
    ],
)
def test_a_fault_says_what_to_do(
    text: str, key: str, value: str, problem: str, write: Write
) -> None:
    [fault] = faults_of(write(text))
    assert (fault.key, fault.value) == (key, value)
    assert problem in fault.problem


BAD_URLS = ["", "ftp://x", "http://", "http://[::1", "http://x:99999", "http://x:0", "http://a b"]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_cannot_work_is_refused(url: str, write: Write) -> None:
    [fault] = faults_of(write(CHAT.replace("http://127.0.0.1:1234/v1", url)))
    assert (fault.key, "http://127.0.0.1:11434/v1" in fault.problem) == ("llm.chat.base_url", True)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("[handoff]\nkeep_entrys = 4", "handoff.keep_entries"),
        ("[handof]\nkeep_entries = 4", "handoff"),
        ("[memory]\nstm_raw_ttl = 4", "memory.stm_raw_ttl_hours"),
        ("[turn]\nStream_Stall_S = 4", "llm.stream_stall_s"),
        (CHAT + "fallbacks = [{modle = 'n'}]", "llm.chat.fallbacks[0].model"),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(written: str, near: str, write: Write) -> None:
    fault = faults_of(write(written))[-1]
    assert fault.problem == f"is not a known key; the nearest is {near}"


@pytest.mark.parametrize(("small", "large"), AT_MOST)
def test_one_number_is_at_most_the_other(small: str, large: str, write: Write) -> None:
    limit = value_at(Config(), large)
    section, _, name = small.partition(".")
    problem = f"must be at most {large}, which is {limit:,}"
    over = limit + (1 if isinstance(limit, int) else 0.01)
    faults = faults_of(write(f"[{section}]\n{name} = {over}"))
    assert (small, problem) in [(fault.key, fault.problem) for fault in faults]
    assert problem not in problems_of(write(f"[{section}]\n{name} = {limit}"))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[context]\nreply_reserve_fraction = 0.8", "context.reply_reserve_fraction"),
        ("[handoff]\nback_off_min = [5, 1]", "handoff.back_off_min"),
        (CHAT + "[budgets]\nguild_daily_money = 1", "budgets.guild_daily_money"),
        (CHAT + "max_context = 2047\n[context]\nreply_reserve_tokens=2048", "llm.chat.max_context"),
    ],
)  # fmt: skip
def test_other_rules_between_keys_hold(text: str, key: str, write: Write) -> None:
    assert [fault.key for fault in faults_of(write(text))] == [key]


def test_just_inside_the_other_rules_is_fine(write: Write) -> None:
    window = "max_context = 2048\n[context]\nreply_reserve_tokens = 2048"
    load_config(write(f"{CHAT}{window}\nreply_reserve_fraction = 0.74"), {})
    load_config(write(f"{CHAT}input_price = 1\n[budgets]\nguild_daily_money = 1"), {})
    load_config(write("[handoff]\nback_off_min = [5, 5]"), {})


def test_a_rule_is_silent_about_a_number_that_is_already_a_fault(write: Write) -> None:
    path = write("[handoff]\nvelocity_entries = 'x'\nkeep_entries = 30\ncrowded_keep_entries = 30")
    assert [fault.key for fault in faults_of(path)] == ["handoff.velocity_entries"]


@pytest.mark.parametrize(
    ("data", "problem", "place"),
    [
        (b"a = 1\nb = \n", "is not valid TOML", " line 2"),
        (b"a = 1\na = 2\n", "is not valid TOML", " line 2"),
        (b"a = 'x", "is not valid TOML", " line 1"),
        (b"# ok\n# caf\xe9\n", "is not UTF-8 text", " line 2"),
        ("[turn]".encode("utf-16"), "is not UTF-8 text", " line 1"),
        (b"a = " + b"[" * 9_000, "is nested too deep", ""),
        (b"a = " + b"9" * 9_000, "a number that is too long", ""),
        (b"#" * (MAX_BYTES + 1), "is larger than", ""),
    ],
    ids=["syntax", "twice", "end", "latin-1", "utf-16", "deep", "long", "large"],
)
def test_bad_files_are_one_fault(data: bytes, problem: str, place: str, write: Write) -> None:
    path = write(data)
    [fault] = faults_of(path)
    assert problem in fault.problem
    assert (fault.key, fault.source) == ("config", f"{path}{place}")


def test_a_missing_file_a_folder_and_a_bad_name_are_faults(tmp_path: Path) -> None:
    assert faults_of(tmp_path / "none.toml")[0].problem == "does not exist"
    assert faults_of(tmp_path)[0].problem == "is a folder, not a file"
    assert "cannot be read" in faults_of(Path("a\0b"))[0].problem
    assert "cannot be read" in faults_of(tmp_path / ("x" * 5_000))[0].problem


def test_the_largest_file_a_byte_order_mark_and_windows_line_ends_are_fine(write: Write) -> None:
    assert load_config(write(b"#" * MAX_BYTES), {}) == Config()
    path = write(b"\xef\xbb\xbf[turn]\r\nqueue_size = 4\r\n")
    assert load_config(path, {}).turn.queue_size == 4


def test_all_faults_are_told_at_once_with_their_lines(write: Write) -> None:
    path = write(
        "[handoff]\nkeep_entries = 0\n\n[turn]\nqueue = 3\n[storage]\nbatch = 9_000\n"
        + CHAT
        + "tools = 'x'\n[[llm.chat.fallbacks]]\nmodel = 'm'\n"
    )
    environ = {"MADELEINE__DELIVERY__MAX_MESSAGES": "99", "MADELEINE__NONSENSE": "1"}
    places = [(fault.key, fault.source) for fault in faults_of(path, environ)]
    assert places == [
        ("handoff.keep_entries", f"{path} line 2"),
        ("turn.queue", f"{path} line 5"),
        ("storage.batch", f"{path} line 7"),
        ("llm.chat.tools", f"{path} line 11"),
        ("llm.chat.fallbacks[0].base_url", f"{path} line 12"),
        ("nonsense", "environment variable MADELEINE__NONSENSE"),
        ("delivery.max_messages", "environment variable MADELEINE__DELIVERY__MAX_MESSAGES"),
    ]


def test_a_fault_reads_as_one_line(write: Write) -> None:
    line = describe_fault(faults_of(path := write("[turn]\nqueue_size = -1"))[0])
    assert line == f"{path} line 2: turn.queue_size = -1: must be a whole number from 0 to 1,000"


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("STORAGE__PATH", " /data/m.db ", "storage.path", Path("/data/m.db")),
        ("TURN__QUEUE_SIZE", "0", "turn.queue_size", 0),
        ("RECALL__HOURLY_DECAY", "1", "recall.hourly_decay", 1.0),
        ("FEATURES__IMAGES_ENABLED", "Yes", "features.images_enabled", True),
        ("FEATURES__RECALL_ENABLED", "0", "features.recall_enabled", False),
        ("HANDOFF__BACK_OFF_MIN", "2, 3", "handoff.back_off_min", (2, 3)),
        ("HANDOFF__BACK_OFF_MIN", "[2,\n3]", "handoff.back_off_min", (2, 3)),
        ("LLM__TOKEN_RATIO_START", "", "llm.token_ratio_start", 1.1),
    ],
)
def test_a_variable_is_read_by_type(name: str, text: str, key: str, value: object) -> None:
    assert value_at(load_config(None, {f"MADELEINE__{name}": text}), key) == value


def test_the_environment_beats_the_file(write: Write) -> None:
    path = write(CHAT + "[turn]\nqueue_size = 3")
    environ = {"MADELEINE__TURN__QUEUE_SIZE": "4", "MADELEINE__LLM__CHAT__MODEL": "other"}
    config = load_config(path, environ)
    assert (config.turn.queue_size, config.llm.chat.model) == (4, "other")
    assert config.llm.chat.base_url == "http://127.0.0.1:1234/v1"


def test_the_environment_alone_makes_a_route_with_fallbacks() -> None:
    environ = {
        "MADELEINE__LLM__CHAT__BASE_URL": "http://a/v1",
        "MADELEINE__LLM__CHAT__MODEL": "one",
        "MADELEINE__LLM__CHAT__SHORT_TERM_MEMORY_TOOL": "off",
        "MADELEINE__LLM__CHAT__FALLBACKS": '[{"base_url": "http://b", "model": "two"}]',
    }
    chat = require_chat(load_config(None, environ))
    assert (chat.model, chat.short_term_memory_tool) == ("one", False)
    assert chat.fallbacks == (ProviderConfig(base_url="http://b", model="two"),)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("TURN__QUEUE_SIZE", "many", "whole number from 0 to 1,000"),
        ("TURN__QUEUE_SIZE", "9" * 5_000, "whole number from 0 to 1,000"),
        ("FEATURES__IMAGES_ENABLED", "maybe", "true or false"),
        ("HANDOFF__BACK_OFF_MIN", "1, x", "whole number from 1 to 10,080"),
        ("HANDOFF__BACK_OFF_MIN", "[1", "must be a list"),
        ("TURN", "3", "is a table"),
        ("TURN__QUEUE", "3", "the nearest is turn.queue_size"),
        ("LLM__CHAT__MODEL", "m", "is missing"),
        ("STORAGE__PATH", "\udcff", "is not UTF-8 text"),
    ],
)
def test_a_wrong_variable_is_named(name: str, text: str, problem: str) -> None:
    [fault] = faults_of(None, {f"MADELEINE__{name}": text})
    assert problem in fault.problem
    assert fault.source == f"environment variable MADELEINE__{name}"


@pytest.mark.parametrize(
    ("written", "micros"),
    [('"0.15 USD"', 150_000), ('"12USD"', 12_000_000), ('"0.000001 USD"', 1), ("150000", 150_000)],
)
def test_prices_are_read_as_integer_micro_units(written: str, micros: int, write: Write) -> None:
    assert load_config(write(f"{CHAT}input_price = {written}"), {}).llm.chat.input_price == micros


@pytest.mark.parametrize("written", ['"0.15"', "0.15", '"0.1234567 USD"', '"-1 USD"', "true", '""'])
def test_an_amount_without_currency_or_too_fine_is_refused(written: str, write: Write) -> None:
    [fault] = faults_of(write(f"{CHAT}input_price = {written}"))
    assert '"0.15 USD"' in fault.problem


def test_all_money_is_in_one_currency(write: Write) -> None:
    euro = write(f'{CHAT}input_price = "1 EUR"\n[budgets]\ncurrency = "EUR"')
    assert load_config(euro, {}).llm.chat.input_price == 1_000_000
    [fault] = faults_of(write(f'{CHAT}input_price = "1 EUR"'))
    assert "must be in USD" in fault.problem


@pytest.mark.parametrize(
    "text",
    [
        f"[discord]\ntoken = '{TOKEN}'",
        f"[discord]\ntoken_env = '{TOKEN}'",
        f"[discord]\nbot_tokn = '{TOKEN}'",
        f"[discord]\nsync_commands = '{TOKEN}'",
        f"['{TOKEN}']\na = 1",
        f"[discord.auth]\nToken = '{TOKEN}'",
        f"[discord]\ntoken = {{ value = '{TOKEN}' }}",
        f"api_key = '{TOKEN}'",
        f"{CHAT}api_key = '{TOKEN}'",
        f"{CHAT}api_key_env = '{TOKEN}'",
        f"{CHAT}fallbacks = [{{ api_key = '{TOKEN}' }}]",
        CHAT.replace("127.0.0.1", f"user:{TOKEN}@host"),
        CHAT.replace("/v1", f"/v1?key={TOKEN}"),
        f"[discord]\ntoken = '{TOKEN}",
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_shown(text: str, write: Write) -> None:
    faults = faults_of(write(text))
    told = repr(faults) + "".join(map(describe_fault, faults))
    assert not any(part in told for part in TOKEN.split("."))
    assert not re.search("s3cr3t", told, re.IGNORECASE)


def test_a_short_secret_is_hidden_and_told_where_to_go(write: Write) -> None:
    environ = {"MADELEINE__LLM__CHAT__API_KEY": "tulip", "MADELEINE__DISCORD__TOKEN": "tulip"}
    text = "[discord]\npassword = 'tulip'\npasswort = 'tulip'"
    password, misspelt, token, key = faults_of(write(text), environ)
    assert "DISCORD_TOKEN" in password.problem
    assert "DISCORD_TOKEN" in token.problem
    assert "api_key_env" in key.problem
    assert "tulip" not in repr((password, misspelt, token, key))


def test_the_token_comes_from_the_environment_then_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"\ufeff {TOKEN}\n", encoding="utf-8")
    config = load_config(None, {"MADELEINE__DISCORD__TOKEN_FILE": str(file)})
    assert resolve_token(config, {}).get_secret_value() == TOKEN
    assert resolve_token(config, {"DISCORD_TOKEN": " "}).get_secret_value() == TOKEN
    assert resolve_token(config, {"DISCORD_TOKEN": " first\n"}).get_secret_value() == "first"


def test_the_name_of_the_tokens_variable_can_be_chosen() -> None:
    config = load_config(None, {"MADELEINE__DISCORD__TOKEN_ENV": "OTHER"})
    environ = {"OTHER": "chosen", "DISCORD_TOKEN": "not this"}
    token = resolve_token(config, environ)
    assert token.get_secret_value() == "chosen"
    assert "chosen" not in f"{token} {token!r} {config!r}"


@pytest.mark.parametrize("content", ["", " \n", "two words", "a\nb", "sénha", "a\x00b"])
def test_what_cannot_be_a_secret_is_refused_unseen(content: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        resolve_secret({}, key="discord.token_file", variable="UNSET", file=file)
    [fault] = caught.value.faults
    assert (fault.value, fault.source) == ("(hidden)", str(file))


def test_a_token_file_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    config = load_config(None, {"MADELEINE__DISCORD__TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(ConfigError) as caught:
        resolve_token(config, {})
    assert caught.value.faults[0].key == "discord.token_file"


def test_a_provider_has_the_window_of_the_behaviour_page_and_a_key_only_where_named() -> None:
    plain = ProviderConfig(base_url="http://x/v1", model="m")
    assert plain.max_context == 32_768
    keyed = plain.model_copy(update={"api_key_env": "KEY"})
    assert resolve_api_key(plain, {"KEY": "k"}) is None
    assert resolve_api_key(keyed, {"KEY": "k"}).get_secret_value() == "k"


def test_what_is_missing_to_run_is_told_at_once(write: Write) -> None:
    assert [fault.key for fault in run_faults(Config(), {})] == ["token", "llm.chat"]
    assert run_faults(load_config(write(CHAT), {}), {"DISCORD_TOKEN": "t"}) == ()
    with pytest.raises(ConfigError):
        require_chat(Config())


TEXTS = st.text(max_size=8) | st.sampled_from(["http://x/v1", "m", "1 EUR", TOKEN])
SCALARS = st.booleans() | st.integers() | st.floats() | st.just(2**2_000) | TEXTS
NAMES = st.sampled_from(["base_url", "model", "token", "a b", "é"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
KEYS = st.sampled_from([*(dotted(key) for key in known_keys()), "llm.chat.fallbacks", "x", "a.b.c"])


def as_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, int) and abs(value) > 2**64:
        return hex(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower()


def load_anything(data: bytes, environ: Mapping[str, str], folder: Path) -> None:
    path = folder / "any.toml"
    path.write_bytes(data)
    try:
        load_config(path, environ)
    except ConfigError as error:
        for fault in error.faults:
            describe_fault(fault).encode()  # can be printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("anything")


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_no_bytes_raise_anything_but_a_config_error(data: bytes, folder: Path) -> None:
    load_anything(data, {}, folder)


@given(pairs=st.dictionaries(KEYS, VALUES, max_size=6))
def test_no_values_raise_anything_else(pairs: dict[str, object], folder: Path) -> None:
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in pairs.items())
    load_anything(text.encode("utf-8", "replace"), {}, folder)


VARIABLES = (KEYS | TEXTS).map(lambda key: "MADELEINE__" + key.replace(".", "__").upper())
ANY_TEXT = st.text(st.characters(codec=None), max_size=12) | VALUES.map(json.dumps)


@given(environ=st.dictionaries(VARIABLES, ANY_TEXT, max_size=4))
def test_no_environment_raises_anything_else(environ: dict[str, str], folder: Path) -> None:
    load_anything(b"llm = 3\n[turn]\nqueue_size = 4", environ, folder)


def test_a_key_of_very_many_parts_is_one_fault(write: Write) -> None:
    [fault] = faults_of(write("turn." + ".".join("a" * 2_000) + " = 1"))
    assert fault.key == "turn.a"

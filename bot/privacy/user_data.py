"""What every column of the file holds: whom erasing and exporting must look for, and where."""

from collections.abc import Iterator, Mapping
from enum import StrEnum


class Holds(StrEnum):
    """What a column holds, as far as a person's data goes."""

    PERSON = "person"
    """An id of a person, or a key that can be one."""
    TEXT = "text"
    """Words that people or the model wrote, or what was computed from them."""
    NEUTRAL = "neutral"
    """Neither: numbers, times, codes, places."""


_PERSON: Mapping[str, str] = {
    "people": "user_id",
    "person_names": "user_id",
    "guild_settings": "changed_by",
    "feature_flags": "changed_by",
    "privacy_levels": "user_id",
    "turns": "user_id",
    "buffer_entries": "author_id",
    "ledger_sources": "said_by",
    "ledger_quotes": "said_by",
    "ledger_people": "user_id",
    "ledger_versions": "people",
    "entry_archive": "author_id",
    "short_term_memories": "written_by",
    "short_term_categories": "changed_by",
    "server_memories": "author_id",
    "personal_memories": "user_id author_id",
    "memory_sources": "said_by",
    "memory_versions": "changed_by",
    "version_sources": "said_by",
    "memory_changes": "user_id former",
    "embeddings": "partition",
    "usage": "user_id",
    "audit": "actor_id subject",
    "erasures": "subject requested_by",
}
_TEXT: Mapping[str, str] = {
    "people": "display_name",
    "person_names": "name",
    "personas": "name avatar_url prompt trigger_words sample_lines",
    "guild_settings": "value",
    "buffer_entries": "content",
    "handoff_runs": "reason",
    "ledger_entries": "content",
    "ledger_quotes": "content",
    "ledger_versions": "content",
    "entry_archive": "content",
    "short_term_memories": "summary categories",
    "short_term_categories": "label description",
    "server_memories": "content content_hash",
    "personal_memories": "content content_hash",
    "memory_versions": "content",
    "embeddings": "vector",
}
_NEUTRAL: Mapping[str, str] = {
    "application_state": "key value",
    "people": "guild_id seen_at of_account",
    "person_names": "guild_id seen_at",
    "origins": "id guild_id channel_id kind parent_id open_to_everyone deleted_at",
    "lineages": "id forked_from created_at",
    "personas": "id guild_id lineage_id model is_main state state_since created_at updated_at",
    "guild_settings": "guild_id key changed_at",
    "feature_flags": "guild_id flag enabled changed_at",
    "privacy_levels": "guild_id level changed_at",
    "turns": (
        "id origin_id message_id lineage_id state failure started_at ended_at model"
        " prompt_tokens completion_tokens"
    ),
    "turn_replies": "message_id turn_id position",
    "capture_cursors": "origin_id lineage_id message_id",
    "buffer_entries": (
        "id origin_id lineage_id kind persona_id message_id turn_id said_at scene pinned"
        " version tokens"
    ),
    "buffers": (
        "origin_id lineage_id scene due_at ended_at scene_fired state_fired failures failed_at"
        " hidden"
    ),
    "handoff_runs": (
        "id origin_id lineage_id kind state failure candidates model started_at ended_at"
        " episodes promoted forgotten pinned"
    ),
    "ledger_entries": (
        "id origin_id lineage_id run_id position importance scene happened_from happened_until"
        " created_at embedding_model embedding_dimension"
    ),
    "ledger_sources": "ledger_id entry_id message_id said_at run_id",
    "ledger_quotes": "ledger_id position persona_id message_id",
    "ledger_people": "ledger_id",
    "ledger_versions": "ledger_id run_id quotes importance happened_from happened_until ended_at",
    "entry_archive": (
        "entry_id run_id origin_id lineage_id kind persona_id message_id turn_id said_at scene"
        " pinned version tokens archived_at"
    ),
    "short_term_memories": "origin_id lineage_id parent_id written_at",
    "short_term_categories": "guild_id position changed_at",
    "memories": "id scope",
    "server_memories": "id server_id persona_lineage_id created_at updated_at",
    "personal_memories": "id server_id persona_lineage_id created_at updated_at",
    "memory_sources": "memory_id origin_id message_id said_at",
    "memory_versions": "memory_id ended_at",
    "version_sources": "memory_id ended_at origin_id message_id said_at",
    "memory_changes": "id message_id lineage_id kind memory_id changed_at",
    "embeddings": "model item",
    "usage": (
        "day guild_id task provider model requests prompt_tokens completion_tokens cost_micro"
    ),
    "audit": "id at guild_id action",
    "erasures": "id kind guild_id requested_at finished_at",
}


def _columns() -> Iterator[tuple[tuple[str, str], Holds]]:
    for holds, tables in (
        (Holds.PERSON, _PERSON),
        (Holds.TEXT, _TEXT),
        (Holds.NEUTRAL, _NEUTRAL),
    ):
        for table, columns in tables.items():
            for column in columns.split():
                yield (table, column), holds


USER_DATA: Mapping[tuple[str, str], Holds] = dict(_columns())
"""Every column, as (table, column)."""

-- Ids are Discord snowflakes; times are UTC milliseconds; a guild id of 0 stands for direct messages.

CREATE TABLE application_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who and where ----------------------------------------------------------------------------------------------------

-- The name of the day: {p:ID} in a stored text is shown by it.
CREATE TABLE people (
    guild_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    display_name TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (guild_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX people_by_user ON people (user_id);

CREATE TABLE origins (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    guild_id INTEGER NOT NULL,
    channel_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('server', 'channel', 'thread', 'private_thread', 'direct')),
    parent_id INTEGER REFERENCES origins (id),
    open_to_everyone INTEGER NOT NULL CHECK (open_to_everyone IN (0, 1)),
    deleted_at INTEGER,
    UNIQUE (kind, channel_id)
) STRICT;
CREATE INDEX origins_by_guild ON origins (guild_id);

CREATE TABLE lineages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    forked_from INTEGER REFERENCES lineages (id),
    created_at INTEGER NOT NULL
) STRICT;
-- 0 holds global memories; 1 is Madeleine herself, the same one in every server until somebody forks her.
INSERT INTO lineages (id, created_at) VALUES (0, 0), (1, 0);

CREATE TABLE personas (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    guild_id INTEGER NOT NULL,
    lineage_id INTEGER NOT NULL REFERENCES lineages (id) CHECK (lineage_id > 0),
    name TEXT NOT NULL,
    avatar_url TEXT,
    prompt TEXT NOT NULL,
    trigger_words TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(trigger_words)),
    sample_lines TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(sample_lines)),
    model TEXT,
    is_main INTEGER NOT NULL CHECK (is_main IN (0, 1)),
    state TEXT NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'asleep', 'unconscious', 'inactive', 'dead')),
    state_since INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX personas_main ON personas (guild_id) WHERE is_main = 1;
CREATE UNIQUE INDEX personas_name ON personas (guild_id, name) WHERE state != 'dead';

-- Settings ---------------------------------------------------------------------------------------------------------

CREATE TABLE guild_settings (
    guild_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    changed_by INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (guild_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE feature_flags (
    guild_id INTEGER NOT NULL,
    flag TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    changed_by INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (guild_id, flag)
) STRICT, WITHOUT ROWID;

-- guild_id 0: the person's level everywhere; else a stricter one for that server.
CREATE TABLE privacy_levels (
    user_id INTEGER NOT NULL,
    guild_id INTEGER NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('open', 'partial', 'full')),
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, guild_id)
) STRICT, WITHOUT ROWID;

-- Turns and working memory -----------------------------------------------------------------------------------------

CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    message_id INTEGER NOT NULL,
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    user_id INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('taken', 'replying', 'done', 'failed')),
    failure TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    model TEXT,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    UNIQUE (origin_id, message_id, lineage_id)
) STRICT;
CREATE INDEX turns_by_time ON turns (origin_id, started_at);
CREATE INDEX turns_unfinished ON turns (state) WHERE state IN ('taken', 'replying');
CREATE INDEX turns_by_user ON turns (user_id);

CREATE TABLE turn_replies (
    message_id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    position INTEGER NOT NULL
) STRICT;
CREATE INDEX turn_replies_by_turn ON turn_replies (turn_id);

CREATE TABLE capture_cursors (
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    message_id INTEGER NOT NULL,
    PRIMARY KEY (origin_id, lineage_id)
) STRICT, WITHOUT ROWID;

-- An entry is written by a person (author_id) or by a persona (persona_id).
CREATE TABLE buffer_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    kind TEXT NOT NULL CHECK (kind IN ('dialogue', 'action', 'thought')),
    author_id INTEGER,
    persona_id INTEGER REFERENCES personas (id),
    content TEXT NOT NULL,
    message_id INTEGER,
    turn_id INTEGER REFERENCES turns (id) ON DELETE SET NULL,
    said_at INTEGER NOT NULL,
    scene INTEGER NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    version INTEGER NOT NULL DEFAULT 1,
    tokens INTEGER NOT NULL,
    CHECK ((author_id IS NULL) != (persona_id IS NULL)),
    UNIQUE (origin_id, lineage_id, message_id)
) STRICT;
CREATE INDEX buffer_entries_in_order ON buffer_entries (origin_id, lineage_id, said_at, id);
CREATE INDEX buffer_entries_by_message ON buffer_entries (message_id);
CREATE INDEX buffer_entries_by_author ON buffer_entries (author_id);
CREATE INDEX buffer_entries_by_turn ON buffer_entries (turn_id);

-- Handoff and ledger -----------------------------------------------------------------------------------------------

-- The id is made of the candidates and their versions, so that a repeated run is known again.
CREATE TABLE handoff_runs (
    id TEXT PRIMARY KEY,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    kind TEXT NOT NULL CHECK (kind IN ('voluntary', 'involuntary')),
    reason TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('committed', 'aborted', 'undone')),
    failure TEXT,
    candidates INTEGER NOT NULL,
    model TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL
) STRICT;
CREATE INDEX handoff_runs_by_buffer ON handoff_runs (origin_id, lineage_id, started_at);

CREATE TABLE ledger_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    run_id TEXT NOT NULL REFERENCES handoff_runs (id),
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    importance INTEGER NOT NULL CHECK (importance BETWEEN 1 AND 10),
    scene INTEGER NOT NULL,
    happened_from INTEGER NOT NULL,
    happened_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    embedding_model TEXT,
    embedding_dimension INTEGER,
    UNIQUE (run_id, position)
) STRICT;
CREATE INDEX ledger_entries_by_time ON ledger_entries (lineage_id, origin_id, happened_until);

CREATE TABLE ledger_sources (
    ledger_id INTEGER NOT NULL REFERENCES ledger_entries (id) ON DELETE CASCADE,
    entry_id INTEGER NOT NULL,
    message_id INTEGER,
    said_by INTEGER,
    said_at INTEGER NOT NULL,
    PRIMARY KEY (ledger_id, entry_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_sources_by_message ON ledger_sources (message_id);
CREATE INDEX ledger_sources_by_person ON ledger_sources (said_by);

CREATE TABLE ledger_quotes (
    ledger_id INTEGER NOT NULL REFERENCES ledger_entries (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    said_by INTEGER,
    persona_id INTEGER REFERENCES personas (id),
    message_id INTEGER,
    PRIMARY KEY (ledger_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_quotes_by_person ON ledger_quotes (said_by);

CREATE TABLE ledger_people (
    ledger_id INTEGER NOT NULL REFERENCES ledger_entries (id) ON DELETE CASCADE,
    user_id INTEGER NOT NULL,
    PRIMARY KEY (ledger_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_people_by_person ON ledger_people (user_id);

-- What a handoff took out of working memory; nothing reads it but an undo.
CREATE TABLE entry_archive (
    entry_id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES handoff_runs (id),
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    kind TEXT NOT NULL,
    author_id INTEGER,
    persona_id INTEGER,
    content TEXT NOT NULL,
    message_id INTEGER,
    said_at INTEGER NOT NULL,
    scene INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    archived_at INTEGER NOT NULL
) STRICT;
CREATE INDEX entry_archive_by_run ON entry_archive (run_id);
CREATE INDEX entry_archive_by_time ON entry_archive (archived_at);
CREATE INDEX entry_archive_by_message ON entry_archive (message_id);
CREATE INDEX entry_archive_by_author ON entry_archive (author_id);

-- Short-term memory: a row exists only while it has text -----------------------------------------------------------

CREATE TABLE short_term_memories (
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    parent_id INTEGER REFERENCES origins (id),
    summary TEXT NOT NULL DEFAULT '',
    categories TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(categories)),
    written_by INTEGER,  -- NULL: the model
    written_at INTEGER NOT NULL,
    CHECK (summary != '' OR categories != '{}'),
    PRIMARY KEY (origin_id, lineage_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX short_term_memories_by_time ON short_term_memories (written_at);
CREATE INDEX short_term_memories_by_writer ON short_term_memories (written_by);

CREATE TABLE short_term_categories (
    guild_id INTEGER NOT NULL,
    label TEXT NOT NULL,
    description TEXT NOT NULL,
    position INTEGER NOT NULL,
    changed_by INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (guild_id, label)
) STRICT, WITHOUT ROWID;

-- Long-term memory -------------------------------------------------------------------------------------------------

-- One number range for both kinds, so that "memory 12" is one memory.
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL CHECK (scope IN ('server', 'personal'))
) STRICT;

CREATE TABLE server_memories (
    id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    server_id INTEGER NOT NULL,
    persona_lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    content TEXT NOT NULL CHECK (length(content) BETWEEN 1 AND 4000),
    content_hash BLOB NOT NULL,
    author_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (server_id, persona_lineage_id, content_hash)
) STRICT;
CREATE INDEX server_memories_by_author ON server_memories (author_id);

CREATE TABLE personal_memories (
    id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    user_id INTEGER NOT NULL,
    server_id INTEGER NOT NULL,
    persona_lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    content TEXT NOT NULL CHECK (length(content) BETWEEN 1 AND 4000),
    content_hash BLOB NOT NULL,
    author_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (user_id, server_id, persona_lineage_id, content_hash)
) STRICT;
CREATE INDEX personal_memories_by_author ON personal_memories (author_id);

CREATE TABLE memory_sources (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    message_id INTEGER NOT NULL DEFAULT 0,
    said_by INTEGER NOT NULL,
    said_at INTEGER NOT NULL,
    PRIMARY KEY (memory_id, origin_id, message_id, said_by)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sources_by_message ON memory_sources (message_id);
CREATE INDEX memory_sources_by_person ON memory_sources (said_by);
CREATE INDEX memory_sources_by_origin ON memory_sources (origin_id);

-- What a memory said before it was changed ("used to").
CREATE TABLE memory_versions (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ended_at INTEGER NOT NULL,
    content TEXT NOT NULL,
    changed_by INTEGER NOT NULL,
    PRIMARY KEY (memory_id, ended_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_versions_by_person ON memory_versions (changed_by);

CREATE TABLE embeddings (
    partition TEXT NOT NULL,
    model TEXT NOT NULL,
    item TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (partition, model, item)
) STRICT, WITHOUT ROWID;

-- Accounts ---------------------------------------------------------------------------------------------------------

CREATE TABLE usage (
    day TEXT NOT NULL,
    guild_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    task TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_micro INTEGER NOT NULL,
    PRIMARY KEY (day, guild_id, user_id, task, provider, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_user ON usage (user_id);

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    guild_id INTEGER NOT NULL,
    actor_id INTEGER NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_guild ON audit (guild_id, at);
CREATE INDEX audit_by_actor ON audit (actor_id);

-- A tombstone: from its commit on every read skips the subject, while slices remove the rest.
CREATE TABLE erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('person', 'guild', 'message', 'value')),
    subject TEXT NOT NULL,
    guild_id INTEGER NOT NULL,
    requested_by INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;
CREATE INDEX erasures_unfinished ON erasures (kind, subject) WHERE finished_at IS NULL;

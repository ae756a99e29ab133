-- Where a former text of a memory was said: it is heard where one of these is.
CREATE TABLE version_sources (
    memory_id INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    message_id INTEGER NOT NULL DEFAULT 0,
    said_by INTEGER NOT NULL,
    said_at INTEGER NOT NULL,
    PRIMARY KEY (memory_id, ended_at, origin_id, message_id, said_by),
    FOREIGN KEY (memory_id, ended_at) REFERENCES memory_versions (memory_id, ended_at) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX version_sources_by_message ON version_sources (message_id);
CREATE INDEX version_sources_by_person ON version_sources (said_by);
CREATE INDEX version_sources_by_origin ON version_sources (origin_id);

-- What the model changed in a turn, until it is undone or too old to be. Of what was forgotten the memory as it was
-- is kept for some hours, unless a person had asked to forget.
CREATE TABLE memory_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id INTEGER NOT NULL,
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    kind TEXT NOT NULL CHECK (kind IN ('saved', 'updated', 'forgotten')),
    memory_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    former TEXT CHECK (former IS NULL OR json_valid(former)),
    CHECK ((former IS NOT NULL) = (kind = 'forgotten'))
) STRICT;
CREATE INDEX memory_changes_by_turn ON memory_changes (message_id, lineage_id);
CREATE INDEX memory_changes_by_time ON memory_changes (changed_at);
CREATE INDEX memory_changes_by_user ON memory_changes (user_id);
CREATE INDEX memory_changes_by_memory ON memory_changes (memory_id);

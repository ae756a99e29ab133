-- What the handoff engine has to know of a buffer between two looks at it.
CREATE TABLE buffers (
    origin_id INTEGER NOT NULL REFERENCES origins (id),
    lineage_id INTEGER NOT NULL REFERENCES lineages (id),
    scene INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER,                 -- when to look without a turn; NULL: not before the next entry
    ended_at INTEGER,               -- the room was closed; an entry opens it again
    scene_fired INTEGER,
    state_fired TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    failed_at INTEGER,
    hidden INTEGER NOT NULL DEFAULT 0,  -- entries that the last prompt had no room for
    PRIMARY KEY (origin_id, lineage_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX buffers_due ON buffers (due_at) WHERE due_at IS NOT NULL;
INSERT INTO buffers (origin_id, lineage_id, scene, due_at)
    SELECT origin_id, lineage_id, max(scene), max(said_at)
    FROM buffer_entries GROUP BY origin_id, lineage_id;

CREATE INDEX buffer_entries_pinned ON buffer_entries (origin_id, lineage_id) WHERE pinned = 1;

ALTER TABLE handoff_runs ADD COLUMN episodes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE handoff_runs ADD COLUMN promoted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE handoff_runs ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
ALTER TABLE handoff_runs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;

ALTER TABLE entry_archive ADD COLUMN turn_id INTEGER;

-- Which run tied an entry to an episode.
ALTER TABLE ledger_sources ADD COLUMN run_id TEXT REFERENCES handoff_runs (id);
CREATE INDEX ledger_sources_by_entry ON ledger_sources (entry_id);

-- What an episode said before a later run went on with its matter; kept as long as the archive.
CREATE TABLE ledger_versions (
    ledger_id INTEGER NOT NULL REFERENCES ledger_entries (id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES handoff_runs (id),
    content TEXT NOT NULL,
    quotes INTEGER NOT NULL,        -- from this position on they are of that run
    people TEXT NOT NULL CHECK (json_valid(people)),  -- ids of those whom it told of
    importance INTEGER NOT NULL,
    happened_from INTEGER NOT NULL,
    happened_until INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    PRIMARY KEY (ledger_id, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_versions_by_time ON ledger_versions (ended_at);

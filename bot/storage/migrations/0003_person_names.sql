-- What a person goes by besides the name that is shown: account names and earlier nicknames.
CREATE TABLE person_names (
    guild_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (guild_id, user_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX person_names_by_user ON person_names (user_id);
INSERT INTO person_names (guild_id, user_id, name, seen_at)
    SELECT guild_id, user_id, display_name, seen_at FROM people;

-- Whether the name that is shown is only the account's: a member may have another in the server.
ALTER TABLE people ADD COLUMN of_account INTEGER NOT NULL DEFAULT 0 CHECK (of_account IN (0, 1));

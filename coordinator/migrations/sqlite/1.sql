-- The ledger: what is durable, and where. Counts and replicates are below 2^63; a cell's id and
-- a token are the bits of a u64.

CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    numerics TEXT NOT NULL,
    version TEXT NOT NULL,
    restarts INTEGER NOT NULL
) STRICT;

CREATE TABLE studies (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    file_name TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    sealed BLOB,
    checksum BLOB NOT NULL
) STRICT;

CREATE TABLE study_files (
    study INTEGER NOT NULL REFERENCES studies (number),
    position INTEGER NOT NULL,
    path TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (study, position)
) STRICT, WITHOUT ROWID;

-- Shards of a cell never overlap and all have the same checkpoints. A sealed shard has no places.
CREATE TABLE shards (
    number INTEGER PRIMARY KEY,
    study INTEGER NOT NULL REFERENCES studies (number),
    cell INTEGER NOT NULL,
    first INTEGER NOT NULL,
    past INTEGER NOT NULL CHECK (first < past),
    token INTEGER NOT NULL,
    checkpoints BLOB NOT NULL,
    digest BLOB NOT NULL,
    tally BLOB NOT NULL,
    records INTEGER NOT NULL,
    worker TEXT NOT NULL,
    seconds REAL NOT NULL,
    checksum BLOB NOT NULL,
    places BLOB,
    low_segment INTEGER NOT NULL,
    high_segment INTEGER NOT NULL,
    UNIQUE (study, cell, first)
) STRICT;

CREATE TABLE deaths (
    study INTEGER NOT NULL REFERENCES studies (number),
    cell INTEGER NOT NULL,
    first INTEGER NOT NULL,
    past INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (study, cell, first, past)
) STRICT, WITHOUT ROWID;

CREATE TABLE checks (
    study INTEGER NOT NULL REFERENCES studies (number),
    cell INTEGER NOT NULL,
    first INTEGER NOT NULL,
    past INTEGER NOT NULL,
    digest BLOB NOT NULL,
    agreed INTEGER NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (study, cell, first, past)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;

-- The ledger: what is durable, and where. Counts and replicates are below 2^63; a cell's id and
-- a token are the bits of a u64.

-- `restarts` is the epoch of the leader: every write holds only while it is what the writer led
-- with; `previous` is that of the leader before. `expires` is by the database's clock. `home` is the id of the folder or bucket that has
-- the segments.
CREATE TABLE store (
    "only" BIGINT PRIMARY KEY CHECK ("only" = 1),
    numerics TEXT NOT NULL,
    version TEXT NOT NULL,
    restarts BIGINT NOT NULL,
    previous BIGINT NOT NULL,
    home TEXT,
    holder TEXT NOT NULL,
    expires TIMESTAMPTZ NOT NULL
);

CREATE TABLE studies (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id BYTEA NOT NULL UNIQUE,
    file_name TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    sealed BYTEA,
    checksum BYTEA NOT NULL
);

CREATE TABLE study_files (
    study BIGINT NOT NULL REFERENCES studies (number),
    position BIGINT NOT NULL,
    path TEXT NOT NULL,
    digest BYTEA NOT NULL,
    PRIMARY KEY (study, position)
);

-- Shards of a cell never overlap and all have the same checkpoints. A sealed shard has no places.
CREATE TABLE shards (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    study BIGINT NOT NULL REFERENCES studies (number),
    cell BIGINT NOT NULL,
    first BIGINT NOT NULL,
    past BIGINT NOT NULL CHECK (first < past),
    token BIGINT NOT NULL,
    checkpoints BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    tally BYTEA NOT NULL,
    records BIGINT NOT NULL,
    worker TEXT NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    checksum BYTEA NOT NULL,
    places BYTEA,
    low_segment BIGINT NOT NULL,
    high_segment BIGINT NOT NULL,
    UNIQUE (study, cell, first)
);

CREATE TABLE deaths (
    study BIGINT NOT NULL REFERENCES studies (number),
    cell BIGINT NOT NULL,
    first BIGINT NOT NULL,
    past BIGINT NOT NULL,
    deaths BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (study, cell, first, past)
);

CREATE TABLE checks (
    study BIGINT NOT NULL REFERENCES studies (number),
    cell BIGINT NOT NULL,
    first BIGINT NOT NULL,
    past BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    agreed BOOLEAN NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (study, cell, first, past)
);

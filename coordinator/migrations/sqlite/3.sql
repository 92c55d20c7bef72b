-- The families of claims that a study had before it was changed.
ALTER TABLE studies ADD COLUMN earlier TEXT NOT NULL DEFAULT '';

-- Studies that were deleted. What segments below `since` say of them counts no more; a row goes with the
-- last of these segments.
CREATE TABLE deleted (
    id BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;

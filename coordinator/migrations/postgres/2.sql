-- The families of claims that a study had before it was changed.
ALTER TABLE studies ADD COLUMN earlier TEXT NOT NULL DEFAULT '';

-- Studies that were deleted. What segments below `since` say of them counts no more; a row goes with the
-- last of these segments.
CREATE TABLE deleted (
    id BYTEA PRIMARY KEY,
    since BIGINT NOT NULL
);

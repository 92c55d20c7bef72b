-- The id of the bucket that has the segments, where they are not beside the ledger.
ALTER TABLE store ADD COLUMN home TEXT;

PRAGMA user_version = 2;

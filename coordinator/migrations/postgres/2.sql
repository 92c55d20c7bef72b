-- The families of claims that a study had before it was changed.
ALTER TABLE studies ADD COLUMN earlier TEXT NOT NULL DEFAULT '';

-- `overtaken_by` is the passage of the newest message that probably updates what this message says; 0 for
-- none. That passage may be gone.
ALTER TABLE passages ADD COLUMN overtaken_by INTEGER NOT NULL DEFAULT 0;

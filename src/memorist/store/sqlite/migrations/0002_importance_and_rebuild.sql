-- `importance` is a message's own score, from 0 to 1. `outdated` is the moment at which what the message says ceased
-- to be true; it is 0 while it holds, and 1 where the moment is not known or it was taken back. `speaker` only ranks: it may be
-- a name that the text begins with.
ALTER TABLE passages ADD COLUMN importance REAL;

-- What a rebuild of the views keeps: `by_hand` says that a person made, changed or removed a memory
-- or fact; while a rebuild runs, the rest says what the record was like before.
CREATE TABLE kept_views (
  owner TEXT NOT NULL,
  view TEXT NOT NULL,
  by_hand INTEGER NOT NULL,
  known_from INTEGER,
  known_to INTEGER,
  ended_at INTEGER,
  uses INTEGER,
  used_at INTEGER,
  tier TEXT,
  PRIMARY KEY (owner, view)
) WITHOUT ROWID;

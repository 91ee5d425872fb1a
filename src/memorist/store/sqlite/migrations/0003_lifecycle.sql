-- The life of a memory. `changes` counts what happened to a user's views, so that two workers that
-- think about one user at once cannot decide on the same past.
ALTER TABLE owners ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;

-- When the end of a fact was learnt, when it was told, and the memory that states it.
ALTER TABLE facts ADD COLUMN ended_at INTEGER;
ALTER TABLE facts ADD COLUMN said_at INTEGER;
ALTER TABLE facts ADD COLUMN memory_id TEXT;

-- Whether what a message says was overtaken by something newer, or taken back.
ALTER TABLE passages ADD COLUMN outdated INTEGER NOT NULL DEFAULT 0;

-- What models cost in each hour, over all users and machines.
CREATE TABLE spending (
  hour INTEGER PRIMARY KEY,
  calls INTEGER NOT NULL,
  tokens INTEGER NOT NULL
);

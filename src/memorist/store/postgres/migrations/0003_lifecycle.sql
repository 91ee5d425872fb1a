-- The life of a memory; the SQLite migration of the same number says what is what.
ALTER TABLE owners ADD COLUMN changes bigint NOT NULL DEFAULT 0;
ALTER TABLE facts ADD COLUMN ended_at bigint, ADD COLUMN said_at bigint, ADD COLUMN memory_id text;
ALTER TABLE passages ADD COLUMN outdated integer NOT NULL DEFAULT 0;

CREATE TABLE spending (
  hour bigint PRIMARY KEY,
  calls bigint NOT NULL,
  tokens bigint NOT NULL
);

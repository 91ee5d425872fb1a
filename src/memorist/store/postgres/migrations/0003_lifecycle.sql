-- The life of a memory; the SQLite migration of the same number says what is what.
ALTER TABLE owners ADD COLUMN changes bigint NOT NULL DEFAULT 0;
ALTER TABLE facts ADD COLUMN ended_at bigint, ADD COLUMN said_at bigint, ADD COLUMN memory_id text;
ALTER TABLE passages ADD COLUMN outdated integer NOT NULL DEFAULT 0;

CREATE TABLE holds (
  owner uuid NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  agent_name text,
  session_id text,
  target text,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner, id)
);

CREATE TABLE spending (
  hour bigint PRIMARY KEY,
  calls bigint NOT NULL,
  tokens bigint NOT NULL
);

ALTER TABLE holds ENABLE ROW LEVEL SECURITY;
ALTER TABLE holds FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON holds
  USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
  WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);

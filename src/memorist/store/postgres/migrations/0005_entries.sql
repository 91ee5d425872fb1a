-- JSON objects under a key; the SQLite migration of the same number says what is what. JSON is
-- kept as text, since jsonb takes no NUL character; paths are ordered by their code points.
CREATE TABLE entries (
  owner uuid NOT NULL,
  id text NOT NULL,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint,
  ttl bigint,
  pieces bigint NOT NULL,
  value text NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX entries_by_path ON entries (owner, path);
CREATE INDEX entries_by_age ON entries (owner, updated_at);
CREATE INDEX entries_by_end ON entries (owner, expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE entries FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON entries
  USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
  WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);

-- What fits a window; the SQLite migration of the same number says what is what.
CREATE TABLE summaries (
  owner uuid NOT NULL,
  session_id uuid NOT NULL,
  last_seq bigint NOT NULL,
  id text NOT NULL,
  previous text,
  text text NOT NULL,
  made_by text NOT NULL,
  asked integer NOT NULL,
  messages bigint NOT NULL,
  tokens_before bigint NOT NULL,
  tokens bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner, session_id, last_seq)
);

CREATE TABLE articles (
  owner uuid NOT NULL,
  id text NOT NULL,
  agent_name text NOT NULL,
  uri_hash text NOT NULL,
  uri text NOT NULL,
  title text NOT NULL,
  digest text NOT NULL,
  chars bigint NOT NULL,
  pieces bigint NOT NULL,
  created_at bigint NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE UNIQUE INDEX articles_by_uri ON articles (owner, agent_name, uri_hash);
CREATE INDEX articles_by_digest ON articles (owner, digest);

ALTER TABLE summaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE summaries FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON summaries
  USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
  WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);
ALTER TABLE articles ENABLE ROW LEVEL SECURITY;
ALTER TABLE articles FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON articles
  USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
  WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);

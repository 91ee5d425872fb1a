-- What fits a window. A summary stands for the messages of a session up to `last_seq`: it is a
-- view, extends the one before it, and goes when a message it stands for is forgotten or revised.
CREATE TABLE summaries (
  owner TEXT NOT NULL,
  session_id INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  previous TEXT,
  text TEXT NOT NULL,
  made_by TEXT NOT NULL,
  asked INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  tokens_before INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner, session_id, last_seq)
) WITHOUT ROWID;

-- Documents to quote from, each known by where it came from; `digest` is of what it
-- says. The text comes last, so that a list of them need not read past it.
CREATE TABLE articles (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  uri_hash TEXT NOT NULL,
  uri TEXT NOT NULL,
  title TEXT NOT NULL,
  digest TEXT NOT NULL,
  chars INTEGER NOT NULL,
  pieces INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE UNIQUE INDEX articles_by_uri ON articles (owner, agent_name, uri_hash);
CREATE INDEX articles_by_digest ON articles (owner, digest);

-- JSON objects under a key in a namespace. `path` is the namespace, its labels joined by full stops;
-- `key` and `value` are JSON; `text` is what it is found by, in so many pieces; `ttl` is how long
-- it lives after it was written or read, in microseconds.
CREATE TABLE entries (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  path TEXT NOT NULL,
  key TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER,
  ttl INTEGER,
  pieces INTEGER NOT NULL,
  value TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX entries_by_path ON entries (owner, path);
CREATE INDEX entries_by_age ON entries (owner, updated_at);
CREATE INDEX entries_by_end ON entries (owner, expires_at) WHERE expires_at IS NOT NULL;

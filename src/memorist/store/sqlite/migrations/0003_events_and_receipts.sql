-- What changed of a user's memories, facts, messages and jobs, by ids alone: the newest of it, for those who follow. That
-- a message came is not noted: its id says so.
CREATE TABLE view_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  record TEXT NOT NULL,
  change TEXT NOT NULL,
  at INTEGER NOT NULL,
  agent_name TEXT,
  session_id TEXT
);
CREATE INDEX events_by_owner ON view_events (owner, id);

-- What went into the window of a chat's turn. `cites` has the ids of all that it names: with one of them it is forgotten.
CREATE TABLE receipts (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  session_hash TEXT NOT NULL,
  session_id TEXT NOT NULL,
  asked_id TEXT NOT NULL,
  message_id TEXT,
  created_at INTEGER NOT NULL,
  receipt TEXT NOT NULL,
  recalled TEXT NOT NULL,
  cites TEXT NOT NULL,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX receipts_by_age ON receipts (owner, created_at, id);
CREATE INDEX receipts_by_session ON receipts (owner, session_hash, created_at, id);

-- The log, its views and its queue. `owner` is the hash of tenant and user (records/scope.py);
-- `*_at` are microseconds since 1970. Each index costs a page of every append: there are few.

CREATE TABLE owners (
  owner TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  session_hash TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (owner, session_hash)
);

CREATE TABLE user_agent_active_sessions (
  owner TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  active_session_id TEXT NOT NULL,
  last_active_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner, agent_name)
) WITHOUT ROWID;

-- `content` is the text as given; `extras` is JSON of all that is not plain text.
CREATE TABLE chat_message_history (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  session_id INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  role TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  content TEXT,
  extras TEXT
);
CREATE INDEX messages_by_session ON chat_message_history (session_id, id);
CREATE UNIQUE INDEX messages_by_id ON chat_message_history (session_id, message_id);

CREATE TABLE message_revisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  message INTEGER NOT NULL,
  replaced_at INTEGER NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  content TEXT,
  extras TEXT
);
CREATE INDEX revisions_by_message ON message_revisions (message, id);

-- What search works on: a span of a message or of something derived. A message's passages have
-- the ids from 1048576 times its own upward; those of derived records are negative.
CREATE TABLE passages (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  session_id INTEGER,
  view_id TEXT,
  start_at INTEGER NOT NULL,
  stop_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX passages_by_view ON passages (owner, view_id) WHERE view_id IS NOT NULL;

-- Filled by our own statement and not by a trigger: FTS5 writes out what it has gathered at every
-- statement that has one, and a batch would take four times as long.
-- The owner is a word of the text, so that a match is narrowed to one user inside the index.
CREATE VIRTUAL TABLE passage_words USING fts5 (
  owner, words, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);

CREATE TABLE vectors (
  owner TEXT NOT NULL,
  embedder TEXT NOT NULL,
  passage INTEGER NOT NULL,
  embedding BLOB NOT NULL,
  PRIMARY KEY (owner, embedder, passage)
) WITHOUT ROWID;
CREATE INDEX vectors_by_passage ON vectors (passage);

CREATE TABLE embedders (
  owner TEXT NOT NULL,
  embedder TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  PRIMARY KEY (owner, embedder)
) WITHOUT ROWID;

CREATE TABLE memory_items (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  session_id TEXT,
  text TEXT NOT NULL,
  kind TEXT NOT NULL,
  category TEXT NOT NULL,
  importance REAL NOT NULL,
  tags TEXT NOT NULL,
  tier TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  uses INTEGER NOT NULL,
  used_at INTEGER,
  expires_at INTEGER,
  ended_at INTEGER,
  superseded_by TEXT,
  reason TEXT,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID;

CREATE TABLE facts (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  session_id TEXT,
  topic TEXT NOT NULL,
  subject TEXT NOT NULL,
  predicate TEXT NOT NULL,
  object TEXT NOT NULL,
  valid_from INTEGER,
  valid_to INTEGER,
  known_from INTEGER NOT NULL,
  known_to INTEGER,
  confidence REAL NOT NULL,
  source TEXT NOT NULL,
  superseded_by TEXT,
  reason TEXT,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX facts_by_topic ON facts (owner, topic);

CREATE TABLE view_sources (
  owner TEXT NOT NULL,
  view TEXT NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (owner, view, message_id)
) WITHOUT ROWID;
CREATE INDEX views_by_message ON view_sources (owner, message_id);

CREATE TABLE agent_long_term_memory (
  owner TEXT NOT NULL,
  user_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  notes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (owner, agent_name)
) WITHOUT ROWID;

CREATE TABLE note_versions (
  owner TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  version INTEGER NOT NULL,
  notes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner, agent_name, version)
) WITHOUT ROWID;

-- A claim moves `run_at` to the end of its lease: a job whose worker died comes back by itself.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  session_id INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  lease TEXT,
  error TEXT,
  dead INTEGER NOT NULL
);

-- The last place in the log and the last passage ever given up: none is given out twice.
CREATE TABLE given_up (seq INTEGER NOT NULL, view_passage INTEGER NOT NULL);
INSERT INTO given_up VALUES (0, 0);

CREATE TRIGGER message_gone AFTER DELETE ON chat_message_history BEGIN
  DELETE FROM passages WHERE id BETWEEN OLD.id * 1048576 AND OLD.id * 1048576 + 1048575;
  DELETE FROM message_revisions WHERE message = OLD.id;
  UPDATE given_up SET seq = OLD.id WHERE seq < OLD.id;
END;

CREATE TRIGGER passage_gone AFTER DELETE ON passages BEGIN
  DELETE FROM passage_words WHERE rowid = OLD.id;
  UPDATE given_up SET view_passage = OLD.id WHERE view_passage > OLD.id;
  DELETE FROM vectors WHERE passage = OLD.id;
END;

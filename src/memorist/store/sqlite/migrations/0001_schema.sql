-- The log, the views derived from it, and the queue. `owner` is the hash of tenant and user
-- (records/scope.py); `*_at` are microseconds since 1970. Each index costs a page of every
-- append, so there are few.

-- `changes` counts the changes to a user's views, so that two workers that derive from the same
-- user's messages at once cannot both decide on the same past.
CREATE TABLE owners (
  owner TEXT PRIMARY KEY,
  tenant_hash TEXT NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changes INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX owners_by_tenant ON owners (tenant_hash, owner);

CREATE TABLE sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  session_hash TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (owner, session_hash)
);
CREATE INDEX sessions_by_age ON sessions (owner, created_at, session_id);

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

-- `number` counts the revisions of a message from 1.
CREATE TABLE message_revisions (
  owner TEXT NOT NULL,
  message INTEGER NOT NULL,
  number INTEGER NOT NULL,
  replaced_at INTEGER NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  content TEXT,
  extras TEXT
);
CREATE UNIQUE INDEX revisions_by_message ON message_revisions (message, number);

-- What search works on: a span of a message or of a derived record. A message's passages have the
-- ids from 1048576 times its own upward (records/values.py); those of derived records are negative.
-- `self_reference` and `is_question` are language/signals.py's; `outdated` says that a newer message changed what
-- this one says, or that it was taken back.
CREATE TABLE passages (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  session_id INTEGER,
  view_id TEXT,
  start_at INTEGER NOT NULL,
  stop_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  role TEXT,
  speaker TEXT,
  self_reference REAL NOT NULL,
  is_question INTEGER NOT NULL,
  outdated INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX passages_by_view ON passages (owner, view_id) WHERE view_id IS NOT NULL;

-- Filled by our own statement and not by a trigger: FTS5 flushes at every statement that has a
-- trigger, and a batch would take four times as long. Each word is prefixed with a part of its
-- owner, so that a posting list holds one user's passages, and counts are of that user's words.
CREATE VIRTUAL TABLE passage_words USING fts5 (
  words, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE word_postings USING fts5vocab (passage_words, instance);
CREATE VIRTUAL TABLE word_counts USING fts5vocab (passage_words, row);

-- The names of those who speak in a user's conversations.
CREATE TABLE speakers (
  owner TEXT NOT NULL,
  speaker TEXT NOT NULL,
  PRIMARY KEY (owner, speaker)
) WITHOUT ROWID;

-- Ids rise and are never used twice, so a process can read what is new since it last looked.
-- `code` has the sign of each number, one bit each; a first search reads the index alone.
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  embedder TEXT NOT NULL,
  passage INTEGER NOT NULL,
  code BLOB NOT NULL,
  embedding BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_by_passage ON vectors (passage, embedder);
CREATE INDEX vectors_by_owner ON vectors (owner, embedder, id, passage, code);

-- `prepared` says that all that the user had when the embedder came is embedded or queued.
CREATE TABLE embedders (
  owner TEXT NOT NULL,
  embedder TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  prepared INTEGER NOT NULL DEFAULT 1,
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
CREATE INDEX memories_by_age ON memory_items (owner, created_at, id);
CREATE INDEX memories_by_kind ON memory_items (owner, kind, created_at, id);
CREATE INDEX memories_by_category ON memory_items (owner, category, created_at, id);

-- `memory` is the id of the memory that states the fact; records/memories.py explains the moments.
-- Facts are looked up by the beginnings of subject and predicate, as these may be long.
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
  ended_at INTEGER,
  said_at INTEGER,
  memory TEXT,
  subject_start TEXT GENERATED ALWAYS AS (substr(subject, 1, 200)),
  predicate_start TEXT GENERATED ALWAYS AS (substr(predicate, 1, 200)),
  PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX facts_by_age ON facts (owner, known_from, id);
CREATE INDEX facts_by_topic ON facts (owner, topic, known_from, id);
CREATE INDEX facts_by_subject ON facts (owner, subject_start, known_from, id);
CREATE INDEX facts_by_predicate ON facts (owner, predicate_start, known_from, id);
CREATE INDEX facts_by_memory ON facts (owner, memory) WHERE memory IS NOT NULL;

CREATE TABLE view_sources (
  owner TEXT NOT NULL,
  view TEXT NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (owner, view, message_id)
) WITHOUT ROWID;
CREATE INDEX views_by_message ON view_sources (owner, message_id);

-- What facts are about: the nodes of the graph whose edges are the facts.
CREATE TABLE entities (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  fact TEXT NOT NULL,
  PRIMARY KEY (owner, name, fact)
) WITHOUT ROWID;
CREATE INDEX entities_by_fact ON entities (fact, owner);

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

-- A summary stands for the messages of a session up to `last_seq`. It extends the one before it,
-- and is deleted when a message it stands for is forgotten or revised.
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

-- Documents to quote from. `digest` is of the text, which stands last so that listing articles
-- need not read past it.
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
CREATE INDEX articles_by_age ON articles (owner, created_at, id);

-- JSON objects under a key in a namespace. `path` is the namespace, its labels joined by full stops;
-- `key` and `value` are JSON; `text` is what search finds it by, in `pieces` passages; `ttl` is how
-- long it lives after it was written or read, in microseconds.
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
CREATE INDEX entries_by_age ON entries (owner, updated_at DESC, path, key);
CREATE INDEX entries_by_end ON entries (owner, expires_at) WHERE expires_at IS NOT NULL;

-- A claim moves `run_at` to the end of its lease: a job whose worker died comes back by itself.
-- `attempts` counts failures, `deaths` the leases that ran out: a process died, or hung.
-- Jobs on derived records belong to no session.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  session_id INTEGER,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,
  run_at INTEGER NOT NULL,
  lease TEXT,
  error TEXT,
  dead INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX jobs_by_kind ON jobs (kind) WHERE dead = 0;
CREATE INDEX jobs_suspected ON jobs (deaths, id)
  WHERE dead = 0 AND (deaths > 0 OR lease IS NOT NULL);
CREATE INDEX jobs_dead ON jobs (kind) WHERE dead = 1;

-- What models cost in each hour, over all users and machines.
CREATE TABLE spending (
  hour INTEGER PRIMARY KEY,
  calls INTEGER NOT NULL,
  tokens INTEGER NOT NULL
);

-- API keys of the servers. Only a key's digest is stored; without a `user_id` it is an admin's.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  tenant_hash TEXT NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT,
  label TEXT NOT NULL,
  program INTEGER NOT NULL,
  digest TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_hash, created_at, id);

-- The outermost ids that were deleted, so that no id is used twice.
CREATE TABLE deleted_ids (seq INTEGER NOT NULL, view_passage INTEGER NOT NULL);
INSERT INTO deleted_ids VALUES (0, 0);

-- How often something was forgotten, and since when bytes of it wait for a scrub.
CREATE TABLE unscrubbed (forgets INTEGER NOT NULL, since INTEGER);
INSERT INTO unscrubbed VALUES (0, NULL);

CREATE TRIGGER message_gone AFTER DELETE ON chat_message_history BEGIN
  DELETE FROM passages WHERE id BETWEEN OLD.id * 1048576 AND OLD.id * 1048576 + 1048575;
  DELETE FROM message_revisions WHERE message = OLD.id;
  UPDATE deleted_ids SET seq = OLD.id WHERE seq < OLD.id;
END;

CREATE TRIGGER passage_gone AFTER DELETE ON passages BEGIN
  DELETE FROM passage_words WHERE rowid = OLD.id;
  UPDATE deleted_ids SET view_passage = OLD.id WHERE view_passage > OLD.id;
  DELETE FROM vectors WHERE passage = OLD.id;
END;

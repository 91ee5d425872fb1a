-- Search anew: passages an embedder takes whole, words stemmed by us, vectors in the order they
-- came. All of it is made from the log and the views, so what was there is dropped and made again.

DROP TRIGGER message_gone;
DROP TRIGGER passage_gone;
UPDATE given_up SET view_passage = min(view_passage, (SELECT coalesce(min(id), 0) FROM passages));
DROP TABLE passage_words;
DROP TABLE passages;
DROP TABLE vectors;
DELETE FROM embedders;
ALTER TABLE embedders ADD COLUMN prepared INTEGER NOT NULL DEFAULT 1;

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
  created_at INTEGER NOT NULL,
  role TEXT,
  speaker TEXT,
  own REAL NOT NULL,
  asks INTEGER NOT NULL
);
CREATE INDEX passages_by_view ON passages (owner, view_id) WHERE view_id IS NOT NULL;

-- Filled by our own statement and not by a trigger: FTS5 writes out what it has gathered at every
-- statement that has one, and a batch would take four times as long. Each word is led by a part
-- of its owner, so that a list of places holds one user's alone, and counts are of their words.
CREATE VIRTUAL TABLE passage_words USING fts5 (
  words, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE word_places USING fts5vocab (passage_words, instance);
CREATE VIRTUAL TABLE word_counts USING fts5vocab (passage_words, row);

-- Who speaks in a user's conversations, by the names that messages carry.
CREATE TABLE speakers (
  owner TEXT NOT NULL,
  speaker TEXT NOT NULL,
  PRIMARY KEY (owner, speaker)
) WITHOUT ROWID;

-- Rising ids, never given out twice: a process reads what came since it last looked. `code` is
-- the sign of each number, one bit each; the index alone holds all that a first look needs.
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

-- The things that facts are about, to walk from one fact to the next.
CREATE TABLE entities (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  fact TEXT NOT NULL,
  PRIMARY KEY (owner, name, fact)
) WITHOUT ROWID;
CREATE INDEX entities_by_fact ON entities (fact, owner);

-- Work on derived records belongs to no session.
ALTER TABLE jobs RENAME TO old_jobs;
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  session_id INTEGER,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  lease TEXT,
  error TEXT,
  dead INTEGER NOT NULL
);
INSERT INTO jobs SELECT id, owner, 'embed', session_id, first_seq, last_seq, attempts, run_at,
  lease, error, dead FROM old_jobs;
DROP TABLE old_jobs;
CREATE INDEX jobs_by_kind ON jobs (kind) WHERE dead = 0;

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

-- Lists are cut by key: each filter has an index in the order of its list, so that a page costs the
-- same however much there is. None is on the log: that would cost every append.

-- `title` is the user's own; without one, a session is known by its first message.
ALTER TABLE sessions ADD COLUMN title TEXT;
CREATE INDEX sessions_by_agent ON sessions (owner, agent_name, created_at, session_id);

ALTER TABLE memory_items ADD COLUMN session_start TEXT
  GENERATED ALWAYS AS (substr(session_id, 1, 200)) VIRTUAL;
ALTER TABLE memory_items ADD COLUMN source_start TEXT
  GENERATED ALWAYS AS (substr(source, 1, 200)) VIRTUAL;
ALTER TABLE memory_items ADD COLUMN is_over INTEGER
  GENERATED ALWAYS AS (ended_at IS NOT NULL) VIRTUAL;
DROP INDEX memories_by_age;
DROP INDEX memories_by_kind;
DROP INDEX memories_by_category;
CREATE INDEX memories_by_age ON memory_items (owner, is_over, created_at, id);
CREATE INDEX memories_by_kind ON memory_items (owner, kind, is_over, created_at, id);
CREATE INDEX memories_by_category ON memory_items (owner, category, is_over, created_at, id);
CREATE INDEX memories_by_tier ON memory_items (owner, tier, is_over, created_at, id);
CREATE INDEX memories_by_source ON memory_items (owner, source_start, is_over, created_at, id);
CREATE INDEX memories_by_session ON memory_items (owner, session_start, is_over, created_at, id)
  WHERE session_start IS NOT NULL;
CREATE INDEX memories_expiring ON memory_items (owner, created_at, id)
  WHERE ended_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX memories_by_successor ON memory_items (owner, superseded_by)
  WHERE superseded_by IS NOT NULL;

-- The beginnings of the tags of each memory, kept up by triggers.
CREATE TABLE memory_tags (
  owner TEXT NOT NULL,
  tag TEXT NOT NULL,
  is_over INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  memory TEXT NOT NULL,
  PRIMARY KEY (owner, tag, is_over, made_at, memory)
) WITHOUT ROWID;
INSERT OR IGNORE INTO memory_tags
SELECT i.owner, substr(t.value, 1, 200), i.is_over, i.created_at, i.id FROM memory_items i, json_each(i.tags) t;

CREATE TRIGGER memory_added AFTER INSERT ON memory_items WHEN NEW.tags <> '[]' BEGIN
  INSERT OR IGNORE INTO memory_tags
  SELECT NEW.owner, substr(value, 1, 200), NEW.is_over, NEW.created_at, NEW.id
  FROM json_each(NEW.tags);
END;

CREATE TRIGGER memory_ended AFTER UPDATE OF ended_at ON memory_items
WHEN NEW.tags <> '[]' AND OLD.is_over <> NEW.is_over BEGIN
  UPDATE memory_tags SET is_over = NEW.is_over
  WHERE owner = OLD.owner AND is_over = OLD.is_over AND made_at = OLD.created_at
    AND memory = OLD.id AND tag IN (SELECT substr(value, 1, 200) FROM json_each(OLD.tags));
END;

CREATE TRIGGER memory_gone AFTER DELETE ON memory_items WHEN OLD.tags <> '[]' BEGIN
  DELETE FROM memory_tags WHERE owner = OLD.owner AND is_over = OLD.is_over
    AND made_at = OLD.created_at AND memory = OLD.id AND tag IN (SELECT substr(value, 1, 200) FROM json_each(OLD.tags));
END;

ALTER TABLE facts ADD COLUMN object_start TEXT
  GENERATED ALWAYS AS (substr(object, 1, 200)) VIRTUAL;
ALTER TABLE facts ADD COLUMN source_start TEXT
  GENERATED ALWAYS AS (substr(source, 1, 200)) VIRTUAL;
ALTER TABLE facts ADD COLUMN is_over INTEGER
  GENERATED ALWAYS AS (known_to IS NOT NULL OR valid_to IS NOT NULL) VIRTUAL;
DROP INDEX facts_by_age;
DROP INDEX facts_by_subject;
DROP INDEX facts_by_predicate;
CREATE INDEX facts_by_age ON facts (owner, is_over, known_from, id);
CREATE INDEX facts_by_subject ON facts (owner, subject_start, is_over, known_from, id);
CREATE INDEX facts_by_predicate ON facts (owner, predicate_start, is_over, known_from, id);
CREATE INDEX facts_by_object ON facts (owner, object_start, is_over, known_from, id);
CREATE INDEX facts_by_source ON facts (owner, source_start, is_over, known_from, id);
CREATE INDEX facts_by_end ON facts (owner, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX facts_by_successor ON facts (owner, superseded_by) WHERE superseded_by IS NOT NULL;

-- Whom and what each fact names, also one that no longer holds.
CREATE TABLE fact_names (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  learnt_at INTEGER NOT NULL,
  fact TEXT NOT NULL,
  PRIMARY KEY (owner, name, learnt_at, fact)
) WITHOUT ROWID;
CREATE INDEX fact_names_by_fact ON fact_names (fact, owner);
INSERT OR IGNORE INTO fact_names
SELECT e.owner, e.name, f.known_from, f.id FROM entities e
JOIN facts f ON f.owner = e.owner AND f.id = e.fact
UNION SELECT owner, lower(substr(subject, 1, 200)), known_from, id FROM facts
  WHERE known_to IS NOT NULL OR valid_to IS NOT NULL
UNION SELECT owner, lower(substr(object, 1, 200)), known_from, id FROM facts
  WHERE known_to IS NOT NULL OR valid_to IS NOT NULL;

CREATE TRIGGER fact_gone AFTER DELETE ON facts BEGIN
  DELETE FROM fact_names WHERE fact = OLD.id AND owner = OLD.owner;
END;

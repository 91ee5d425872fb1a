-- As in SQLite: what lists are cut by, titles of sessions, tags of memories, names in facts.
-- Row-level security would hide the rows that the new tables are filled from.
ALTER TABLE memory_items NO FORCE ROW LEVEL SECURITY;
ALTER TABLE facts NO FORCE ROW LEVEL SECURITY;
ALTER TABLE entities NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_words NO FORCE ROW LEVEL SECURITY;

ALTER TABLE sessions ADD COLUMN title text;
CREATE INDEX sessions_by_agent ON sessions (owner, agent_name, created_at);

ALTER TABLE memory_items
  ADD COLUMN session_start text GENERATED ALWAYS AS (substr(session_id, 1, 200)) STORED,
  ADD COLUMN source_start text GENERATED ALWAYS AS (substr(source, 1, 200)) STORED,
  ADD COLUMN is_over integer
    GENERATED ALWAYS AS (CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END) STORED;
DROP INDEX memories_by_age, memories_by_kind, memories_by_category;
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

CREATE TABLE memory_tags (
  owner uuid NOT NULL,
  tag text NOT NULL,
  is_over integer NOT NULL,
  made_at bigint NOT NULL,
  memory text NOT NULL,
  PRIMARY KEY (owner, tag, is_over, made_at, memory)
);
INSERT INTO memory_tags
SELECT i.owner, substr(t.tag, 1, 200), i.is_over, i.created_at, i.id
FROM memory_items i, jsonb_array_elements_text(i.tags::jsonb) AS t (tag) ON CONFLICT DO NOTHING;

CREATE FUNCTION memory_added() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  INSERT INTO memory_tags
  SELECT NEW.owner, substr(t.tag, 1, 200), NEW.is_over, NEW.created_at, NEW.id
  FROM jsonb_array_elements_text(NEW.tags::jsonb) AS t (tag) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER memory_added AFTER INSERT ON memory_items
  FOR EACH ROW WHEN (NEW.tags <> '[]') EXECUTE FUNCTION memory_added();

CREATE FUNCTION memory_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  UPDATE memory_tags SET is_over = NEW.is_over
  WHERE owner = OLD.owner AND is_over = OLD.is_over AND made_at = OLD.created_at
    AND memory = OLD.id AND tag IN (
      SELECT substr(t.tag, 1, 200) FROM jsonb_array_elements_text(OLD.tags::jsonb) AS t (tag));
  RETURN NULL;
END $$;
CREATE TRIGGER memory_ended AFTER UPDATE OF ended_at ON memory_items
  FOR EACH ROW WHEN (NEW.tags <> '[]' AND OLD.is_over <> NEW.is_over)
  EXECUTE FUNCTION memory_ended();

CREATE FUNCTION memory_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  DELETE FROM memory_tags
  WHERE owner = OLD.owner AND is_over = OLD.is_over AND made_at = OLD.created_at
    AND memory = OLD.id AND tag IN (
    SELECT substr(t.tag, 1, 200) FROM jsonb_array_elements_text(OLD.tags::jsonb) AS t (tag));
  RETURN NULL;
END $$;
CREATE TRIGGER memory_gone AFTER DELETE ON memory_items
  FOR EACH ROW WHEN (OLD.tags <> '[]') EXECUTE FUNCTION memory_gone();

ALTER TABLE facts
  ADD COLUMN object_start text GENERATED ALWAYS AS (substr(object, 1, 200)) STORED,
  ADD COLUMN source_start text GENERATED ALWAYS AS (substr(source, 1, 200)) STORED,
  ADD COLUMN is_over integer GENERATED ALWAYS AS (
    CASE WHEN known_to IS NULL AND valid_to IS NULL THEN 0 ELSE 1 END) STORED;
DROP INDEX facts_by_age, facts_by_subject, facts_by_predicate;
CREATE INDEX facts_by_age ON facts (owner, is_over, known_from, id);
CREATE INDEX facts_by_subject ON facts (owner, subject_start, is_over, known_from, id);
CREATE INDEX facts_by_predicate ON facts (owner, predicate_start, is_over, known_from, id);
CREATE INDEX facts_by_object ON facts (owner, object_start, is_over, known_from, id);
CREATE INDEX facts_by_source ON facts (owner, source_start, is_over, known_from, id);
CREATE INDEX facts_by_end ON facts (owner, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX facts_by_successor ON facts (owner, superseded_by) WHERE superseded_by IS NOT NULL;

-- By bytes, so that the names that begin alike stand together.
CREATE TABLE fact_names (
  owner uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  learnt_at bigint NOT NULL,
  fact text NOT NULL,
  PRIMARY KEY (owner, name, learnt_at, fact)
);
CREATE INDEX fact_names_by_fact ON fact_names (owner, fact);
INSERT INTO fact_names
SELECT e.owner, e.name, f.known_from, f.id FROM entities e
JOIN facts f ON f.owner = e.owner AND f.id = e.fact
UNION SELECT owner, lower(substr(subject, 1, 200)), known_from, id FROM facts
  WHERE known_to IS NOT NULL OR valid_to IS NOT NULL
UNION SELECT owner, lower(substr(object, 1, 200)), known_from, id FROM facts
  WHERE known_to IS NOT NULL OR valid_to IS NOT NULL
ON CONFLICT DO NOTHING;

CREATE FUNCTION fact_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  DELETE FROM fact_names WHERE owner = OLD.owner AND fact = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER fact_gone AFTER DELETE ON facts FOR EACH ROW EXECUTE FUNCTION fact_gone();

-- Memories, facts and notes are also found by the beginnings of their words (`view_keys` in
-- store/postgres/db.py): the index of words holds numbers, which have no beginnings.
UPDATE passage_words w SET words = w.words || (
  SELECT coalesce(array_agg(DISTINCT word_key(w.owner, k.key, 1)), '{}')
  FROM unnest(stems_of(folded(v.said))) AS s (stem), LATERAL (
    SELECT '=' || s.stem UNION ALL
    SELECT '^' || left(s.stem, n) FROM generate_series(2, least(length(s.stem), 12)) AS n
  ) AS k (key))
FROM passages p JOIN (
  SELECT owner, id, text AS said FROM memory_items
  UNION ALL SELECT owner, id, subject || ' ' || predicate || ' ' || object FROM facts
) AS v ON v.owner = p.owner AND v.id = p.view_id
WHERE w.owner = p.owner AND w.id = p.id AND p.kind IN ('memory', 'fact');

ALTER TABLE memory_items FORCE ROW LEVEL SECURITY;
ALTER TABLE facts FORCE ROW LEVEL SECURITY;
ALTER TABLE entities FORCE ROW LEVEL SECURITY;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_words FORCE ROW LEVEL SECURITY;

DO $$
DECLARE
  guarded text;
  mine text := $q$ (owner = nullif(current_setting('memorist.owner', true), '')::uuid) $q$;
BEGIN
  FOREACH guarded IN ARRAY ARRAY['memory_tags', 'fact_names'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
    EXECUTE format('CREATE POLICY own_rows ON %I USING %s WITH CHECK %s', guarded, mine, mine);
  END LOOP;
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memorist_app') THEN
    IF pg_has_role('memorist_app', 'MEMBER') THEN  -- or it is others'
      GRANT SELECT, INSERT, UPDATE, DELETE ON memory_tags, fact_names TO memorist_app;
    END IF;
  END IF;
END $$;

-- The log, the views derived from it, and the queue; the SQLite schema explains tables and columns.
-- `@schema` stands for the schema that they are in.
-- `owner` is the hash of tenant and user (records/scope.py). It leads every key, so that each
-- table can be partitioned by its hash, or distributed by it, as it stands.

CREATE TABLE owners (
  owner uuid PRIMARY KEY,
  tenant_hash text NOT NULL,
  tenant text NOT NULL,
  user_id text NOT NULL,
  created_at bigint NOT NULL,
  changes bigint NOT NULL DEFAULT 0
);
CREATE INDEX owners_by_tenant ON owners (tenant_hash, owner);

-- Which owner a session's UUID belongs to, over all owners: `chat_message_history` is read and
-- written by programs that know nothing but that UUID, so two users must never share one.
CREATE TABLE session_uuids (
  key uuid PRIMARY KEY,
  owner uuid NOT NULL
);

CREATE TABLE sessions (
  owner uuid NOT NULL,
  key uuid NOT NULL,
  session_hash text NOT NULL,
  session_id text NOT NULL,
  agent_name text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner, session_hash)
);
CREATE UNIQUE INDEX sessions_by_key ON sessions (owner, key);
CREATE INDEX sessions_by_age ON sessions (owner, created_at);

CREATE TABLE user_agent_active_sessions (
  owner uuid NOT NULL,
  user_id text NOT NULL,
  agent_name text NOT NULL,
  active_session_id text NOT NULL,
  last_active_at bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner, agent_name)
);

-- The table that langchain-postgres reads and writes. It may exist already, with more columns and
-- with messages, so it is made as that library makes it and then extended. Rows of sessions that
-- Memorist does not know belong to nobody (the nil owner).
CREATE SEQUENCE message_seq;
CREATE TABLE IF NOT EXISTS chat_message_history (
  id serial PRIMARY KEY,
  session_id uuid NOT NULL,
  message jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE chat_message_history
  ADD COLUMN owner uuid,
  ADD COLUMN message_id text,
  ADD COLUMN role text,
  ADD COLUMN source text,
  ALTER COLUMN id TYPE bigint,
  ALTER COLUMN id SET DEFAULT nextval('message_seq'),
  DROP CONSTRAINT chat_message_history_pkey;
DROP SEQUENCE IF EXISTS chat_message_history_id_seq;
SELECT setval('message_seq', coalesce(max(id), 0) + 1, false) FROM chat_message_history;

CREATE FUNCTION role_of(message jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE message ->> 'type'
    WHEN 'ai' THEN 'assistant' WHEN 'AIMessageChunk' THEN 'assistant'
    WHEN 'tool' THEN 'tool' WHEN 'function' THEN 'tool' WHEN 'system' THEN 'system'
    ELSE 'user' END
$$;
CREATE FUNCTION id_of(message jsonb) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN octet_length(message #>> '{data,id}') BETWEEN 1 AND 1000
    THEN message #>> '{data,id}' ELSE gen_random_uuid()::text END
$$;
UPDATE chat_message_history SET
  owner = '00000000-0000-0000-0000-000000000000', message_id = id_of(message),
  role = role_of(message), source = role_of(message);
UPDATE chat_message_history m SET message_id = gen_random_uuid()::text
WHERE EXISTS (
  SELECT FROM chat_message_history e
  WHERE e.session_id = m.session_id AND e.message_id = m.message_id AND e.id < m.id);
ALTER TABLE chat_message_history
  ALTER COLUMN owner SET NOT NULL,
  ALTER COLUMN message_id SET NOT NULL,
  ALTER COLUMN role SET NOT NULL,
  ALTER COLUMN source SET NOT NULL,
  ADD PRIMARY KEY (owner, id);
CREATE INDEX IF NOT EXISTS idx_chat_message_history_session_id ON chat_message_history (session_id);
CREATE INDEX messages_by_session ON chat_message_history (owner, session_id, id);
CREATE UNIQUE INDEX messages_by_id ON chat_message_history (owner, message_id, session_id);

CREATE TABLE message_revisions (
  owner uuid NOT NULL,
  message bigint NOT NULL,
  number integer NOT NULL,
  replaced_at bigint NOT NULL,
  role text NOT NULL,
  created_at timestamptz NOT NULL,
  body jsonb NOT NULL,
  PRIMARY KEY (owner, message, number)
);

CREATE SEQUENCE view_passage_seq INCREMENT -1 MAXVALUE -1;
CREATE TABLE passages (
  owner uuid NOT NULL,
  id bigint NOT NULL,
  kind text NOT NULL,
  agent_name text NOT NULL,
  session_id uuid,
  view_id text,
  start_at integer NOT NULL,
  stop_at integer NOT NULL,
  created_at bigint NOT NULL,
  role text,
  speaker text,
  self_reference double precision NOT NULL DEFAULT 0,
  is_question integer NOT NULL DEFAULT 0,
  outdated integer NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, id)
);
CREATE INDEX passages_by_view ON passages (owner, view_id) WHERE view_id IS NOT NULL;
CREATE INDEX passages_by_session ON passages (owner, session_id, id);

-- The words of each passage: a number for each, made of owner and word, so that an entry of the
-- index holds one user's passages alone. The index keeps few pending entries, because every search
-- reads those one by one.
CREATE TABLE passage_words (
  owner uuid NOT NULL,
  id bigint NOT NULL,
  words bigint[] NOT NULL,
  PRIMARY KEY (owner, id),
  FOREIGN KEY (owner, id) REFERENCES passages (owner, id) ON DELETE CASCADE
);
CREATE INDEX passages_by_word ON passage_words USING gin (words)
  WITH (gin_pending_list_limit = 256);

-- By the beginning of the name, since a name may be longer than an index takes.
CREATE TABLE speakers (
  owner uuid NOT NULL,
  speaker text NOT NULL
);
CREATE UNIQUE INDEX speakers_by_name ON speakers (owner, left(speaker, 500));

-- Arrays of real until pgvector is found, which then changes the column's type to its own.
CREATE TABLE vectors (
  owner uuid NOT NULL,
  embedder text NOT NULL,
  passage bigint NOT NULL,
  embedding real[] NOT NULL,
  PRIMARY KEY (owner, embedder, passage)
);
CREATE INDEX vectors_by_passage ON vectors (owner, passage);

CREATE TABLE embedders (
  owner uuid NOT NULL,
  embedder text NOT NULL,
  dimensions integer NOT NULL,
  prepared integer NOT NULL DEFAULT 1,
  PRIMARY KEY (owner, embedder)
);

CREATE TABLE memory_items (
  owner uuid NOT NULL,
  id text NOT NULL,
  agent_name text NOT NULL,
  session_id text,
  text text NOT NULL,
  kind text NOT NULL,
  category text NOT NULL,
  importance double precision NOT NULL,
  tags text NOT NULL,
  tier text NOT NULL,
  source text NOT NULL,
  created_at bigint NOT NULL,
  uses bigint NOT NULL,
  used_at bigint,
  expires_at bigint,
  ended_at bigint,
  superseded_by text,
  reason text,
  PRIMARY KEY (owner, id)
);
CREATE INDEX memories_by_age ON memory_items (owner, created_at, id);
CREATE INDEX memories_by_kind ON memory_items (owner, kind, created_at, id);
CREATE INDEX memories_by_category ON memory_items (owner, category, created_at, id);

CREATE TABLE facts (
  owner uuid NOT NULL,
  id text NOT NULL,
  agent_name text NOT NULL,
  session_id text,
  topic text NOT NULL,
  subject text NOT NULL,
  predicate text NOT NULL,
  object text NOT NULL,
  valid_from bigint,
  valid_to bigint,
  known_from bigint NOT NULL,
  known_to bigint,
  confidence double precision NOT NULL,
  source text NOT NULL,
  superseded_by text,
  reason text,
  ended_at bigint,
  said_at bigint,
  memory text,
  subject_start text GENERATED ALWAYS AS (substr(subject, 1, 200)) STORED,
  predicate_start text GENERATED ALWAYS AS (substr(predicate, 1, 200)) STORED,
  PRIMARY KEY (owner, id)
);
CREATE INDEX facts_by_age ON facts (owner, known_from, id);
CREATE INDEX facts_by_topic ON facts (owner, topic, known_from, id);
CREATE INDEX facts_by_subject ON facts (owner, subject_start, known_from, id);
CREATE INDEX facts_by_predicate ON facts (owner, predicate_start, known_from, id);
CREATE INDEX facts_by_memory ON facts (owner, memory) WHERE memory IS NOT NULL;

CREATE TABLE view_sources (
  owner uuid NOT NULL,
  view text NOT NULL,
  message_id text NOT NULL,
  PRIMARY KEY (owner, view, message_id)
);
CREATE INDEX views_by_message ON view_sources (owner, message_id);

CREATE TABLE entities (
  owner uuid NOT NULL,
  name text NOT NULL,
  fact text NOT NULL,
  PRIMARY KEY (owner, name, fact)
);
CREATE INDEX entities_by_fact ON entities (owner, fact);

CREATE TABLE agent_long_term_memory (
  owner uuid NOT NULL,
  user_id text NOT NULL,
  agent_name text NOT NULL,
  id text NOT NULL,
  version integer NOT NULL,
  notes text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (owner, agent_name)
);

CREATE TABLE note_versions (
  owner uuid NOT NULL,
  agent_name text NOT NULL,
  version integer NOT NULL,
  notes text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner, agent_name, version)
);

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
CREATE INDEX articles_by_age ON articles (owner, created_at, id);

-- JSON is kept as text, since jsonb takes no NUL character; paths are ordered by code points.
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
CREATE INDEX entries_by_age ON entries (owner, updated_at DESC, path);
CREATE INDEX entries_by_end ON entries (owner, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE jobs (
  owner uuid NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  session_id uuid,
  first_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  run_at bigint NOT NULL,
  lease text,
  error text,
  dead integer NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, id)
);
CREATE INDEX jobs_waiting ON jobs (id) WHERE dead = 0;
CREATE INDEX jobs_by_kind ON jobs (kind, id) WHERE dead = 0;
CREATE INDEX jobs_suspected ON jobs (deaths, id)
  WHERE dead = 0 AND (deaths > 0 OR lease IS NOT NULL);
CREATE INDEX jobs_dead ON jobs (kind) WHERE dead = 1;
CREATE INDEX jobs_by_session ON jobs (owner, session_id);

CREATE TABLE spending (
  hour bigint PRIMARY KEY,
  calls bigint NOT NULL,
  tokens bigint NOT NULL
);

-- A key tells who is asking, so it is read before the owner is known: no row-level security here.
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  tenant_hash text NOT NULL,
  tenant text NOT NULL,
  user_id text,
  label text NOT NULL,
  program integer NOT NULL,
  digest text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_hash, created_at, id);

-- One row for each write a process has under way at a time. It changes with the write, so that
-- a process that lost the answer to its COMMIT can tell whether it was done.
CREATE TABLE memorist_writes (
  client uuid PRIMARY KEY,
  number bigint NOT NULL,
  used_at timestamptz NOT NULL
);

-- As `fold` in records/values.py, for messages that other programs insert.
CREATE FUNCTION folded(said text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT regexp_replace(regexp_replace(replace(normalize(regexp_replace(
    normalize(lower(said), NFKD), '[\u0300-\u036f]', '', 'g'), NFC), 'ß', 'ss'),
    '[!-/:-@\[-`{-~]+', ' ', 'g'),
    '([\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])', ' \1 ', 'g')
$$;

-- As `stem` in language/stems.py: English stems without stop words, and Russian ones.
CREATE TEXT SEARCH DICTIONARY memorist_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH DICTIONARY memorist_russian (TEMPLATE = snowball, LANGUAGE = russian);
CREATE FUNCTION stem_of(word text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN length(word) > 40 THEN word
    WHEN octet_length(word) = length(word) THEN (ts_lexize('memorist_stem', word))[1]
    WHEN word ~ '^[\u0400-\u04ff]' THEN (ts_lexize('memorist_russian', word))[1]
    ELSE word END
$$;

-- The stems of a folded text, in their order.
CREATE FUNCTION stems_of(said text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(stem_of(word) ORDER BY place)
  FROM regexp_split_to_table(said, '\s+') WITH ORDINALITY AS split (word, place)
  WHERE word <> ''
$$;

-- As `word_keys` in store/postgres/db.py. A stem that was made here is led by a mark: this
-- server's stemmers are of another release than ours, and stem some words in another way.
CREATE FUNCTION word_key(for_owner uuid, word text, nth bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT ('x' || encode(substr(sha256(
    uuid_send(for_owner) || convert_to(nth || ' ' || word, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
CREATE FUNCTION word_keys(for_owner uuid, stems text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
  WITH said AS (
    SELECT word, place, lead(word) OVER (ORDER BY place) AS after
    FROM unnest(stems) WITH ORDINALITY AS listed (word, place)
  ), findable AS (
    SELECT word FROM said
    UNION ALL
    SELECT word || after FROM said
    WHERE word ~ '^[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]'
      AND after ~ '^[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]'
  ), counted AS (
    SELECT word, row_number() OVER (PARTITION BY word) AS nth FROM findable
  )
  SELECT coalesce(array_agg(word_key(for_owner, '~' || word, nth)), '{}')
  FROM counted WHERE nth <= 8
$$;

-- The speaker and the date, which the words of a message's first passage begin with.
CREATE FUNCTION about(speaker text, micros bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(speaker, '') || ' ' || to_char(
    timestamp 'epoch' + micros * interval '1 microsecond', 'FMDD FMMonth FMYYYY') || ' '
$$;

-- Whether a message of another program says its content and no more, as `Message.text` has it.
CREATE FUNCTION is_plain(message jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_typeof(message #> '{data,content}') = 'string'
    AND coalesce(message #> '{data,additional_kwargs}', '{}') IN ('{}', 'null')
    AND coalesce(message #> '{data,tool_calls}', '[]') IN ('[]', 'null')
    AND coalesce(message #> '{data,invalid_tool_calls}', '[]') IN ('[]', 'null')
    AND coalesce(message #> '{data,tool_call_chunks}', '[]') IN ('[]', 'null')
$$;

-- Index a message that another program inserted, and queue it. Where its text cannot be computed
-- exactly here, its last passage reaches to the end, wherever that is.
CREATE FUNCTION
  take_in(for_owner uuid, session uuid, seq bigint, message jsonb, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  content jsonb := message #> '{data,content}';
  said text := coalesce(CASE jsonb_typeof(content)
    WHEN 'array' THEN (SELECT string_agg(coalesce(part ->> 'text', part #>> '{}'), ' ')
                       FROM jsonb_array_elements(content) part)
    ELSE content #>> '{}' END, '');
  speaker text := nullif(message #>> '{data,name}', '');
  micros bigint := (extract(epoch FROM at) * 1000000)::bigint;
  size integer := 1000;
  last_piece integer := greatest(0, (length(said) - 1) / size);
BEGIN
  INSERT INTO passages (owner, id, kind, agent_name, session_id, start_at, stop_at, created_at,
    role, speaker)
  SELECT for_owner, seq * 1048576 + piece, 'message', s.agent_name, session, piece * size,
    CASE WHEN piece < last_piece THEN (piece + 1) * size
         WHEN is_plain(message) THEN length(said) ELSE 2147483647 END,
    micros, role_of(message), speaker
  FROM sessions s, generate_series(0, last_piece) piece
  WHERE s.owner = for_owner AND s.key = session;
  INSERT INTO passage_words (owner, id, words)
  SELECT for_owner, seq * 1048576 + piece, word_keys(for_owner, stems_of(folded(
    CASE WHEN piece = 0 THEN about(speaker, micros) ELSE '' END
    || substr(said, piece * size + 1, size))))
  FROM sessions s, generate_series(0, last_piece) piece
  WHERE s.owner = for_owner AND s.key = session;
  IF speaker IS NOT NULL THEN
    INSERT INTO speakers VALUES (for_owner, speaker) ON CONFLICT DO NOTHING;
  END IF;
  INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
  VALUES (for_owner, 'embed', session, seq, seq,
          (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
END $$;

-- The postings of terms: for each that is there, the passages, once for each occurrence. The words
-- searched for go into a setting, because under row-level security no condition of the query itself
-- may use the index of words; a condition of the policy may. Planned anew each time, for users of
-- all sizes.
CREATE FUNCTION word_postings(for_owner uuid, words text[], stems text[], most integer)
RETURNS SETOF bytea LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  postings bigint[];
  found bigint[];
BEGIN
  FOR term IN 1..cardinality(words) LOOP
    postings := '{}';
    FOR nth IN 1..8 LOOP
      PERFORM set_config('memorist.words', word_key(for_owner, stems[term], nth) || ' ' ||
        word_key(for_owner, '~' || stem_of(words[term]), nth), true);
      EXECUTE 'SELECT array_agg(id) FROM (SELECT id FROM passage_words LIMIT $1) AS those'
        INTO found USING most;
      EXIT WHEN found IS NULL;
      postings := postings || found;
    END LOOP;
    IF cardinality(postings) > 0 THEN
      RETURN NEXT array_send(postings);
    END IF;
  END LOOP;
  PERFORM set_config('memorist.words', '', true);
END $$;

-- The functions that run with the rights of the role that migrated name each table with its schema
-- and find no functions or operators but PostgreSQL's own: what another login of this database
-- makes, in a schema or among its temporary tables, is never called with those rights. Nobody may
-- call them but the role we work as.
CREATE FUNCTION owner_of_session(wanted uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT owner FROM @schema.session_uuids WHERE key = wanted
$$;

-- A row from langchain-postgres brings a session UUID and a message; the rest is filled in here.
CREATE FUNCTION fill_in() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(NEW.session_id::text, 0::bigint));
  NEW.owner := coalesce(owner_of_session(NEW.session_id), '00000000-0000-0000-0000-000000000000');
  -- As every write of ours does: a forget of this owner waits, or is waited for.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(replace(NEW.owner::text, '-', ''), 1::bigint));
  NEW.id := nextval('message_seq');
  NEW.message_id := id_of(NEW.message);
  NEW.role := role_of(NEW.message);
  NEW.source := NEW.role;
  PERFORM FROM chat_message_history m
  WHERE m.owner = NEW.owner AND m.message_id = NEW.message_id AND m.session_id = NEW.session_id;
  IF FOUND THEN
    RETURN NULL;  -- the same message again is the same message
  END IF;
  IF NEW.owner <> '00000000-0000-0000-0000-000000000000' THEN
    PERFORM take_in(NEW.owner, NEW.session_id, NEW.id, NEW.message, NEW.created_at);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER fill_in BEFORE INSERT ON chat_message_history
  FOR EACH ROW WHEN (NEW.owner IS NULL) EXECUTE FUNCTION fill_in();

-- A session's rows carry a UUID made from owner and id. They carry the id itself where it was made
-- by us, or was given by someone who may take LangChain's sessions over (`as_named`), if it is a
-- UUID that no other owner has.
CREATE FUNCTION claim_session_uuid(for_owner uuid, named text, as_named boolean) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  chosen uuid;
BEGIN
  IF as_named AND named ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN
    chosen := named::uuid;
    PERFORM pg_advisory_xact_lock(hashtextextended(named, 0));  -- a row may be on its way in
    INSERT INTO @schema.session_uuids VALUES (chosen, for_owner) ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM @schema.session_uuids WHERE key = chosen AND owner = for_owner) THEN
      RETURN chosen;
    END IF;
  END IF;
  chosen := substr(encode(sha256(convert_to(for_owner || '/' || named, 'UTF8')), 'hex'), 1, 32)::uuid;
  INSERT INTO @schema.session_uuids VALUES (chosen, for_owner) ON CONFLICT DO NOTHING;
  IF NOT EXISTS (SELECT FROM @schema.session_uuids WHERE key = chosen AND owner = for_owner) THEN
    chosen := gen_random_uuid();  -- somebody foresaw it and took it
    INSERT INTO @schema.session_uuids VALUES (chosen, for_owner);
  END IF;
  RETURN chosen;
END $$;

CREATE FUNCTION release_session_uuid() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM @schema.session_uuids WHERE key = OLD.key AND owner = OLD.owner;
  RETURN NULL;
END $$;
CREATE TRIGGER release_session_uuid AFTER DELETE OR UPDATE OF key ON sessions
  FOR EACH ROW EXECUTE FUNCTION release_session_uuid();

-- Messages that waited for their session to become known become its owner's.
CREATE FUNCTION adopt() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  waiting record;
BEGIN
  IF NEW.key::text <> NEW.session_id THEN
    RETURN NULL;
  END IF;
  PERFORM set_config('memorist.adopting', NEW.key::text, true);
  FOR waiting IN
    UPDATE chat_message_history m SET owner = NEW.owner
    WHERE session_id = NEW.key AND owner = '00000000-0000-0000-0000-000000000000'
      AND NOT EXISTS (
        SELECT FROM chat_message_history e
        WHERE e.owner = NEW.owner AND e.message_id = m.message_id AND e.session_id = NEW.key)
    RETURNING *
  LOOP
    PERFORM take_in(NEW.owner, NEW.key, waiting.id, waiting.message, waiting.created_at);
  END LOOP;
  PERFORM set_config('memorist.adopting', '', true);
  RETURN NULL;
END $$;
CREATE TRIGGER adopt AFTER INSERT OR UPDATE OF key ON sessions
  FOR EACH ROW EXECUTE FUNCTION adopt();

-- Give a session the UUID that it is named by, and with it the messages that wait there; false
-- where the name is no UUID, or another owner's. The session need not exist yet.
CREATE FUNCTION adopt_session(for_owner uuid, hash text, named text) RETURNS boolean
LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  held uuid := (SELECT key FROM sessions WHERE owner = for_owner AND session_hash = hash);
  wanted uuid;
BEGIN
  IF held::text = named THEN
    RETURN true;
  END IF;
  wanted := claim_session_uuid(for_owner, named, true);
  IF wanted::text <> named THEN
    RETURN false;
  END IF;
  IF held IS NOT NULL THEN  -- nobody else may write for this owner: they know the old key
    PERFORM pg_advisory_xact_lock(
      hashtextextended(replace(for_owner::text, '-', ''), 1::bigint));
    UPDATE chat_message_history SET session_id = wanted
    WHERE owner = for_owner AND session_id = held;
    UPDATE passages SET session_id = wanted WHERE owner = for_owner AND session_id = held;
    UPDATE summaries SET session_id = wanted WHERE owner = for_owner AND session_id = held;
    UPDATE jobs SET session_id = wanted WHERE owner = for_owner AND session_id = held;
    UPDATE sessions SET key = wanted WHERE owner = for_owner AND session_hash = hash;
  END IF;
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION owner_of_session(uuid), claim_session_uuid(uuid, text, boolean),
  release_session_uuid() FROM PUBLIC;

CREATE FUNCTION message_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  DELETE FROM passages
  WHERE owner = OLD.owner AND id BETWEEN OLD.id * 1048576 AND OLD.id * 1048576 + 1048575;
  DELETE FROM message_revisions WHERE owner = OLD.owner AND message = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER message_gone AFTER DELETE ON chat_message_history
  FOR EACH ROW EXECUTE FUNCTION message_gone();

CREATE FUNCTION passage_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  DELETE FROM vectors WHERE owner = OLD.owner AND passage = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER passage_gone AFTER DELETE ON passages
  FOR EACH ROW EXECUTE FUNCTION passage_gone();

-- Row-level security: a query that forgets its WHERE still sees one owner's rows, and none
-- where no owner was set. The tables of the queue, which hold no words, open to a worker.
DO $$
DECLARE
  guarded text;
  mine text := $q$ (owner = nullif(current_setting('memorist.owner', true), '')::uuid) $q$;
  worker text := $q$ (current_setting('memorist.worker', true) = 'on') $q$;
BEGIN
  FOREACH guarded IN ARRAY ARRAY[
    'owners', 'sessions', 'user_agent_active_sessions', 'chat_message_history',
    'message_revisions', 'passages', 'passage_words', 'speakers', 'vectors', 'embedders',
    'memory_items', 'facts', 'view_sources', 'entities', 'agent_long_term_memory',
    'note_versions', 'summaries', 'articles', 'entries', 'jobs']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
    IF guarded <> 'passage_words' THEN
      EXECUTE format('CREATE POLICY own_rows ON %I USING %s WITH CHECK %s', guarded, mine, mine);
    END IF;
  END LOOP;
  -- Written with a passage, deleted with it, and read by words alone.
  EXECUTE 'CREATE POLICY own_rows ON passage_words FOR INSERT WITH CHECK ' || mine;
  EXECUTE 'CREATE POLICY worker ON jobs USING ' || worker || ' WITH CHECK ' || worker;
  EXECUTE 'CREATE POLICY worker ON owners FOR SELECT USING ' || worker;
  EXECUTE 'CREATE POLICY worker ON sessions FOR SELECT USING ' || worker;
  EXECUTE 'CREATE POLICY worker ON embedders FOR SELECT USING ' || worker;
END $$;
-- Each setting is read once and not for every row; and no index but that of words fits.
CREATE POLICY asked ON passage_words FOR SELECT USING (
  words && (SELECT string_to_array(current_setting('memorist.words', true), ' ')::bigint[])
  AND owner IS NOT DISTINCT FROM
    (SELECT nullif(current_setting('memorist.owner', true), '')::uuid));
CREATE POLICY adoption ON chat_message_history USING (
  owner = '00000000-0000-0000-0000-000000000000'
  AND session_id::text = current_setting('memorist.adopting', true));
ALTER TABLE session_uuids ENABLE ROW LEVEL SECURITY;

-- The role we work as owns nothing and may do what the statements need. Where this login may make
-- no roles, it works as itself, and row-level security binds it.
DO $$
DECLARE
  guarded text;
BEGIN
  BEGIN
    CREATE ROLE memorist_app NOLOGIN;
  EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    NULL;  -- it is there, is being made in another database, or is not ours to make
  END;
  BEGIN
    GRANT memorist_app TO CURRENT_USER;
  EXCEPTION WHEN insufficient_privilege THEN
    IF NOT pg_has_role('memorist_app', 'MEMBER') THEN
      RETURN;  -- others' role, which is given nothing
    END IF;
  END;
  GRANT USAGE ON SCHEMA @schema TO memorist_app;
  FOR guarded IN
    SELECT DISTINCT tablename FROM pg_policies
    WHERE policyname = 'own_rows' AND schemaname = current_schema()
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorist_app', guarded);
  END LOOP;
  GRANT SELECT, INSERT, UPDATE, DELETE ON spending, memorist_writes TO memorist_app;
  GRANT SELECT ON memorist_meta TO memorist_app;
  GRANT SELECT, INSERT, UPDATE ON api_keys TO memorist_app;
  GRANT USAGE ON SEQUENCE message_seq, view_passage_seq TO memorist_app;
  GRANT EXECUTE ON FUNCTION owner_of_session, claim_session_uuid TO memorist_app;
EXCEPTION WHEN undefined_object THEN
  NULL;  -- there is no such role
END $$;

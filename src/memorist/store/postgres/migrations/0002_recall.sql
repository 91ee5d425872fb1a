-- Search anew: smaller passages, who speaks, and words that are found by an index. What lies in
-- the tables is the owners' own, so row-level security steps aside while it is carried over: a
-- migrating user who is bound by it would see nothing.
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_message_history NO FORCE ROW LEVEL SECURITY;
ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE embedders NO FORCE ROW LEVEL SECURITY;
ALTER TABLE facts NO FORCE ROW LEVEL SECURITY;

-- No embedder has seen all that a user has: nothing queued it until now.
ALTER TABLE embedders ADD COLUMN prepared integer NOT NULL DEFAULT 1;
UPDATE embedders SET prepared = 0;

-- Who speaks in a user's conversations, by the names that messages carry.
CREATE TABLE speakers (
  owner uuid NOT NULL,
  speaker text NOT NULL
);
-- By its beginning, since a name may be longer than an index takes.
CREATE UNIQUE INDEX speakers_by_name ON speakers (owner, left(speaker, 500));

-- The things that facts are about, to walk from one fact to the next.
CREATE TABLE entities (
  owner uuid NOT NULL,
  name text NOT NULL,
  fact text NOT NULL,
  PRIMARY KEY (owner, name, fact)
);
CREATE INDEX entities_by_fact ON entities (owner, fact);

-- What the words of each passage are found by: a number for each, made of owner and word, so that
-- an entry of the index holds one user's passages alone.
CREATE TABLE passage_words (
  owner uuid NOT NULL,
  id bigint NOT NULL,
  words bigint[] NOT NULL,
  PRIMARY KEY (owner, id),
  FOREIGN KEY (owner, id) REFERENCES passages (owner, id) ON DELETE CASCADE
);

-- As `stem` in store/words.py, for rows that come from elsewhere.
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

-- Whether a message from elsewhere says its content and no more, as `Message.text` has it.
CREATE FUNCTION is_plain(message jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_typeof(message #> '{data,content}') = 'string'
    AND coalesce(message #> '{data,additional_kwargs}', '{}') IN ('{}', 'null')
    AND coalesce(message #> '{data,tool_calls}', '[]') IN ('[]', 'null')
    AND coalesce(message #> '{data,invalid_tool_calls}', '[]') IN ('[]', 'null')
    AND coalesce(message #> '{data,tool_call_chunks}', '[]') IN ('[]', 'null')
$$;

-- Make a message that came from elsewhere findable, and queue it for its vector and more. Where
-- its text is not known here to the letter, its last passage reaches to the end, wherever that is.
CREATE OR REPLACE FUNCTION
  take_in(for_owner uuid, session uuid, seq bigint, message jsonb, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
  INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, attempts, run_at, dead)
  VALUES (for_owner, 'embed', session, seq, seq, 0,
          (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0);
END $$;

-- Where terms stand: for each that is there, the passages, once for each time. What is looked for
-- goes into a setting, because row-level security lets no condition of a query's own use an index
-- of words; a condition of the policy may. Planned anew each time, for users of all sizes.
CREATE FUNCTION word_places(for_owner uuid, words text[], stems text[], most integer)
RETURNS SETOF bytea LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  places bigint[];
  found bigint[];
BEGIN
  FOR term IN 1..cardinality(words) LOOP
    places := '{}';
    FOR nth IN 1..8 LOOP
      PERFORM set_config('memorist.words', word_key(for_owner, stems[term], nth) || ' ' ||
        word_key(for_owner, '~' || stem_of(words[term]), nth), true);
      EXECUTE 'SELECT array_agg(id) FROM (SELECT id FROM passage_words LIMIT $1) AS those'
        INTO found USING most;
      EXIT WHEN found IS NULL;
      places := places || found;
    END LOOP;
    IF cardinality(places) > 0 THEN
      RETURN NEXT array_send(places);
    END IF;
  END LOOP;
  PERFORM set_config('memorist.words', '', true);
END $$;

-- What is there stays findable as it is cut, and gets its role, its speaker and its date.
ALTER TABLE passages
  ADD COLUMN role text, ADD COLUMN speaker text,
  ADD COLUMN own double precision NOT NULL DEFAULT 0, ADD COLUMN asks integer NOT NULL DEFAULT 0;
CREATE INDEX passages_by_session ON passages (owner, session_id, id);
UPDATE passages p SET
  role = m.role,
  speaker = nullif(m.message #>> '{data,name}', ''),
  stop_at = CASE WHEN p.stop_at = 2147483647 AND is_plain(m.message)
    THEN length(m.message #>> '{data,content}') ELSE p.stop_at END
FROM chat_message_history m
WHERE p.id > 0 AND m.owner = p.owner AND m.id = p.id / 1048576;
INSERT INTO speakers SELECT DISTINCT owner, speaker FROM passages WHERE speaker IS NOT NULL
ON CONFLICT DO NOTHING;
INSERT INTO passage_words (owner, id, words)
SELECT p.owner, p.id, word_keys(p.owner,
  CASE WHEN p.id > 0 AND p.start_at = 0 THEN stems_of(folded(about(p.speaker, p.created_at))) END
  || (SELECT array_agg(CASE WHEN w.lexeme ~ '^[\u0400-\u04ff]' THEN stem_of(w.lexeme)
                            ELSE w.lexeme END ORDER BY place)
      FROM unnest(p.words) w, unnest(w.positions) place))
FROM passages p;
ALTER TABLE passages DROP COLUMN words;
DROP TEXT SEARCH CONFIGURATION memorist;
INSERT INTO entities
SELECT DISTINCT owner, left(name, 200), id FROM facts,
  LATERAL (VALUES (subject), (object)) ends (said),
  LATERAL (SELECT btrim(regexp_replace(folded(said), '\s+', ' ', 'g')) AS name) folded_end
WHERE name <> '' AND known_to IS NULL AND valid_to IS NULL;

-- Few waiting entries: they are read one by one at every search.
CREATE INDEX passages_by_word ON passage_words USING gin (words)
  WITH (gin_pending_list_limit = 256);

-- Work on derived records belongs to no session. What waits to be thought about gets vectors first.
ALTER TABLE jobs ALTER COLUMN session_id DROP NOT NULL;
CREATE INDEX jobs_by_kind ON jobs (kind, id) WHERE dead = 0;
UPDATE jobs SET kind = 'embed' WHERE kind = 'derive';

DO $$
DECLARE
  guarded text;
  mine text := $q$ (owner = nullif(current_setting('memorist.owner', true), '')::uuid) $q$;
  worker text := $q$ (current_setting('memorist.worker', true) = 'on') $q$;
BEGIN
  FOREACH guarded IN ARRAY ARRAY['speakers', 'entities', 'passage_words',
    'passages', 'chat_message_history', 'jobs', 'embedders', 'facts']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
  END LOOP;
  FOREACH guarded IN ARRAY ARRAY['speakers', 'entities'] LOOP
    EXECUTE format('CREATE POLICY own_rows ON %I USING %s WITH CHECK %s', guarded, mine, mine);
  END LOOP;
  -- Written with a passage, gone with it, and read by words alone.
  EXECUTE 'CREATE POLICY own_rows ON passage_words FOR INSERT WITH CHECK ' || mine;
  EXECUTE 'CREATE POLICY worker ON embedders FOR SELECT USING ' || worker;
END $$;
-- Each setting is read once and not for every row; and no index but that of words fits.
CREATE POLICY asked ON passage_words FOR SELECT USING (
  words && (SELECT string_to_array(current_setting('memorist.words', true), ' ')::bigint[])
  AND owner IS NOT DISTINCT FROM
    (SELECT nullif(current_setting('memorist.owner', true), '')::uuid));

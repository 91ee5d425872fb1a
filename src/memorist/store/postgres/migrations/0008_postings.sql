-- beside: 6
-- The passages of each word, some 250 in a row, so that a search reads few rows. A passage is a
-- place of eight bytes: its id, or for a derived record what lies beyond all messages, later ones
-- further. Rows of a word follow one another: each holds places from `part` up to the next row's.
-- A row is kept in one piece: to put it together again would take longer than to read it.
CREATE TABLE postings (
  owner uuid NOT NULL,
  word bigint NOT NULL,
  part bigint NOT NULL,
  places bytea NOT NULL,
  PRIMARY KEY (owner, word, part)
) WITH (toast_tuple_target = 8160);

-- How many messages are in them: those with a passage of the number 0.
CREATE TABLE placed_messages (owner uuid PRIMARY KEY, count bigint NOT NULL);

CREATE FUNCTION place_of(passage bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN passage < 0 THEN 4611686018427387904 - passage ELSE passage END
$$;

-- Meanwhile nobody may write.
LOCK TABLE passage_words IN SHARE ROW EXCLUSIVE MODE;
DO $$
BEGIN
  IF row_security_active('passage_words') THEN
    ALTER TABLE passage_words NO FORCE ROW LEVEL SECURITY;
  END IF;
END $$;
SET LOCAL work_mem = '128MB';
INSERT INTO postings
SELECT owner, word, min(place), string_agg(int8send(place), '' ORDER BY place)
FROM (
  SELECT owner, word, place, place > 4611686018427387904 AS is_view,
    (row_number() OVER (PARTITION BY owner, word, place > 4611686018427387904 ORDER BY place) - 1) / 250
      AS row
  FROM passage_words, unnest(words) AS word, place_of(id) AS place) AS said
GROUP BY owner, word, is_view, row;
INSERT INTO placed_messages
SELECT owner, count(*) FROM passage_words WHERE id > 0 AND id % 1048576 = 0 GROUP BY owner;

-- New passages wait until some hundred of a user's can be placed together. The words of those that
-- are placed are kept, to take them out again.
ALTER TABLE passage_words ADD COLUMN placed boolean NOT NULL DEFAULT true;
ALTER TABLE passage_words ALTER COLUMN placed SET DEFAULT false,
  DROP CONSTRAINT passage_words_owner_id_fkey;  -- they go with their passage, by a trigger below
CREATE INDEX words_waiting ON passage_words (owner, id) WHERE NOT placed;
DROP INDEX passages_by_word;
DROP POLICY asked ON passage_words;
DROP POLICY own_rows ON passage_words;
DO $$
DECLARE
  guarded text;
  mine text := $q$ (owner = nullif(current_setting('memorist.owner', true), '')::uuid) $q$;
BEGIN
  FOREACH guarded IN ARRAY ARRAY['passage_words', 'postings', 'placed_messages'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
    EXECUTE format('CREATE POLICY own_rows ON %I USING %s WITH CHECK %s', guarded, mine, mine);
  END LOOP;
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memorist_app') THEN
    IF pg_has_role('memorist_app', 'MEMBER') THEN  -- or it is others'
      GRANT SELECT, INSERT, UPDATE, DELETE ON postings, placed_messages TO memorist_app;
    END IF;
  END IF;
END $$;

-- For places that do not come in order, as those of a message that was changed.
CREATE FUNCTION merged(held bytea, added bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(place, '' ORDER BY place) FROM (
    SELECT DISTINCT substr(held || added, n, 8) AS place
    FROM generate_series(1, length(held || added), 8) AS n) AS each
$$;
CREATE FUNCTION without(held bytea, gone bytea[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  place bytea;
  at integer;
  further integer;
BEGIN
  FOREACH place IN ARRAY gone LOOP
    at := 0;
    LOOP
      further := position(place IN substr(held, at + 1));
      at := at + further;
      EXIT WHEN further = 0 OR at % 8 = 1;  -- it may also lie across two
    END LOOP;
    IF further > 0 THEN
      held := substr(held, 1, at - 1) || substr(held, at + 8);
    END IF;
  END LOOP;
  RETURN held;
END $$;

-- Place passages that wait, if there are so many. One transaction at a time does that for an owner;
-- those that another is deleting are left to it.
CREATE FUNCTION place_words(for_owner uuid, fewest integer) RETURNS void LANGUAGE plpgsql
SET search_path = @schema, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  IF (SELECT count(*) FROM (
      SELECT FROM passage_words WHERE owner = for_owner AND NOT placed LIMIT fewest) AS those) < fewest
    OR NOT pg_try_advisory_xact_lock(hashtextextended(for_owner::text, 2)) THEN
    RETURN;
  END IF;
  WITH waiting AS (
    SELECT id, cardinality(words) AS size FROM passage_words WHERE owner = for_owner AND NOT placed
    ORDER BY id LIMIT 512 FOR UPDATE SKIP LOCKED
  ), few AS (  -- at most so many words that it takes some 100 ms
    SELECT id FROM (SELECT id, size, sum(size) OVER (ORDER BY id) AS so_far FROM waiting) AS sized
    WHERE so_far - size < 5000
  ), moved AS (
    UPDATE passage_words SET placed = true WHERE owner = for_owner AND id = ANY(ARRAY(SELECT id FROM few))
    RETURNING id, place_of(id) AS place, words
  ), counted AS (
    INSERT INTO placed_messages AS m (owner, count)
    SELECT for_owner, count(*) FROM moved WHERE id > 0 AND id % 1048576 = 0
    ON CONFLICT (owner) DO UPDATE SET count = m.count + excluded.count
  ), numbered AS (
    SELECT word, place, part, place > 4611686018427387904 AS is_view,
      (row_number() OVER (PARTITION BY word, part, place > 4611686018427387904 ORDER BY place) - 1) / 250
        AS row
    FROM moved, unnest(words) AS w (word), LATERAL (
        SELECT (SELECT p.part FROM postings p WHERE p.owner = for_owner AND p.word = w.word AND p.part
          BETWEEN CASE WHEN place > 4611686018427387904 THEN 4611686018427387904 ELSE 0 END AND place
          ORDER BY p.part DESC LIMIT 1) AS part OFFSET 0) AS home
  ), added AS MATERIALIZED (
    SELECT word, part, row, min(place) AS first, string_agg(int8send(place), '' ORDER BY place) AS places
    FROM numbered GROUP BY word, part, is_view, row
  )
  INSERT INTO postings AS p (owner, word, part, places)
  SELECT for_owner, a.word, CASE WHEN a.row > 0 OR h.is_full THEN a.first ELSE coalesce(a.part, a.first) END,
    a.places
  FROM added a LEFT JOIN LATERAL (
    SELECT length(places) >= 2000 AND substr(places, length(places) - 7) < substr(a.places, 1, 8) AS is_full
    FROM postings WHERE owner = for_owner AND word = a.word AND part = a.part) AS h ON true
  ON CONFLICT (owner, word, part) DO UPDATE SET places =
    CASE WHEN substr(p.places, length(p.places) - 7) < substr(excluded.places, 1, 8)
    THEN p.places || excluded.places ELSE merged(p.places, excluded.places) END;
END $$;

-- Who embeds passages places them; where nobody does, who adds one to very many.
CREATE FUNCTION words_wait() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  IF coalesce(current_setting('memorist.has_placed', true), '') = '' THEN  -- once in a transaction
    PERFORM set_config('memorist.has_placed', 'yes', true);
    PERFORM place_words(NEW.owner, TG_ARGV[0]::integer);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER words_wait AFTER INSERT ON vectors
  FOR EACH ROW WHEN (random() < 0.06) EXECUTE FUNCTION words_wait(256);
CREATE TRIGGER words_wait AFTER INSERT ON passage_words
  FOR EACH ROW WHEN (random() < 0.02) EXECUTE FUNCTION words_wait(512);

-- The places of each term, once for each occurrence, of at most the newest `most` or some more. They
-- are null from where the terms, the rarest first, have more than `in_all` together.
CREATE FUNCTION
  places_of(for_owner uuid, words text[], stems text[], most bigint, in_all bigint)
RETURNS TABLE (term bigint, places bytea) LANGUAGE plpgsql STABLE ROWS 10
SET search_path = @schema, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY WITH said AS MATERIALIZED (
    SELECT number, stem FROM unnest(stems) WITH ORDINALITY AS s (stem, number)
    UNION ALL
    SELECT number, '~' || stem_of(word) FROM unnest(words) WITH ORDINALITY AS w (word, number)
  ), keys AS MATERIALIZED (  -- as `word_key`, which would be called for each
    SELECT number, ('x' || encode(substr(sha256(uuid_send(for_owner)
      || convert_to(nth || ' ' || stem, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS key
    FROM said, generate_series(1, 8) AS nth
  ), found AS (
    SELECT k.number, c.places FROM keys k CROSS JOIN LATERAL (
      SELECT p.places FROM postings p WHERE p.owner = for_owner AND p.word = k.key
      ORDER BY p.part DESC LIMIT most / 200 + 4) AS c
    UNION ALL
    SELECT k.number, int8send(place_of(w.id)) FROM (
      SELECT id, unnest(passage_words.words) AS key FROM passage_words
      WHERE owner = for_owner AND NOT placed) AS w JOIN keys k ON k.key = w.key
  ), listed AS (
    SELECT number, string_agg(found.places, '') AS places FROM found GROUP BY number
  )
  SELECT number, CASE WHEN row_number() OVER rarest = 1
    OR sum(length(listed.places)) OVER rarest <= in_all * 8 THEN listed.places END
  FROM listed WINDOW rarest AS (ORDER BY length(listed.places), number);
END $$;

-- As before, for servers that are not upgraded yet.
CREATE OR REPLACE FUNCTION
  word_postings(for_owner uuid, words text[], stems text[], most integer)
RETURNS SETOF bytea LANGUAGE sql STABLE SET search_path = @schema, pg_temp AS $$
  SELECT array_send(array_agg(CASE WHEN place > 4611686018427387904
    THEN 4611686018427387904 - place ELSE place END ORDER BY term))
  FROM places_of(for_owner, words, stems, most, 2147483647) AS f,
    generate_series(1, length(places), 8) AS n,
    LATERAL (SELECT ('x' || encode(substr(places, n, 8), 'hex'))::bit(64)::bigint AS place) AS p
  GROUP BY term ORDER BY term
$$;

-- With passages go their vectors and words, those of a statement together.
CREATE OR REPLACE FUNCTION passage_gone() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  theirs uuid;
  emptied bigint[];
  is_all boolean;  -- that the owner has, and nobody is adding to it
BEGIN
  FOR theirs IN SELECT DISTINCT owner FROM gone LOOP
    is_all := NOT EXISTS (SELECT FROM passages WHERE owner = theirs)
      AND pg_try_advisory_xact_lock(hashtextextended(replace(theirs::text, '-', ''), 1::bigint));
    IF is_all AND NOT EXISTS (SELECT FROM passages WHERE owner = theirs) THEN
      DELETE FROM vectors WHERE owner = theirs;
      DELETE FROM passage_words WHERE owner = theirs;
      DELETE FROM postings WHERE owner = theirs;
      DELETE FROM placed_messages WHERE owner = theirs;
      CONTINUE;
    END IF;
    DELETE FROM vectors v USING gone g WHERE g.owner = theirs AND v.owner = theirs AND v.passage = g.id;
    -- Who places them is waited for; what is read from here on is what they did.
    PERFORM FROM gone g JOIN passage_words w ON w.owner = theirs AND w.id = g.id
    WHERE g.owner = theirs FOR UPDATE OF w;
    PERFORM pg_advisory_xact_lock(hashtextextended(theirs::text, 2));
    WITH unworded AS (
      DELETE FROM passage_words w USING gone g WHERE g.owner = theirs AND w.owner = theirs AND w.id = g.id
      RETURNING w.id, place_of(w.id) AS place, w.words, w.placed
    ), counted AS (
      UPDATE placed_messages m SET count = m.count - (
        SELECT count(*) FROM unworded u WHERE u.placed AND u.id > 0 AND u.id % 1048576 = 0)
      WHERE m.owner = theirs
    ), leaving AS (
      SELECT word, part, array_agg(int8send(place)) AS places
      FROM unworded, unnest(words) AS w (word), LATERAL (
        SELECT (SELECT p.part FROM postings p WHERE p.owner = theirs AND p.word = w.word AND p.part
          BETWEEN CASE WHEN place > 4611686018427387904 THEN 4611686018427387904 ELSE 0 END AND place
          ORDER BY p.part DESC LIMIT 1) AS part OFFSET 0) AS home
      WHERE placed AND part IS NOT NULL GROUP BY word, part
    ), cut AS (
      UPDATE postings p SET places = without(p.places, l.places) FROM leaving l
      WHERE p.owner = theirs AND p.word = l.word AND p.part = l.part RETURNING p.word, p.places
    )
    SELECT array_agg(word) INTO emptied FROM cut WHERE places = '';
    DELETE FROM postings WHERE owner = theirs AND word = ANY(emptied) AND places = '';
  END LOOP;
  RETURN NULL;
END $$;
DROP TRIGGER passage_gone ON passages;
CREATE TRIGGER passage_gone AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION passage_gone();

CREATE OR REPLACE FUNCTION message_gone() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  theirs uuid;
  before text;
BEGIN
  FOR theirs IN SELECT DISTINCT owner FROM gone LOOP
    before := act_for(theirs::text);
    DELETE FROM passages p USING gone g
    WHERE g.owner = theirs AND p.owner = theirs AND p.id BETWEEN g.id * 1048576 AND g.id * 1048576 + 1048575;
    DELETE FROM message_revisions r USING gone g
    WHERE g.owner = theirs AND r.owner = theirs AND r.message = g.id;
    IF before = '' THEN
      PERFORM act_for('');
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
DROP TRIGGER message_gone ON chat_message_history;
CREATE TRIGGER message_gone AFTER DELETE ON chat_message_history REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION message_gone();

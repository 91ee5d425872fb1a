-- beside: 6
-- Place passages that wait, as before. Mostly their places come after all that a word has, in its last row or
-- behind it; only those that do not, or are very many, are looked up one by one.
CREATE OR REPLACE FUNCTION place_words(for_owner uuid, fewest integer) RETURNS void LANGUAGE plpgsql
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
    WHERE so_far - size < 10000
  ), moved AS (
    UPDATE passage_words SET placed = true WHERE owner = for_owner AND id = ANY(ARRAY(SELECT id FROM few))
    RETURNING id, place_of(id) AS place, words
  ), counted AS (
    INSERT INTO placed_messages AS m (owner, count)
    SELECT for_owner, count(*) FROM moved WHERE id > 0 AND id % 1048576 = 0
    ON CONFLICT (owner) DO UPDATE SET count = m.count + excluded.count
  ), said AS (
    SELECT word, place > 4611686018427387904 AS is_view, min(place) AS first,
      string_agg(int8send(place), '' ORDER BY place) AS places
    FROM moved, unnest(words) AS w (word) GROUP BY word, is_view
  ), behind AS MATERIALIZED (
    SELECT s.*, l.part, l.is_full,
      (l.part IS NULL OR l.ends < int8send(s.first)) AND length(s.places) <= 2000 AS in_order
    FROM said s LEFT JOIN LATERAL (
      SELECT part, length(places) >= 2000 AS is_full, substr(places, length(places) - 7) AS ends
      FROM postings WHERE owner = for_owner AND word = s.word
        AND part BETWEEN CASE WHEN s.is_view THEN 4611686018427387904 ELSE 0 END
        AND CASE WHEN s.is_view THEN 9223372036854775807 ELSE 4611686018427387904 END
      ORDER BY part DESC LIMIT 1) AS l ON true
  ), numbered AS (
    SELECT b.word, place, home.part, is_view,
      (row_number() OVER (PARTITION BY b.word, home.part, is_view ORDER BY place) - 1) / 250 AS row
    FROM behind b, generate_series(1, length(b.places), 8) AS n, LATERAL (
      SELECT ('x' || encode(substr(b.places, n, 8), 'hex'))::bit(64)::bigint AS place) AS p, LATERAL (
        SELECT (SELECT p.part FROM postings p WHERE p.owner = for_owner AND p.word = b.word AND p.part
          BETWEEN CASE WHEN is_view THEN 4611686018427387904 ELSE 0 END AND place
          ORDER BY p.part DESC LIMIT 1) AS part OFFSET 0) AS home
    WHERE NOT in_order
  ), added AS (
    SELECT word, part, row, min(place) AS first, string_agg(int8send(place), '' ORDER BY place) AS places
    FROM numbered GROUP BY word, part, is_view, row
  )
  INSERT INTO postings AS p (owner, word, part, places)
  SELECT for_owner, word, CASE WHEN is_full THEN first ELSE coalesce(part, first) END, places
  FROM behind WHERE in_order
  UNION ALL
  SELECT for_owner, a.word, CASE WHEN a.row > 0 OR h.is_full THEN a.first ELSE coalesce(a.part, a.first) END,
    a.places
  FROM added a LEFT JOIN LATERAL (
    SELECT length(places) >= 2000 AND substr(places, length(places) - 7) < substr(a.places, 1, 8) AS is_full
    FROM postings WHERE owner = for_owner AND word = a.word AND part = a.part) AS h ON true
  ON CONFLICT (owner, word, part) DO UPDATE SET places =
    CASE WHEN substr(p.places, length(p.places) - 7) < substr(excluded.places, 1, 8)
    THEN p.places || excluded.places ELSE merged(p.places, excluded.places) END;
END $$;

-- Who embeds passages places them. Where nobody does, who adds one to many is told, and has them placed
-- when its own write is over; a program that does not, places them itself when they are very many.
CREATE OR REPLACE FUNCTION words_wait() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  many integer := TG_ARGV[0]::integer;
BEGIN
  IF coalesce(current_setting('memorist.has_placed', true), '') = '' THEN  -- once in a transaction
    PERFORM set_config('memorist.has_placed', 'yes', true);
    IF TG_TABLE_NAME = 'passage_words' AND (SELECT count(*) FROM (
        SELECT FROM passage_words WHERE owner = NEW.owner AND NOT placed LIMIT many) AS those)
        BETWEEN 256 AND many - 1 THEN
      RAISE NOTICE USING ERRCODE = 'MEM02', MESSAGE = replace(NEW.owner::text, '-', '');
    ELSE
      PERFORM place_words(NEW.owner, many);
    END IF;
  END IF;
  RETURN NULL;
END $$;
DROP TRIGGER words_wait ON passage_words;
CREATE TRIGGER words_wait AFTER INSERT ON passage_words
  FOR EACH ROW WHEN (random() < 0.02) EXECUTE FUNCTION words_wait(1024);

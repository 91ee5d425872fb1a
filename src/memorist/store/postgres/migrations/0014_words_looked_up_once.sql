-- beside: 6
-- A word's number, as `word_key` has it, in a form that PostgreSQL puts in place of the call.
CREATE FUNCTION key_of(for_owner uuid, counted text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT ('x' || encode(substr(sha256(uuid_send(for_owner) || convert_to(counted, 'UTF8')), 1, 8), 'hex')
    )::bit(64)::bigint
$$;

-- The places of each term, as before. A word is looked for once more often than any passage has it, and
-- not eight times: each look is a page of the index, which may have to be read. Lists are put together
-- when it is known which of them are wanted.
CREATE OR REPLACE FUNCTION
  places_of(for_owner uuid, words text[], stems text[], most bigint, in_all bigint)
RETURNS TABLE (term bigint, places bytea) LANGUAGE plpgsql STABLE ROWS 10
SET search_path = @schema, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY WITH RECURSIVE said AS MATERIALIZED (
    SELECT number, stem FROM unnest(stems) WITH ORDINALITY AS s (stem, number)
    UNION ALL
    SELECT number, '~' || stem_of(word) FROM unnest(words) WITH ORDINALITY AS w (word, number)
  ), keys AS (
    SELECT number, stem, 1 AS nth, key_of(for_owner, '1 ' || stem) AS key FROM said
    UNION ALL
    SELECT number, stem, nth + 1, key_of(for_owner, nth + 1 || ' ' || stem) FROM keys
    WHERE nth < 8  -- and asked of each word, or all postings of an owner who has many more than most are read
      AND EXISTS (SELECT FROM postings p WHERE p.owner = for_owner AND p.word = keys.key OFFSET 0)
  ), found AS MATERIALIZED (
    SELECT k.number, c.places FROM keys k CROSS JOIN LATERAL (
      SELECT p.places FROM postings p WHERE p.owner = for_owner AND p.word = k.key
      ORDER BY p.part DESC LIMIT most / 200 + 4) AS c
    UNION ALL
    SELECT k.number, int8send(place_of(w.id)) FROM (
      SELECT id, unnest(passage_words.words) AS key FROM passage_words
      WHERE owner = for_owner AND NOT placed) AS w
    JOIN (SELECT number, key_of(for_owner, nth || ' ' || stem) AS key FROM said, generate_series(1, 8) AS nth)
      AS k ON k.key = w.key
  ), chosen AS MATERIALIZED (
    SELECT number, row_number() OVER rarest = 1 OR sum(size) OVER rarest <= in_all * 8 AS is_sent
    FROM (SELECT number, sum(length(found.places)) AS size FROM found GROUP BY number) AS sized
    WINDOW rarest AS (ORDER BY size, number)
  )
  SELECT c.number, string_agg(f.places, '') FILTER (WHERE c.is_sent)
  FROM found f JOIN chosen c ON c.number = f.number GROUP BY c.number;
END $$;

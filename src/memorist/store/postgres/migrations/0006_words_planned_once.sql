-- The postings of terms, as before, but planned once in a connection: to plan a look for one word
-- took longer than the look. Under these settings the plan is the same for users of all sizes.
CREATE OR REPLACE FUNCTION
  word_postings(for_owner uuid, words text[], stems text[], most integer)
RETURNS SETOF bytea LANGUAGE plpgsql
SET search_path = @schema, pg_temp SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  postings bigint[];
  found bigint[];
BEGIN
  FOR term IN 1..cardinality(words) LOOP
    postings := '{}';
    FOR nth IN 1..8 LOOP
      PERFORM set_config('memorist.words', word_key(for_owner, stems[term], nth) || ' ' ||
        word_key(for_owner, '~' || stem_of(words[term]), nth), true);
      found := (SELECT array_agg(id) FROM (SELECT id FROM passage_words LIMIT most) AS those);
      EXIT WHEN found IS NULL;
      postings := postings || found;
    END LOOP;
    IF cardinality(postings) > 0 THEN
      RETURN NEXT array_send(postings);
    END IF;
  END LOOP;
  PERFORM set_config('memorist.words', '', true);
END $$;

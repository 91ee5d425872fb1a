-- beside: 6
-- Facts are listed by their words without those of memories: the words of a fact's passage are also
-- there with their last bit turned (`matches` in store/postgres/db.py). A trigger adds them, so that
-- servers that are not upgraded yet do so, too; it fires before `words_wait`, by its name.
CREATE FUNCTION fact_words() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  IF (SELECT kind FROM passages WHERE owner = NEW.owner AND id = NEW.id) = 'fact' THEN
    UPDATE passage_words SET words = NEW.words || ARRAY(SELECT word # 1 FROM unnest(NEW.words) AS word)
    WHERE owner = NEW.owner AND id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER fact_words AFTER INSERT ON passage_words
  FOR EACH ROW WHEN (NEW.id < 0) EXECUTE FUNCTION fact_words();

-- Row-level security would hide the facts that are there.
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_words NO FORCE ROW LEVEL SECURITY;
ALTER TABLE postings NO FORCE ROW LEVEL SECURITY;
SET LOCAL work_mem = '128MB';
INSERT INTO postings
SELECT owner, word # 1, min(place), string_agg(int8send(place), '' ORDER BY place)
FROM (
  SELECT w.owner, word, place, (row_number() OVER (PARTITION BY w.owner, word ORDER BY place) - 1) / 250 AS row
  FROM passages p JOIN passage_words w USING (owner, id), unnest(w.words) AS word, place_of(id) AS place
  WHERE p.kind = 'fact' AND w.placed) AS said
GROUP BY owner, word, row;
UPDATE passage_words w SET words = w.words || ARRAY(SELECT word # 1 FROM unnest(w.words) AS word)
FROM passages p WHERE p.kind = 'fact' AND w.owner = p.owner AND w.id = p.id;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_words FORCE ROW LEVEL SECURITY;
ALTER TABLE postings FORCE ROW LEVEL SECURITY;

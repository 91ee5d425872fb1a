-- beside: 6
-- The signs of the vectors of users who have many, one bit a number, which a process holds in memory
-- to search them. An entry is a passage in eight bytes and its signs in whole words of eight; a row
-- has as many as fill it, in the order in which they came. Rows are only added to, in their order, and
-- what is forgotten becomes zeros: who has read so far reads what is beyond.
CREATE SEQUENCE vector_part_seq;
CREATE TABLE vector_codes (
  owner uuid NOT NULL,
  embedder text NOT NULL,
  part bigint NOT NULL,
  size integer NOT NULL,  -- of an entry, in bytes
  first bigint NOT NULL,  -- the least and the greatest passage
  last bigint NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (owner, embedder, part)
) WITH (toast_tuple_target = 8160);
ALTER TABLE vector_codes ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Add the vectors of these passages, or of all. By pgvector's function where it is there.
CREATE FUNCTION code_vectors(for_owner uuid, by_embedder text, these bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = @schema, pg_temp SET enable_seqscan = off AS $$
DECLARE
  signs text := coalesce(
    (SELECT p.oid::regproc || '(embedding)' FROM pg_proc p JOIN pg_attribute a
       ON p.pronargs = 1 AND p.proargtypes[0] = a.atttypid
     WHERE p.proname = 'binary_quantize' AND a.attrelid = 'vectors'::regclass AND a.attname = 'embedding'),
    $q$ (SELECT string_agg(CASE WHEN x > 0 THEN '1' ELSE '0' END, '')
         FROM unnest(embedding::real[]) AS x) $q$);
BEGIN
  EXECUTE format($q$
    WITH entries AS MATERIALIZED (
      SELECT passage, int8send(passage) || code || substr('\x00000000000000'::bytea, 1, -length(code) & 7)
        AS entry
      FROM (SELECT passage, substr(varbit_send((%s)::varbit), 5) AS code FROM vectors
            WHERE owner = $1 AND embedder = $2 AND ($3 IS NULL OR passage = ANY($3)) OFFSET 0) AS signed
    ), sized AS (
      SELECT length(entry) AS size, greatest(7168 / length(entry), 1) AS most FROM entries LIMIT 1
    ), newest AS (
      SELECT part, length(entries) / size AS filled FROM vector_codes
      WHERE owner = $1 AND embedder = $2 ORDER BY part DESC LIMIT 1
    ), numbered AS (
      SELECT passage, entry, size,
        (row_number() OVER (ORDER BY passage) - 1 + coalesce((SELECT filled FROM newest), 0)) / most AS row
      FROM entries, sized
    ), rows AS (
      SELECT row, size, min(passage) AS first, max(passage) AS last,
        string_agg(entry, '' ORDER BY passage) AS entries
      FROM numbered GROUP BY row, size ORDER BY row
    )
    INSERT INTO vector_codes AS c (owner, embedder, part, size, first, last, entries)
    SELECT $1, $2, coalesce(CASE WHEN row = 0 THEN (SELECT part FROM newest) END,
      nextval('vector_part_seq')), size, first, last, entries FROM rows
    ON CONFLICT (owner, embedder, part) DO UPDATE SET entries = c.entries || excluded.entries,
      first = least(c.first, excluded.first), last = greatest(c.last, excluded.last)
    $q$, signs) USING for_owner, by_embedder, these;
END $$;

-- One transaction at a time adds to a user's, so that rows come in the order of their numbers.
CREATE FUNCTION vectors_added() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  it record;
BEGIN
  FOR it IN SELECT owner, embedder, array_agg(passage) AS these FROM added GROUP BY owner, embedder LOOP
    PERFORM pg_advisory_xact_lock(hashtextextended(it.owner || it.embedder, 3));
    IF EXISTS (SELECT FROM vector_codes WHERE owner = it.owner AND embedder = it.embedder) THEN
      PERFORM code_vectors(it.owner, it.embedder, it.these);
    ELSIF random() < 0.02 * cardinality(it.these) AND (SELECT count(*) = 2000 FROM (
        SELECT FROM vectors WHERE owner = it.owner AND embedder = it.embedder LIMIT 2000) AS those) THEN
      PERFORM code_vectors(it.owner, it.embedder, NULL);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER vectors_added AFTER INSERT ON vectors REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION vectors_added();

CREATE FUNCTION codes_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  it record;
BEGIN
  FOR it IN SELECT owner, min(id) AS first, max(id) AS last FROM gone GROUP BY owner LOOP
    WITH held AS MATERIALIZED (  -- as it is after those who were adding to it
      SELECT embedder, part, size, entries FROM vector_codes
      WHERE owner = it.owner AND first <= it.last AND last >= it.first FOR UPDATE
    ), kept AS (
      SELECT embedder, part, bool_or(g.id IS NOT NULL) AS is_cut, string_agg(
        CASE WHEN g.id IS NULL THEN entry ELSE decode(repeat('00', size), 'hex') END, '' ORDER BY n) AS entries
      FROM held, generate_series(1, length(entries), size) AS n,
        LATERAL (SELECT substr(entries, n, size) AS entry OFFSET 0) AS e
        LEFT JOIN gone g ON g.owner = it.owner AND int8send(g.id) = substr(entry, 1, 8)
      GROUP BY embedder, part
    )
    UPDATE vector_codes c SET entries = k.entries FROM kept k
    WHERE k.is_cut AND c.owner = it.owner AND c.embedder = k.embedder AND c.part = k.part;
    DELETE FROM vector_codes WHERE owner = it.owner AND first <= it.last AND last >= it.first
      AND entries = decode(repeat('00', length(entries)), 'hex');
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER codes_gone AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION codes_gone();

DO $$
DECLARE
  it record;
  is_bound boolean := row_security_active('vectors');
BEGIN
  IF is_bound THEN
    ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY;
  END IF;
  FOR it IN SELECT owner, embedder FROM vectors GROUP BY owner, embedder HAVING count(*) >= 2000 LOOP
    PERFORM code_vectors(it.owner, it.embedder, NULL);
  END LOOP;
  IF is_bound THEN
    ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
  END IF;
  ALTER TABLE vector_codes ENABLE ROW LEVEL SECURITY;
  ALTER TABLE vector_codes FORCE ROW LEVEL SECURITY;
  CREATE POLICY own_rows ON vector_codes
    USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
    WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memorist_app') THEN
    IF pg_has_role('memorist_app', 'MEMBER') THEN  -- or it is others'
      GRANT SELECT, INSERT, UPDATE, DELETE ON vector_codes TO memorist_app;
      GRANT USAGE ON SEQUENCE vector_part_seq TO memorist_app;
    END IF;
  END IF;
END $$;

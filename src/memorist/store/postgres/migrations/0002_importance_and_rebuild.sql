-- As in SQLite: a message's own score, and the moment at which what it says ceased to be true.
ALTER TABLE passages ADD COLUMN importance double precision;
ALTER TABLE passages ALTER COLUMN outdated TYPE bigint;

-- What a rebuild of the views keeps: `by_hand` says that a person made, changed or removed a memory
-- or fact; while a rebuild runs, the rest says what the record was like before.
CREATE TABLE kept_views (
  owner uuid NOT NULL,
  view text NOT NULL,
  by_hand integer NOT NULL,
  known_from bigint,
  known_to bigint,
  ended_at bigint,
  uses bigint,
  used_at bigint,
  tier text,
  PRIMARY KEY (owner, view)
);
ALTER TABLE kept_views ENABLE ROW LEVEL SECURITY;
ALTER TABLE kept_views FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON kept_views
  USING (owner = nullif(current_setting('memorist.owner', true), '')::uuid)
  WITH CHECK (owner = nullif(current_setting('memorist.owner', true), '')::uuid);
DO $$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memorist_app') THEN
    IF pg_has_role('memorist_app', 'MEMBER') THEN  -- or it is others'
      GRANT SELECT, INSERT, UPDATE, DELETE ON kept_views TO memorist_app;
    END IF;
  END IF;
END $$;

-- As in SQLite: what changed, by ids alone; and what went into the window of a chat's turn.
CREATE TABLE view_events (
  owner uuid NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  record text NOT NULL,
  change text NOT NULL,
  at bigint NOT NULL,
  agent_name text,
  session_id text,
  PRIMARY KEY (owner, id)
);
CREATE TABLE receipts (
  owner uuid NOT NULL,
  id text COLLATE "C" NOT NULL,
  session_hash text NOT NULL,
  session_id text NOT NULL,
  asked_id text NOT NULL,
  message_id text,
  created_at bigint NOT NULL,
  receipt text NOT NULL,
  recalled text NOT NULL,
  cites text NOT NULL,
  PRIMARY KEY (owner, id)
);
CREATE INDEX receipts_by_age ON receipts (owner, created_at, id);
CREATE INDEX receipts_by_session ON receipts (owner, session_hash, created_at, id);

DO $$
DECLARE
  guarded text;
  mine text := $q$ (owner = nullif(current_setting('memorist.owner', true), '')::uuid) $q$;
  is_ours boolean := EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memorist_app');
BEGIN
  IF is_ours THEN
    is_ours := pg_has_role('memorist_app', 'MEMBER');  -- or it is others'
  END IF;
  FOREACH guarded IN ARRAY ARRAY['view_events', 'receipts'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
    EXECUTE format('CREATE POLICY own_rows ON %I USING %s WITH CHECK %s', guarded, mine, mine);
    IF is_ours THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO memorist_app', guarded);
    END IF;
  END LOOP;
END $$;
-- A worker buries jobs of all users, and notes it.
CREATE POLICY worker ON view_events FOR INSERT
  WITH CHECK (current_setting('memorist.worker', true) = 'on');

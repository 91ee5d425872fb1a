-- Programs other than Memorist read and write `user_agent_active_sessions`, `chat_message_history`
-- and `agent_long_term_memory` as they are: `user_id` and `agent_name` are a key, moments are
-- moments, and what such a program leaves out is filled in.
CREATE FUNCTION moment(micros bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT to_timestamp(micros / 1000000) + mod(micros, 1000000) * interval '1 microsecond'
$$;
CREATE FUNCTION micros(at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (extract(epoch FROM at) * 1000000)::bigint
$$;

-- As in records/scope.py.
CREATE FUNCTION short_hash(named text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT encode(substr(sha256(convert_to(named, 'UTF8')), 1, 16), 'hex')
$$;
CREATE FUNCTION owner_of(tenant text, named text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT encode(substr(sha256(
    convert_to(tenant, 'UTF8') || '\x00'::bytea || convert_to(named, 'UTF8')), 1, 16), 'hex')::uuid
$$;
-- A user as these tables name them; null for users of other tenants than `default`, who may have
-- the same name, and for names that are too long for a key.
CREATE FUNCTION listed_user(for_owner uuid, named text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT named WHERE octet_length(named) <= 1000 AND for_owner = owner_of('default', named)
$$;

-- Row-level security would hide the rows that are changed.
ALTER TABLE user_agent_active_sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_long_term_memory NO FORCE ROW LEVEL SECURITY;
ALTER TABLE user_agent_active_sessions
  ALTER COLUMN user_id DROP NOT NULL,
  ALTER COLUMN last_active_at TYPE timestamptz USING moment(last_active_at),
  ALTER COLUMN last_active_at SET DEFAULT now(),
  ALTER COLUMN created_at TYPE timestamptz USING moment(created_at),
  ALTER COLUMN created_at SET DEFAULT now();
ALTER TABLE agent_long_term_memory
  ALTER COLUMN user_id DROP NOT NULL,
  ALTER COLUMN updated_at TYPE timestamptz USING moment(updated_at),
  ALTER COLUMN updated_at SET DEFAULT now(),
  ALTER COLUMN created_at TYPE timestamptz USING moment(created_at),
  ALTER COLUMN created_at SET DEFAULT now();
UPDATE user_agent_active_sessions SET user_id = NULL WHERE listed_user(owner, user_id) IS NULL;
UPDATE agent_long_term_memory SET user_id = NULL WHERE listed_user(owner, user_id) IS NULL;
ALTER TABLE user_agent_active_sessions ADD UNIQUE (user_id, agent_name);
ALTER TABLE agent_long_term_memory ADD UNIQUE (user_id, agent_name);
ALTER TABLE user_agent_active_sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_long_term_memory FORCE ROW LEVEL SECURITY;

-- The triggers below write for the owner of a row, as Memorist does, where the connection names
-- none: `act_for` begins that, and with what it returns ends it.
CREATE FUNCTION act_for(for_owner text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  named text := coalesce(current_setting('memorist.owner', true), '');
BEGIN
  IF named = '' OR for_owner = '' THEN
    PERFORM set_config('memorist.owner', for_owner, true);
  END IF;
  RETURN named;
END $$;

-- A user of the tenant `default` whom another program names; a forget of theirs waits, or is
-- waited for.
CREATE FUNCTION known_user(named text) RETURNS uuid LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  theirs uuid := owner_of('default', named);
  before text := act_for(theirs::text);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(replace(theirs::text, '-', ''), 1::bigint));
  INSERT INTO owners (owner, tenant_hash, tenant, user_id, created_at)
  VALUES (theirs, short_hash('default'), 'default', named, micros(clock_timestamp()))
  ON CONFLICT DO NOTHING;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  RETURN theirs;
END $$;

-- A session that another program makes the active one exists from then on. Where its id is a UUID,
-- what langchain-postgres writes under it is part of it.
CREATE FUNCTION register_session() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  named text := NEW.active_session_id;
  hash text := short_hash(named);
  before text;
BEGIN
  IF NEW.owner IS NULL THEN
    NEW.owner := known_user(NEW.user_id);
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.last_active_at = OLD.last_active_at THEN
    NEW.last_active_at := now();
  END IF;
  before := act_for(NEW.owner::text);
  IF named ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
    AND NOT adopt_session(NEW.owner, hash, named) THEN
    RAISE insufficient_privilege USING MESSAGE = 'this session belongs to another user';
  END IF;
  INSERT INTO sessions (owner, key, session_hash, session_id, agent_name, created_at)
  SELECT NEW.owner, claim_session_uuid(NEW.owner, named, true), hash, named, NEW.agent_name,
    micros(clock_timestamp())
  WHERE NOT EXISTS (SELECT FROM sessions WHERE owner = NEW.owner AND session_hash = hash)
  ON CONFLICT DO NOTHING;
  IF NOT EXISTS (SELECT FROM sessions s WHERE s.owner = NEW.owner AND s.session_hash = hash
                 AND s.agent_name = NEW.agent_name) THEN
    RAISE insufficient_privilege
      USING MESSAGE = 'this session belongs to another agent of the same user';
  END IF;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER register_session BEFORE INSERT ON user_agent_active_sessions
  FOR EACH ROW WHEN (NEW.owner IS NULL) EXECUTE FUNCTION register_session();
-- Memorist opens the session itself; an update of its own always changes the moment.
CREATE TRIGGER register_other_session BEFORE UPDATE ON user_agent_active_sessions
  FOR EACH ROW WHEN (coalesce(current_setting('memorist.owner', true), '') = '')
  EXECUTE FUNCTION register_session();

-- A note that another program writes is a version like any other, and is found by its words. One
-- that it makes begins with version 0, by which the next trigger knows it.
CREATE FUNCTION fill_in_note() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
BEGIN
  NEW.owner := known_user(NEW.user_id);
  NEW.id := coalesce(NEW.id, gen_random_uuid()::text);
  NEW.version := 0;
  RETURN NEW;
END $$;
CREATE TRIGGER fill_in_note BEFORE INSERT ON agent_long_term_memory
  FOR EACH ROW WHEN (NEW.owner IS NULL) EXECUTE FUNCTION fill_in_note();

CREATE FUNCTION note_made() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
BEGIN
  UPDATE agent_long_term_memory SET notes = notes
  WHERE owner = NEW.owner AND agent_name = NEW.agent_name;
  RETURN NULL;
END $$;
CREATE TRIGGER note_made AFTER INSERT ON agent_long_term_memory
  FOR EACH ROW WHEN (NEW.version = 0) EXECUTE FUNCTION note_made();

CREATE FUNCTION note_changed() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  before text := act_for(NEW.owner::text);
  size integer := 1000;
  at bigint := micros(clock_timestamp());
BEGIN
  PERFORM pg_advisory_xact_lock_shared(
    hashtextextended(replace(NEW.owner::text, '-', ''), 1::bigint));
  NEW.version := OLD.version + 1;
  IF OLD.version > 0 AND NEW.updated_at = OLD.updated_at THEN
    NEW.updated_at := now();
  END IF;
  INSERT INTO note_versions (owner, agent_name, version, notes, created_at)
  VALUES (NEW.owner, NEW.agent_name, NEW.version, NEW.notes, at);
  DELETE FROM passages WHERE owner = NEW.owner AND view_id = NEW.id;
  WITH pieces AS (
    SELECT nextval('view_passage_seq') AS id, start_at,
      substr(NEW.notes, start_at + 1, size) AS said
    FROM generate_series(0, length(NEW.notes) - 1, size) start_at
    WHERE substr(NEW.notes, start_at + 1, size) ~ '\S'
  ), made AS (
    INSERT INTO passages (owner, id, kind, agent_name, view_id, start_at, stop_at, created_at)
    SELECT NEW.owner, id, 'note', NEW.agent_name, NEW.id, start_at, start_at + length(said), at
    FROM pieces
  ), worded AS (
    INSERT INTO passage_words (owner, id, words)
    SELECT NEW.owner, id, word_keys(NEW.owner, stems_of(folded(said))) || (
      SELECT coalesce(array_agg(DISTINCT word_key(NEW.owner, k.key, 1)), '{}')
      FROM unnest(stems_of(folded(said))) AS s (stem), LATERAL (
        SELECT '=' || s.stem UNION ALL
        SELECT '^' || left(s.stem, n) FROM generate_series(2, least(length(s.stem), 12)) AS n
      ) AS k (key))
    FROM pieces
  )
  INSERT INTO jobs (owner, kind, first_seq, last_seq, run_at)
  SELECT NEW.owner, 'vectors', min(id), max(id), at FROM pieces HAVING count(*) > 0;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER note_changed BEFORE UPDATE ON agent_long_term_memory
  FOR EACH ROW WHEN (NEW.version = OLD.version AND (NEW.notes <> OLD.notes OR OLD.version = 0))
  EXECUTE FUNCTION note_changed();

CREATE FUNCTION note_gone() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  before text := act_for(OLD.owner::text);
BEGIN
  DELETE FROM note_versions WHERE owner = OLD.owner AND agent_name = OLD.agent_name;
  DELETE FROM passages WHERE owner = OLD.owner AND view_id = OLD.id;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note_gone AFTER DELETE ON agent_long_term_memory
  FOR EACH ROW EXECUTE FUNCTION note_gone();

-- As before, and for connections that name no owner.
CREATE OR REPLACE FUNCTION fill_in() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  before text;
  is_there boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(NEW.session_id::text, 0::bigint));
  NEW.owner := coalesce(owner_of_session(NEW.session_id), '00000000-0000-0000-0000-000000000000');
  before := act_for(NEW.owner::text);
  -- As every write of ours does: a forget of this owner waits, or is waited for.
  PERFORM pg_advisory_xact_lock_shared(
    hashtextextended(replace(NEW.owner::text, '-', ''), 1::bigint));
  NEW.id := nextval('message_seq');
  NEW.message_id := id_of(NEW.message);
  NEW.role := role_of(NEW.message);
  NEW.source := NEW.role;
  is_there := EXISTS (
    SELECT FROM chat_message_history m
    WHERE m.owner = NEW.owner AND m.message_id = NEW.message_id AND m.session_id = NEW.session_id);
  IF NOT is_there AND NEW.owner <> '00000000-0000-0000-0000-000000000000' THEN
    PERFORM take_in(NEW.owner, NEW.session_id, NEW.id, NEW.message, NEW.created_at);
  END IF;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  IF is_there THEN
    RETURN NULL;  -- the same message again is the same message
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION message_gone() RETURNS trigger LANGUAGE plpgsql
SET search_path = @schema, pg_temp AS $$
DECLARE
  before text := act_for(OLD.owner::text);
BEGIN
  DELETE FROM passages
  WHERE owner = OLD.owner AND id BETWEEN OLD.id * 1048576 AND OLD.id * 1048576 + 1048575;
  DELETE FROM message_revisions WHERE owner = OLD.owner AND message = OLD.id;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
  RETURN NULL;
END $$;

-- Whether a connection that names no owner sees what is this owner's, or nobody's. A function, so
-- that no append pays for the plan of its query.
CREATE FUNCTION sees(theirs uuid) RETURNS boolean LANGUAGE sql STABLE
SET search_path = @schema, pg_temp AS $$
  SELECT CASE
    WHEN coalesce(current_setting('memorist.owner', true), '') <> '' THEN false
    WHEN theirs = '00000000-0000-0000-0000-000000000000'
      THEN coalesce(current_setting('memorist.user_id', true), '') = ''
    ELSE EXISTS (SELECT FROM owners WHERE owner = theirs) END
$$;

-- The login of an application that serves several users is granted `memorist_client`: it sees these
-- tables for the users of the tenant `default`, or for the one that it names as `memorist.user_id`. A
-- connection that names an owner sees that owner's rows alone, as before. Memorist itself works as
-- `memorist_app`, for which none of this holds. Without the right to make roles, the login that
-- made the tables is the application's.
DO $$
DECLARE
  client text := 'CURRENT_USER';
  is_plain text := $q$ coalesce(current_setting('memorist.owner', true), '') = '' $q$;
  is_theirs text := $q$ user_id = coalesce(nullif(current_setting('memorist.user_id', true), ''), user_id) $q$;
  known text;
BEGIN
  BEGIN
    BEGIN
      CREATE ROLE memorist_client NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
      NULL;  -- it is there, is being made in another database, or is not ours to make
    END;
    IF NOT pg_has_role('memorist_client', 'memorist_app', 'USAGE') THEN
      GRANT memorist_app TO memorist_client;
    END IF;
    IF NOT pg_has_role('memorist_client', 'USAGE') THEN
      GRANT memorist_client TO CURRENT_USER;
    END IF;
    client := 'memorist_client';
  EXCEPTION WHEN insufficient_privilege OR undefined_object THEN
    NULL;  -- there are no such roles, or they are others'
  END;
  EXECUTE format('CREATE POLICY applications ON owners FOR SELECT TO %s USING (%s AND %s AND tenant = %L)',
    client, is_plain, is_theirs, 'default');
  FOREACH known IN ARRAY ARRAY['user_agent_active_sessions', 'agent_long_term_memory'] LOOP
    EXECUTE format('CREATE POLICY applications ON %I TO %s USING (%s AND %s)
      WITH CHECK (%3$s AND %4$s AND owner = owner_of(%5$L, user_id))',
      known, client, is_plain, is_theirs, 'default');
  END LOOP;
  EXECUTE format('CREATE POLICY applications ON chat_message_history TO %s USING (sees(owner))', client);
END $$;

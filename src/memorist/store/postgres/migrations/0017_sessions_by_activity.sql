-- beside: 6
-- About when a session was last active: its last message was said within half a minute of that, or else it began
-- then. So a list of the newest looks at few sessions, and few messages change this.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_message_history NO FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions ADD COLUMN noted_at bigint;
UPDATE sessions s SET noted_at = (
  SELECT micros(m.created_at) FROM chat_message_history m WHERE m.owner = s.owner AND m.session_id = s.key
  ORDER BY m.id DESC LIMIT 1);
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_message_history FORCE ROW LEVEL SECURITY;
CREATE INDEX sessions_by_activity
  ON sessions (owner, (CASE WHEN noted_at IS NULL THEN created_at ELSE noted_at END));

-- `at` is when the last message was said; it is looked up if it is not given.
CREATE FUNCTION note_activity(for_owner uuid, session uuid, at bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
DECLARE
  before text := act_for(for_owner::text);
  active bigint := coalesce(at, (
    SELECT micros(m.created_at) FROM chat_message_history m
    WHERE m.owner = for_owner AND m.session_id = session ORDER BY m.id DESC LIMIT 1));
BEGIN
  UPDATE sessions SET noted_at = active
  WHERE owner = for_owner AND key = session AND noted_at IS DISTINCT FROM active;
  IF before = '' THEN
    PERFORM act_for('');
  END IF;
END $$;

-- For other programs, older versions among them: we note it ourselves, as a trigger would take a tenth of an append.
CREATE FUNCTION other_message() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  PERFORM note_activity(NEW.owner, NEW.session_id, micros(NEW.created_at));
  RETURN NEW;
END $$;
CREATE TRIGGER other_message BEFORE INSERT ON chat_message_history
  FOR EACH ROW WHEN (coalesce(current_setting('memorist.notes_activity', true), '') = '')
  EXECUTE FUNCTION other_message();

CREATE FUNCTION messages_adopted() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  PERFORM note_activity(NEW.owner, NEW.key);
  RETURN NULL;
END $$;
CREATE TRIGGER messages_adopted AFTER INSERT OR UPDATE OF key ON sessions
  FOR EACH ROW WHEN (NEW.key::text = NEW.session_id) EXECUTE FUNCTION messages_adopted();

CREATE FUNCTION last_message_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = @schema, pg_temp AS $$
BEGIN
  PERFORM note_activity(owner, session_id) FROM (SELECT DISTINCT owner, session_id FROM gone) AS those;
  RETURN NULL;
END $$;
CREATE TRIGGER last_message_gone AFTER DELETE ON chat_message_history REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION last_message_gone();

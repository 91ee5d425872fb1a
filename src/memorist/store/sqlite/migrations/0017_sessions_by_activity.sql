-- beside: 6
-- About when a session was last active: its last message was said within half a minute of that, or else it began
-- then. So a list of the newest looks at few sessions, and few messages change this.
ALTER TABLE sessions ADD COLUMN noted_at INTEGER;
UPDATE sessions SET noted_at = (
  SELECT created_at FROM chat_message_history m WHERE m.session_id = sessions.key ORDER BY m.id DESC LIMIT 1);
CREATE INDEX sessions_by_activity
  ON sessions (owner, (CASE WHEN noted_at IS NULL THEN created_at ELSE noted_at END));

CREATE TRIGGER last_message_gone AFTER DELETE ON chat_message_history
WHEN NOT EXISTS (SELECT 1 FROM chat_message_history WHERE session_id = OLD.session_id AND id > OLD.id) BEGIN
  UPDATE sessions SET noted_at = (
    SELECT created_at FROM chat_message_history WHERE session_id = OLD.session_id ORDER BY id DESC LIMIT 1)
  WHERE key = OLD.session_id;
END;

-- beside: 6
-- Each index is written with every message, so one does for two. This has the name by which langchain-postgres
-- looks for its own before it makes one, and leads with what that library asks for.
DROP INDEX messages_by_session, idx_chat_message_history_session_id;
CREATE INDEX idx_chat_message_history_session_id ON chat_message_history (session_id, owner, id);

-- Of a session's jobs those of its summary are asked for at every turn; all of them only when it is forgotten.
CREATE INDEX jobs_to_summarize ON jobs (owner, session_id) WHERE kind = 'summarize';
DROP INDEX jobs_by_session;

-- A row that grows stays on its page while there is room.
ALTER TABLE postings SET (fillfactor = 85);

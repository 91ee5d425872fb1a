-- SQL that only SQLite speaks.

-- name: @message
m.id, m.source, m.message_id, m.role, m.created_at, m.content, m.extras

-- name: @kept
role, created_at, content, extras

-- name: @revised
m.id, m.source, m.message_id, r.role, r.created_at, r.content, r.extras

-- name: @real
REAL

-- name: @skip_locked


-- The newest of each session first, so that a long log costs no more than a short one.
-- name: history
SELECT @message, s.session_id FROM sessions s
JOIN chat_message_history m ON m.id IN (
  SELECT r.id FROM chat_message_history r
  WHERE r.session_id = s.key AND r.id < :before
    AND (CAST(:role AS TEXT) IS NULL OR r.role = :role)
  ORDER BY r.id DESC LIMIT :last)
WHERE s.owner = :owner AND m.owner = :owner
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY m.id DESC LIMIT :last

-- name: lock_session
SELECT key, agent_name, created_at FROM sessions
WHERE owner = :owner AND session_hash = :session_hash

-- name: create_session
INSERT INTO sessions (owner, session_hash, session_id, agent_name, created_at)
VALUES (:owner, :session_hash, :session_id, :agent, :now)
RETURNING key

-- name: next_seq
SELECT max(coalesce((SELECT max(id) FROM chat_message_history), 0), seq) + 1 FROM given_up

-- name: next_view_passage
SELECT min(coalesce((SELECT min(id) FROM passages), 0), view_passage) - 1 FROM given_up

-- name: append_message
INSERT INTO chat_message_history
  (id, owner, session_id, message_id, role, source, created_at, content, extras)
VALUES (:seq, :owner, :session, :message_id, :role, :source, :created_at, :content, :extras)
ON CONFLICT DO NOTHING

-- name: rewrite_message
UPDATE chat_message_history
SET role = :role, created_at = :created_at, content = :content, extras = :extras
WHERE owner = :owner AND id = :seq

-- name: add_passage
INSERT INTO passages
  (id, owner, kind, agent_name, session_id, view_id, start_at, stop_at, created_at)
VALUES (:id, :owner, :kind, :agent, :session, :view_id, :start_at, :stop_at, :created_at)

-- name: index_passage
INSERT INTO passage_words (rowid, owner, words) VALUES (:id, :owner, :words)

-- name: match_text
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at, s.session_id,
  -bm25(passage_words, 0.0, 1.0) AS score
FROM passage_words JOIN passages p ON p.id = passage_words.rowid @passage_joins
WHERE passage_words MATCH :terms AND p.owner = :owner AND @passage_filter
ORDER BY score DESC, p.id DESC LIMIT :limit

-- name: vectors
SELECT v.passage, v.embedding FROM vectors v
JOIN passages p ON p.id = v.passage @passage_joins
WHERE v.owner = :owner AND v.embedder = :embedder AND @passage_filter

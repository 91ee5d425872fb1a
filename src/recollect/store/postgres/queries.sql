-- SQL that only PostgreSQL speaks.

-- name: @message
m.id, m.source, m.message_id, m.role,
(extract(epoch FROM m.created_at) * 1000000)::bigint, m.message

-- name: keep_revision
INSERT INTO message_revisions (owner, message, replaced_at, role, created_at, body)
SELECT m.owner, m.id, :now, m.role, m.created_at, m.message FROM chat_message_history m
WHERE m.owner = :owner AND m.id = :seq

-- name: @revised
m.id, m.source, m.message_id, r.role,
(extract(epoch FROM r.created_at) * 1000000)::bigint, r.body

-- name: @real
double precision

-- name: @skip_locked
FOR UPDATE SKIP LOCKED

-- name: @stamp
to_timestamp(CAST(:created_at AS bigint) / 1000000)
  + mod(CAST(:created_at AS bigint), 1000000) * interval '1 microsecond'

-- name: add_counter
INSERT INTO recollect_writes (client, number, used_at) VALUES (:client, 0, now())
ON CONFLICT DO NOTHING

-- Locked, since the transaction that counts may still be on its way.
-- name: read_counter
SELECT number FROM recollect_writes WHERE client = :client FOR UPDATE

-- name: lock_session
SELECT key, agent_name, created_at, pg_advisory_xact_lock(hashtextextended(key::text, 0))
FROM sessions WHERE owner = :owner AND session_hash = :session_hash

-- name: create_session
INSERT INTO sessions (owner, key, session_hash, session_id, agent_name, created_at)
VALUES (:owner, claim_session_uuid(:owner, :session_id), :session_hash, :session_id, :agent, :now)
ON CONFLICT (owner, session_hash) DO NOTHING
RETURNING key

-- name: next_seqs
SELECT nextval('message_seq') FROM generate_series(1, :count)

-- name: next_view_passages
SELECT nextval('view_passage_seq') FROM generate_series(1, :count)

-- name: append_message
INSERT INTO chat_message_history
  (id, owner, session_id, message_id, role, source, created_at, message)
VALUES (:seq, :owner, :session, :message_id, :role, :source, @stamp, CAST(:message AS jsonb))
ON CONFLICT DO NOTHING

-- name: rewrite_message
UPDATE chat_message_history
SET role = :role, created_at = @stamp, message = CAST(:message AS jsonb)
WHERE owner = :owner AND id = :seq

-- name: add_passage
INSERT INTO passages
  (id, owner, kind, agent_name, session_id, view_id, start_at, stop_at, created_at, words)
VALUES (:id, :owner, :kind, :agent, :session, :view_id, :start_at, :stop_at, :created_at,
  to_tsvector('recollect', :words))

-- name: match_text
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at, s.session_id,
  ts_rank(p.words, query) AS score
FROM passages p @passage_joins, to_tsquery('recollect', :terms) AS query
WHERE p.owner = :owner AND p.words @@ query AND @passage_filter
ORDER BY score DESC, p.id DESC LIMIT :limit

-- name: vectors
SELECT v.passage, v.embedding FROM vectors v
JOIN passages p ON p.owner = v.owner AND p.id = v.passage @passage_joins
WHERE v.owner = :owner AND v.embedder = :embedder AND @passage_filter

-- name: nearest
SELECT passage, CASE WHEN distance = 'NaN' THEN 0 ELSE 1 - distance END FROM (
  SELECT v.passage, v.embedding::vector <=> CAST(:vector AS real[])::vector AS distance
  FROM vectors v
  JOIN passages p ON p.owner = v.owner AND p.id = v.passage @passage_joins
  WHERE v.owner = :owner AND v.embedder = :embedder AND @passage_filter
) AS measured
ORDER BY nullif(distance, 'NaN'), passage DESC LIMIT :limit

-- SQL that only SQLite speaks.

-- name: @message
m.id, m.source, m.message_id, m.role, m.created_at, m.content, m.extras

-- name: @said_at
m.created_at

-- name: @kept
role, created_at, content, extras

-- name: @message_version
coalesce(octet_length(m.content), -1) || ' ' || coalesce(octet_length(m.extras), 0)

-- name: message_part
SELECT length(m.content), substr(m.content, CAST(:start AS INTEGER) + 1, :most),
  CASE WHEN m.extras IS NULL THEN '{}' WHEN octet_length(m.extras) < 4096 THEN m.extras END
FROM chat_message_history m WHERE m.id = :seq AND m.owner = :owner

-- name: @revised
m.id, m.source, m.message_id, r.role, r.created_at, r.content, r.extras

-- name: @moment


-- name: @micros


-- name: @listed_user
:user_id

-- name: @real
REAL

-- name: @skip_locked


-- name: @for_update


-- The newest of each session first, so that a long log costs no more than a short one.
-- name: history
SELECT @message, s.session_id FROM sessions s
JOIN chat_message_history m ON m.id IN (
  SELECT r.id FROM chat_message_history r
  WHERE r.session_id = s.key AND r.id < :before AND r.id > :after
    AND (CAST(:role AS TEXT) IS NULL OR r.role = :role)
  ORDER BY r.id DESC LIMIT :last)
WHERE s.owner = :owner AND m.owner = :owner
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY m.id DESC LIMIT :last

-- name: lock_session
SELECT key, agent_name, created_at FROM sessions
WHERE owner = :owner AND session_hash = :session_hash

-- LangChain writes to PostgreSQL only.
-- name: adopt_session
SELECT 1

-- name: create_session
INSERT INTO sessions (owner, session_hash, session_id, agent_name, created_at)
VALUES (:owner, :session_hash, :session_id, :agent, :now)
ON CONFLICT (owner, session_hash) DO NOTHING

-- name: next_seq
SELECT max(coalesce((SELECT max(id) FROM chat_message_history), 0), seq) + 1 FROM deleted_ids

-- name: next_view_passage
SELECT min(coalesce((SELECT min(id) FROM passages), 0), view_passage) - 1 FROM deleted_ids

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
  (id, owner, kind, agent_name, session_id, view_id, start_at, stop_at, created_at, role, speaker,
   self_reference, is_question, importance)
VALUES (:id, :owner, :kind, :agent, :session, :view_id, :start_at, :stop_at, :created_at, :role,
  :speaker, :self_reference, :is_question, :importance)

-- name: index_passage
INSERT INTO passage_words (rowid, words) VALUES (:id,
  CASE :kind WHEN 'message' THEN :words ELSE replace(:words, '·', '·' || substr(:kind, 1, 1)) END)

-- name: keep_words_waiting
INSERT INTO words_waiting (id, owner, words) VALUES (:id, :owner, :words)

-- name: words_waiting
SELECT id, words FROM words_waiting WHERE owner = :owner

-- name: index_waiting
INSERT INTO passage_words (rowid, words) SELECT id, words FROM words_waiting ORDER BY id

-- name: none_waiting
DELETE FROM words_waiting

-- name: postings
SELECT (
  SELECT group_concat(doc) FROM (SELECT doc FROM word_postings WHERE term = w.value LIMIT :most))
FROM json_each(:words) w

-- The same without repeats, whose counting takes two thirds of the time.
-- name: documents_with
SELECT (
  SELECT group_concat(rowid) FROM (
    SELECT rowid FROM passage_words WHERE passage_words MATCH '"' || w.value || '"' LIMIT :most))
FROM json_each(:words) w

-- Of derived records, whose numbers are below zero: the newest memories come first.
-- name: memories_with
SELECT (
  SELECT group_concat(id) FROM (
    SELECT p.id FROM passage_words CROSS JOIN passages p
    WHERE passage_words MATCH '"' || w.value || '"' AND passage_words.rowid < 0
      AND p.id = passage_words.rowid AND p.owner = :owner AND p.kind = 'memory'
      AND @seen_by_agent LIMIT :most))
FROM json_each(:words) w

-- name: count_postings
SELECT cnt FROM word_counts WHERE term = :term

-- name: store_size
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()

-- name: count_records
SELECT count(*) + (SELECT coalesce(sum(pieces), 0) FROM articles WHERE owner = :owner)
  + (SELECT coalesce(sum(pieces), 0) FROM entries WHERE owner = :owner)
FROM sessions s JOIN chat_message_history m ON m.session_id = s.key
WHERE s.owner = :owner

-- name: record_lengths
SELECT json_group_array(coalesce((
  SELECT p.stop_at - CASE WHEN p.id < 0 THEN p.start_at ELSE 0 END FROM passages p
  WHERE p.id BETWEEN CASE WHEN k.value > 0 THEN k.value * @per_message ELSE k.value END
      AND CASE WHEN k.value > 0 THEN k.value * @per_message + @per_message - 1 ELSE k.value END
    AND p.owner = :owner
  ORDER BY p.id DESC LIMIT 1), 0))
FROM json_each(:records) k

-- name: @own_passages
(
  SELECT p.* FROM sessions s JOIN chat_message_history m ON m.session_id = s.key
  JOIN passages p ON p.id @of_message
  WHERE s.owner = :owner AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
  UNION ALL
  SELECT p.* FROM passages p WHERE p.owner = :owner AND p.view_id IS NOT NULL) p

-- name: @gathered
group_concat(p.id)

-- name: unembedded
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at, NULL, NULL
FROM @own_passages
WHERE p.owner = :owner AND @says_something AND @passage_filter
  AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage = p.id AND v.embedder = :embedder)
ORDER BY p.id LIMIT :limit

-- name: @in_session
m.session_id = s.key

-- name: @listed_sessions
json_each(:keys) k CROSS JOIN sessions s WHERE s.key = k.value AND s.owner = :owner

-- name: first_words
SELECT m.id, substr(m.content, 1, 400) FROM chat_message_history m
WHERE m.owner = :owner AND m.id IN (:seqs*)

-- name: view_matches
SELECT rowid FROM passage_words
WHERE passage_words MATCH :words AND rowid < :past ORDER BY rowid DESC LIMIT :most

-- name: newest_view_matches
SELECT rowid FROM passage_words
WHERE passage_words MATCH :words AND rowid > :past AND rowid < 0 ORDER BY rowid LIMIT :most

-- name: @has_tag
EXISTS (SELECT 1 FROM json_each(i.tags) WHERE value = :tag)

-- name: @has_tags
NOT EXISTS (
  SELECT 1 FROM json_each(:tags) t WHERE t.value NOT IN (SELECT value FROM json_each(i.tags)))

-- name: @cited_messages
chat_message_history m ON m.owner = :owner

-- Joined crosswise, which SQLite does in the order written: from what is few to what is many. With
-- its plus, `start_at` is no reason to make an index of all passages for one question.
-- name: linked
WITH near AS (
  SELECT DISTINCT n.fact FROM (SELECT value AS name FROM json_each(:names)) e CROSS JOIN entities n
  WHERE @is_no_hub AND n.owner = :owner AND n.name = e.name
), shared AS (
  SELECT DISTINCT n.name FROM near CROSS JOIN entities n
  WHERE n.owner = :owner AND n.fact = near.fact
), beyond AS (
  SELECT DISTINCT n.fact FROM shared e CROSS JOIN entities n
  WHERE @is_no_hub AND n.owner = :owner AND n.name = e.name
), facts_found AS MATERIALIZED (
  SELECT fact, 1.0 AS score FROM near UNION ALL SELECT fact, 0.5 FROM beyond
)
SELECT passage, max(score) FROM (
  SELECT p.id AS passage, f.score FROM facts_found f CROSS JOIN passages p
  WHERE p.owner = :owner AND p.view_id = f.fact
  UNION ALL
  SELECT p.id, f.score * 0.8 FROM facts_found f CROSS JOIN passages q CROSS JOIN view_sources v
  CROSS JOIN chat_message_history m CROSS JOIN passages p
  WHERE q.owner = :owner AND q.view_id = f.fact AND q.session_id IS NOT NULL
    AND v.owner = :owner AND v.view = f.fact
    AND m.session_id = q.session_id AND m.message_id = v.message_id
    AND p.id @of_message AND +p.start_at = 0
  UNION ALL
  SELECT p.id, f.score * 0.8 FROM facts_found f CROSS JOIN passages q CROSS JOIN view_sources v
  CROSS JOIN sessions s CROSS JOIN chat_message_history m CROSS JOIN passages p
  WHERE q.owner = :owner AND q.view_id = f.fact AND q.session_id IS NULL
    AND v.owner = :owner AND v.view = f.fact
    AND s.owner = :owner AND m.session_id = s.key AND m.message_id = v.message_id
    AND p.id @of_message AND +p.start_at = 0
) AS found
GROUP BY passage ORDER BY 2 DESC, 1 DESC LIMIT :limit

-- name: messages_by_seq
SELECT @message, s.session_id FROM chat_message_history m CROSS JOIN sessions s
WHERE m.id IN (:seqs*) AND m.owner = :owner AND s.key = m.session_id

-- name: put_vector
INSERT INTO vectors (owner, passage, embedder, code, embedding)
SELECT p.owner, p.id, :embedder, :code, :embedding FROM passages p
WHERE p.owner = :owner AND p.id = :passage
ON CONFLICT DO NOTHING

-- name: count_vectors
SELECT count(*) FROM vectors WHERE owner = :owner AND embedder = :embedder

-- name: vectors_since
SELECT id, passage, embedding FROM vectors
WHERE owner = :owner AND embedder = :embedder AND id > :last ORDER BY id LIMIT 5000

-- name: codes_since
SELECT id, passage, code FROM vectors
WHERE owner = :owner AND embedder = :embedder AND id > :last ORDER BY id LIMIT 50000

-- name: vectors_of
-- All in one value: with each row that is fetched another thread may take its turn.
SELECT group_concat(passage), CAST(group_concat(CAST(embedding AS TEXT), '') AS BLOB) FROM vectors
WHERE passage IN (:passages*) AND embedder = :embedder AND +owner = :owner

-- Only what came lately to the whole store is looked at: the rest has its vectors.
-- name: newest
SELECT p.id FROM passages p
WHERE p.id > max(0, (SELECT max(id) FROM passages) - 1000 * @per_message) AND p.owner = :owner AND p.start_at = 0 AND @says_something AND @passage_filter AND @filters
ORDER BY p.id DESC LIMIT :limit

-- name: passages_by_id
-- Without joins, from covering indexes where they hold it, and all in one value: this is asked for
-- hundreds at once, and with each row that is fetched another thread may take its turn.
SELECT json_group_array(json_array(p.id, p.kind,
  CASE WHEN p.view_id IS NULL THEN p.id / @per_message WHEN p.kind = 'article' THEN p.id
    ELSE p.view_id END, p.start_at, p.stop_at, p.created_at, p.session_id, p.role, p.speaker,
  p.self_reference, p.is_question,
  CASE WHEN p.view_id IS NOT NULL THEN (
    SELECT i.importance FROM memory_items i WHERE i.owner = :owner AND i.id = p.view_id)
    ELSE nullif(p.importance, 0.5) - 0.5 END,
  (SELECT max(b.id) FROM chat_message_history b
   WHERE b.session_id = p.session_id AND b.id < p.id / @per_message),
  CASE WHEN p.view_id IS NOT NULL THEN (
    SELECT CASE WHEN count(*) = 1 THEN min(m.id) END FROM view_sources v
    LEFT JOIN chat_message_history m ON m.session_id = p.session_id AND m.message_id = v.message_id
    WHERE v.owner = :owner AND v.view = p.view_id) END,
  CASE WHEN p.outdated <= :now THEN p.outdated ELSE 0 END, p.overtaken_by))
FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND @says_something AND @passage_filter
  AND (p.view_id IS NULL OR NOT EXISTS (
    SELECT 1 FROM memory_items i
    WHERE i.owner = :owner AND i.id = p.view_id AND i.expires_at <= :now))

-- name: missing_vectors
-- From the index alone: the passages asked for are one owner's, and no id is given out twice.
SELECT group_concat(k.value) FROM json_each(:passages) k
WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage = k.value AND v.embedder = :embedder)

-- name: unscrubbed
SELECT forgets, since FROM unscrubbed

-- name: note_forget
UPDATE unscrubbed SET forgets = forgets + 1, since = coalesce(since, :now)

-- name: delete_silent_speakers
DELETE FROM speakers WHERE owner = :owner AND speaker IN (:names*) AND NOT EXISTS (
  SELECT 1 FROM sessions s JOIN chat_message_history m ON m.session_id = s.key
  JOIN passages p ON p.id @of_message
  WHERE s.owner = :owner AND p.speaker = speakers.speaker)

-- name: merge_words
INSERT INTO passage_words (passage_words, rank) VALUES ('merge', :pages)

-- name: merge_any_two
-- By default it merges four parts of a size or more.
INSERT INTO passage_words (passage_words, rank) VALUES ('usermerge', 2)

-- name: count_word_parts
-- One step for each: the index has a row for each page of them.
WITH RECURSIVE parts (id) AS (
  SELECT min(segid) FROM passage_words_idx
  UNION ALL
  SELECT (SELECT min(segid) FROM passage_words_idx WHERE segid > id) FROM parts WHERE id IS NOT NULL)
SELECT count(id) FROM parts

-- One writer at a time: what is committed comes in the order of its ids.
-- name: is_settled
SELECT 1

-- Of everybody's messages: their ids rise over all users, and no index has a user's own.
-- name: event_ends
SELECT max(coalesce((SELECT max(id) FROM chat_message_history), 0), seq),
  coalesce((SELECT max(id) FROM view_events WHERE owner = :owner), 0)
FROM deleted_ids

-- name: messages_since
SELECT m.id, 'message', m.message_id, 'stored', @said_at, s.agent_name, s.session_id
FROM chat_message_history m CROSS JOIN sessions s
WHERE m.id > max(:after, :top - 10000) AND m.id <= :top AND m.owner = :owner AND s.key = m.session_id
ORDER BY m.id LIMIT :limit

-- name: delete_receipts_citing
DELETE FROM receipts WHERE owner = :owner AND EXISTS (
  SELECT 1 FROM json_each(receipts.cites) c WHERE c.value IN (:ids*))

-- name: @own_messages
SELECT 1 FROM sessions s CROSS JOIN chat_message_history m
WHERE s.owner = :owner AND m.session_id = s.key

-- name: @own_jobs
SELECT owner, dead FROM jobs

-- name: own_seqs
SELECT group_concat(m.id) FROM sessions s CROSS JOIN chat_message_history m
WHERE s.owner = :owner AND m.session_id = s.key


-- name: @embedding
v.embedding

-- name: restore_revision
INSERT INTO message_revisions (owner, message, number, replaced_at, role, created_at, content, extras)
VALUES (:owner, :seq, :number, :replaced_at, :role, :created_at, :content, :extras)
ON CONFLICT DO NOTHING

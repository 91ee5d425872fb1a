-- SQL that only PostgreSQL speaks.

-- name: @message
m.id, m.source, m.message_id, m.role, @said_at, m.message

-- name: messages_by_seq
-- One by one, or all messages of the user may be read: the policies of the table have PostgreSQL expect few.
SELECT @message, (SELECT s.session_id FROM sessions s WHERE s.owner = :owner AND s.key = m.session_id)
FROM unnest(CAST(:seqs AS bigint[])) AS listed (seq) CROSS JOIN LATERAL (
  SELECT * FROM chat_message_history WHERE owner = :owner AND id = listed.seq OFFSET 0) AS m

-- name: sources_of
-- One by one, too: without sorting, all sources of the user would be read in their order.
SELECT v.view, v.message_id FROM unnest(CAST(:ids AS text[])) AS listed (view) CROSS JOIN LATERAL (
  SELECT view, message_id FROM view_sources WHERE owner = :owner AND view = listed.view OFFSET 0) AS v
ORDER BY 1, 2

-- name: @said_at
(extract(epoch FROM m.created_at) * 1000000)::bigint

-- name: keep_revision
INSERT INTO message_revisions (owner, message, number, replaced_at, role, created_at, body)
SELECT m.owner, m.id, @next_revision, :now, m.role, m.created_at, m.message FROM chat_message_history m
WHERE m.owner = :owner AND m.id = :seq

-- name: @message_version
m.xmin::text

-- name: message_part
SELECT length(said), substr(said, CAST(:start AS integer) + 1, :most),
  CASE WHEN octet_length(ours) < 4096 THEN ours END
FROM (
  SELECT m.message #>> '{data,additional_kwargs,memorist}' AS ours,
    CASE WHEN jsonb_typeof(m.message #> '{data,content}') = 'string'
      THEN m.message #>> '{data,content}' END AS said
  FROM chat_message_history m WHERE m.owner = :owner AND m.id = :seq) AS parts

-- name: @revised
m.id, m.source, m.message_id, r.role,
(extract(epoch FROM r.created_at) * 1000000)::bigint, r.body

-- name: @real
double precision

-- name: @skip_locked
FOR UPDATE SKIP LOCKED

-- name: @for_update
FOR UPDATE

-- name: @stamp
to_timestamp(CAST(:created_at AS bigint) / 1000000)
  + mod(CAST(:created_at AS bigint), 1000000) * interval '1 microsecond'

-- name: @moment
moment

-- name: @micros
micros

-- name: @listed_user
listed_user(:owner, :user_id)

-- name: @locked
pg_advisory_xact_lock(hashtextextended(key::text, 0))

-- name: @noted
CASE WHEN abs(coalesce(noted_at, created_at) - CAST(:last_at AS bigint)) > 30000000
    THEN note_activity(CAST(:owner AS uuid), key, CAST(:last_at AS bigint)) END

-- name: @named_session
sessions WHERE owner = :owner AND session_hash = :session_hash
    AND (CAST(:agent AS text) IS NULL OR agent_name = :agent)

-- name: lock_session
SELECT key, agent_name, created_at, @locked
FROM sessions WHERE owner = :owner AND session_hash = :session_hash

-- Which tables do not bind the role we work as, and whether every login may add functions that we
-- could be made to call.
-- name: check
SELECT current_database(), current_setting('server_version'), current_setting('synchronous_commit'),
  (SELECT value FROM memorist_meta WHERE key = 'schema'),
  (SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class c
   WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'memorist_meta'::regclass)
     AND EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) AND NOT row_security_active(c.oid)),
  (SELECT 'REVOKE CREATE ON SCHEMA ' || string_agg(quote_ident(nspname), ', ') || ' FROM PUBLIC'
   FROM pg_namespace WHERE nspname = ANY(current_schemas(false))
     AND oid <> pg_my_temp_schema() AND has_schema_privilege('public', oid, 'CREATE'))

-- Inserts the row if there is none: so it waits for a transaction that counts and is still on its
-- way, whether that one changes the row or makes it.
-- name: read_counter
INSERT INTO memorist_writes VALUES (:client, 0, now())
ON CONFLICT (client) DO UPDATE SET used_at = now() RETURNING number

-- Of processes that are gone: one that is still there takes a new row long before.
-- name: prune_counters
DELETE FROM memorist_writes WHERE used_at < now() - interval '30 days'

-- name: create_session
INSERT INTO sessions (owner, key, session_hash, session_id, agent_name, created_at)
VALUES (:owner, claim_session_uuid(:owner, :session_id, :adopt), :session_hash,
  :session_id, :agent, :now)
ON CONFLICT (owner, session_hash) DO NOTHING
RETURNING key

-- name: adopt_session
SELECT adopt_session(:owner, :session_hash, :session_id)

-- name: set_up
-- What is the same in every transaction: once in a connection, or where a pooler gives each transaction
-- another one, `local` to it. Compiling a query would take longer than any of ours does.
SELECT set_config('role', :role, :local), set_config('search_path', :search_path, :local),
  set_config('idle_in_transaction_session_timeout', :idle, :local), set_config('jit', 'off', :local),
  set_config('memorist.notes_activity', 'yes', :local)

-- name: @begin
-- The role again, where it is another: whoever hands out connections, nothing is read or written as anybody else.
-- `admit` is called to refuse: it takes longer than to look by ourselves whether it would.
SELECT CASE WHEN current_setting('role') <> :role THEN set_config('role', :role, true) END,
  set_config('memorist.owner', :owner, true), set_config(:bound, :left_ms, true),
  CASE WHEN (SELECT value::integer > :known FROM memorist_meta WHERE key = 'oldest') THEN admit(:known) END

-- name: @begin_counted
WITH counted AS (
  INSERT INTO memorist_writes VALUES (CAST(:client AS uuid), :number, now())
  ON CONFLICT (client) DO UPDATE SET number = excluded.number, used_at = now())
@begin

-- name: begin
@begin

-- name: begin_reading
-- Every question of a recall is for few rows of one owner, whatever the planner takes them for. For the
-- newest messages it would sort all that the owner has, where an index has their order. Vectors that are not in
-- memory are read 16 at once, as PostgreSQL 18 does by itself.
@begin, set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_sort', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
  set_config('effective_io_concurrency', CASE current_setting('effective_io_concurrency')
    WHEN '1' THEN '16' ELSE current_setting('effective_io_concurrency') END, true)

-- name: begin_shared
@begin_counted, pg_advisory_xact_lock_shared(hashtextextended(:owner, 1::bigint))

-- name: begin_exclusive
@begin_counted, pg_advisory_xact_lock(hashtextextended(:owner, 1::bigint))

-- name: begin_for_all
@begin_counted, set_config('memorist.worker', 'on', true)

-- name: begin_reading_all
@begin, set_config('memorist.worker', 'on', true)

-- name: begin_briefly
@begin, set_config('lock_timeout', '5s', true)

-- As `begin_shared`, for the next user of a write for several.
-- name: act_for
SELECT set_config('memorist.owner', :owner, true),
  pg_advisory_xact_lock_shared(hashtextextended(:owner, 1::bigint))

-- name: set_time_left
SELECT set_config('statement_timeout', :left_ms, true)

-- name: next_seqs
SELECT nextval('message_seq') FROM generate_series(1, :count)

-- name: next_view_passages
SELECT nextval('view_passage_seq') FROM generate_series(1, :count)

-- name: append_message
INSERT INTO chat_message_history
  (id, owner, session_id, message_id, role, source, created_at, message)
VALUES (:seq, :owner, :session, :message_id, :role, :source, @stamp, CAST(:message AS jsonb))

-- name: append_short_message
-- As `append_messages`, for one message of one passage, which most are: that takes .1 ms less.
-- Its number is taken under the session's lock: before, it might lie among those of another batch.
WITH locked AS MATERIALIZED (
  SELECT key, agent_name, @locked, @noted FROM @named_session
), home AS MATERIALIZED (
  SELECT nextval('message_seq') AS seq, key, agent_name FROM locked
), stored AS (
  INSERT INTO chat_message_history
    (id, owner, session_id, message_id, role, source, created_at, message)
  SELECT seq, CAST(:owner AS uuid), key, :id, :role, :source, @stamp, CAST(:message AS jsonb) FROM home
), indexed AS (
  INSERT INTO passages (id, owner, kind, agent_name, session_id, start_at, stop_at, created_at, role,
    speaker, self_reference, is_question, importance)
  SELECT seq * @per_message, CAST(:owner AS uuid), 'message', agent_name, key, :start_at, :stop_at,
    :created_at, :role, :speaker, :self_reference, :is_question, :importance FROM home
), worded AS (
  INSERT INTO passage_words (owner, id, words)
  SELECT CAST(:owner AS uuid), seq * @per_message, CAST(:words AS bigint[]) FROM home
), named AS (
  INSERT INTO speakers (owner, speaker)
  SELECT CAST(:owner AS uuid), :speaker FROM home WHERE CAST(:speaker AS text) IS NOT NULL
  ON CONFLICT DO NOTHING
), queued AS (
  INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
  SELECT CAST(:owner AS uuid), CAST(:kind AS text), key, seq, seq, CAST(:now AS bigint) FROM home
  WHERE :queued
)
SELECT seq FROM home

-- Messages of a session that exists, with their passages and jobs; no rows if it does not. `of` is
-- a passage's message, by its place in the list.
-- name: append_messages
WITH home AS MATERIALIZED (
  SELECT key, agent_name, @locked, @noted FROM @named_session
), said AS MATERIALIZED (
  SELECT nextval('message_seq') AS seq, h.key, h.agent_name, m.* FROM home h, ROWS FROM (
    json_to_recordset(CAST(:said AS json)) AS (id text, role text, source text,
      created_at bigint, message text, speaker text, self_reference double precision,
      is_question integer, importance double precision)) WITH ORDINALITY AS m
    (message_id, role, source, at, message, speaker, self_reference, is_question, importance, place)
), stored AS (
  INSERT INTO chat_message_history
    (id, owner, session_id, message_id, role, source, created_at, message)
  SELECT seq, CAST(:owner AS uuid), key, message_id, role, source,
    to_timestamp(at / 1000000) + mod(at, 1000000) * interval '1 microsecond', message::jsonb
  FROM said
), cut AS MATERIALIZED (
  SELECT s.seq * @per_message + p.piece AS id, s.*, p.start_at, p.stop_at,
    (CAST(:words AS bigint[]))[p.before + 1 : p.until] AS words
  FROM json_to_recordset(CAST(:pieces AS json)) AS p
    (of integer, piece integer, start_at integer, stop_at integer, before integer, until integer)
  JOIN said s ON s.place = p.of
), indexed AS (
  INSERT INTO passages (id, owner, kind, agent_name, session_id, start_at, stop_at, created_at, role,
    speaker, self_reference, is_question, importance)
  SELECT id, CAST(:owner AS uuid), 'message', agent_name, key, start_at, stop_at, at, role, speaker,
    self_reference, is_question, importance FROM cut
), worded AS (
  INSERT INTO passage_words (owner, id, words)
  SELECT CAST(:owner AS uuid), id, words FROM cut
), named AS (
  INSERT INTO speakers (owner, speaker)
  SELECT DISTINCT CAST(:owner AS uuid), speaker FROM said WHERE speaker IS NOT NULL
  ON CONFLICT DO NOTHING
), queued AS (
  INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
  SELECT CAST(:owner AS uuid), CAST(:kind AS text), key, min(seq), max(seq), CAST(:now AS bigint)
  FROM said WHERE :queued GROUP BY key, (place - 1) / :most_in_job ORDER BY min(seq)
)
SELECT seq FROM said ORDER BY seq

-- name: rewrite_message
UPDATE chat_message_history
SET role = :role, created_at = @stamp, message = CAST(:message AS jsonb)
WHERE owner = :owner AND id = :seq

-- name: add_passage
WITH passage AS (
  INSERT INTO passages
    (id, owner, kind, agent_name, session_id, view_id, start_at, stop_at, created_at, role, speaker,
     self_reference, is_question, importance)
  VALUES (:id, :owner, :kind, :agent, :session, :view_id, :start_at, :stop_at, :created_at, :role,
    :speaker, :self_reference, :is_question, :importance))
INSERT INTO passage_words (owner, id, words)
VALUES (:owner, :id, CAST(:words AS bigint[]))

-- name: postings
SELECT term, places FROM places_of(CAST(:owner AS uuid), CAST(:words AS text[]), CAST(:stems AS text[]),
  :most, :in_all)

-- name: place_words
SELECT place_words(CAST(:owner AS uuid), :fewest)

-- name: @waiting_places
SELECT k.key, false, int8send(place_of(w.id)) FROM passage_words w JOIN keys k ON k.key = ANY(w.words)
WHERE w.owner = :owner AND NOT w.placed AND w.words && CAST(:keys AS bigint[])

-- name: @keys_of_views
WITH keys AS MATERIALIZED (SELECT DISTINCT unnest(CAST(:keys AS bigint[])) AS key)
SELECT k.key, true, p.places FROM keys k

-- name: view_places
-- The first row is the one that the place before lies in.
@keys_of_views CROSS JOIN LATERAL (
  SELECT places FROM postings WHERE owner = :owner AND word = k.key AND part >= coalesce((
    SELECT max(part) FROM postings WHERE owner = :owner AND word = k.key AND part <= :past), 0)
  ORDER BY part LIMIT :parts) AS p
UNION ALL @waiting_places

-- name: newest_view_places
@keys_of_views CROSS JOIN LATERAL (
  SELECT places FROM postings WHERE owner = :owner AND word = k.key AND part < :past
  ORDER BY part DESC LIMIT :parts) AS p
UNION ALL @waiting_places

-- name: memory_passages
SELECT p.id FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND p.kind = 'memory' AND @seen_by_agent

-- name: @in_session
m.owner = s.owner AND m.session_id = s.key

-- name: @listed_sessions
sessions s WHERE s.owner = :owner AND s.key IN (:keys*)

-- name: first_words
SELECT m.id, CASE WHEN jsonb_typeof(m.message #> '{data,content}') = 'string'
  THEN substr(m.message #>> '{data,content}', 1, 400) END
FROM chat_message_history m WHERE m.owner = :owner AND m.id IN (:seqs*)

-- name: @has_tag
jsonb_exists(i.tags::jsonb, :tag)

-- name: store_size
SELECT pg_database_size(current_database())

-- name: count_records
SELECT coalesce((SELECT count FROM placed_messages WHERE owner = :owner), 0)
  + (SELECT coalesce(sum(pieces), 0) FROM articles WHERE owner = :owner)
  + (SELECT coalesce(sum(pieces), 0) FROM entries WHERE owner = :owner)
  + (SELECT count(*) FROM passage_words
     WHERE owner = :owner AND NOT placed AND id > 0 AND mod(id, @per_message) = 0)

-- name: record_lengths
-- A message from elsewhere whose length is not known counts as one of middling length. One that was
-- revised or indexed anew has no passage of the first number.
SELECT k, l.length FROM unnest(CAST(:records AS bigint[])) k, LATERAL (
  SELECT max(CASE WHEN p.stop_at = 2147483647 THEN p.start_at + 200 ELSE p.stop_at END
    - CASE WHEN p.id < 0 THEN p.start_at ELSE 0 END) AS length
  FROM passages p
  WHERE p.owner = :owner AND p.id >= CASE WHEN k > 0 THEN k * @per_message ELSE k END
    AND p.id < CASE WHEN k > 0 THEN k * @per_message + @per_message ELSE k + 1 END) l
WHERE l.length IS NOT NULL

-- name: @gathered
array_send(array_agg(p.id))

-- name: @own_passages
passages p

-- name: newest
SELECT p.id FROM passages p
WHERE p.owner = :owner AND p.id > 0 AND p.start_at = 0 AND @says_something AND @passage_filter
  AND @filters
ORDER BY p.id DESC LIMIT :limit

-- As PostgreSQL sends them, which numpy reads at once.
-- name: vectors
SELECT v.passage, array_send(v.embedding::real[]) FROM vectors v
WHERE v.owner = :owner AND v.embedder = :embedder AND NOT @is_coded

-- name: vectors_of
SELECT v.passage, array_send(v.embedding::real[]) FROM vectors v
WHERE v.owner = :owner AND v.embedder = :embedder AND v.passage IN (:passages*)

-- name: @has_tags
i.tags::jsonb ?& CAST(:tags AS text[])

-- name: @cited_messages
chat_message_history m ON m.owner = :owner AND m.message_id = v.message_id

-- Looked up one by one, which PostgreSQL does for what is lateral and offset: it takes what is found
-- for hundreds of times as many, and would read all that the user has. A fact that was told in several
-- sessions leads to the messages of its own, as on SQLite, which finds no message without its session.
-- name: linked
WITH near AS MATERIALIZED (
  SELECT DISTINCT n.fact FROM unnest(CAST(:names AS text[])) AS e (name) CROSS JOIN LATERAL (
    SELECT fact FROM entities WHERE owner = :owner AND name = e.name OFFSET 0) AS n
  WHERE @is_no_hub
), shared AS MATERIALIZED (
  SELECT DISTINCT n.name FROM near CROSS JOIN LATERAL (
    SELECT name FROM entities WHERE owner = :owner AND fact = near.fact OFFSET 0) AS n
), beyond AS (
  SELECT DISTINCT n.fact FROM shared e CROSS JOIN LATERAL (
    SELECT fact FROM entities WHERE owner = :owner AND name = e.name OFFSET 0) AS n
  WHERE @is_no_hub
), facts_found AS MATERIALIZED (
  SELECT fact, 1.0 AS score FROM near UNION ALL SELECT fact, 0.5 FROM beyond
)
SELECT passage, max(score) FROM (
  SELECT p.id AS passage, f.score FROM facts_found f CROSS JOIN LATERAL (
    SELECT id FROM passages WHERE owner = :owner AND view_id = f.fact OFFSET 0) AS p
  UNION ALL
  SELECT p.id, f.score * 0.8 FROM facts_found f CROSS JOIN LATERAL (
    SELECT first.id FROM facts k
    JOIN view_sources v ON v.owner = :owner AND v.view = k.id
    JOIN @cited_messages
    CROSS JOIN LATERAL (
      SELECT id FROM passages WHERE owner = :owner AND start_at = 0
        AND id @of_message
      ORDER BY id LIMIT 1) AS first
    WHERE k.owner = :owner AND k.id = f.fact AND k.known_to IS NULL
      AND (k.session_id IS NULL OR m.session_id = (SELECT q.session_id FROM passages q
        WHERE q.owner = :owner AND q.view_id = k.id LIMIT 1))
    OFFSET 0) AS p
) AS found
GROUP BY passage ORDER BY 2 DESC, 1 DESC LIMIT :limit

-- name: passages_by_id
-- Without joins, and what derived records alone have is looked for with them alone: this is asked for
-- hundreds at once.
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at,
  p.session_id::text, p.role, p.speaker, p.self_reference, p.is_question,
  coalesce(CASE WHEN p.view_id IS NOT NULL THEN (
    SELECT i.importance FROM memory_items i WHERE i.owner = :owner AND i.id = p.view_id) END,
    nullif(p.importance, 0.5) - 0.5),
  (SELECT b.id FROM chat_message_history b
   WHERE b.owner = :owner AND b.session_id = p.session_id AND b.id < p.id / @per_message
   ORDER BY b.id DESC LIMIT 1),
  CASE WHEN p.view_id IS NOT NULL THEN (
    SELECT CASE WHEN count(*) = 1 THEN min(m.id) END FROM view_sources v
    LEFT JOIN chat_message_history m
      ON m.owner = :owner AND m.session_id = p.session_id AND m.message_id = v.message_id
    WHERE v.owner = :owner AND v.view = p.view_id) END,
  CASE WHEN p.outdated <= :now THEN p.outdated ELSE 0 END, p.overtaken_by
FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND @says_something AND @passage_filter
  AND (p.view_id IS NULL OR (
    SELECT i.expires_at <= :now FROM memory_items i
    WHERE i.owner = :owner AND i.id = p.view_id) IS NOT TRUE)

-- name: put_vectors
-- Who deletes a passage at this moment waits, and then takes its vector along.
INSERT INTO vectors (owner, passage, embedder, embedding)
SELECT p.owner, p.id, :embedder, (CAST(:numbers AS real[]))[(v.nth - 1) * :length + 1 : v.nth * :length]
FROM unnest(CAST(:passages AS bigint[])) WITH ORDINALITY AS v (passage, nth)
JOIN passages p ON p.owner = :owner AND p.id = v.passage
ORDER BY p.id FOR KEY SHARE OF p
ON CONFLICT DO NOTHING

-- name: @nearest
-- The limit is inside, or each distance would be measured twice; the question's vector is a query of its
-- own, or it would be cast for each row.
SELECT passage, 1 - distance FROM (
  SELECT v.passage, coalesce(nullif(v.embedding::vector <=> (SELECT CAST(CAST(:vector AS real[]) AS vector)), 'NaN'), 1) AS distance

-- name: @nearest_first
ORDER BY distance, passage DESC LIMIT :limit) AS measured
ORDER BY distance, passage DESC

-- name: @is_coded
EXISTS (SELECT 1 FROM vector_codes WHERE owner = :owner AND embedder = :embedder)

-- name: is_coded
SELECT @is_coded

-- name: codes_since
SELECT part, CASE WHEN part = :part THEN substr(entries, CAST(:offset AS integer) + 1) ELSE entries END
FROM vector_codes WHERE owner = :owner AND embedder = :embedder AND part >= :part
ORDER BY part LIMIT :limit

-- name: nearest
@nearest FROM vectors v WHERE v.owner = :owner AND v.embedder = :embedder AND NOT @is_coded @nearest_first

-- name: nearest_of
-- Before it has statistics, PostgreSQL would take the embedder's index, and all vectors of the user.
@nearest FROM vectors v
WHERE v.owner = :owner AND v.embedder || '' = :embedder AND v.passage IN (:passages*) @nearest_first

-- name: facts_of_topics
-- Topic by topic, or all facts of the user are read.
SELECT f.id, f.agent_name, f.session_id, @fact FROM unnest(CAST(:topics AS text[])) AS t (asked), LATERAL (
  SELECT * FROM facts WHERE owner = :owner AND topic = t.asked AND known_to IS NULL OFFSET 0) AS f
WHERE (CAST(:agent AS TEXT) IS NULL OR f.agent_name IN ('', :agent))
  AND (CAST(:session_id AS TEXT) IS NULL OR f.session_id = :session_id)
ORDER BY f.known_from + 0, f.id

-- name: delete_silent_speakers
DELETE FROM speakers WHERE owner = :owner AND speaker IN (:names*) AND NOT EXISTS (
  SELECT 1 FROM passages p WHERE p.owner = :owner AND p.speaker = speakers.speaker)

-- name: create_meta
CREATE TABLE memorist_meta (key text PRIMARY KEY, value text NOT NULL)

-- name: meta
SELECT value FROM memorist_meta WHERE key = :key

-- name: set_meta
INSERT INTO memorist_meta VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: meta_table
SELECT to_regclass('memorist_meta')

-- name: quoted_schema
SELECT quote_ident(current_schema())

-- name: is_above_security
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- A role that was made after the schema was granted nothing.
-- name: may_write
SELECT has_schema_privilege(:role, current_schema(), 'USAGE')
  AND has_table_privilege(:role, 'chat_message_history', 'DELETE')

-- name: search_path
WITH ours AS (SELECT coalesce(
    (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('memorist_meta')),
    (SELECT oid FROM pg_namespace WHERE nspname = current_schema())) AS schema)
SELECT string_agg(quote_ident(nspname), ', ' ORDER BY oid <> schema) || ', pg_temp'
FROM pg_namespace, ours WHERE oid = schema OR schema IS NOT NULL
  AND oid IN (SELECT extnamespace FROM pg_extension WHERE extname = 'vector')

-- name: is_pooled
SELECT pg_backend_pid() <> CAST(:pid AS integer)

-- name: pgvector_version
SELECT extversion FROM pg_extension WHERE extname = 'vector'

-- name: may_change_vectors
SELECT a.atttypid = 'real[]'::regtype AND pg_has_role(c.relowner, 'USAGE')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.oid = 'vectors'::regclass AND a.attname = 'embedding'

-- Whether no write of this owner is under way. Until the transaction ends none begins: what is
-- committed later has a greater id than what can be read now.
-- name: is_settled
SELECT pg_try_advisory_xact_lock(hashtextextended(CAST(:owner AS text), 1::bigint))

-- name: event_ends
SELECT coalesce((SELECT max(id) FROM chat_message_history WHERE owner = :owner), 0),
  coalesce((SELECT max(id) FROM view_events WHERE owner = :owner), 0)

-- name: messages_since
SELECT m.id, 'message', m.message_id, 'stored', @said_at, s.agent_name, s.session_id
FROM chat_message_history m JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.id > :after AND m.id <= :top
ORDER BY m.id LIMIT :limit

-- name: delete_receipts_citing
DELETE FROM receipts WHERE owner = :owner AND EXISTS (
  SELECT 1 FROM json_array_elements_text(CAST(receipts.cites AS json)) AS c (value)
  WHERE c.value IN (:ids*))

-- name: @own_messages
SELECT 1 FROM chat_message_history WHERE owner = :owner

-- name: @own_jobs
SELECT owner, dead FROM jobs WHERE owner = :owner

-- name: own_seqs
SELECT array_send(array_agg(id)) FROM chat_message_history WHERE owner = :owner


-- name: @embedding
v.embedding::real[]

-- name: restore_revision
INSERT INTO message_revisions (owner, message, number, replaced_at, role, created_at, body)
VALUES (:owner, :seq, :number, :replaced_at, :role, @stamp, CAST(:message AS jsonb))
ON CONFLICT DO NOTHING

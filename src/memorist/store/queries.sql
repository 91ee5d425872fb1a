-- SQL that both databases understand. `:name` is a value, `IN (:names*)` a list of values, `@name` a
-- piece of SQL: of this file, of a dialect's own file, or the columns of a record (rows.py). A list
-- with `{>}`, `{<=}` and `{asc}` in it is a second one, too, of the name `newest_…`, which goes back.
-- One with `{over}` in it stands for one of what holds (`…_current`), one of `…_all`, and of memories
-- one of what is `…_over` (engine.py), so that what is over is not gone through to find what holds.
-- `INDEXED BY` is for SQLite alone, which does not see by itself which index leads to the fewest rows.

-- name: find_session
SELECT key, agent_name, created_at FROM sessions
WHERE owner = :owner AND session_hash = :session_hash

-- name: add_owner
INSERT INTO owners (owner, tenant_hash, tenant, user_id, created_at)
VALUES (:owner, :tenant_hash, :tenant, :user_id, :now) ON CONFLICT DO NOTHING

-- name: @last_said
(SELECT @said_at FROM chat_message_history m WHERE @in_session ORDER BY m.id DESC LIMIT 1)

-- name: @sessions
-- `active_at` is when the last message was said, or else when the session began.
SELECT s.key, s.session_id, s.agent_name, s.created_at, s.title,
  coalesce(@last_said, s.created_at) AS active_at
FROM sessions s WHERE s.owner = :owner

-- name: @noted_at
-- CASE, because row-level security keeps PostgreSQL from finding a coalesce() by the index.
(CASE WHEN s.noted_at IS NULL THEN s.created_at ELSE s.noted_at END)

-- name: note_activity
-- Only if what the session noted is off by more than half a minute, which few messages bring about.
UPDATE sessions AS s SET noted_at = coalesce(CAST(:at AS BIGINT), @last_said)
WHERE s.owner = :owner AND s.key = :session
  AND abs(@noted_at - coalesce(CAST(:at AS BIGINT), @last_said)) > 30000000

-- name: @session_page
(s.created_at, s.session_id) > (:after_at, :after_id)
ORDER BY s.created_at, s.session_id LIMIT :limit

-- name: sessions
@sessions AND @session_page

-- name: sessions_of_agent
@sessions AND s.agent_name = :agent AND @session_page

-- name: session_named
@sessions AND s.session_hash = :session_hash
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent) AND @session_page

-- name: @session_filter
(CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
    AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)

-- name: newest_sessions
-- Found by the times that they noted, which are off by half a minute at most: as many sessions as are wanted
-- surely come after the last page, and none that noted a minute less than they did can stand above them.
WITH listed AS MATERIALIZED (
  @sessions AND @session_filter AND @noted_at <= :after_at + 30000000
    AND @noted_at >= (SELECT coalesce(min(noted_at), :after_at) - 60000000 FROM (
      SELECT @noted_at AS noted_at FROM sessions s
      WHERE s.owner = :owner AND @session_filter AND @noted_at < :after_at - 30000000
      ORDER BY 1 DESC LIMIT :limit) AS surely))
SELECT * FROM listed WHERE (active_at, session_id) < (:after_at, :after_id)
ORDER BY active_at DESC, session_id DESC LIMIT :limit

-- How many messages a session has, up to 1,001, and which of the first is the user's first.
-- name: session_details
SELECT s.key,
  (SELECT count(*) FROM (
    SELECT 1 FROM chat_message_history m WHERE @in_session LIMIT 1001) AS few),
  (SELECT min(f.id) FROM (
    SELECT m.id, m.role FROM chat_message_history m WHERE @in_session
    ORDER BY m.id LIMIT 20) AS f WHERE f.role = 'user')
FROM @listed_sessions

-- name: rename_session
UPDATE sessions SET title = :title WHERE owner = :owner AND session_hash = :session_hash

-- name: title_session
UPDATE sessions SET title = :title
WHERE owner = :owner AND session_hash = :session_hash AND title IS NULL

-- name: agents
WITH RECURSIVE names (name) AS (
  SELECT min(agent_name) FROM sessions WHERE owner = :owner
  UNION ALL
  SELECT (SELECT min(s.agent_name) FROM sessions s WHERE s.owner = :owner AND s.agent_name > n.name)
  FROM names n WHERE n.name IS NOT NULL
)
SELECT name FROM names WHERE name <> '' LIMIT 1000

-- name: active_session
SELECT active_session_id, @micros(last_active_at) FROM user_agent_active_sessions
WHERE owner = :owner AND agent_name = :agent

-- name: activate_session
INSERT INTO user_agent_active_sessions
  (owner, user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:owner, @listed_user, :agent, :session_id, @moment(:now), @moment(:now))
ON CONFLICT (owner, agent_name) DO UPDATE
SET active_session_id = excluded.active_session_id, last_active_at = excluded.last_active_at

-- The session that is named, if it is with the agent that is named.
-- name: @session_key
(SELECT key FROM sessions WHERE owner = :owner AND session_hash = :session_hash
  AND (CAST(:agent AS TEXT) IS NULL OR agent_name = :agent))

-- name: session_history
SELECT @message FROM chat_message_history m
WHERE m.session_id = @session_key
  AND m.owner = :owner AND m.id < :before AND m.id > :after
ORDER BY m.id DESC LIMIT :last

-- name: following
SELECT @message FROM chat_message_history m
WHERE m.session_id = @session_key
  AND m.owner = :owner AND m.id > :after
ORDER BY m.id LIMIT :limit

-- name: history
SELECT @message, s.session_id FROM chat_message_history m
JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.id < :before AND m.id > :after
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
  AND (CAST(:role AS TEXT) IS NULL OR m.role = :role)
ORDER BY m.id DESC LIMIT :last

-- name: messages_by_id
SELECT @message, s.session_id FROM chat_message_history m
JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.message_id IN (:ids*)
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY m.id LIMIT :limit

-- Where the messages with an id are, and what changes when one is rewritten.
-- name: message_places
SELECT m.id, s.session_id, @message_version FROM chat_message_history m
JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.message_id = :message_id
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY m.id LIMIT :limit

-- name: messages_by_seq
SELECT @message, (SELECT s.session_id FROM sessions s WHERE s.owner = :owner AND s.key = m.session_id)
FROM chat_message_history m WHERE m.owner = :owner AND m.id IN (:seqs*)

-- name: @next_revision
(SELECT coalesce(max(r.number), 0) + 1 FROM message_revisions r
 WHERE r.owner = m.owner AND r.message = m.id)

-- name: keep_revision
INSERT INTO message_revisions (owner, message, number, replaced_at, @kept)
SELECT m.owner, m.id, @next_revision, :now, @kept FROM chat_message_history m
WHERE m.owner = :owner AND m.id = :seq

-- name: revisions
SELECT @revised FROM message_revisions r
JOIN chat_message_history m ON m.owner = r.owner AND m.id = r.message
WHERE r.owner = :owner AND r.message IN (:seqs*) AND r.number > :after
ORDER BY r.message, r.number LIMIT :limit

-- name: @of_seq
BETWEEN CAST(:seq AS BIGINT) * @per_message AND CAST(:seq AS BIGINT) * @per_message + @per_message - 1

-- name: delete_message_passages
DELETE FROM passages WHERE owner = :owner AND id >= :first AND id @of_seq

-- name: enqueue
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
VALUES (:owner, :kind, :session, :first_seq, :last_seq, :now)

-- name: take_jobs
UPDATE jobs SET lease = :lease, run_at = :until
WHERE id IN (
  SELECT id FROM jobs WHERE @takeable ORDER BY id LIMIT :limit @skip_locked
)
RETURNING id

-- name: @takeable
kind IN (:kinds*) AND dead = 0 AND deaths = 0 AND lease IS NULL AND @due AND @in_order

-- name: new_wait
SELECT 1 FROM jobs WHERE @takeable LIMIT 1

-- name: any_due
SELECT 1 FROM jobs WHERE kind IN (:kinds*) AND dead = 0 AND @due LIMIT 1

-- name: take_suspect
-- Not by the index of kinds, which lists all that wait.
UPDATE jobs SET lease = :lease, run_at = :until,
  deaths = deaths + CASE WHEN lease IS NOT NULL AND run_at <= :now THEN 1 ELSE 0 END
WHERE id IN (
  SELECT id FROM jobs
  WHERE (kind || '') IN (:kinds*) AND dead = 0 AND (deaths > 0 OR lease IS NOT NULL) AND @due
    AND @in_order
  ORDER BY deaths, id LIMIT 1 @skip_locked
)
RETURNING id

-- While a user's views are rebuilt, what a process had in hand when it died is derived first, and
-- what is new last.
-- name: @in_order
(kind NOT IN ('derive', 'derive later')
  OR NOT EXISTS (
    SELECT 1 FROM jobs r WHERE r.kind = 'rebuild' AND r.dead = 0 AND r.owner = jobs.owner)
  OR NOT EXISTS (
    SELECT 1 FROM jobs e
    WHERE e.owner = jobs.owner AND e.id < jobs.id AND e.dead = 0
      AND (e.kind IN ('index', 'embed', 'embed later')
        OR (e.kind IN ('derive', 'derive later') AND (e.lease IS NOT NULL OR e.deaths > 0))
        OR (e.kind = 'derive later' AND jobs.kind = 'derive'))))

-- name: @derivation
('index', 'embed', 'embed later', 'derive', 'derive later')

-- name: @due
(run_at <= :now OR run_at > :beyond OR (lease IS NULL AND attempts = 0))

-- name: bury_deadly
UPDATE jobs SET dead = 1, lease = NULL, deaths = deaths + 1, error = :reason
WHERE id IN (
  SELECT id FROM jobs
  WHERE (kind || '') IN (:kinds*) AND dead = 0 AND (deaths > 0 OR lease IS NOT NULL)
    AND lease IS NOT NULL AND run_at <= :now AND deaths + 1 >= :max_deaths
  ORDER BY deaths, id @skip_locked
)
RETURNING id

-- name: jobs_by_id
SELECT @job FROM jobs j @job_joins
WHERE j.id IN (:ids*) ORDER BY j.id

-- name: jobs_in_scope
SELECT @job FROM jobs j @job_joins
WHERE j.owner = :owner AND j.id > :after
  AND (CAST(:dead AS INTEGER) IS NULL OR j.dead = :dead)
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY j.id LIMIT :limit

-- name: @job
o.tenant, o.user_id, s.agent_name, s.session_id,
j.id, j.kind, j.first_seq, j.last_seq, j.attempts, j.run_at, j.lease, j.error, j.dead

-- name: @job_joins
JOIN owners o ON o.owner = j.owner
LEFT JOIN sessions s ON s.owner = j.owner AND s.key = j.session_id

-- name: finish_job
DELETE FROM jobs WHERE owner = :owner AND id = :id AND lease = :lease AND dead = 0

-- name: postpone_job
UPDATE jobs SET lease = NULL, run_at = :run_at, attempts = :attempts, error = :error, dead = :dead
WHERE owner = :owner AND id = :id AND lease = :lease

-- Also of what is read with some messages: the jobs of those just after them in their sessions.
-- name: void_leases
UPDATE jobs SET lease = NULL, run_at = :now
WHERE owner = :owner AND lease IS NOT NULL AND dead = 0
  AND EXISTS (
    SELECT 1 FROM chat_message_history m
    WHERE m.owner = :owner AND m.id IN (:seqs*) AND m.session_id = jobs.session_id
      AND m.id <= jobs.last_seq AND :most > (
        SELECT count(*) FROM (
          SELECT f.id FROM chat_message_history f
          WHERE f.owner = :owner AND f.session_id = m.session_id
            AND f.id > m.id AND f.id < jobs.first_seq
          LIMIT :most) AS few))

-- name: revive_job
UPDATE jobs SET dead = 0, attempts = 0, run_at = :now, lease = NULL,
  deaths = CASE WHEN deaths > 0 THEN 1 ELSE 0 END
WHERE owner = :owner AND id = :id AND dead = 1

-- name: add_item
INSERT INTO memory_items (owner, agent_name, session_id, @memory_item)
VALUES (:owner, :agent, :session_id, @memory_item_values)
ON CONFLICT DO NOTHING

-- name: add_fact
INSERT INTO facts (owner, agent_name, session_id, topic, @fact)
VALUES (:owner, :agent, :session_id, :topic, @fact_values)
ON CONFLICT DO NOTHING

-- name: add_source
INSERT INTO view_sources (owner, view, message_id)
VALUES (:owner, :view, :message_id) ON CONFLICT DO NOTHING

-- name: sources_of
SELECT view, message_id FROM view_sources
WHERE owner = :owner AND view IN (:ids*) ORDER BY view, message_id

-- The messages that derived records came from: those of a record's own session, where it has one.
-- name: source_messages
SELECT p.id, m.message_id, s.session_id, @said_at, m.id FROM passages p
JOIN sessions s ON s.owner = p.owner AND s.key = p.session_id @sources_there
UNION ALL SELECT p.id, m.message_id, s.session_id, @said_at, m.id FROM passages p
JOIN sessions s ON s.owner = p.owner AND p.session_id IS NULL @sources_there
ORDER BY 5

-- name: @sources_there
JOIN view_sources v ON v.owner = p.owner AND v.view = p.view_id
JOIN chat_message_history m
  ON m.owner = p.owner AND m.session_id = s.key AND m.message_id = v.message_id
WHERE p.owner = :owner AND p.id IN (:ids*)

-- name: reinforce_item
UPDATE memory_items
SET uses = uses + 1, used_at = :at, importance = coalesce(CAST(:importance AS @real), importance)
WHERE owner = :owner AND id = :id

-- name: reinforce_fact
UPDATE facts SET confidence = coalesce(CAST(:importance AS @real), confidence),
  said_at = CASE WHEN said_at < :at THEN CAST(:at AS BIGINT) ELSE said_at END
WHERE owner = :owner AND id = :id

-- name: promote_item
UPDATE memory_items SET tier = 'long' WHERE owner = :owner AND id = :id

-- name: end_item
UPDATE memory_items SET ended_at = :at, superseded_by = coalesce(:superseded_by, superseded_by),
  reason = :reason
WHERE owner = :owner AND id = :id AND ended_at IS NULL

-- name: plan_item_end
-- It is current until then.
UPDATE memory_items SET expires_at = :at, superseded_by = :superseded_by, reason = :reason
WHERE owner = :owner AND id = :id AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > :at)

-- name: end_fact_validity
UPDATE facts SET superseded_by = coalesce(:superseded_by, superseded_by), reason = :reason, ended_at = :now,
  valid_to = CASE WHEN valid_from > :at THEN valid_from ELSE CAST(:at AS BIGINT) END
WHERE owner = :owner AND id = :id AND (valid_to IS NULL
  OR valid_to > CASE WHEN valid_from > :at THEN valid_from ELSE CAST(:at AS BIGINT) END)

-- name: end_fact_belief
UPDATE facts SET known_to = :at, superseded_by = :superseded_by, reason = :reason
WHERE owner = :owner AND id = :id AND known_to IS NULL

-- name: view_exists
SELECT 'memory' FROM memory_items WHERE owner = :owner AND id = :id
UNION ALL
SELECT 'fact' FROM facts WHERE owner = :owner AND id = :id

-- name: items_of_passages
SELECT id, agent_name, session_id, @memory_item FROM memory_items i
WHERE i.owner = :owner AND (i.expires_at IS NULL OR i.expires_at > :now)
  AND i.id IN (SELECT p.view_id FROM passages p WHERE p.owner = :owner AND p.id IN (:ids*))
ORDER BY i.created_at + 0, i.id

-- name: items_by_id
SELECT id, agent_name, session_id, @memory_item FROM memory_items i
WHERE i.owner = :owner AND i.id IN (:ids*) ORDER BY i.created_at + 0, i.id

-- The sum keeps SQLite from going through all facts in their order.
-- name: facts_by_id
SELECT id, agent_name, session_id, @fact FROM facts f
WHERE f.owner = :owner AND f.id IN (:ids*) ORDER BY f.known_from + 0, f.id

-- Each filter has a query of its own: SQLite plans a statement once, whatever is null.
-- name: @item_columns
SELECT i.created_at AS place, i.id AS item, i.agent_name, i.session_id, @memory_item
FROM memory_items i

-- name: @item_filter
(CAST(:agent AS TEXT) IS NULL OR i.agent_name IN ('', :agent))
  AND (CAST(:session_id AS TEXT) IS NULL OR i.session_id = :session_id)
  AND (CAST(:kind AS TEXT) IS NULL OR i.kind = :kind)
  AND (CAST(:category AS TEXT) IS NULL OR i.category = :category)
  AND (CAST(:tier AS TEXT) IS NULL OR i.tier = :tier)
  AND (CAST(:source AS TEXT) IS NULL OR i.source = :source)
  AND (CAST(:tag AS TEXT) IS NULL OR @has_tag)
  AND (CAST(:state AS TEXT) = 'all' OR (CAST(:state AS TEXT) = 'current') =
    (i.ended_at IS NULL AND (i.expires_at IS NULL OR i.expires_at > :now)))

-- name: @item_page
(i.created_at, i.id) {>} (:after_at, :after_id) AND i.created_at {<=} :bound AND @item_filter

-- name: @in_place
ORDER BY place {asc}, item {asc} LIMIT :limit

-- name: @items_beside
@item_columns WHERE i.owner = :owner AND i.ended_at IS NULL AND i.expires_at IS NOT NULL
  AND @item_page

-- name: items
@item_columns WHERE i.owner = :owner AND i.is_over = {over} AND @item_page

-- name: items_by_kind
@item_columns INDEXED BY memories_by_kind
WHERE i.owner = :owner AND i.kind = :kind AND i.is_over = {over} AND @item_page

-- name: items_by_category
@item_columns INDEXED BY memories_by_category
WHERE i.owner = :owner AND i.category = :category AND i.is_over = {over} AND @item_page

-- name: items_by_tier
@item_columns INDEXED BY memories_by_tier
WHERE i.owner = :owner AND i.tier = :tier AND i.is_over = {over} AND @item_page

-- name: items_by_source
@item_columns INDEXED BY memories_by_source
WHERE i.owner = :owner AND i.source_start = substr(:source, 1, 200) AND i.is_over = {over} AND @item_page

-- name: items_by_session
@item_columns INDEXED BY memories_by_session
WHERE i.owner = :owner AND i.session_start = substr(:session_id, 1, 200) AND i.is_over = {over} AND @item_page

-- name: items_by_tag
SELECT t.made_at AS place, t.memory AS item, i.agent_name, i.session_id, @memory_item
FROM memory_tags t CROSS JOIN memory_items i
WHERE t.owner = :owner AND t.tag = substr(:tag, 1, 200) AND t.is_over = {over}
  AND (t.made_at, t.memory) {>} (:after_at, :after_id) AND t.made_at {<=} :bound
  AND i.owner = :owner AND i.id = t.memory AND @item_filter

-- name: items_found
WITH p AS MATERIALIZED (SELECT id, view_id FROM passages WHERE owner = :owner AND id IN (:found*)),
  i AS MATERIALIZED (
    SELECT -p.id AS place, v.* FROM p CROSS JOIN memory_items v WHERE v.owner = :owner AND v.id = p.view_id)
SELECT i.place, i.id AS item, i.agent_name, i.session_id, @memory_item FROM i
WHERE @item_page @in_place

-- The moments are compared as `Fact.holds` does.
-- name: @fact_filter
(CAST(:agent AS TEXT) IS NULL OR f.agent_name IN ('', :agent))
  AND (CAST(:session_id AS TEXT) IS NULL OR f.session_id = :session_id)
  AND CASE WHEN CAST(:known_at AS BIGINT) IS NULL THEN f.known_to IS NULL
    ELSE f.known_from <= :known_at AND (f.known_to IS NULL OR f.known_to > :known_at) END
  AND (CAST(:valid_at AS BIGINT) IS NULL OR (
    (f.valid_from IS NULL OR f.valid_from <= :valid_at)
    AND (f.valid_to IS NULL OR f.valid_to > :valid_at OR f.ended_at > CAST(:known_at AS BIGINT))))

-- name: @fact_page
(f.known_from, f.id) {>} (:after_at, :after_id) AND @fact_filter
  AND (CAST(:subject AS TEXT) IS NULL OR f.subject = :subject)
  AND (CAST(:predicate AS TEXT) IS NULL OR f.predicate = :predicate)
  AND (CAST(:object AS TEXT) IS NULL OR f.object = :object)
  AND (CAST(:source AS TEXT) IS NULL OR f.source = :source)

-- name: @fact_columns
SELECT f.known_from AS place, f.id AS item, f.agent_name, f.session_id, @fact FROM facts f

-- name: @facts_beside
@fact_columns INDEXED BY facts_by_end WHERE f.owner = :owner AND f.valid_to > :valid_at AND @fact_page

-- name: facts
@fact_columns WHERE f.owner = :owner AND f.is_over = {over} AND @fact_page

-- name: facts_by_subject
@fact_columns INDEXED BY facts_by_subject
WHERE f.owner = :owner AND f.subject_start = substr(:subject, 1, 200) AND f.is_over = {over} AND @fact_page

-- name: facts_by_predicate
@fact_columns INDEXED BY facts_by_predicate
WHERE f.owner = :owner AND f.predicate_start = substr(:predicate, 1, 200) AND f.is_over = {over} AND @fact_page

-- name: facts_by_object
@fact_columns INDEXED BY facts_by_object
WHERE f.owner = :owner AND f.object_start = substr(:object, 1, 200) AND f.is_over = {over} AND @fact_page

-- name: facts_by_source
@fact_columns INDEXED BY facts_by_source
WHERE f.owner = :owner AND f.source_start = substr(:source, 1, 200) AND f.is_over = {over} AND @fact_page

-- name: facts_by_topic
@fact_columns WHERE f.owner = :owner AND f.topic = :topic AND @fact_page @in_place

-- name: facts_found
WITH p AS MATERIALIZED (SELECT id, view_id FROM passages WHERE owner = :owner AND id IN (:found*)),
  f AS MATERIALIZED (
    SELECT -p.id AS place, v.* FROM p CROSS JOIN facts v WHERE v.owner = :owner AND v.id = p.view_id)
SELECT f.place, f.id AS item, f.agent_name, f.session_id, @fact FROM f
WHERE (:any_subject = 1 OR f.subject IN (:subjects*)) AND (:any_topic = 1 OR f.topic IN (:topics*))
  AND @fact_page @in_place

-- name: facts_of_topics
SELECT f.id, f.agent_name, f.session_id, @fact FROM facts f INDEXED BY facts_by_topic
WHERE f.owner = :owner AND f.topic IN (:topics*) AND f.known_to IS NULL
  AND (CAST(:agent AS TEXT) IS NULL OR f.agent_name IN ('', :agent))
  AND (CAST(:session_id AS TEXT) IS NULL OR f.session_id = :session_id)
ORDER BY f.known_from + 0, f.id

-- name: facts_naming
SELECT f.id, f.agent_name, f.session_id, @fact FROM fact_names n CROSS JOIN facts f
WHERE n.owner = :owner AND n.name = :name AND f.owner = :owner AND f.id = n.fact AND @fact_filter
ORDER BY n.learnt_at DESC, n.fact DESC LIMIT :limit

-- name: add_fact_name
INSERT INTO fact_names (owner, name, learnt_at, fact) VALUES (:owner, :name, :known_from, :fact)
ON CONFLICT DO NOTHING

-- The names that facts have, each once, with how many facts, up to 101.
-- name: entities
WITH RECURSIVE names (name, place) AS (
  SELECT (SELECT min(n.name) FROM fact_names n
    WHERE n.owner = :owner AND n.name > :after AND n.name >= :start), 1
  UNION ALL
  SELECT (SELECT min(n.name) FROM fact_names n WHERE n.owner = :owner AND n.name > e.name),
    e.place + 1
  FROM names e WHERE e.place < :limit AND substr(e.name, 1, length(:start)) = :start
)
SELECT e.name, (SELECT count(*) FROM (
  SELECT 1 FROM fact_names n WHERE n.owner = :owner AND n.name = e.name LIMIT 101) AS few)
FROM names e WHERE substr(e.name, 1, length(:start)) = :start ORDER BY e.place

-- name: view_parts
SELECT p.id, substr(v.text, p.start_at + 1, p.stop_at - p.start_at) FROM passages p
JOIN memory_items v ON v.owner = p.owner AND v.id = p.view_id
WHERE p.owner = :owner AND p.id IN (:ids*) AND (v.expires_at IS NULL OR v.expires_at > :now)
UNION ALL
SELECT p.id, substr(v.subject || ' ' || v.predicate || ' ' || v.object, p.start_at + 1, p.stop_at - p.start_at) FROM passages p
JOIN facts v ON v.owner = p.owner AND v.id = p.view_id
WHERE p.owner = :owner AND p.id IN (:ids*) AND (CAST(:holds_at AS BIGINT) IS NULL OR (
  (v.valid_from IS NULL OR v.valid_from <= :holds_at) AND (v.valid_to IS NULL OR v.valid_to > :holds_at)))
UNION ALL
SELECT p.id, substr(v.notes, p.start_at + 1, p.stop_at - p.start_at) FROM passages p
JOIN agent_long_term_memory v ON v.owner = p.owner AND v.id = p.view_id
WHERE p.owner = :owner AND p.id IN (:ids*)
UNION ALL
SELECT p.id, substr(v.text, p.start_at + 1, p.stop_at - p.start_at) FROM passages p
JOIN articles v ON v.owner = p.owner AND v.id = p.view_id
WHERE p.owner = :owner AND p.id IN (:ids*)
UNION ALL
SELECT p.id, substr(v.text, p.start_at + 1, p.stop_at - p.start_at) FROM passages p
JOIN entries v ON v.owner = p.owner AND v.id = p.view_id
WHERE p.owner = :owner AND p.id IN (:ids*) AND (v.expires_at IS NULL OR v.expires_at > :now)

-- name: delete_view_passages
DELETE FROM passages WHERE owner = :owner AND view_id IN (:ids*)

-- name: summaries
SELECT @summary FROM summaries WHERE owner = :owner
  AND session_id = @session_key AND last_seq < :before
ORDER BY last_seq DESC LIMIT :limit

-- Those that stand for so many tokens at least.
-- name: oldest_summaries
SELECT @summary FROM summaries WHERE owner = :owner AND tokens_before >= :least
  AND session_id = @session_key AND last_seq > :after
ORDER BY last_seq LIMIT :limit

-- Looked for from the newest on: it nearly always is that one.
-- name: last_seq_of_summary
SELECT last_seq FROM summaries WHERE owner = :owner AND id = :id
  AND session_id = @session_key
ORDER BY last_seq DESC LIMIT 1

-- name: summary_is_queued
SELECT 1 FROM jobs
WHERE owner = :owner AND kind = 'summarize' AND session_id = :session AND last_seq >= :last
  AND dead = 0 LIMIT 1

-- name: put_summary
INSERT INTO summaries (owner, session_id, @summary)
VALUES (:owner, :session, @summary_values)
ON CONFLICT (owner, session_id, last_seq) DO UPDATE
SET id = excluded.id, previous = excluded.previous, text = excluded.text,
  made_by = excluded.made_by, asked = excluded.asked, messages = excluded.messages,
  tokens_before = excluded.tokens_before, tokens = excluded.tokens,
  created_at = excluded.created_at

-- name: delete_summaries_of_messages
DELETE FROM summaries WHERE owner = :owner AND EXISTS (
  SELECT 1 FROM chat_message_history m
  WHERE m.owner = :owner AND m.id IN (:seqs*) AND m.session_id = summaries.session_id
    AND m.id <= summaries.last_seq)

-- name: note
SELECT id, version, notes, @micros(updated_at) FROM agent_long_term_memory
WHERE owner = :owner AND agent_name = :agent

-- name: note_versions
SELECT n.id, v.version, v.notes, v.created_at FROM note_versions v
JOIN agent_long_term_memory n ON n.owner = v.owner AND n.agent_name = v.agent_name
WHERE v.owner = :owner AND v.agent_name = :agent AND v.version >= :least AND v.version < :before
ORDER BY v.version DESC LIMIT :limit

-- name: create_note
INSERT INTO agent_long_term_memory
  (owner, user_id, agent_name, id, version, notes, created_at, updated_at)
VALUES (:owner, @listed_user, :agent, :id, 1, :text, @moment(:now), @moment(:now))
ON CONFLICT DO NOTHING

-- name: update_note
UPDATE agent_long_term_memory SET notes = :text, version = version + 1, updated_at = @moment(:now)
WHERE owner = :owner AND agent_name = :agent AND version = :base_version

-- name: add_note_version
INSERT INTO note_versions (owner, agent_name, version, notes, created_at)
VALUES (:owner, :agent, :version, :text, :now)

-- name: dimensions
SELECT dimensions FROM embedders WHERE owner = :owner AND embedder = :embedder

-- name: set_dimensions
INSERT INTO embedders (owner, embedder, dimensions, prepared)
VALUES (:owner, :embedder, :dimensions, 0)
ON CONFLICT (owner, embedder) DO UPDATE SET dimensions = excluded.dimensions
WHERE embedders.dimensions = 0

-- name: last_passage
SELECT id, start_at, (SELECT min(id) FROM passages WHERE owner = :owner AND id @of_seq)
FROM passages WHERE owner = :owner AND id @of_seq ORDER BY id DESC LIMIT 1

-- name: unembedded
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at, NULL, NULL
FROM passages p
WHERE p.owner = :owner AND @says_something AND @passage_filter
  AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.owner = p.owner AND v.embedder = :embedder AND v.passage = p.id)
ORDER BY p.id LIMIT :limit

-- name: @says_something
p.stop_at > p.start_at

-- name: @of_message
BETWEEN m.id * @per_message AND m.id * @per_message + @per_message - 1

-- name: @seen_by_agent
-- What belongs to no agent in particular is for all of them; a note is its own agent's.
(CAST(:agent AS TEXT) IS NULL OR p.agent_name = :agent
  OR (p.agent_name = '' AND p.kind IN ('memory', 'fact', 'article', 'entry')))

-- name: @passage_filter
@seen_by_agent
  AND (CAST(:session_hash AS TEXT) IS NULL OR p.session_id = (
    SELECT key FROM sessions WHERE owner = :owner AND session_hash = :session_hash))

-- name: count_passages_of_messages
SELECT count(DISTINCT p.id), count(v.passage) FROM chat_message_history m
JOIN passages p ON p.owner = m.owner AND p.id @of_message
LEFT JOIN vectors v ON v.owner = p.owner AND v.passage = p.id
WHERE m.owner = :owner AND m.id IN (:seqs*)

-- name: speakers_of_messages
SELECT DISTINCT p.speaker FROM chat_message_history m
JOIN passages p ON p.owner = m.owner AND p.id @of_message
WHERE m.owner = :owner AND m.id IN (:seqs*) AND p.speaker IS NOT NULL

-- name: count_passages_of_views
SELECT count(DISTINCT p.id), count(v.passage) FROM passages p
LEFT JOIN vectors v ON v.owner = p.owner AND v.passage = p.id
WHERE p.owner = :owner AND p.view_id IN (:ids*)

-- name: messages_in_sessions
SELECT id, message_id FROM chat_message_history WHERE owner = :owner AND session_id IN (:sessions*)

-- The messages that were said just after some others, and so may have been read with them.
-- name: messages_read_after
SELECT DISTINCT n.message_id, n.session_id FROM chat_message_history m
JOIN chat_message_history n ON n.owner = :owner AND n.session_id = m.session_id AND n.id > m.id
WHERE m.owner = :owner AND m.id IN (:seqs*) AND n.id <= (
  SELECT max(few.id) FROM (
    SELECT f.id FROM chat_message_history f
    WHERE f.owner = :owner AND f.session_id = m.session_id AND f.id > m.id
    ORDER BY f.id LIMIT :most) AS few)

-- name: views_from_messages
SELECT DISTINCT view FROM view_sources WHERE owner = :owner AND message_id IN (:ids*)

-- name: @of_agent
owner = :owner AND (CAST(:agent AS TEXT) IS NULL OR agent_name = :agent)

-- name: @of_session
@of_agent AND (CAST(:session_id AS TEXT) IS NULL OR session_id = :session_id)

-- name: views_in
SELECT id FROM memory_items WHERE @of_session
UNION ALL SELECT id FROM facts WHERE @of_session
UNION ALL SELECT id FROM agent_long_term_memory WHERE @of_agent AND CAST(:session_id AS TEXT) IS NULL
UNION ALL SELECT id FROM articles WHERE @of_agent AND CAST(:session_id AS TEXT) IS NULL
UNION ALL SELECT id FROM entries WHERE owner = :owner
  AND CAST(:agent AS TEXT) IS NULL AND CAST(:session_id AS TEXT) IS NULL

-- name: delete_revisions
DELETE FROM message_revisions WHERE owner = :owner AND message IN (:seqs*)

-- name: delete_messages
DELETE FROM chat_message_history WHERE owner = :owner AND id IN (:seqs*)

-- name: delete_message_jobs
DELETE FROM jobs WHERE owner = :owner AND first_seq = last_seq AND first_seq IN (:seqs*)

-- name: delete_session_jobs
DELETE FROM jobs WHERE owner = :owner AND session_id IN (:sessions*)

-- name: delete_active_sessions
DELETE FROM user_agent_active_sessions WHERE owner = :owner AND active_session_id IN (:ids*)

-- name: delete_sessions
DELETE FROM sessions WHERE owner = :owner AND key IN (:sessions*)

-- name: delete_items
DELETE FROM memory_items WHERE owner = :owner AND id IN (:ids*)

-- name: delete_facts
DELETE FROM facts WHERE owner = :owner AND id IN (:ids*)

-- name: delete_notes
DELETE FROM agent_long_term_memory WHERE owner = :owner AND id IN (:ids*)

-- name: delete_note_versions
DELETE FROM note_versions WHERE owner = :owner AND agent_name IN (:agents*)

-- name: note_agents
SELECT agent_name FROM agent_long_term_memory WHERE owner = :owner AND id IN (:ids*)

-- name: delete_view_sources
DELETE FROM view_sources WHERE owner = :owner AND view IN (:ids*)

-- name: delete_embedders
DELETE FROM embedders WHERE owner = :owner

-- name: delete_owner
DELETE FROM owners WHERE owner = :owner

-- name: renew_job
UPDATE jobs SET run_at = :until,
  deaths = CASE WHEN deaths > 1 AND :progressed = 1 THEN 1 ELSE deaths END
WHERE owner = :owner AND id = :id AND lease = :lease AND dead = 0

-- name: release_job
UPDATE jobs SET lease = NULL, run_at = :now
WHERE owner = :owner AND id = :id AND lease = :lease AND dead = 0

-- name: advance_job
UPDATE jobs SET kind = :kind, lease = NULL, attempts = 0, deaths = 0, run_at = :now, error = NULL
WHERE owner = :owner AND id = :id AND lease = :lease AND dead = 0

-- name: queue_vectors_of_messages
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
SELECT m.owner, :kind, m.session_id, min(m.id), max(m.id), :now
FROM sessions s JOIN chat_message_history m ON m.owner = s.owner AND m.session_id = s.key
WHERE s.owner = :owner
GROUP BY m.owner, m.session_id, m.id / 512

-- name: queue_vectors_of_views
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
SELECT p.owner, :kind, NULL, min(p.id), max(p.id), :now
FROM passages p WHERE p.owner = :owner AND p.view_id IS NOT NULL
GROUP BY p.owner, p.id / 512

-- name: owners_without_embedder
SELECT o.tenant, o.user_id FROM owners o
WHERE NOT EXISTS (
  SELECT 1 FROM embedders e
  WHERE e.owner = o.owner AND e.embedder = :embedder AND e.prepared = 1)
ORDER BY o.owner LIMIT :limit

-- name: delete_owner_jobs
DELETE FROM jobs WHERE owner = :owner

-- name: add_speaker
INSERT INTO speakers (owner, speaker) VALUES (:owner, :speaker) ON CONFLICT DO NOTHING

-- With the names that the user has told.
-- name: speakers
SELECT speaker FROM speakers WHERE owner = :owner
UNION
SELECT object FROM facts
WHERE owner = :owner AND predicate_start = 'name' AND subject = 'user' AND known_to IS NULL
ORDER BY 1 LIMIT 500

-- name: delete_speakers
DELETE FROM speakers WHERE owner = :owner

-- name: add_entity
INSERT INTO entities (owner, name, fact) VALUES (:owner, :name, :fact) ON CONFLICT DO NOTHING

-- name: delete_entities
DELETE FROM entities WHERE owner = :owner AND fact IN (:ids*)

-- What very many facts are about, as the user is, tells nothing of any of them. `e` has each name
-- once: this is asked for names, not for their facts.
-- name: @is_no_hub
(SELECT count(*) FROM (
  SELECT 1 FROM entities h WHERE h.owner = :owner AND h.name = e.name LIMIT 26) AS few) < 26

-- name: waiting
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at, NULL, NULL
FROM passages p
WHERE p.owner = :owner AND p.id BETWEEN :first AND :last AND @says_something AND @passage_filter
  AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.owner = p.owner AND v.embedder = :embedder AND v.passage = p.id)
  AND NOT EXISTS (
    SELECT 1 FROM memory_items i
    WHERE i.owner = p.owner AND i.id = p.view_id AND i.expires_at <= :now)
  AND NOT EXISTS (
    SELECT 1 FROM entries e
    WHERE e.owner = p.owner AND e.id = p.view_id AND e.expires_at <= :now)
ORDER BY p.id LIMIT :limit

-- name: passage_spans
SELECT p.id, p.kind, p.view_id, p.start_at, p.stop_at, p.created_at,
  (SELECT s.session_id FROM sessions s WHERE s.owner = :owner AND s.key = p.session_id), p.outdated
FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND @passage_filter

-- name: allowed
SELECT @gathered FROM @own_passages
WHERE p.owner = :owner AND @passage_filter AND @filters

-- name: own_view_passages
SELECT @gathered FROM passages p WHERE p.owner = :owner AND p.view_id IS NOT NULL

-- name: passages_that_pass
SELECT @gathered FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND @passage_filter AND @filters

-- name: @filters
(:any_kinds = 1 OR p.kind IN (:kinds*))
  AND (:any_roles = 1 OR p.role IN (:roles*))
  AND (:any_records = 1 OR p.view_id IN (:records*))
  AND p.created_at BETWEEN :after AND :before
  AND ((:any_categories = 1 AND :any_tags = 1) OR EXISTS (
    SELECT 1 FROM memory_items i WHERE i.owner = p.owner AND i.id = p.view_id
      AND (:any_categories = 1 OR i.category IN (:categories*)) AND (:any_tags = 1 OR @has_tags)))

-- name: add_embedder
INSERT INTO embedders (owner, embedder, dimensions, prepared) VALUES (:owner, :embedder, 0, 1)
ON CONFLICT (owner, embedder) DO UPDATE SET prepared = 1 WHERE embedders.prepared = 0

-- What comes while one embedder works, the others have not seen.
-- name: unprepare_others
UPDATE embedders SET prepared = 0
WHERE owner = :owner AND embedder <> :embedder AND prepared = 1

-- name: backlog
SELECT count(*) FROM jobs WHERE kind IN (:kinds*) AND dead = 0

-- name: waiting_of_owner
SELECT CASE WHEN dead = 1 THEN 'dead' ELSE kind END, count(*) FROM jobs
WHERE owner = :owner GROUP BY 1

-- name: buried
SELECT count(*) FROM jobs WHERE kind IN (:kinds*) AND dead = 1

-- name: any_entity
SELECT 1 FROM entities WHERE owner = :owner LIMIT 1

-- name: views_version
SELECT changes FROM owners WHERE owner = :owner

-- name: count_change
UPDATE owners SET changes = changes + 1
WHERE owner = :owner AND (CAST(:base AS BIGINT) IS NULL OR changes = :base)

-- name: restore_item
UPDATE memory_items SET ended_at = NULL, superseded_by = NULL, reason = :reason,
  expires_at = CASE WHEN coalesce(ended_at, expires_at) = expires_at THEN NULL ELSE expires_at END
WHERE owner = :owner AND id = :id

-- What was taken back is believed again; else, what had ended goes on.
-- name: restore_fact
UPDATE facts SET superseded_by = NULL, reason = :reason, known_to = NULL,
  valid_to = CASE WHEN known_to IS NULL THEN NULL ELSE valid_to END,
  ended_at = CASE WHEN known_to IS NULL THEN NULL ELSE ended_at END
WHERE owner = :owner AND id = :id

-- What came between was forgotten: the next one took the place.
-- name: bridge_item
UPDATE memory_items SET superseded_by = :heir, ended_at = :at WHERE owner = :owner AND id = :id

-- name: bridge_fact
UPDATE facts SET superseded_by = :heir, valid_to = :at WHERE owner = :owner AND id = :id

-- name: touch_items
UPDATE memory_items SET uses = uses + 1, used_at = :now WHERE owner = :owner AND id IN (:ids*)

-- name: superseded_by_views
SELECT id FROM memory_items INDEXED BY memories_by_successor
WHERE owner = :owner AND superseded_by IS NOT NULL AND superseded_by IN (:ids*)
  AND coalesce(reason, '') <> 'undone'
UNION ALL
SELECT id FROM facts INDEXED BY facts_by_successor
WHERE owner = :owner AND superseded_by IS NOT NULL AND superseded_by IN (:ids*)
  AND coalesce(reason, '') <> 'undone'

-- name: messages_cited_by
SELECT DISTINCT m.id, m.session_id FROM view_sources v
JOIN sessions s ON s.owner = :owner
JOIN chat_message_history m
  ON m.owner = :owner AND m.session_id = s.key AND m.message_id = v.message_id
WHERE v.owner = :owner AND v.view IN (:ids*)
ORDER BY m.id

-- name: messages_of_source
SELECT m.id, m.message_id FROM chat_message_history m
JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.source = :source
  AND (CAST(:agent AS TEXT) IS NULL OR s.agent_name = :agent)
  AND (CAST(:session_hash AS TEXT) IS NULL OR s.session_hash = :session_hash)
ORDER BY m.id

-- name: views_of_source
SELECT id FROM memory_items WHERE @of_session AND source = :source
UNION ALL SELECT id FROM facts WHERE @of_session AND source = :source

-- name: open_hour
INSERT INTO spending (hour, calls, tokens) VALUES (:hour, 0, 0) ON CONFLICT DO NOTHING

-- name: close_hours
DELETE FROM spending WHERE hour < :hour

-- name: spend
UPDATE spending SET calls = calls + :calls,
  tokens = CASE WHEN tokens + :tokens < 0 THEN 0 ELSE tokens + :tokens END
WHERE hour = :hour
  AND (CAST(:max_calls AS BIGINT) IS NULL OR calls + :calls <= :max_calls)
  AND (CAST(:max_tokens AS BIGINT) IS NULL OR tokens + :tokens <= :max_tokens)

-- name: spent
SELECT calls, tokens FROM spending WHERE hour = :hour

-- name: add_key
INSERT INTO api_keys (tenant_hash, @api_key) VALUES (:tenant_hash, @api_key_values)
ON CONFLICT DO NOTHING

-- name: key
SELECT @api_key FROM api_keys
WHERE id = :id

-- name: keys
SELECT @api_key FROM api_keys
WHERE tenant_hash = :tenant_hash AND (created_at, id) > (:after_at, :after_id)
ORDER BY created_at, id LIMIT :limit

-- name: all_keys
SELECT @api_key FROM api_keys
WHERE (created_at, id) > (:after_at, :after_id) ORDER BY created_at, id LIMIT :limit

-- name: has_keys
SELECT EXISTS (SELECT 1 FROM api_keys)

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, :now)
WHERE tenant_hash = :tenant_hash AND id = :id

-- name: expire_key
UPDATE api_keys SET expires_at =
  CASE WHEN expires_at < CAST(:at AS BIGINT) THEN expires_at ELSE CAST(:at AS BIGINT) END
WHERE tenant_hash = :tenant_hash AND id = :id

-- name: users
SELECT tenant, user_id FROM owners WHERE owner > :after ORDER BY owner LIMIT :limit

-- name: users_of_tenant
SELECT tenant, user_id FROM owners WHERE tenant_hash = :tenant_hash AND owner > :after
ORDER BY owner LIMIT :limit

-- name: memories_from_messages
SELECT DISTINCT i.id FROM view_sources v
JOIN memory_items i ON i.owner = v.owner AND i.id = v.view
WHERE v.owner = :owner AND v.message_id IN (:ids*)

-- What messages state, whether it holds, and the messages that state what took its place.
-- name: updates_of
SELECT DISTINCT v.message_id, f.predicate, f.object,
  f.known_to IS NULL AND (f.valid_to IS NULL OR f.valid_to > :now), w.message_id,
  CASE WHEN h.id IS NULL AND f.ended_at IS NOT NULL THEN f.valid_to END, e.message_id
FROM view_sources v JOIN facts f ON f.owner = v.owner AND f.id = v.view
LEFT JOIN facts h ON h.owner = f.owner AND h.id = f.superseded_by
LEFT JOIN facts n ON n.owner = f.owner AND n.topic = h.topic AND n.known_to IS NULL
  AND (n.valid_to IS NULL OR n.valid_to > :now) AND (n.valid_from IS NULL OR n.valid_from <= :now)
LEFT JOIN view_sources w ON w.owner = n.owner AND w.view = n.id
LEFT JOIN view_sources e ON h.id IS NULL AND e.owner = f.owner AND e.view = f.superseded_by
WHERE v.owner = :owner AND v.message_id IN (:ids*)

-- name: mark_outdated
-- What is over already stays so, though something else that it says will be over, too.
UPDATE passages
SET outdated = CASE WHEN outdated BETWEEN 1 AND :now AND :outdated > :now THEN outdated
  ELSE CAST(:outdated AS BIGINT) END
WHERE owner = :owner AND id @of_seq

-- name: statements
-- The passages that are the whole of a short message that a user said to an assistant: in talk between
-- people, who have names, a later message on a matter seldom updates the earlier one.
SELECT p.id, p.created_at, p.session_id FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) AND p.role = 'user' AND p.speaker IS NULL AND p.start_at = 0
  AND p.stop_at BETWEEN 1 AND :chars AND EXISTS (
    SELECT 1 FROM chat_message_history m
    WHERE m.owner = :owner AND m.id = p.id / @per_message AND m.source IN (:sources*))

-- name: mark_overtaken
UPDATE passages SET overtaken_by = :by WHERE owner = :owner AND id = :id AND overtaken_by < :by

-- name: facts_of_memory
SELECT id FROM facts WHERE owner = :owner AND memory = :id

-- name: articles
SELECT @article FROM articles a
WHERE a.owner = :owner AND (CAST(:agent AS TEXT) IS NULL OR a.agent_name IN ('', :agent))
  AND (a.created_at, a.id) > (:after_at, :after_id)
ORDER BY a.created_at, a.id LIMIT :limit

-- name: articles_by_id
SELECT a.agent_name, a.title, a.text, a.uri, a.id, a.created_at FROM articles a
WHERE a.owner = :owner AND a.id IN (:ids*)
  AND (CAST(:agent AS TEXT) IS NULL OR a.agent_name IN ('', :agent))

-- name: article_sizes
SELECT a.id, a.chars FROM articles a WHERE a.owner = :owner AND a.id IN (:ids*)

-- name: article_by_uri
SELECT @article FROM articles a
WHERE a.owner = :owner AND a.agent_name = :agent AND a.uri_hash = :uri_hash

-- name: article_by_digest
SELECT @article FROM articles a
WHERE a.owner = :owner AND a.agent_name = :agent AND a.digest = :digest
ORDER BY a.id LIMIT 1

-- name: put_article
INSERT INTO articles (owner, agent_name, uri_hash, pieces, text, @article)
VALUES (:owner, :agent, :uri_hash, :pieces, :text, @article_values)
ON CONFLICT (owner, agent_name, uri_hash) DO UPDATE
SET title = excluded.title, digest = excluded.digest, chars = excluded.chars,
  pieces = excluded.pieces, created_at = excluded.created_at, text = excluded.text

-- name: is_put
SELECT 1 FROM articles WHERE owner = :owner AND id = :id
UNION ALL SELECT 1 FROM entries WHERE owner = :owner AND id = :id

-- name: delete_articles
DELETE FROM articles WHERE owner = :owner AND id IN (:ids*)

-- name: @entry
e.id, e.path, e.key, e.value, e.created_at, e.updated_at, e.expires_at

-- name: @alive
(e.expires_at IS NULL OR e.expires_at > :now)

-- name: @sized
e.id, e.path, e.key, e.updated_at, octet_length(e.key) + octet_length(e.value)

-- name: @newest_after
e.updated_at <= :at
  AND (e.updated_at < :at OR (e.path, e.key) > (:after_path, :after_key))
ORDER BY e.updated_at DESC, e.path, e.key LIMIT :limit

-- name: entries
SELECT @sized FROM entries e WHERE e.owner = :owner AND @alive AND @newest_after

-- name: entries_below
SELECT @sized FROM entries e
WHERE e.owner = :owner AND e.path >= :path AND e.path < :end AND @alive
  AND (e.path = :path OR substr(e.path, 1, length(:inside)) = :inside) AND @newest_after

-- name: sized_entries
SELECT @sized FROM entries e WHERE e.owner = :owner AND e.id IN (:ids*) AND @alive

-- name: entries_by_id
SELECT @entry FROM entries e WHERE e.owner = :owner AND e.id IN (:ids*) AND @alive

-- name: entry_paths
SELECT DISTINCT e.path FROM entries e WHERE e.owner = :owner AND @alive

-- name: lock_entry
SELECT e.text FROM entries e WHERE e.owner = :owner AND e.id = :id @for_update

-- What comes in the place of what is over is new.
-- name: put_entry
INSERT INTO entries (
  owner, id, path, key, created_at, updated_at, expires_at, ttl, pieces, value, text)
VALUES (:owner, :id, :path, :key, :now, :now, :expires_at, :ttl, :pieces, :value, :text)
ON CONFLICT (owner, id) DO UPDATE
SET value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at,
  ttl = excluded.ttl, pieces = excluded.pieces, text = excluded.text,
  created_at = CASE WHEN entries.expires_at <= excluded.updated_at THEN excluded.created_at
                    ELSE entries.created_at END

-- name: refresh_entries
UPDATE entries SET expires_at = :now + ttl
WHERE owner = :owner AND id IN (:ids*) AND expires_at > :now

-- name: expired_entries
SELECT e.id FROM entries e WHERE e.owner = :owner AND e.expires_at <= :now
ORDER BY e.expires_at LIMIT :limit @skip_locked

-- name: delete_entries
DELETE FROM entries WHERE owner = :owner AND id IN (:ids*)

-- name: keep_by_hand
INSERT INTO kept_views (owner, view, by_hand) VALUES (:owner, :id, 1)
ON CONFLICT (owner, view) DO UPDATE SET by_hand = 1

-- name: kept_by_hand
SELECT view FROM kept_views WHERE owner = :owner AND view IN (:ids*) AND by_hand = 1

-- name: delete_kept_views
DELETE FROM kept_views WHERE owner = :owner AND view IN (:ids*)

-- name: delete_all_kept_views
DELETE FROM kept_views WHERE owner = :owner

-- A job of the kind `rebuild` has the `first_seq` 0 until its user's views are thrown away, then 1.
-- name: queue_rebuilds
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
SELECT o.owner, 'rebuild', NULL, 0, 0, :now FROM owners o
WHERE o.tenant_hash = :tenant_hash AND (CAST(:user AS TEXT) IS NULL OR o.user_id = :user)
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.kind = 'rebuild' AND j.owner = o.owner)
ORDER BY o.owner

-- name: @is_derived_again
NOT EXISTS (SELECT 1 FROM jobs w
  WHERE w.owner = j.owner AND w.kind IN @derivation AND w.dead = 0)

-- The user whose rebuild is about to end; else, if none has begun, the next one.
-- name: next_rebuild
SELECT o.tenant, o.user_id FROM jobs j JOIN owners o ON o.owner = j.owner
WHERE j.kind = 'rebuild' AND j.dead = 0 AND CASE WHEN j.first_seq = 1 THEN @is_derived_again
  ELSE NOT EXISTS (
    SELECT 1 FROM jobs b WHERE b.kind = 'rebuild' AND b.dead = 0 AND b.first_seq = 1) END
ORDER BY j.first_seq DESC, j.id LIMIT 1

-- name: begin_rebuild
UPDATE jobs SET first_seq = 1 WHERE owner = :owner AND kind = 'rebuild' AND first_seq = 0

-- name: end_rebuild
DELETE FROM jobs AS j
WHERE j.owner = :owner AND j.kind = 'rebuild' AND j.first_seq = 1 AND @is_derived_again

-- name: delete_derivation_jobs
DELETE FROM jobs WHERE owner = :owner AND kind IN @derivation

-- In the order of the log: a session's messages up to where another session goes on.
-- name: queue_derivation
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at)
SELECT owner, 'index', session_id, min(id), max(id), :now
FROM (
  SELECT m.owner, m.session_id, m.id, row_number() OVER (PARTITION BY m.session_id ORDER BY m.id) AS n,
    row_number() OVER (ORDER BY m.id) AS place
  FROM sessions s JOIN chat_message_history m ON m.owner = s.owner AND m.session_id = s.key
  WHERE s.owner = :owner) AS ordered
GROUP BY owner, session_id, place - n, n / 25
ORDER BY min(id)

-- name: keep_items
INSERT INTO kept_views (owner, view, by_hand, ended_at, uses, used_at, tier)
SELECT owner, id, 0, ended_at, uses, used_at, tier FROM memory_items WHERE owner = :owner
ON CONFLICT (owner, view) DO UPDATE SET ended_at = excluded.ended_at, uses = excluded.uses,
  used_at = excluded.used_at, tier = excluded.tier

-- name: keep_facts
INSERT INTO kept_views (owner, view, by_hand, known_from, known_to, ended_at)
SELECT owner, id, 0, known_from, known_to, ended_at FROM facts WHERE owner = :owner
ON CONFLICT (owner, view) DO UPDATE SET known_from = excluded.known_from,
  known_to = excluded.known_to, ended_at = excluded.ended_at

-- name: derived_views
SELECT v.id FROM (
  SELECT id FROM memory_items WHERE owner = :owner
  UNION ALL SELECT id FROM facts WHERE owner = :owner) AS v
WHERE NOT EXISTS (
  SELECT 1 FROM kept_views k WHERE k.owner = :owner AND k.view = v.id AND k.by_hand = 1)

-- What ended again did so when it ended before.
-- name: restore_kept_items
UPDATE memory_items SET uses = k.uses, used_at = k.used_at, tier = k.tier,
  ended_at = CASE WHEN memory_items.ended_at IS NOT NULL
    THEN coalesce(k.ended_at, memory_items.ended_at) END
FROM kept_views k
WHERE memory_items.owner = :owner AND k.owner = :owner AND k.view = memory_items.id
  AND k.uses IS NOT NULL

-- name: restore_kept_facts
UPDATE facts SET known_from = k.known_from,
  known_to = CASE WHEN facts.known_to IS NOT NULL THEN coalesce(k.known_to, facts.known_to) END,
  ended_at = CASE WHEN facts.ended_at IS NOT NULL THEN coalesce(k.ended_at, facts.ended_at) END
FROM kept_views k
WHERE facts.owner = :owner AND k.owner = :owner AND k.view = facts.id AND k.known_from IS NOT NULL

-- name: forget_kept
DELETE FROM kept_views WHERE owner = :owner AND by_hand = 0

-- What an ended fact says is outdated in its messages, too: since its end or, if it was wrong, ever.
-- So is what a corrected memory says.
-- name: mark_all_outdated
UPDATE passages SET outdated = coalesce((
  SELECT coalesce(max(end_at) FILTER (WHERE end_at <= :now), min(end_at)) FROM (
  SELECT CASE WHEN f.known_to IS NOT NULL THEN 1 ELSE coalesce(f.valid_to, i.ended_at) END AS end_at
  FROM chat_message_history m
  JOIN view_sources v ON v.owner = :owner AND v.message_id = m.message_id
  LEFT JOIN facts f ON f.owner = :owner AND f.id = v.view
  LEFT JOIN memory_items i ON i.owner = :owner AND i.id = v.view AND i.reason = 'corrected'
  WHERE m.owner = :owner AND m.id = :seq
    AND (f.known_to IS NOT NULL OR f.ended_at IS NOT NULL OR i.ended_at IS NOT NULL)) AS ends), 0)
WHERE owner = :owner AND id @of_seq

-- name: note_views
INSERT INTO view_events (owner, kind, record, change, at, agent_name, session_id)
SELECT owner, 'memory', id, :change, CAST(:now AS BIGINT), agent_name, session_id FROM memory_items
WHERE owner = :owner AND id IN (:ids*)
UNION ALL
SELECT owner, 'fact', id, :change, CAST(:now AS BIGINT), agent_name, session_id FROM facts
WHERE owner = :owner AND id IN (:ids*)

-- name: note_jobs
INSERT INTO view_events (owner, kind, record, change, at, agent_name, session_id)
SELECT j.owner, 'job', CAST(j.id AS TEXT), :change, CAST(:now AS BIGINT), s.agent_name, s.session_id
FROM jobs j LEFT JOIN sessions s ON s.owner = j.owner AND s.key = j.session_id
WHERE j.id IN (:ids*)

-- name: note_messages
INSERT INTO view_events (owner, kind, record, change, at, agent_name, session_id)
SELECT m.owner, 'message', m.message_id, :change, CAST(:now AS BIGINT), s.agent_name, s.session_id
FROM chat_message_history m JOIN sessions s ON s.owner = m.owner AND s.key = m.session_id
WHERE m.owner = :owner AND m.id IN (:ids*)

-- name: trim_events
DELETE FROM view_events WHERE owner = :owner AND id <= (
  SELECT id FROM view_events WHERE owner = :owner ORDER BY id DESC LIMIT 1 OFFSET :most)

-- name: delete_events
DELETE FROM view_events WHERE owner = :owner AND record IN (:ids*)

-- name: delete_all_events
DELETE FROM view_events WHERE owner = :owner

-- name: events
SELECT id, kind, record, change, at, agent_name, session_id FROM view_events
WHERE owner = :owner AND id > :after AND id <= :top ORDER BY id LIMIT :limit

-- Only while the question is there: it may have been forgotten before it was answered.
-- name: add_receipt
INSERT INTO receipts (owner, session_hash, cites, @receipt)
SELECT s.owner, s.session_hash, CAST(:cites AS TEXT), CAST(:id AS TEXT), s.session_id, m.message_id,
  CAST(:message_id AS TEXT), CAST(:created_at AS BIGINT), CAST(:receipt AS TEXT), CAST(:recalled AS TEXT)
FROM sessions s JOIN chat_message_history m ON m.owner = s.owner AND m.session_id = s.key
WHERE s.owner = :owner AND s.session_hash = :session_hash AND m.message_id = :asked_id
ON CONFLICT DO NOTHING

-- name: @receipt
id, session_id, asked_id, message_id, created_at, receipt, recalled

-- name: trim_receipts
DELETE FROM receipts WHERE owner = :owner AND (created_at, id) <= (
  SELECT created_at, id FROM receipts WHERE owner = :owner
  ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET :most)

-- name: receipt
SELECT @receipt FROM receipts WHERE owner = :owner AND id = :id

-- name: receipts
SELECT @receipt FROM receipts
WHERE owner = :owner AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: receipts_of_session
SELECT @receipt FROM receipts
WHERE owner = :owner AND session_hash = :session_hash AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: delete_session_receipts
DELETE FROM receipts WHERE owner = :owner AND session_id IN (:ids*)

-- name: delete_all_receipts
DELETE FROM receipts WHERE owner = :owner

-- How many there are of each, of how many that were looked at, which are no more than so many.
-- name: counts
SELECT 'messages', count(*), count(*) FROM (@own_messages LIMIT :most) AS few
UNION ALL SELECT 'sessions', count(*), count(*) FROM (
  SELECT 1 FROM sessions WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'articles', count(*), count(*) FROM (
  SELECT 1 FROM articles WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'memories', count(*), count(*) FROM (
  SELECT 1 FROM memory_items WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'facts', count(*), count(*) FROM (
  SELECT 1 FROM facts WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'memories_current', count(few.current), count(*) FROM (
  SELECT CASE WHEN ended_at IS NULL AND (expires_at IS NULL OR expires_at > :now) THEN 1 END AS current
  FROM memory_items WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'facts_current', count(few.current), count(*) FROM (
  SELECT CASE WHEN known_to IS NULL AND (valid_to IS NULL OR valid_to > :now)
    AND (valid_from IS NULL OR valid_from <= :now) THEN 1 END AS current
  FROM facts WHERE owner = :owner LIMIT :most) AS few
UNION ALL SELECT 'waiting', count(CASE WHEN owner = :owner AND dead = 0 THEN 1 END), count(*)
FROM (@own_jobs LIMIT :most) AS few
UNION ALL SELECT 'dead', count(CASE WHEN owner = :owner AND dead = 1 THEN 1 END), count(*)
FROM (@own_jobs LIMIT :most) AS few

-- What an archive is made of (store/archive.py).
-- name: archive_sessions
SELECT s.session_hash, @archived_session FROM @session_and_agent
WHERE s.owner = :owner AND s.session_hash > :after ORDER BY s.session_hash LIMIT :limit

-- name: archive_session
SELECT @archived_session FROM @session_and_agent
WHERE s.owner = :owner AND s.session_hash = :session_hash

-- name: @archived_session
s.session_id, s.agent_name, s.created_at, s.title,
  CASE WHEN a.active_session_id = s.session_id THEN @micros(a.last_active_at) END

-- name: @session_and_agent
sessions s LEFT JOIN user_agent_active_sessions a
  ON a.owner = s.owner AND a.agent_name = s.agent_name

-- name: archive_messages
SELECT @message,
  (SELECT coalesce(max(p.outdated), 0) FROM passages p WHERE p.owner = :owner AND p.id @of_message),
  s.session_id
FROM chat_message_history m CROSS JOIN sessions s
WHERE m.owner = :owner AND m.id IN (:seqs*) AND s.owner = :owner AND s.key = m.session_id
ORDER BY m.id

-- name: @revision_place
r.message * 1048576 + r.number

-- name: archive_revisions
SELECT @revision_place, @revised, r.number, r.replaced_at, s.session_id
FROM message_revisions r CROSS JOIN chat_message_history m CROSS JOIN sessions s
WHERE r.owner = :owner AND r.message IN (:seqs*) AND @revision_place > :after
  AND m.owner = :owner AND m.id = r.message AND s.owner = :owner AND s.key = m.session_id
ORDER BY 1 LIMIT :limit

-- The first that waits for a message comes last.
-- name: archive_jobs
SELECT m.id, j.kind, j.attempts, j.error, j.dead FROM jobs j CROSS JOIN chat_message_history m
WHERE j.owner = :owner AND j.kind IN @derivation
  AND j.first_seq <= :last AND j.last_seq >= :first
  AND m.owner = :owner AND m.session_id = j.session_id AND m.id BETWEEN j.first_seq AND j.last_seq
  AND m.id IN (:seqs*)
ORDER BY j.id DESC

-- name: archive_passages
SELECT p.view_id, p.kind, p.created_at FROM passages p
WHERE p.owner = :owner AND p.id IN (:ids*) ORDER BY p.id DESC

-- name: @unindexed
v.owner = :owner AND v.id > :after
  AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.owner = v.owner AND p.view_id = v.id)
ORDER BY v.id LIMIT :limit

-- name: unindexed_memory
SELECT v.id FROM memory_items v WHERE @unindexed

-- name: unindexed_fact
SELECT v.id FROM facts v WHERE @unindexed

-- name: unindexed_note
SELECT v.id FROM agent_long_term_memory v WHERE @unindexed

-- name: unindexed_article
SELECT v.id FROM articles v WHERE @unindexed

-- name: unindexed_entry
SELECT v.id FROM entries v WHERE @unindexed

-- name: archive_note
SELECT -v.version, n.id, n.agent_name, v.version, v.notes, v.created_at
FROM agent_long_term_memory n
JOIN note_versions v ON v.owner = n.owner AND v.agent_name = n.agent_name
WHERE n.owner = :owner AND n.id = :id AND -v.version > :after ORDER BY -v.version LIMIT :limit

-- name: archive_entry
SELECT e.path, e.key, e.value, e.text, e.created_at, e.updated_at, e.expires_at, e.ttl FROM entries e
WHERE e.owner = :owner AND e.id = :id AND @alive

-- name: spans_of_view
SELECT start_at, stop_at FROM passages WHERE owner = :owner AND view_id = :id ORDER BY id DESC

-- name: archive_summaries
SELECT z.id, s.session_id, (
    SELECT m.message_id FROM chat_message_history m
    WHERE m.owner = :owner AND m.session_id = z.session_id AND m.id <= z.last_seq
    ORDER BY m.id DESC LIMIT 1),
  z.previous, z.text, z.made_by, z.asked, z.messages, z.tokens_before, z.tokens, z.created_at
FROM summaries z JOIN sessions s ON s.owner = z.owner AND s.key = z.session_id
WHERE z.owner = :owner AND z.id > :after ORDER BY z.id LIMIT :limit

-- name: archive_kept
SELECT view FROM kept_views
WHERE owner = :owner AND by_hand = 1 AND view > :after ORDER BY view LIMIT :limit

-- name: is_rebuilding
SELECT 1 FROM jobs WHERE owner = :owner AND kind = 'rebuild' AND first_seq = 1

-- name: vectors_of_messages
SELECT m.id, v.embedder, p.start_at, @embedding FROM chat_message_history m
JOIN passages p ON p.owner = m.owner AND p.id @of_message
JOIN vectors v ON v.owner = p.owner AND v.passage = p.id
WHERE m.owner = :owner AND m.id IN (:ids*) ORDER BY 1, 2, 3

-- name: vectors_of_views
SELECT p.view_id, v.embedder, p.start_at, @embedding FROM passages p
JOIN vectors v ON v.owner = p.owner AND v.passage = p.id
WHERE p.owner = :owner AND p.view_id IN (:ids*) ORDER BY 1, 2, 3

-- name: stored_messages
SELECT @message FROM chat_message_history m
WHERE m.owner = :owner AND m.session_id = @session_key AND m.message_id IN (:ids*)

-- name: restore_active
INSERT INTO user_agent_active_sessions
  (owner, user_id, agent_name, active_session_id, last_active_at, created_at)
VALUES (:owner, @listed_user, :agent, :session_id, @moment(:at), @moment(:at))
ON CONFLICT DO NOTHING

-- name: restore_job
INSERT INTO jobs (owner, kind, session_id, first_seq, last_seq, run_at, attempts, error, dead)
VALUES (:owner, :kind, :session, :first, :last, :now, :attempts, :error, :dead)

-- name: restore_note_version
INSERT INTO note_versions (owner, agent_name, version, notes, created_at)
SELECT n.owner, n.agent_name, CAST(:version AS INTEGER), CAST(:text AS TEXT), CAST(:created_at AS BIGINT)
FROM agent_long_term_memory n
WHERE n.owner = :owner AND n.agent_name = :agent AND n.id = :id ON CONFLICT DO NOTHING

-- name: restore_note
INSERT INTO agent_long_term_memory
  (owner, user_id, agent_name, id, version, notes, created_at, updated_at)
VALUES (:owner, @listed_user, :agent, :id, :version, :text, @moment(:created_at),
  @moment(:created_at))
ON CONFLICT (owner, agent_name) DO UPDATE SET notes = excluded.notes, version = excluded.version,
  updated_at = excluded.updated_at
WHERE agent_long_term_memory.version < excluded.version AND agent_long_term_memory.id = excluded.id

-- name: restore_entry
INSERT INTO entries (
  owner, id, path, key, created_at, updated_at, expires_at, ttl, pieces, value, text)
VALUES (:owner, :id, :path, :key, :created_at, :updated_at, :expires_at, :ttl_us, :pieces, :value,
  :text)
ON CONFLICT DO NOTHING

-- name: restore_summary
INSERT INTO summaries (owner, session_id, @summary)
VALUES (:owner, :session, @summary_values) ON CONFLICT DO NOTHING

-- name: passages_of_message
SELECT p.start_at, p.id FROM passages p WHERE p.owner = :owner AND p.id @of_seq

-- name: passages_of_view
SELECT start_at, id FROM passages WHERE owner = :owner AND view_id = :id

-- beside: 6
-- Where a passage begins and ends stands beside its key: to weigh words by the length of a message, a search
-- asks for it of 200 messages, which lie on as many pages of the table, and on few of the index.
LOCK TABLE passages;  -- at once, and not when the index is built
CREATE UNIQUE INDEX passages_with_spans ON passages (owner, id) INCLUDE (start_at, stop_at);
ALTER TABLE passages DROP CONSTRAINT passages_pkey,
  ADD CONSTRAINT passages_pkey PRIMARY KEY USING INDEX passages_with_spans;

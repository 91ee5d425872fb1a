-- Memories and facts are listed by their words and the beginnings of these, each kind by its own
-- (`all_marked` in store/sqlite/db.py): FTS5 gathers all that begin alike before it gives the first.
INSERT OR REPLACE INTO passage_words (rowid, words)
SELECT id, replace(view_words(owner, substr(said, start_at + 1, stop_at - start_at)),
  '·', '·' || substr(kind, 1, 1))
FROM (
  SELECT p.*, CASE p.kind
    WHEN 'memory' THEN (SELECT text FROM memory_items WHERE owner = p.owner AND id = p.view_id)
    WHEN 'fact' THEN (
      SELECT subject || ' ' || predicate || ' ' || object FROM facts
      WHERE owner = p.owner AND id = p.view_id) END AS said
  FROM passages p WHERE p.id < 0)
WHERE said IS NOT NULL;

-- The words of new messages: FTS5 takes some dozens at once for the price of one, so these wait here,
-- and a search also looks through them.
CREATE TABLE words_waiting (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, words TEXT NOT NULL);

DROP TRIGGER passage_gone;
CREATE TRIGGER passage_gone AFTER DELETE ON passages BEGIN
  DELETE FROM passage_words WHERE rowid = OLD.id;
  DELETE FROM words_waiting WHERE id = OLD.id;
  UPDATE deleted_ids SET view_passage = OLD.id WHERE view_passage > OLD.id;
  DELETE FROM vectors WHERE passage = OLD.id;
END;

-- As in SQLite: a message's own score, and the moment at which what it says ceased to be true.
ALTER TABLE passages ADD COLUMN importance double precision;
ALTER TABLE passages ALTER COLUMN outdated TYPE bigint;

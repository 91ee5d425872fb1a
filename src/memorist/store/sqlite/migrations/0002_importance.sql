-- `importance` is a message's own score, from 0 to 1. `outdated` is the moment at which what the message says ceased
-- to be true; it is 0 while it holds, and 1 where the moment is not known or it was taken back. `speaker` only ranks: it may be
-- a name that the text begins with.
ALTER TABLE passages ADD COLUMN importance REAL;

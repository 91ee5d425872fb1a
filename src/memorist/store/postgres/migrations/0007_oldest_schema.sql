-- beside: 6
-- Each transaction says which schema its program knows, and is refused where the database has been
-- migrated to one that the program would misread. To read the table is to lock it until the end, so
-- that a migration, which locks it first, waits for those who were admitted.
CREATE FUNCTION admit(known integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT value::integer > known FROM memorist_meta WHERE key = 'oldest') THEN
    RAISE EXCEPTION 'this Memorist is older than the schema allows' USING ERRCODE = 'MEM01',
      DETAIL = (SELECT value || ' ' || known FROM memorist_meta WHERE key = 'schema');
  END IF;
END $$;

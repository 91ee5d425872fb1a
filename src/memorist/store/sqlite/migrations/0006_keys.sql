-- Keys to the servers. `digest` is all there is of a key; without a `user_id` it is an admin's.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  tenant_hash TEXT NOT NULL,
  tenant TEXT NOT NULL,
  user_id TEXT,
  label TEXT NOT NULL,
  digest TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_hash, created_at);

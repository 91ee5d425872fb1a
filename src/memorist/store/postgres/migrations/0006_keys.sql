-- Keys to the servers; the SQLite migration of the same number says what is what. A key tells who
-- is asking, so it is read before there is an owner: no row-level security here, and no words.
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  tenant_hash text NOT NULL,
  tenant text NOT NULL,
  user_id text,
  label text NOT NULL,
  digest text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_hash, created_at);

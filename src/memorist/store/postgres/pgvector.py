"""Whether pgvector can be used: there, and not crashing at its first distance."""

from __future__ import annotations

import logging
import time

import psycopg
import psycopg_pool

from memorist.store.rows import Row

_PROBE = "SELECT ARRAY[1, 2]::real[]::vector <=> ARRAY[2, 1]::real[]::vector"
_KEY = "pgvector"
_WAIT_SECONDS = 2.0
_PATIENCE_MS = 2_000

log = logging.getLogger("memorist")

Pool = psycopg_pool.ConnectionPool[psycopg.Connection[Row]]


def probe(pool: Pool) -> str:
    """`pgvector`, or else why exact search serves.

    A build for another processor kills its backend, and the server restarts, at the first
    distance. So an attempt is written down before it is made, and one that was never
    written off is not repeated.
    """
    with pool.connection() as connection:
        version = _installed(connection)
        if version is None:
            return "exact: pgvector is not installed"
        known = _verdict(connection)
    deadline = time.monotonic() + _WAIT_SECONDS
    while known == f"trying {version}" and time.monotonic() < deadline:
        time.sleep(0.05)  # another process may be at it this moment
        with pool.connection() as connection:
            known = _verdict(connection)
    if known == f"trying {version}":
        return f"exact: pgvector {version} crashed the server when it was tried"
    if known != f"works {version}":
        with pool.connection() as connection:
            _write_down(connection, f"trying {version}")
        with pool.connection() as connection:
            try:
                connection.execute(_PROBE)
            except psycopg.ProgrammingError as error:  # say, its schema is not in the search path
                _write_down(connection, "unknown")
                return f"exact: pgvector {version} is there and cannot be used ({error.sqlstate})"
            _write_down(connection, f"works {version}")
    with pool.connection() as connection:
        _adopt(connection)
    return "pgvector"


def _installed(connection: psycopg.Connection[Row]) -> str | None:
    asked = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    row = connection.execute(asked).fetchone()
    if row is None:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector")
        except psycopg.Error:  # not on this server, or not for this user
            return None
        row = connection.execute(asked).fetchone()
    return None if row is None else str(row[0])


def _adopt(connection: psycopg.Connection[Row]) -> None:
    """Have vectors stored as pgvector's own: to cast each one takes longer than to measure it.

    Statements are the same for both kinds, and serve as they are where we may not, or others are
    at the table for long.
    """
    is_ours_to_change = (
        "SELECT a.atttypid = 'real[]'::regtype AND pg_has_role(c.relowner, 'USAGE')"
        " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.oid = 'vectors'::regclass AND a.attname = 'embedding'"
    )
    if connection.execute(is_ours_to_change).fetchone() != (True,):
        return
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_PATIENCE_MS}")
            connection.execute("LOCK TABLE vectors IN ACCESS EXCLUSIVE MODE")
            if connection.execute(is_ours_to_change).fetchone() == (True,):  # still
                connection.execute("ALTER TABLE vectors ALTER COLUMN embedding TYPE vector")
    except psycopg.Error as error:
        log.warning("vectors stay arrays, which are searched slower (%s)", error.sqlstate)


def _verdict(connection: psycopg.Connection[Row]) -> str | None:
    row = connection.execute("SELECT value FROM memorist_meta WHERE key = %s", (_KEY,)).fetchone()
    return None if row is None else str(row[0])


def _write_down(connection: psycopg.Connection[Row], verdict: str) -> None:
    connection.execute(
        "INSERT INTO memorist_meta VALUES (%s, %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_KEY, verdict),
    )

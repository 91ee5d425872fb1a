"""The schema of a PostgreSQL database: its migrations, the role to work as, and pgvector's part."""

from __future__ import annotations

import contextlib
import logging
import time
from importlib import resources
from typing import Any

import psycopg

from memorist import errors
from memorist.store.engine import load_migrations, newer_schema, oldest_beside
from memorist.store.postgres.db import QUERIES
from memorist.store.rows import Row

MIGRATIONS = load_migrations(resources.files("memorist.store.postgres") / "migrations")
ROLE = "memorist_app"
_LOCK = 0x7265636F  # the advisory lock under which one process at a time changes the schema
_TRIAL_SECONDS = 2.0  # for which another process's trial of pgvector is waited for

log = logging.getLogger("memorist")


def migrate(connection: psycopg.Connection[Row], known: int) -> tuple[str, str]:
    """Bring the schema up to date; return the role to work as, and the search path."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    # By name, since "$user" would be another schema for the role we work as.
    path = search_path(connection)
    connection.execute(f"SET LOCAL search_path = {path}".encode())
    schema = value(connection, "quoted_schema")
    if value(connection, "meta_table") is None:
        connection.execute(QUERIES["create_meta"])
    version = int(value(connection, "meta", key="schema") or 0)
    oldest = int(value(connection, "meta", key="oldest") or 0)
    if oldest > known:
        raise newer_schema(version, known)
    if version < known:  # each transaction reads it: wait for those under way
        connection.execute("LOCK TABLE memorist_meta")
        for number, script in MIGRATIONS[version:]:
            # As bytes, in which no placeholders are looked for.
            connection.execute(script.replace("@schema", schema).encode())
            oldest = max(oldest, oldest_beside(number, script))
        _set_meta(connection, "schema", str(known))
        _set_meta(connection, "oldest", str(oldest))
    return _working_role(connection), path


def value(connection: psycopg.Connection[Row], query: str, **values: str) -> Any:
    """The first column of the first row of a named query, or None."""
    row = connection.execute(QUERIES[query], values).fetchone()
    return None if row is None else row[0]


def _set_meta(connection: psycopg.Connection[Row], key: str, value: str) -> None:
    connection.execute(QUERIES["set_meta"], {"key": key, "value": value})


def _working_role(connection: psycopg.Connection[Row]) -> str:
    """The role to work as, or "none" where row-level security binds the connecting user anyway."""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL ROLE {ROLE}")
            if value(connection, "is_above_security"):
                raise errors.StoreError(
                    f"the role {ROLE} is above row-level security, which keeps users apart; "
                    f"ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS"
                )
            connection.execute("RESET ROLE")
            if value(connection, "may_write", role=ROLE):
                return ROLE
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        pass  # there is no such role, or it is not for this user
    if value(connection, "is_above_security") is not False:
        raise errors.StoreError(
            f"this user is above row-level security and cannot work as {ROLE}; "
            f"connect as an ordinary user, or GRANT {ROLE} to this one"
        )
    return "none"


def search_path(connection: psycopg.Connection[Row]) -> str:
    """The schemas of our tables and of pgvector's functions, and no others.

    Whoever may create functions in a schema of the path can have us call them. Temporary tables,
    which any login may create, come last: PostgreSQL would look there first.
    """
    path: str | None = value(connection, "search_path")
    if path is None:
        raise errors.StoreError("the search_path of this login names no schema that exists")
    return path


def try_pgvector(connection: psycopg.Connection[Row]) -> str:
    """Use pgvector if it works: "pgvector", or else why vectors are searched without it.

    A build for another processor crashes the server at the first distance it computes. So a trial
    is written down before it is made, and one that did not end well is not repeated.
    """
    deadline = time.monotonic() + _TRIAL_SECONDS
    version = value(connection, "pgvector_version")
    if version is None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("CREATE EXTENSION vector")
        version = value(connection, "pgvector_version")
    if version is None:  # not on this server, or not for this user
        return "exact: pgvector is not installed; a superuser may CREATE EXTENSION vector"
    while (verdict := value(connection, "meta", key="pgvector")) == f"trying {version}":
        if time.monotonic() >= deadline:
            return f"exact: pgvector {version} crashed the server when it was tried"
        time.sleep(0.25)  # another process may be at it this moment
    if verdict != f"works {version}":
        _set_meta(connection, "pgvector", f"trying {version}")
        try:
            connection.execute("SELECT '[1, 2]'::vector <=> '[2, 1]'::vector")
        except psycopg.ProgrammingError as error:  # say, its schema is not in the search path
            _set_meta(connection, "pgvector", "unknown")
            return f"exact: pgvector {version} is there and cannot be used ({error.sqlstate})"
        _set_meta(connection, "pgvector", f"works {version}")
    _adopt(connection)
    return "pgvector"


def _adopt(connection: psycopg.Connection[Row]) -> None:
    """Change the column of vectors to pgvector's type, which saves casting each one.

    All statements work with either type, so it stays as it is where we may not change it, or where
    others keep the table locked.
    """
    if not value(connection, "may_change_vectors"):
        return
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '2s'")
            connection.execute("LOCK TABLE vectors IN ACCESS EXCLUSIVE MODE")
            if value(connection, "may_change_vectors"):  # still
                connection.execute("ALTER TABLE vectors ALTER COLUMN embedding TYPE vector")
    except psycopg.Error as error:
        log.warning("vectors stay arrays, which are searched slower (%s)", error.sqlstate)

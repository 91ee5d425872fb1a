"""PostgreSQL through psycopg: a pool, row-level security, patience with restarts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psycopg
import psycopg_pool

from recollect.errors import (
    RecollectError,
    SchemaError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from recollect.store.engine import Db, Row, load_migrations
from recollect.store.postgres import pgvector
from recollect.store.postgres.db import PostgresDb

T = TypeVar("T")

MIGRATIONS = load_migrations("postgres")
ROLE = "recollect_app"
_LOCK = 0x7265636F  # the advisory lock under which one process at a time migrates


class UnsureError(Exception):
    """The answer to a COMMIT was lost: the transaction's number, and what it would return."""

    def __init__(self, number: Row, result: Any) -> None:
        super().__init__()
        self.number = number
        self.result = result


class PostgresEngine:
    """Every transaction runs as a role that row-level security binds, for one owner."""

    def __init__(
        self, url: str, max_connections: int, patience_seconds: float, use_pgvector: bool
    ) -> None:
        self._url = url
        self._max_connections = max_connections
        self._patience = patience_seconds
        self.pgvector = "off: turned off by the caller"
        self._open_pool()
        try:
            self._role = self._patiently(self._migrate)
            if use_pgvector:
                self.pgvector = self._patiently(lambda: pgvector.probe(self._pool))
        except BaseException:
            self._pool.close()
            raise

    def _open_pool(self) -> None:
        self._pid = os.getpid()
        with translated():
            self._pool = psycopg_pool.ConnectionPool(
                self._url, min_size=1, max_size=self._max_connections, open=True,
                # Short: the pool waits longer after each failure, and patience is our own.
                timeout=min(self._patience, 1), reconnect_timeout=1,
                kwargs={"application_name": "recollect", "autocommit": True},
            )  # fmt: skip

    def read(self, owner: str, work: Callable[[Db], T]) -> T:
        return self._patiently(lambda: self._transact(owner, work))

    def write(self, owner: str, work: Callable[[Db], T]) -> T:
        return self._once(lambda: self._transact(owner, work, begin="SELECT pg_current_xact_id()"))

    def across_owners(self, work: Callable[[Db], T]) -> T:
        begin = "SET LOCAL recollect.worker = 'on'; SELECT pg_current_xact_id()"
        return self._once(lambda: self._transact("", work, begin))

    def scrub(self) -> str:
        return (
            "PostgreSQL keeps deleted rows until VACUUM, and its write-ahead log and backups "
            "until they are recycled"
        )

    def check(self) -> dict[str, str]:
        def ask() -> dict[str, str]:
            with self._pool.connection() as connection:
                row = connection.execute(
                    "SELECT current_database(), current_setting('server_version'),"
                    " current_setting('synchronous_commit')"
                ).fetchone()
                assert row is not None
                return {
                    "database": row[0],
                    "engine": f"PostgreSQL {row[1]}",
                    "synchronous": row[2],
                    "schema": str(_schema_version(connection)),
                    "row-level security": f"as role {self._role}"
                    if self._role != "none"
                    else "as the connecting user, who is bound by it",
                    "vectors": self.pgvector,
                }

        return self._patiently(ask)

    def close(self) -> None:
        self._pool.close()

    def _transact(self, owner: str, work: Callable[[Db], T], begin: str = "") -> T:
        """Run work as our role and for one owner, which ends with the transaction.

        A write gives `begin`, which ends in a query for the transaction's number.
        """
        if self._pid != os.getpid():
            # A forked child must not share its parent's connections, nor end them.
            self._abandoned = self._pool
            self._open_pool()
        with self._pool.connection() as connection:
            # In one go: a transaction of five statements should not take eight round trips.
            # `owner` is hexadecimal and the rest is ours, so nothing needs quoting.
            begun = connection.execute(
                f"BEGIN; SET LOCAL ROLE {self._role}; SET LOCAL recollect.owner = '{owner}';"
                f" {begin}".encode()
            )
            while begun.nextset():
                pass
            number = begun.fetchone() if begin else None
            try:
                result = work(PostgresDb(connection, self.pgvector == "pgvector"))
            except BaseException:
                if not connection.broken:
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except psycopg.OperationalError as error:
                if number is not None:  # what was read stays read
                    raise UnsureError(number, result) from error
            return result

    def _once(self, transact: Callable[[], T]) -> T:
        """Run a transaction until it is done, and never do it twice.

        Where the answer to a COMMIT was lost, the server is asked what became of it.
        """
        unsure: UnsureError | None = None

        def attempt() -> T:
            nonlocal unsure
            if unsure is not None:
                if self._is_committed(unsure.number):
                    result: T = unsure.result
                    return result
                unsure = None
            try:
                return transact()
            except UnsureError as error:
                unsure = error
                raise StoreUnavailableError("PostgreSQL went away during a COMMIT") from error

        return self._patiently(attempt)

    def _is_committed(self, number: Row) -> bool:
        with self._pool.connection() as connection:
            row = connection.execute("SELECT pg_xact_status(%s::xid8)", number).fetchone()
        if row == ("in progress",):
            raise StoreUnavailableError("PostgreSQL has not finished a COMMIT yet")
        return row == ("committed",)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Try until it works or patience ends."""
        deadline = time.monotonic() + self._patience
        pause = 0.02
        while True:
            try:
                with translated():
                    return attempt()
            except (StoreUnavailableError, StoreBusyError):
                if time.monotonic() + pause > deadline or self._pool.closed:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 0.5)

    def _migrate(self) -> str:
        """Bring the schema up to date; return the role to work as."""
        with self._pool.connection() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            found = _schema_version(connection)
            known = MIGRATIONS[-1][0]
            if found > known:
                raise SchemaError(
                    f"this database has schema {found}, this Recollect knows up to {known}; "
                    "it was left untouched: pip install --upgrade recollect"
                )
            for version, script in MIGRATIONS[found:]:
                connection.execute(script.encode())  # bytes: no placeholders are looked for
                connection.execute(
                    "INSERT INTO recollect_meta VALUES ('schema', %s)"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (str(version),),
                )
            return _working_role(connection, migrated=found < known)


def _schema_version(connection: psycopg.Connection[Row]) -> int:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS recollect_meta (key text PRIMARY KEY, value text NOT NULL)"
    )
    row = connection.execute("SELECT value FROM recollect_meta WHERE key = 'schema'").fetchone()
    return 0 if row is None else int(row[0])


def _working_role(connection: psycopg.Connection[Row], *, migrated: bool) -> str:
    """A role that is neither owner nor superuser; or none, where FORCE alone must do."""
    try:
        with connection.transaction():
            if migrated:
                _grant(connection)
            connection.execute(f"SET LOCAL ROLE {ROLE}")
            connection.execute("RESET ROLE")
            return ROLE
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        row = connection.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        if row is None or row[0]:
            raise StoreError(
                f"this user is above row-level security and cannot become {ROLE}; "
                "connect as an ordinary user"
            ) from None
        return "none"


def _grant(connection: psycopg.Connection[Row]) -> None:
    exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone()
    if exists is None:
        connection.execute(f"CREATE ROLE {ROLE} NOLOGIN")
    connection.execute(
        f"""
        GRANT {ROLE} TO CURRENT_USER;
        GRANT USAGE ON SCHEMA {{schema}} TO {ROLE};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{schema}} TO {ROLE};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA {{schema}} TO {ROLE};
        REVOKE ALL ON session_uuids, recollect_meta FROM {ROLE};
        """.format(schema=_schema(connection)).encode()
    )


def _schema(connection: psycopg.Connection[Row]) -> str:
    row = connection.execute("SELECT quote_ident(current_schema())").fetchone()
    assert row is not None
    return str(row[0])


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn psycopg's errors into ours."""
    try:
        yield
    except RecollectError:
        raise
    except psycopg.errors.DiskFull as error:
        raise StoreFullError("the server's disk is full; nothing acknowledged was lost") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise StoreBusyError("the database stayed locked; try again") from error
    except psycopg.errors.SerializationFailure as error:
        raise StoreBusyError("another transaction was in the way; try again") from error
    except (psycopg.OperationalError, psycopg_pool.PoolClosed) as error:
        raise StoreUnavailableError("PostgreSQL cannot be reached") from error
    except psycopg.Error as error:
        code = getattr(error, "sqlstate", None)
        raise StoreError(f"PostgreSQL refused: {type(error).__name__} ({code})") from error

"""PostgresStore: one database for many servers and workers, through a pool of connections."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakSet

import psycopg
import psycopg_pool

from memorist import errors
from memorist.arguments import NamesArguments
from memorist.forks import ProcessPart, fork_safe
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.engine import Db, Engine, LateError, newer_schema, open_indexes
from memorist.store.indexing import MAX_MESSAGE_BYTES
from memorist.store.postgres import schema
from memorist.store.postgres.connection import SentStatement, WatchedConnection, defaults, place_of
from memorist.store.postgres.db import QUERIES, RESIDUE, PostgresDb, pack, view_keys, word_keys

T = TypeVar("T")
Pool = psycopg_pool.ConnectionPool[WatchedConnection]

OTHER_TIME = 0.3  # more or less of it than a statement was given: then the server is told
MANY_WORDS = 256  # passages of a user whose words wait, which are placed together
_LEAST_MS = 100  # that a statement is given, however late it is
_IDLE = "60s"  # after which the server ends a transaction whose process stands still
_OPENING_SECONDS = 2.0  # for which a server is looked for that was never reached
_COMING = re.compile("database system is|too many|connection slots|session is read-only")
_COUNTER_SECONDS = 86_400.0  # for which a counter is used; after 30 days its row is pruned
_BOUND_USER = "as the connecting user, who is bound by it"
SNAPSHOT = " ISOLATION LEVEL REPEATABLE READ"


class UnsureError(errors.StoreUnavailableError):
    """The answer to a COMMIT was lost; `result` is what the transaction would have returned."""

    def __init__(self, result: Any) -> None:
        super().__init__("PostgreSQL went away during a COMMIT")
        self.result = result


@dataclass
class Counter:
    """A row of `memorist_writes` that one write at a time counts in, and the count here."""

    client: str
    number: int = 0
    made_at: float = field(default_factory=time.monotonic)


class PipelinedRead:
    """A transaction that the reads of one thread for one owner share; begun by the first."""

    def __init__(
        self, engine: PostgresEngine, owner: str, left: Callable[[], float | None]
    ) -> None:
        self.owner = owner
        self._engine, self._left = engine, left
        self._open = contextlib.ExitStack()
        self._db: PostgresDb | None = None
        self._bound_ms = 0  # of a statement, as the server was told

    def read(self, work: Callable[[Db], T], deadline: float) -> T:
        """Run work in the transaction, or in a new one after an error."""
        left = self._left()
        left_ms = _left_ms(deadline) if left is None else max(int(left * 1_000), 1)
        try:
            if self._db is None:
                begun = self._engine._begun(self.owner, left_ms, "begin_reading", SNAPSHOT)
                self._db, self._bound_ms = self._open.enter_context(begun), left_ms
            elif abs(left_ms - self._bound_ms) > self._bound_ms * OTHER_TIME:
                self._db.tell("set_time_left", left_ms=str(left_ms))
                self._bound_ms = left_ms
            result = work(self._db)
            self._db.send_waiting()  # here, where it is known what to do about an error
            return result
        except BaseException as error:
            self.close()
            if left is not None and isinstance(error, psycopg.errors.QueryCanceled):
                raise LateError("the time for it was over") from error
            raise

    def close(self) -> None:
        """End the transaction and give its connection back."""
        db, self._db = self._db, None
        with contextlib.suppress(psycopg.Error), self._open:  # what was read stays read
            if db is not None:
                db.commit()


class PostgresEngine(Engine, ProcessPart):
    """Every transaction runs as a role that row-level security binds, for one owner."""

    pack = staticmethod(pack)
    words, view_words = staticmethod(word_keys), staticmethod(view_keys)
    saves_trips = True

    def __init__(self, url: str, max_connections: int, patience: float, pgvector: bool) -> None:
        self._url = url
        self._max_connections = max_connections
        self._patience = patience
        self.pgvector = "off: turned off by the caller"
        self._counters: list[Counter] = []
        self._indexes = cache(open_indexes)
        self._connections: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._opening = fork_safe(threading.Lock())
        self._placing = fork_safe(threading.Lock())
        self._in_thread = threading.local()
        self._known = schema.MIGRATIONS[-1][0]
        self._lost_at = 0.0  # when a connection was last lost: others may be, that were idle then
        deadline = self._deadline()
        self._first_contact()
        self._make_pool()
        self._here()
        try:
            self._role, self._search_path = self._patiently(self._migrate, deadline)
            if pgvector:
                self._patiently(self._try_pgvector, deadline)
        except BaseException:
            self._pool.close()
            raise
        self.watch_process()

    def after_fork(self, *, in_child: bool) -> None:
        """A child gets connections of its own; the parent's must end with the parent."""
        if in_child:
            for connection in self._connections:
                with contextlib.suppress(psycopg.Error, OSError):  # it is broken
                    os.close(connection.fileno())
            self._abandoned = self._pool, list(self._connections)
            self._connections = WeakSet()  # a child of the child has other files by these numbers
            self._counters = []
            self._make_pool()

    def _first_contact(self) -> None:
        """Fail soon, with the reason, unless a server is there and says that it is not ready."""
        until = time.monotonic() + min(_OPENING_SECONDS, self._patience)
        while (error := self._reach()) and not _COMING.search(str(error)):
            if not might_pass(error) or time.monotonic() > until:
                reason = " ".join(str(error).split())
                raise errors.StoreUnavailableError(
                    "there is no way to PostgreSQL; check host, port, database, user and password: "
                    f"{reason}"
                )
            time.sleep(0.2)

    def _reach(self) -> psycopg.OperationalError | None:
        """Connect once; return what went wrong, if anything did."""
        try:
            with psycopg.connect(self._url, **defaults(self._url)) as connection:
                if connection.info.parameter_status("server_encoding") != "UTF8":
                    raise errors.StoreError("the database's encoding must be UTF8")
            return None
        except psycopg.OperationalError as error:
            return error
        except psycopg.ProgrammingError:  # it quotes the URL, and with it the password
            raise errors.ConfigError(
                "this is not a PostgreSQL URL; signs such as % @ / in a password are spelled %25, "
                "%40, %2F"
            ) from None

    def _make_pool(self) -> None:
        self._open = False
        self._pool = psycopg_pool.ConnectionPool(
            self._url,
            min_size=1,
            max_size=self._max_connections,
            open=False,
            # Short: the pool waits longer after each failure, and patience is our own.
            timeout=min(self._patience, 1),
            reconnect_timeout=1,
            connection_class=WatchedConnection,
            configure=self._is_new,
            kwargs={"autocommit": True, **defaults(self._url)},
        )

    def _is_new(self, connection: WatchedConnection) -> None:
        self._connections.add(connection)
        connection.heard_at = time.monotonic()
        connection.add_notice_handler(self._is_told)
        # A pooler gives each transaction another session, where what we prepared is not.
        if schema.value(connection, "is_pooled", pid=str(connection.info.backend_pid)):
            connection.prepare_threshold = None

    def _is_told(self, notice: psycopg.errors.Diagnostic) -> None:
        """Have words placed that wait, where the server says so, and let nobody wait for that."""
        if notice.sqlstate == "MEM02" and not self._placing.locked():
            owner = notice.message_primary or ""
            threading.Thread(target=self._place, args=(owner,), daemon=True).start()

    def _place(self, owner: str) -> None:
        with self._placing, contextlib.suppress(errors.MemoristError):  # others will be told, too
            self.write(owner, lambda db: db.run("place_words", fewest=MANY_WORDS))

    def read(
        self, owner: str, work: Callable[[Db], T], *, snapshot: bool = False, bounded: bool = True
    ) -> T:
        reading: PipelinedRead | None = getattr(self._in_thread, "reading", None)
        if reading is not None and reading.owner == owner:
            return self._patiently(partial(reading.read, work), self._deadline())
        how: dict[str, Any] = {"level": SNAPSHOT if snapshot else None, "bounded": bounded}
        return self._patiently(partial(self._transact, owner, work, **how), self._deadline())

    @contextlib.contextmanager
    def reading(self, owner: str, left: Callable[[], float | None]) -> Iterator[None]:
        self._in_thread.reading = reading = PipelinedRead(self, owner, left)
        try:
            yield
        finally:
            self._in_thread.reading = None
            reading.close()

    def write(self, owner: str, work: Callable[[Db], T], *, exclusive: bool = False) -> T:
        # To forget a user may take long, and is bound by nothing but the server's being there.
        begin = "begin_exclusive" if exclusive else "begin_shared"
        return self._once(owner, work, begin, bounded=not exclusive)

    def all_owners(self, work: Callable[[Db], T], *, reads: bool = False) -> T:
        if reads:
            how: dict[str, Any] = {"begin": "begin_reading_all", "level": None}
            return self._patiently(partial(self._transact, "", work, **how), self._deadline())
        return self._once("", work, "begin_for_all")

    def scrub(self) -> str:
        return RESIDUE

    def check(self) -> dict[str, str]:
        def ask(db: Db) -> dict[str, str]:
            [(database, version, synchronous, schema, unbound, is_open)] = db.rows("check")
            bound = f"as role {self._role}" if self._role != "none" else _BOUND_USER
            return {
                "database": database,
                "engine": f"PostgreSQL {version}",
                "synchronous": synchronous,
                "schema": schema,
                "row-level security": f"off: {self._role} sees all of {unbound}"
                if unbound
                else bound,
                "privileges": f"open: {is_open}" if is_open else "ok",
                "vectors": self.pgvector,
            }

        return self.read("", ask)

    def close(self) -> None:
        self._pool.close()

    def _here(self) -> Pool:
        """The pool, opened with its first use: a child that only runs a program opens none."""
        if not self._open:
            with self._opening:
                if not self._open:
                    self._pool.open()
                    self._open = True
        return self._pool

    @contextlib.contextmanager
    def _connection(self, until: float | None = None) -> Iterator[WatchedConnection]:
        """A connection from the pool, on which nothing takes longer than `until`."""
        pool = self._here()
        while True:
            # Not `pool.connection()`, which commits once more when all is done.
            connection = pool.getconn()
            try:
                if connection.heard_at < self._lost_at:
                    connection.close()  # the pool makes another
                    continue
                connection.until = until
                try:
                    yield connection
                finally:
                    if connection.closed:
                        self._lost_at = time.monotonic()
                return
            finally:
                pool.putconn(connection)

    @contextlib.contextmanager
    def _begun(
        self,
        owner: str,
        left_ms: int,
        begin: str,
        level: str | None = "",
        *,
        bounded: bool = True,
        **count: Any,
    ) -> Iterator[PostgresDb]:
        """A transaction, as our role and for one owner; it begins with its first statement."""
        # The server ends its work first; we give up where that answer does not come.
        until = time.monotonic() + left_ms / 1_000 + 1 if bounded else None
        with self._connection(until) as connection:
            has_pgvector = self.pgvector == "pgvector"
            db = PostgresDb(owner, connection, has_pgvector, self._indexes, level)
            self._set_up(connection, db)
            bound = "statement_timeout" if bounded else "lock_timeout"
            time_left = {"bound": bound, "left_ms": str(left_ms)}
            ours = {"role": self._role, "known": self._known}
            db.open(begin, **ours, **time_left, **count)
            try:
                yield db
            except BaseException as error:
                db.roll_back()
                if db.repeat is not None and isinstance(error, psycopg.errors.UniqueViolation):
                    raise db.repeat from error  # a new message has no other key that could be there
                raise

    def _set_up(self, connection: WatchedConnection, db: PostgresDb) -> None:
        """Have the server work as our role: in this transaction, or in all of a connection."""
        ours = {"role": self._role, "search_path": self._search_path, "idle": _IDLE}
        if connection.prepare_threshold is None:
            db.open("set_up", **ours, local=True)
        elif not connection.is_set_up:
            connection.send([SentStatement(QUERIES["set_up"], {**ours, "local": False})])
            connection.is_set_up = True

    def _transact(
        self,
        owner: str,
        work: Callable[[Db], T],
        deadline: float,
        begin: str = "begin",
        *,
        count: Counter | None = None,
        **how: Any,
    ) -> T:
        """Run work in a transaction; if it counts, a COMMIT in doubt is an UnsureError."""
        if count is not None:
            how |= {"client": count.client, "number": count.number}
        with self._begun(owner, _left_ms(deadline), begin, **how) as db:
            result, was_read = work(db), db.is_sent and begin == "begin"
            try:
                db.commit()
            except psycopg.OperationalError as error:
                if count is not None and might_pass(error):
                    raise UnsureError(result) from error
                if not was_read:
                    raise
            return result

    def _once(self, owner: str, work: Callable[[Db], T], begin: str, *, bounded: bool = True) -> T:
        """Run a transaction until it is committed, and never commit it twice.

        Each write counts itself in a row that changes with it. Where the answer to a COMMIT
        was lost, that row says whether it was done. The transaction's own id would not do: a server
        that crashed may use it again.
        """
        deadline = self._deadline()
        counter = self._take_counter() or self._patiently(self._new_counter, deadline)
        counter.number += 1
        unsure: UnsureError | None = None

        def attempt(deadline: float) -> T:
            nonlocal unsure
            if unsure is not None:
                if self._is_done(counter, deadline):
                    result: T = unsure.result
                    return result
                unsure = None
            try:
                how: dict[str, Any] = {"count": counter, "bounded": bounded}
                return self._transact(owner, work, deadline, begin, **how)
            except UnsureError as error:
                unsure = error
                raise

        try:
            return self._patiently(attempt, deadline)
        finally:
            if unsure is None:  # else nobody knows what it stands at
                self._counters.append(counter)

    def _take_counter(self) -> Counter | None:
        """A counter that no other write is using, and whose row is not old enough to be pruned."""
        try:
            counter = self._counters.pop()
        except IndexError:
            return None
        return counter if time.monotonic() < counter.made_at + _COUNTER_SECONDS else None

    def _new_counter(self, deadline: float) -> Counter:
        self._transact("", lambda db: db.run("prune_counters"), deadline, "begin_briefly")
        return Counter(str(uuid4()))

    def _is_done(self, counter: Counter, deadline: float) -> bool:
        named = {"client": counter.client}
        row = self._transact(
            "", lambda db: db.row("read_counter", **named), deadline, "begin_briefly"
        )
        return row == (counter.number,)

    def _deadline(self) -> float:
        return time.monotonic() + self._patience

    def _patiently(self, attempt: Callable[[float], T], deadline: float) -> T:
        """Try until it works or the deadline, which each attempt is told, has passed."""
        pause = 0.02
        while True:
            try:
                try:
                    return attempt(deadline)
                except psycopg.Error as error:
                    raise translate(error) from error
            except (errors.StoreUnavailableError, errors.StoreBusyError) as failure:
                was_cancelled = isinstance(failure.__cause__, psycopg.errors.QueryCanceled)
                if was_cancelled or time.monotonic() + pause > deadline or self._pool.closed:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 0.5)

    def _migrate(self, deadline: float) -> tuple[str, str]:
        with self._connection() as connection, connection.transaction():
            connection.execute(  # locks are waited for until then; a migration may take longer
                f"SET LOCAL lock_timeout = {_left_ms(deadline)};"
                f" SET LOCAL idle_in_transaction_session_timeout = '{_IDLE}'".encode()
            )
            return schema.migrate(connection, self._known)

    def _try_pgvector(self, deadline: float) -> None:
        with self._connection() as connection:
            self.pgvector = schema.try_pgvector(connection)
            self._search_path = schema.search_path(connection)


def _left_ms(deadline: float) -> int:
    """The milliseconds until a deadline, as a limit for the server."""
    return max(int((deadline - time.monotonic()) * 1_000), _LEAST_MS)


def might_pass(error: psycopg.OperationalError) -> bool:
    """Whether the connection or the server failed, so that trying again may help."""
    state = error.sqlstate or ""
    if "password" in str(error) or "does not exist" in str(error):
        return False  # libpq gives no code for what went wrong before the connection stood
    return not state or (state[:2] in ("08", "57") and state != "57014") or state == "53300"


def translate(error: psycopg.Error) -> errors.StoreError:
    """Our error for one of PostgreSQL, without its text, which may quote values."""
    match error:
        case psycopg.Error(sqlstate="MEM01"):
            return newer_schema(*map(int, str(error.diag.message_detail).split()))
        case psycopg.errors.DiskFull():
            return errors.StoreFullError("the server's disk is full; nothing acknowledged was lost")
        case psycopg.errors.LockNotAvailable() | psycopg.errors.DeadlockDetected():
            return errors.StoreBusyError("the database stayed locked; try again")
        case psycopg.errors.QueryCanceled():
            return errors.StoreBusyError(
                "PostgreSQL took too long; try again, or raise patience_seconds"
            )
        case psycopg.errors.IdleInTransactionSessionTimeout():
            return errors.StoreUnavailableError("PostgreSQL ended a transaction that stood still")
        case psycopg.errors.SerializationFailure():
            return errors.StoreBusyError("another transaction was in the way; try again")
        case psycopg_pool.PoolClosed():
            return errors.StoreUnavailableError("the store is closed")
        case psycopg.OperationalError() if might_pass(error):
            return errors.StoreUnavailableError("PostgreSQL cannot be reached")
    return errors.StoreError(f"PostgreSQL refused: {type(error).__name__} ({error.sqlstate})")


class PostgresStore(Store, NamesArguments):
    """A Store in a PostgreSQL database, with pgvector where that is there and works.

    Its messages lie in `chat_message_history`, where langchain-postgres reads and writes them
    too. A server that goes away is waited for as long as the patience lasts.
    """

    kind = "postgres"

    def __init__(
        self,
        url: str,
        *,
        max_connections: int = 10,
        patience_seconds: float = 30,
        pgvector: bool = True,
        clock: Callable[[], datetime] = now,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        engine = PostgresEngine(url, max_connections, patience_seconds, pgvector)
        self.place = place_of(url)
        super().__init__(engine, clock, max_message_bytes)

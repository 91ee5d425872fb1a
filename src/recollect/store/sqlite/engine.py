"""SQLite through apsw: one writer at a time, readers beside it, WAL."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from recollect.errors import (
    SchemaError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from recollect.store.engine import Db, load_migrations
from recollect.store.sqlite.db import SqliteDb

T = TypeVar("T")

APPLICATION_ID = 0x7265636F  # "reco", so that no other program's file is taken for ours
MIGRATIONS = load_migrations("sqlite")
MERGE_PAGES = 2_000
CACHE_KIB = 32_768  # SQLite's own 2 MB makes appends slow down as the text index grows
CHECKPOINT_PAGES = 4_000  # 16 MB of log before it is moved into the file


class SqliteEngine:
    """Connections to one file. The writer is shared under a lock; readers come from a pool."""

    def __init__(self, path: str, durability: str, patience_seconds: float) -> None:
        if durability not in ("full", "normal"):
            raise StoreError('durability is "full" or "normal"')
        self.path = path
        self._durability = durability
        self._patience_ms = int(patience_seconds * 1_000)
        self._lock = threading.RLock()
        self._closed = False
        self._open()

    def read(self, owner: str, work: Callable[[Db], T]) -> T:
        if self._in_memory:
            return self.write(owner, work)
        self._check_usable()
        with TRANSLATED:
            try:
                reader = self._readers.pop()
            except IndexError:
                reader = SqliteDb(self._connect())
            try:
                return work(reader)
            finally:
                self._give_back(reader)

    def write(self, owner: str, work: Callable[[Db], T]) -> T:
        with self._lock:
            self._check_usable()
            with TRANSLATED:
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    result = work(self._db)
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
                return result

    def across_owners(self, work: Callable[[Db], T]) -> T:
        return self.write("", work)

    def scrub(self) -> str:
        """Merge deleted words out of the text index, rewrite the file, empty the log beside it.

        Deleting is not enough, nor would secure_delete be: a page that was split keeps copies
        of what moved away, and only VACUUM writes every page anew.
        """
        merge = "INSERT INTO passage_words (passage_words, rank) VALUES ('merge', ?)"
        with self._lock, TRANSLATED:
            self._check_usable()
            pages = -MERGE_PAGES
            while True:  # in steps, so that other processes' writers get their turn
                before = self._writer.total_changes()
                self._writer.execute(merge, (pages,))
                if self._writer.total_changes() - before < 2:
                    break
                pages = MERGE_PAGES
            self._writer.execute("VACUUM")
            return "" if self._in_memory else self._truncate_wal()

    def check(self) -> dict[str, str]:
        with self._lock, TRANSLATED:
            ask = self._writer.pragma
            return {
                "database": "memory" if self._in_memory else self.path,
                "engine": f"SQLite {apsw.sqlite_lib_version()}",
                "journal": str(ask("journal_mode")),
                "synchronous": {1: "normal", 2: "full", 3: "extra"}[int(str(ask("synchronous")))],
                "schema": str(ask("user_version")),
                "integrity": str(ask("quick_check")),
                "vectors": "exact",
            }

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._pid != os.getpid():
                return  # a fork's copies: closing them would drop the parent's locks
            with TRANSLATED:
                for db in (*self._readers, self._db):
                    db.connection.close()

    @property
    def _in_memory(self) -> bool:
        return self.path == ":memory:"

    def _open(self) -> None:
        self._pid = os.getpid()
        self._readers: list[SqliteDb] = []
        with TRANSLATED:
            if not self._in_memory:
                refuse_foreign(self.path)
                make_private(self.path)
            self._writer = self._connect()
            self._db = SqliteDb(self._writer)
            self._migrate()

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(self._patience_ms)
        self._use_wal(connection)
        connection.pragma("synchronous", self._durability)
        connection.pragma("cache_size", -CACHE_KIB)
        connection.wal_autocheckpoint(CHECKPOINT_PAGES)
        return connection

    def _use_wal(self, connection: apsw.Connection) -> None:
        deadline = time.monotonic() + self._patience_ms / 1_000
        while not self._in_memory and connection.pragma("journal_mode") != "wal":
            # Turning WAL on does not wait for others by itself.
            with contextlib.suppress(apsw.BusyError):
                connection.pragma("journal_mode", "wal")
            if time.monotonic() > deadline:
                raise StoreBusyError("another process keeps the database from switching to WAL")

    def _migrate(self) -> None:
        for version, script in MIGRATIONS:
            if int(str(self._writer.pragma("user_version"))) >= version:
                continue
            with self._writer_transaction():
                if int(str(self._writer.pragma("user_version"))) < version:
                    self._writer.execute(script)
                    self._writer.pragma("user_version", version)
                    self._writer.pragma("application_id", APPLICATION_ID)

    @contextlib.contextmanager
    def _writer_transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            self._writer.execute("ROLLBACK")
            raise

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        if self._pid != os.getpid():  # SQLite connections must not cross a fork
            self._lock = threading.RLock()
            self._abandoned = (
                self._writer,
                self._readers,
            )  # kept: closing drops the parent's locks
            self._open()

    def _give_back(self, reader: SqliteDb) -> None:
        if self._closed:
            reader.connection.close()
        else:
            self._readers.append(reader)

    def _truncate_wal(self) -> str:
        deadline = time.monotonic() + self._patience_ms / 1_000
        while True:
            try:
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return ""
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    return (
                        "a long read kept the write-ahead log from being emptied; "
                        "it empties at the next forget, or when the last process closes the store"
                    )


def make_private(path: str) -> None:
    """Make the file, and the folder it lies in, for their owner alone."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def refuse_foreign(path: str) -> None:
    """Raise if the file is not ours to write: another program's, or a newer Recollect's."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    if os.path.isdir(path):
        raise StoreUnavailableError("the database's path is a folder; name a file in it")
    look = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        look.set_busy_timeout(5_000)
        version = int(str(look.pragma("user_version")))
        ours = int(str(look.pragma("application_id"))) == APPLICATION_ID
        tables = look.execute("SELECT count(*) FROM sqlite_schema").get
    finally:
        look.close()
    if not ours and tables:
        raise StoreDamagedError("this SQLite file was not made by Recollect; choose another path")
    known = MIGRATIONS[-1][0]
    if version > known:
        raise SchemaError(
            f"this database has schema {version}, this Recollect knows up to {known}; "
            "it was left untouched: pip install --upgrade recollect"
        )


class Translated:
    """Turns apsw's errors into ours. A class, since it stands on the path of every call."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, apsw.Error | OSError):
            raise translate(error) from error


TRANSLATED = Translated()


def translate(error: apsw.Error | OSError) -> StoreError:
    """Our error for one of SQLite's or of the file system's. Their texts may quote values."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError(
                "the database stayed locked by another process; "
                "try again, or raise patience_seconds"
            )
        case apsw.FullError():
            return StoreFullError("the disk is full; nothing acknowledged was lost")
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreDamagedError("the file is damaged or is not a SQLite database")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnavailableError("the database cannot be opened for writing")
        case apsw.ConnectionClosedError():
            return StoreUnavailableError("the store is closed")
        case OSError():
            return StoreUnavailableError(f"the database's folder: {error.strerror}")
    return StoreError(f"SQLite refused: {type(error).__name__}")

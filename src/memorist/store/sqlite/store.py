"""SqliteStore: everything in one file, through apsw: one writer at a time, readers beside it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache, partial
from importlib import resources
from typing import Any, Literal, TypeVar

import apsw

from memorist import errors
from memorist.arguments import NamesArguments
from memorist.forks import ProcessPart, fork_safe
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.engine import Db, Engine, load_migrations, newer_schema, open_indexes
from memorist.store.indexing import MAX_MESSAGE_BYTES
from memorist.store.sqlite import files
from memorist.store.sqlite.db import (
    TRANSLATED,
    PendingWrite,
    SqliteDb,
    all_marked,
    all_spelled,
    fill,
    in_transaction,
    migrate,
    pack,
)

T = TypeVar("T")

MIGRATIONS = load_migrations(resources.files("memorist.store.sqlite") / "migrations")
MERGE_PAGES = 2_000
MERGE_STEP = 32  # pages: a writer waits for a few milliseconds
MOST_PARTS = 6  # of the text index: a word is looked up in each
CACHE_KIB = 32_768  # SQLite's own 2 MB makes appends slow down as the text index grows
LEAST_MS = 50  # to wait for another process that is writing
MAX_TOGETHER = 64  # writes that are committed at once
TURN_SECONDS = 0.1  # to wait for word of a write, before its thread asks for the lock itself
CHECKPOINT_PAGES = 4_000  # 16 MB of log before it is moved into the file


class SharedRead:
    """A time in which a thread's reads share a transaction, which their first begins."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._reader: SqliteDb | None = None

    def reader(self, owner: str) -> SqliteDb:
        """The connection of these reads."""
        if self._reader is None:
            self._reader = self._engine._open_reader(owner, "BEGIN")
            self._reader.kept = {}
        self._reader.owner = owner
        return self._reader

    def __enter__(self) -> None:
        self._engine._in_thread.reading = self

    def __exit__(self, *_: object) -> None:
        self._engine._in_thread.reading = None
        if self._reader is not None:
            self._reader.kept = None
            try:
                with TRANSLATED:
                    self._reader.connection.execute("COMMIT")
            finally:
                self._engine._give_back(self._reader)


class SqliteEngine(Engine, ProcessPart):
    """Connections to one file. The writer is shared under a lock; readers come from a pool."""

    pack = staticmethod(pack)
    words, view_words = staticmethod(all_spelled), staticmethod(all_marked)

    def __init__(self, path: str, durability: str, patience_seconds: float) -> None:
        if durability not in ("full", "normal"):
            raise errors.StoreError('durability is "full" or "normal"')
        self.path = path
        self._durability = durability
        self._patience_ms = int(patience_seconds * 1_000)
        self._lock = fork_safe(threading.RLock())
        self._pool = fork_safe(threading.Condition(threading.Lock()))
        self._pending: deque[PendingWrite[Any]] = deque()
        self._readers: list[SqliteDb] = []
        self._in_thread = threading.local()
        self._turn = files.WriteTurn(path)
        self._indexes = cache(open_indexes)
        self._reading = 0
        self._pausing = self._writing = False
        self._closed = self._scrubbing = self._merging = False
        self._writer_db: SqliteDb | None = None
        self._inode = 0
        self._known = MIGRATIONS[-1][0]
        self._read_only = files.is_read_only(path)
        self.scrubs = not self._read_only and not self._in_memory
        self._db()
        self.watch_process()

    def read(
        self, owner: str, work: Callable[[Db], T], *, snapshot: bool = False, bounded: bool = True
    ) -> T:
        if self._in_memory:
            return self.write(owner, work)
        with TRANSLATED:
            shared: SharedRead | None = getattr(self._in_thread, "reading", None)
            if shared is not None:
                return work(shared.reader(owner))
            reader = self._open_reader(owner)
            try:
                return in_transaction(reader, work, "BEGIN") if snapshot else work(reader)
            finally:
                self._give_back(reader)

    def reading(self, owner: str, left: Callable[[], float | None]) -> SharedRead:
        return SharedRead(self)

    def _open_reader(self, owner: str, begin: str = "") -> SqliteDb:
        """A connection of the pool, or a new one, until it is given back."""
        reader = self._take_reader()
        try:
            reader = reader or SqliteDb(self._connect(), self._indexes)
            reader.owner = owner
            if begin:
                reader.connection.execute(begin)
            self._refuse_newer(reader)
            return reader
        except BaseException:
            if reader is not None and reader.connection.in_transaction:
                reader.connection.execute("ROLLBACK")
            self._give_back(reader)
            raise

    def write(self, owner: str, work: Callable[[Db], T], *, exclusive: bool = False) -> T:
        if self._read_only:
            raise errors.StoreUnavailableError(
                "the database is on a read-only mount: it can only be read"
            )
        until = time.monotonic() + self._patience_ms / 1_000
        own: PendingWrite[T] = PendingWrite(owner, work)
        if not exclusive:  # that may take long, and nobody else is to wait for it
            self._pending.append(own)
        try:
            if self._writing and not exclusive:
                own.ready = threading.Event()
                if self._writing and not own.done:  # else nobody may be left to set it
                    own.ready.wait(TURN_SECONDS)
            if not own.done:
                with self._locked(), TRANSLATED:
                    if not own.done:
                        self._write_with_pending(own, until, alone=exclusive)
        except BaseException as error:
            if not self._withdraw(own) or not isinstance(error, Exception):  # Ctrl-C, say
                raise
        with TRANSLATED:
            return own.outcome()

    def _write_with_pending(self, own: PendingWrite[Any], until: float, *, alone: bool) -> None:
        """Commit a write, and those that wait for their turn with it: a commit takes longest.

        Their threads wait for word of it and not for the lock: handed from one to the next while
        all want to compute, it would be held by nobody most of the time.
        """
        own.leads = self._writing = True
        together = [own]

        def run(db: SqliteDb) -> None:
            self._refuse_newer(db)
            for pending in together:
                pending.run(db, apart=len(together) > 1)

        try:
            writer = self._begin(until)
            with contextlib.suppress(ValueError):
                self._pending.remove(own)
            with contextlib.suppress(IndexError):  # until there are no more
                while not alone and len(together) < MAX_TOGETHER:
                    together.append(self._pending.popleft())
            in_transaction(writer, run)  # if that fails, the others try by themselves
            for pending in together:
                pending.done = True
        finally:
            self._writing = False
            for pending in (*together, *[*self._pending][:1]):  # and who writes next
                if pending.ready is not None:
                    pending.ready.set()

    def _begin(self, until: float) -> SqliteDb:
        """The writer, in a transaction, in which no other process writes."""
        writer = self._db()
        self._check_file()
        try:
            if not self._in_memory:
                self._turn.take(until)
            # The time spent waiting for a lock counts as patience.
            left_ms = int((until - time.monotonic()) * 1_000)
            writer.connection.set_busy_timeout(max(left_ms, LEAST_MS))
            writer.connection.execute("BEGIN IMMEDIATE")
        finally:
            self._turn.give()
        return writer

    def _withdraw(self, own: PendingWrite[Any]) -> bool:
        """Take a write back whose turn did not come; True if another committed it meanwhile."""
        with contextlib.suppress(ValueError):
            self._pending.remove(own)
            return False
        if own.leads:
            return False
        with self._lock:  # another is writing it, or has
            return own.done

    def _refuse_newer(self, db: SqliteDb) -> None:
        """Raise if a newer program has migrated the file since it was opened."""
        version = int(db.connection.execute("PRAGMA user_version").get)
        if version > self._known:
            raise newer_schema(version, self._known)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the writer, if it is free within the patience."""
        if not self._lock.acquire(timeout=self._patience_ms / 1_000):
            raise errors.StoreBusyError(
                "other writers of this process had the database for too long; "
                "try again, or raise patience_seconds"
            )
        try:
            yield
        finally:
            self._lock.release()

    def all_owners(self, work: Callable[[Db], T], *, reads: bool = False) -> T:
        return self.read("", work) if reads else self.write("", work)

    def scrub(self) -> str:
        """Merge deleted words out of the text index, rewrite the file, truncate the WAL.

        Neither deleting nor secure_delete is enough: a page that was split keeps copies of what
        moved away, and only VACUUM rewrites every page.
        """
        [(forgets, _)] = self.read("", lambda db: db.rows("unscrubbed"))  # later ones may escape
        pages = -MERGE_PAGES
        while self._merge(pages) >= 2:  # in steps, so that other writers get their turn
            pages = MERGE_PAGES
        with self._locked(), TRANSLATED:
            writer = self._db().connection
            self._scrubbing = True
            try:
                writer.execute("VACUUM")
            finally:
                self._scrubbing = False
            truncate = partial(writer.wal_checkpoint, mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            if not self._in_memory and not self._patiently(truncate):
                return (
                    "a long read kept the write-ahead log from being emptied; "
                    "it empties at the next scrub, or when the last process closes the store"
                )
            writer.execute("UPDATE unscrubbed SET since = NULL WHERE forgets = ?", (forgets,))
            return ""

    def merge(self) -> bool:
        if not self._merging:
            [(parts,)] = self.read("", lambda db: db.rows("count_word_parts"))
            self._merging = parts > MOST_PARTS
        if self._merging:
            self._merging = self._merge(MERGE_STEP) >= 2
        return self._merging

    def _merge(self, pages: int) -> int:
        """Merge some pages of the text index; say how many rows changed, 1 if none were left."""

        def merge(db: SqliteDb) -> int:
            db.run("merge_any_two")
            before = db.connection.total_changes()
            db.run("merge_words", pages=pages)
            return db.connection.total_changes() - before

        with self._locked(), TRANSLATED:
            return in_transaction(self._db(), merge, "BEGIN IMMEDIATE")

    def unscrubbed_since(self) -> int | None:
        since: int | None = self.read("", lambda db: db.rows("unscrubbed"))[0][1]
        return since

    def backup(self, path: str) -> None:
        """Copy all that is committed into a new file that only its owner may read."""
        with self._locked(), TRANSLATED:
            source = self._db().connection
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                raise errors.InvalidError(
                    "the backup's file exists already; name a new one"
                ) from None
            copy = apsw.Connection(path)
            try:
                with copy.backup("main", source, "main") as pages:
                    pages.step()
            except BaseException:
                os.unlink(path)  # an incomplete backup is none
                raise
            finally:
                copy.close()

    def check(self) -> dict[str, str]:
        from memorist.store.vectors import EXACT_UP_TO

        def look(db: Db) -> dict[str, str]:
            assert isinstance(db, SqliteDb)
            ask = db.connection.pragma
            with contextlib.suppress(apsw.Error):
                # FTS5 would check what this connection has cached, and call newer changes damage.
                db.connection.execute("SELECT rowid FROM passage_words LIMIT 1").fetchall()
            return {
                "database": "memory" if self._in_memory else self.path,
                "engine": f"SQLite {apsw.sqlite_lib_version()}",
                "journal": str(ask("journal_mode")),
                "synchronous": {1: "normal", 2: "full", 3: "extra"}[int(str(ask("synchronous")))],
                "schema": str(ask("user_version")),
                "integrity": str(ask("integrity_check", 1)),
                "vectors": f"exact up to {EXACT_UP_TO:,} of a user, by sign bits first beyond that",
            }

        return self.read("", look)

    def close(self) -> None:
        self._interrupt_scrub()
        with self._lock, self._pool:
            self._closed = True
            self._disconnect()
            with contextlib.suppress(OSError):  # others who need it make it again
                os.unlink(f"{self.path}-turn")

    def _interrupt_scrub(self) -> None:
        if self._scrubbing and (writer := self._writer_db) is not None:
            writer.connection.interrupt()  # it may take minutes, and is begun anew later

    def before_fork(self) -> None:
        """Close the connections: neither they nor their locks may be carried into a child."""
        while not self._lock.acquire(timeout=0.05):
            self._interrupt_scrub()
        self._pool.acquire()
        self._pausing = True
        while self._reading:
            self._pool.wait()
        if not self._in_memory:
            self._disconnect()

    def after_fork(self, *, in_child: bool) -> None:
        """Go on; the next call opens a connection."""
        self._pausing = False
        if in_child:  # where the threads are not that wait for these
            self._pending.clear()
        else:  # where the locks are free
            self._pool.notify_all()
            self._pool.release()
            self._lock.release()

    @property
    def _in_memory(self) -> bool:
        return self.path == ":memory:"

    def _db(self) -> SqliteDb:
        """The writer, connected first if need be."""
        if self._writer_db is None:
            with TRANSLATED:
                self._check_open()
                self._check_file()
                if not self._in_memory:
                    files.refuse_foreign(self.path, MIGRATIONS[-1][0])
                    if not self._read_only:
                        files.make_private(self.path)
                writer = SqliteDb(self._connect(), self._indexes)
                if self._in_memory:
                    fill(writer.connection, tuple(MIGRATIONS))
                elif not self._read_only:
                    migrate(writer, MIGRATIONS)
                self._writer_db = writer
                self._inode = 0 if self._in_memory else files.inode(self.path)
        return self._writer_db

    def _check_file(self) -> None:
        """Raise if the file was removed or replaced since it was opened."""
        if self._inode and self._inode != files.inode(self.path):
            raise errors.StoreUnavailableError(
                "the database's file was removed or replaced while it was open, and what is "
                "written would be lost; close the store and open it again"
            )

    def _disconnect(self) -> None:
        idle, self._readers = self._readers, []
        writer, self._writer_db = self._writer_db, None
        self._turn.close()
        with TRANSLATED:
            for db in idle:
                db.connection.close()
            if writer is not None:
                writer.connection.close()

    def _take_reader(self) -> SqliteDb | None:
        """An idle connection; None where a new one is needed."""
        with self._pool:
            while self._pausing:
                self._pool.wait()
            self._check_open()
            self._reading += 1
            return self._readers.pop() if self._readers else None

    def _give_back(self, reader: SqliteDb | None) -> None:
        with self._pool:
            self._reading -= 1
            if reader is not None and self._closed:
                reader.connection.close()
            elif reader is not None:
                self._readers.append(reader)
            if self._pausing:  # a fork waits for the last one
                self._pool.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise errors.StoreUnavailableError("the store is closed")

    def _connect(self) -> apsw.Connection:
        connection = files.read_only(self.path) if self._read_only else apsw.Connection(self.path)
        connection.set_busy_timeout(self._patience_ms)
        # Otherwise SQLite plans a statement again whenever a bound value may change its plan.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if self._read_only:
            return connection
        use_wal = partial(connection.pragma, "journal_mode", "wal")  # does not wait for locks
        if not self._in_memory and not self._patiently(use_wal):
            raise errors.StoreBusyError("another process keeps the database from switching to WAL")
        connection.pragma("synchronous", self._durability)
        connection.pragma("cache_size", -CACHE_KIB)
        connection.wal_autocheckpoint(CHECKPOINT_PAGES)
        return connection

    def _patiently(self, attempt: Callable[[], object]) -> bool:
        """Try until no other process is in the way; False when the patience runs out."""
        deadline = time.monotonic() + self._patience_ms / 1_000
        while True:
            try:
                attempt()
                return True
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.01)


class SqliteStore(Store, NamesArguments):
    """A Store in one SQLite file, which several processes may open at once.

    `durability="full"`: what was acknowledged survives a power cut. `"normal"`: two to three
    times as many writes a second, and a power cut (never a crash of the process) may lose the
    last of them, without damage to the rest.
    """

    kind = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["full", "normal"] = "full",
        patience_seconds: float = 10,
        clock: Callable[[], datetime] = now,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._file = SqliteEngine(os.fspath(path), durability, patience_seconds)
        self.place = self._file.path
        super().__init__(self._file, clock, max_message_bytes)

    def backup(self, path: str | os.PathLike[str]) -> None:
        self._file.backup(os.fspath(path))

"""The file of a SQLite database, and the one beside it that says who writes next."""

import contextlib
import os
import random
import time
from urllib.parse import quote

import apsw

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

from memorist import errors
from memorist.store.engine import newer_schema
from memorist.store.sqlite.db import APPLICATION_ID, NOT_A_DATABASE


class WriteTurn:
    """The place of the process that writes next, in a file beside the database.

    SQLite's lock goes to whoever asks at the right moment, which is mostly the process that has
    just released it: others wait for seconds. Here a process asks for that lock only while it
    is the next one, so whoever has written waits like the others. It is a courtesy: where it
    cannot be had, half of the patience is left to do without.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}-turn"
        self._file = -1

    def take(self, until: float) -> None:
        if fcntl is None:
            return
        until -= (until - time.monotonic()) / 2
        with contextlib.suppress(OSError):
            if self._file >= 0 and not os.fstat(self._file).st_nlink:
                self.close()  # another process has ended, and with it the file
            if self._file < 0:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        while self._file >= 0 and time.monotonic() < until:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(random.uniform(0.001, 0.003))

    def give(self) -> None:
        if fcntl is not None and self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def make_private(path: str) -> None:
    """Create the file and its folder, readable by their owner only."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def inode(path: str) -> int:
    """The number of the file at a path; 0 where there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


def is_read_only(path: str) -> bool:
    """Whether a file is there and on a mount that nobody can write to."""
    with contextlib.suppress(OSError, AttributeError):  # it is not there; or this is Windows
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return False


def read_only(path: str) -> apsw.Connection:
    """A connection to a file on a read-only mount, where SQLite can make no files beside it."""
    name = f"file:{quote(os.path.abspath(path))}?mode=ro"
    if not os.path.exists(f"{path}-wal"):  # what is in there must not be passed over
        name += "&immutable=1"
    return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def refuse_foreign(path: str, known: int) -> None:
    """Raise if the file is not ours to write: another program's, or a newer Memorist's."""
    if os.path.isdir(path):
        raise errors.StoreUnavailableError("the database's path is a folder; name a file in it")
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if size == 0:
        return
    if size < 512:  # SQLite would take it for an empty database
        raise errors.StoreDamagedError(NOT_A_DATABASE)
    try:
        flags = apsw.SQLITE_OPEN_READONLY
        connection = read_only(path) if is_read_only(path) else apsw.Connection(path, flags=flags)
        version, application, tables = look_at(connection)
    except apsw.ReadOnlyError:  # a process died while writing: SQLite has to recover the file first
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        version, application, tables = look_at(connection)
    if tables and application != APPLICATION_ID:
        raise errors.StoreDamagedError(
            "this SQLite file was not made by Memorist; choose another path"
        )
    if version > known:
        raise newer_schema(version, known)


def look_at(connection: apsw.Connection) -> tuple[int, int, int]:
    """A file's schema version, application id and number of tables, without changing it."""
    try:
        connection.set_busy_timeout(5_000)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # In one statement, since another process may be creating it at this moment.
        [(version, application, tables)] = connection.execute(
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)"
            " FROM pragma_user_version, pragma_application_id"
        )
        return int(version), int(application), int(tables)
    finally:
        connection.close()

"""Archives: everything of one user, or of all users of a tenant, in one file, and back.

An archive is gzipped JSON, a line for each record; `docs/export.md` says what they hold. A user's
records are read in one transaction, into a temporary file, and so are as they were at one moment
however long a reader takes. The last line has the SHA-256 of all lines before it. It is checked
before anything is restored, and so is every record.
"""

import gzip
import hashlib
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from io import SEEK_END, IOBase, TextIOBase
from itertools import filterfalse, groupby
from os import PathLike
from tempfile import TemporaryFile
from typing import IO, Any, Literal, NamedTuple, cast

from memorist.context.documents.markdown import chunks as cut
from memorist.errors import InvalidError, RecordError
from memorist.records.archive import (
    ArchiveRecord,
    EntryRecord,
    MessageRecord,
    NoteRecord,
    RestoreReport,
    RevisionRecord,
    SummaryRecord,
    VectorsRecord,
    ViewRecord,
    from_line,
    line_of,
    to_line,
    type_of,
)
from memorist.records.documents import Article
from memorist.records.json_values import any_json, has_too_many_values, refuse_constant
from memorist.records.scope import ROOMS, Scope, shared_scope
from memorist.records.values import batches
from memorist.store.archive import Outcome
from memorist.store.base import Store
from memorist.store.indexing import check_size

FORMAT, VERSION = "memorist", 1
LEVEL = 4  # of compression: the next ones take much longer for little
CHUNK = 262_144  # bytes that are read and sent at once
MAX_LINE = 256 * 1024 * 1024
MAX_RATIO, ALWAYS_FINE = 200, 256 * 1024 * 1024  # how much larger an archive may be when unpacked
BATCH, BATCH_BYTES = 200, 4_194_304  # of records that are restored at once
MAX_PLACES = 20
Progress = Callable[[int, int], None]


class Checksum:
    """How many records of each type a user has, and a sum of their digests.

    It tells whether two databases hold the same: it depends neither on their order nor on vectors,
    which databases keep in forms of their own.
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._sum = 0

    def add(self, name: str, line: bytes) -> None:
        """Count a record."""
        self.counts[name] += 1
        if name != "vectors":
            self._sum += int.from_bytes(hashlib.sha256(line).digest())

    def to_json(self) -> dict[str, Any]:
        """What an archive says at the end of a user."""
        return {"records": dict(self.counts), "sum": f"{self._sum % 2**256:064x}"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checksum) and self._compared() == other._compared()

    def _compared(self) -> Any:
        return self._sum % 2**256, {**self.counts, "vectors": 0}


def checksum(store: Store, scope: Scope) -> Checksum:
    """The checksum of a user's records."""

    def take(records: Iterator[ArchiveRecord]) -> Checksum:
        total = Checksum()
        for record in records:
            total.add(type_of(record), to_line(record))
        return total

    summed: Checksum = store.export(scope.whole_user(), take)
    return summed


def export(
    store: Store, scopes: Iterable[Scope], tenant: str, *, vectors: bool = False
) -> Iterator[bytes]:
    """An archive of some users of a tenant, piece by piece."""
    whole, users = hashlib.sha256(), 0
    head = line_of({"format": FORMAT, "version": VERSION})
    whole.update(head)
    yield _packed(head)
    for scope in scopes:
        room = scope.tenant.removeprefix(tenant).removeprefix("/")
        first = line_of({"type": "user", "user": scope.user, **({"room": room} if room else {})})
        take = partial(_section, first, whole)
        section, whole = store.export(scope, take, vectors=vectors)
        users += 1
        with closing(section):
            yield from iter(partial(section.read, CHUNK), b"")
    yield _packed(line_of({"type": "end", "users": users, "sha256": whole.hexdigest()}))


def _packed(line: bytes) -> bytes:
    return gzip.compress(line, LEVEL, mtime=0)


def _section(first: bytes, whole: Any, records: Iterator[ArchiveRecord]) -> tuple[IO[bytes], Any]:
    """The part of one user in a temporary file, and the hash of all lines up to its end."""
    file, whole, total = TemporaryFile(), whole.copy(), Checksum()  # noqa: SIM115 (its reader closes it)
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0) as packed:

        def write(line: bytes) -> None:
            whole.update(line)
            packed.write(line)

        write(first)
        for record in records:
            line = to_line(record)
            total.add(type_of(record), line)
            write(line)
        write(line_of({"type": "user_end", **total.to_json()}))
    file.seek(0)
    return file, whole


class Located(NamedTuple):
    """A record of an archive, with the line it is on and its size in bytes."""

    scope: Scope
    number: int
    size: int
    record: ArchiveRecord


def read(file: IO[bytes], scope_of: Callable[[Mapping[str, Any]], Scope]) -> Iterator[Located]:
    """The records of an archive; RecordError, with the line, where it is not as it was written."""
    whole, scope, total, is_over = hashlib.sha256(), None, Checksum(), False
    for number, line in enumerate(_lines(file), start=1):
        try:
            data = _object(line)
            if number == 1:
                _check_head(data)
            elif is_over:
                raise RecordError("the archive goes on after its end")
            elif scope is not None and data.get("type") == "user_end":
                _check(data == {"type": "user_end", **total.to_json()})
                scope = None
            elif scope is not None:
                record = from_line(data, scope)
                total.add(type_of(record), line)
                yield Located(scope, number, len(line), record)
            elif data.get("type") == "user":
                scope, total = scope_of(data), Checksum()
            else:
                is_over = data.get("type") == "end"
                _check(is_over and data.get("sha256") == whole.hexdigest())
        except InvalidError as error:
            raise RecordError(f"line {number:,} of the archive: {error}") from None
        whole.update(line)
    if not is_over:
        raise RecordError("the archive is cut off: its last line is missing")


def _check(is_right: bool) -> None:
    if not is_right:
        raise RecordError("the archive was altered: its checksum is another")


def _check_head(data: Mapping[str, Any]) -> None:
    version = data.get("version")
    if data.get("format") != FORMAT or not isinstance(version, int):
        raise RecordError("this is not an archive of Memorist")
    if version > VERSION:
        raise RecordError(
            f"the archive has version {version}, and this Memorist reads up to {VERSION}; "
            "install a newer one"
        )


def _object(line: bytes) -> Any:
    if has_too_many_values(line):
        raise RecordError("this holds too many values to be a record")
    try:
        data = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise RecordError("this is not a JSON object")
    return data


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    unpacked = 0
    file.seek(0)
    try:
        with gzip.GzipFile(fileobj=file) as lines:
            while line := lines.readline(MAX_LINE):
                unpacked += len(line)
                check_unpacked(unpacked, file.tell(), "the archive")
                if not line.endswith(b"\n"):
                    raise RecordError("the archive is cut off, or has a line that is too long")
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise RecordError("the archive is cut off or damaged, or is no archive") from None


def check_unpacked(unpacked: int, packed: int, name: str) -> None:
    """Raise where so much comes out of a file that it was made to fill the disk or the memory."""
    if unpacked > ALWAYS_FINE and unpacked > MAX_RATIO * packed:
        raise RecordError(f"{name} unpacks to more than {MAX_RATIO} times its size")


def is_archive(head: bytes) -> bool:
    """Whether a file that begins with these bytes is an archive."""
    try:
        first = zlib.decompressobj(wbits=31).decompress(head, 1_024)
    except zlib.error:
        return False
    return first.startswith(line_of({"format": FORMAT})[:-2])


def scopes_of(store: Store, tenant: str) -> Iterator[Scope]:
    """All users of a tenant, and what they share."""
    for part in (tenant, *(f"{tenant}/{room}" for room in ROOMS)):
        yield from _every(store, part)


def _every(store: Store, tenant: str | None = None) -> Iterator[Scope]:
    scopes = store.users(tenant=tenant)
    while scopes:
        yield from scopes
        scopes = store.users(tenant=tenant, after=scopes[-1])


def scope_in(tenant: str, data: Mapping[str, Any], *, user: str | None = None) -> Scope:
    """The scope of a user's part of an archive, or of the user who gets it instead."""
    name, room = data.get("user"), data.get("room")
    if not isinstance(name, str) or room not in (None, *ROOMS):
        raise RecordError("this names no user")
    if user is not None and room is not None:
        raise RecordError("this is shared by all users; restore it without naming one")
    if room is not None:
        return shared_scope(tenant, room, name)
    return Scope(tenant=tenant, user=name if user is None else user)


def restore(
    store: Store,
    chunks: Iterable[bytes] | IO[bytes],
    scope_of: Callable[[Mapping[str, Any]], Scope],
    *,
    only_one: bool = False,
    embedder: str | None = None,
    own: bool = False,
    progress: Progress | None = None,
) -> RestoreReport:
    """Store what an archive holds and the store does not, after a look at all of it.

    With `only_one`, an archive of several users is refused. With `embedder`, vectors of others are
    left out. `own`: see `store.archive.restore`; and texts may be longer than is allowed.
    """
    users, places = list[Scope](), list[str]()
    found = defaultdict[Outcome, Counter[str]](Counter)
    tell = progress or (lambda done, total: None)

    def note(data: Mapping[str, Any]) -> Scope:
        users.append(scope_of(data))
        return users[-1]

    with _seekable(chunks) as file:
        size = file.seek(0, SEEK_END)
        for batch in _batches(read(file, note)):
            if not own:
                _refuse_long(batch, store.max_message_bytes)
            tell(file.tell(), 2 * size)
        if only_one and len(users) != 1:
            raise InvalidError(f"the archive holds {len(users):,} users; do not name one of them")
        for batch in _batches(read(file, scope_of), embedder):
            records = [it.record for it in batch]
            outcomes = store.restore(batch[0].scope, records, cut, own=own)
            for it, outcome in zip(batch, outcomes, strict=True):
                found[outcome][type_of(it.record)] += 1
                if outcome is False and len(places) < MAX_PLACES:
                    places.append(f"line {it.number:,}")
            tell(size + file.tell(), 2 * size)
    counts = {"added": found[None], "there": found[True], "differing": found[False]}
    return RestoreReport(users=len(users), **counts, places=tuple(places))


def _refuse_long(batch: Iterable[Located], most: int) -> None:
    """Raise where a text is longer than the store takes by any other way."""
    for it in batch:
        try:
            match it.record:
                case MessageRecord(message=said) | RevisionRecord(message=said):
                    check_size(said.text, "message", most)
                case NoteRecord(text=text) | SummaryRecord(text=text):
                    check_size(text, type_of(it.record))
                case ViewRecord(record=Article(text=text)):
                    check_size(text, "article")
                case EntryRecord(text=text, value=value):
                    check_size(any_json(value) + text, "entry")
        except InvalidError as error:
            raise RecordError(f"line {it.number:,} of the archive: {error}") from None


@contextmanager
def _seekable(chunks: Iterable[bytes] | IO[bytes]) -> Iterator[IO[bytes]]:
    """An archive as a file, which is read twice."""
    wanted = "give the archive as a file opened to read bytes, or as pieces of bytes"
    if isinstance(chunks, str | bytes | PathLike | TextIOBase):
        raise InvalidError(wanted)
    if isinstance(chunks, IOBase) and chunks.seekable():
        yield cast("IO[bytes]", chunks)
    else:
        with TemporaryFile() as file:
            for chunk in chunks:
                if not isinstance(chunk, bytes | bytearray | memoryview):
                    raise InvalidError(f"{wanted}, got pieces of {type(chunk).__name__}")
                file.write(chunk)
            yield file


def _batches(records: Iterable[Located], embedder: str | None = None) -> Iterator[list[Located]]:
    """Records of one user each, as many as are restored at once."""

    def is_foreign(it: Located) -> bool:
        return isinstance(it.record, VectorsRecord) and it.record.embedder != embedder

    kept = filterfalse(is_foreign, records) if embedder else records
    for _, of_user in groupby(kept, key=lambda it: it.scope):
        yield from batches(of_user, lambda it: it.size, most=BATCH, most_size=BATCH_BYTES)


def contents(file: IO[bytes]) -> tuple[int, Counter[str]]:
    """How many users an archive holds, and how many records of each type, after a check."""
    users, counts = set[Scope](), Counter[str]()
    for it in read(file, partial(scope_in, "")):
        users.add(it.scope)
        counts[type_of(it.record)] += 1
    return len(users), counts


def count_users(store: Store) -> int:
    """How many users and shared parts all tenants of a store have."""
    return sum(1 for _ in _every(store))


def promote(
    source: Store, target: Store, *, replace: bool = False
) -> Iterator[tuple[Scope, Literal["same", "copied", "differs"]]]:
    """Copy API keys, and then all users of all tenants, from one store to another.

    A user who is the `same` in both is left out, so that it can be run again. What the target has
    stays, and then the two differ, as they do if one was written to meanwhile; with `replace`, a
    user who differs is forgotten in the target first.
    """
    for key in source.keys(None):
        target.put_key(key)
        for end in filter(None, (key.expires_at, key.revoked_at)):
            target.revoke_key(key.tenant, key.id, at=end if end is key.expires_at else None)
    for scope in _every(source):
        yield scope, _promote_user(source, target, scope, replace)


def _promote_user(
    source: Store, target: Store, scope: Scope, replace: bool
) -> Literal["same", "copied", "differs"]:
    if checksum(source, scope) == checksum(target, scope):
        return "same"
    if replace:
        target.forget(scope)
    chunks = export(source, [scope], scope.tenant, vectors=True)
    restore(target, chunks, lambda _: scope, own=True)
    return "copied" if checksum(source, scope) == checksum(target, scope) else "differs"

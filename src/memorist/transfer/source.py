"""Where an import comes from: a file, a folder, a zip or gzip file, another program's database.

Everything is read as a stream; nothing is unpacked to the disk.
"""

import codecs
import gzip
import io
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from memorist.archive import check_unpacked, is_archive
from memorist.errors import RecordError
from memorist.records.json_values import has_too_many_values
from memorist.store.tables import POSTGRES, Tables
from memorist.transfer.items import Skipped
from memorist.transfer.json_stream import MAX_VALUE_CHARS, JsonStream

HEAD_BYTES = 65_536
BUFFER_BYTES = 262_144
MAX_LINE_BYTES = MAX_VALUE_CHARS
_GZIP, _SQLITE, _ZIP = b"\x1f\x8b", b"SQLite format 3\x00", b"PK\x03\x04"
# The last one: of a password, or another compression.
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)


class Source:
    """What a user names to import from: files, the tables of a database, or an archive of ours.

    `bytes_read` grows towards `bytes_total` as they are read. `skipped` are the files that are
    left out for safety's sake.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.bytes_read = self.bytes_total = 0
        self.skipped: list[Skipped] = []
        self.tables: Tables | None = None
        self.archive: Path | None = None
        self._files: dict[str, Path | zipfile.ZipInfo] = {}
        text = os.fspath(path)
        if text.startswith(POSTGRES):
            self.name, self.tables = "the database", Tables(text)
            return
        text = text.removeprefix("sqlite:///")
        # The report would quote a password; no file has a name with NUL.
        if "://" in text or "password=" in text or "\x00" in text:
            raise RecordError("give a file, a folder, or a database as postgresql://…")
        home = Path(text).expanduser()
        self.name = _shown(home.name)
        try:
            self._find(home)
        except _UNREADABLE as error:
            raise RecordError(f"{self.name} cannot be read: {_reason(error)}") from None

    def names(self) -> Sequence[str]:
        """The files: their paths in the folder or the zip, or the name of the only one."""
        return list(self._files)

    def open(self, name: str) -> io.BufferedReader:
        """A file, unpacked. Where it cannot be read, this or reading it raises `RecordError`."""
        file, shown = self._files[name], _shown(name)
        try:
            if isinstance(file, Path):
                stream: Any = io.BufferedReader(_Counted(file, self), BUFFER_BYTES)
                packed = file.stat().st_size
            else:
                stream, packed = self._zip.open(file), file.compress_size
            is_packed = stream.peek(2)[:2] == _GZIP
        except _UNREADABLE as error:
            raise RecordError(f"{shown} cannot be read: {_reason(error)}") from None
        streams = (gzip.GzipFile(fileobj=stream), stream) if is_packed else (stream,)
        return io.BufferedReader(_Unpacked(streams, shown, packed), BUFFER_BYTES)

    def head(self, name: str) -> bytes:
        """The first bytes of a file; none where it cannot be read."""
        try:
            with self.open(name) as file:
                return file.read(HEAD_BYTES)
        except RecordError:
            return b""

    def first(self, name: str, *keys: str) -> Any:
        """The first value of a file, to recognise it by; None where there is none."""
        try:
            entry = next(self.values(name, *keys), None)
        except RecordError:
            return None
        return None if entry is None or isinstance(entry, Skipped) else entry[1]

    def values(self, name: str, *keys: str) -> Iterator[tuple[str, Any] | Skipped]:
        """The values of an `array`, or the `objects` of lines, whichever a file holds."""
        line = self.head(name).removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0]
        by_line = not line.startswith(b"[") and not (keys and _is_incomplete(line))
        yield from self.objects(name) if by_line else self.array(name, *keys)

    def lines(self, name: str) -> Iterator[tuple[str, bytes]]:
        """The lines of a file that are not empty, each with its place."""
        with self.open(name) as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if len(line) == MAX_LINE_BYTES:
                    place = self.place(name, f"line {number:,}")
                    raise RecordError(f"{place} has more than {MAX_LINE_BYTES:,} bytes")
                if line.strip():
                    yield self.place(name, f"line {number:,}"), line

    def objects(self, name: str) -> Iterator[tuple[str, dict[str, Any]] | Skipped]:
        """The objects of JSON lines, each with its place; broken lines are skipped.

        A file whose last line is broken and has no end is cut off: that raises `RecordError`.
        """
        for place, line in self.lines(name):
            if has_too_many_values(line):
                yield Skipped(place, "too many values")
                continue
            try:
                value = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    raise RecordError(f"{place}: the file is cut off in this line") from None
                deep = isinstance(error, RecursionError)
                yield Skipped(place, "nested too deeply" if deep else "not JSON")
                continue
            yield (place, value) if isinstance(value, dict) else Skipped(place, "not a JSON object")

    def array(self, name: str, *keys: str) -> Iterator[tuple[str, Any]]:
        """The values of a JSON array, or of the one below one of the `keys` of an object.

        Each comes with its place. `RecordError` where it is not JSON or is cut off.
        """
        with self.open(name) as file:
            values = JsonStream(file, _shown(name)).arrays(keys)
            for number, value in enumerate(values, start=1):
                yield self.place(name, f"entry {number:,}"), value

    def place(self, name: str, within: str) -> str:
        """Where something is, for reports."""
        return within if len(self._files) == 1 else f"{_shown(name)}, {within}"

    def _find(self, home: Path) -> None:
        if home.is_dir():
            self._walk(home.resolve())
            return
        if not stat.S_ISREG(home.stat().st_mode):
            raise RecordError(f"{self.name} is not a file or folder")
        self.bytes_total = home.stat().st_size
        with home.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if is_archive(head):
            self.archive = home
        elif head.startswith(_SQLITE):
            self.tables = Tables(str(home))
        elif head.startswith(_ZIP):
            self._zip = zipfile.ZipFile(_Counted(home, self))
            self._files = dict(sorted(_members(self._zip)))
        else:
            self._files[self.name.removesuffix(".gz")] = home

    def _walk(self, home: Path) -> None:
        for place, folders, names in os.walk(home):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(place, name) for name in sorted(names) if not name.startswith(".")):
                name = _shown(path.relative_to(home).as_posix())
                if not Path(os.path.realpath(path)).is_relative_to(home):
                    self.skipped.append(Skipped(name, "a link that leads out of the folder"))
                elif path.is_file():
                    self._files[name] = path
                    self.bytes_total += path.stat().st_size


def _members(archive: zipfile.ZipFile) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """The files of a zip; one that could do harm raises."""
    for member in archive.infolist():
        name, path = _shown(member.filename), PurePosixPath(member.filename.replace("\\", "/"))
        if not path.parts:  # "" or ".", which is no file
            continue
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise RecordError(f"the zip names a file outside of it: {name}")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise RecordError(f"the zip holds a link: {name}")
        check_unpacked(member.file_size, member.compress_size, name)
        if not member.is_dir() and path.parts[0] != "__MACOSX":
            yield name, member


def _is_incomplete(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _shown(name: str) -> str:
    """A file's name as text; bytes in it that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it is cut off"
    unknown = f"damaged or of a kind unknown ({type(error).__name__})"
    return getattr(error, "strerror", None) or unknown


class _Counted(io.FileIO):
    """A file whose source counts the bytes that are read; closed when nobody reads it any more."""

    def __init__(self, path: Path, source: Source) -> None:
        super().__init__(path)
        self._source = source

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._source.bytes_read += count or 0
        return count

    def read(self, size: int | None = -1) -> Any:
        return io.RawIOBase.read(self, -1 if size is None else size)  # by `readinto`

    def __del__(self) -> None:
        self.close()


class _Unpacked(io.RawIOBase):
    """A stream whose errors name the file, and which ends where too much comes out of it."""

    def __init__(self, streams: tuple[Any, ...], name: str, packed: int) -> None:
        self._streams, self._name, self._packed, self._count = streams, name, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = int(self._streams[0].readinto(buffer))
        except _UNREADABLE as error:
            raise RecordError(f"{self._name} cannot be read: {_reason(error)}") from None
        self._count += count
        check_unpacked(self._count, self._packed, self._name)
        return count

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        super().close()

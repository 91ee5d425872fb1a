"""A disk under SQLite whose writes can be counted, and can be made to go wrong."""

from __future__ import annotations

from collections.abc import Callable

import apsw

Trouble = Callable[[Callable[[bytes], None], bytes], None]


class Disk(apsw.VFS):
    """All files of this process, once it is made. Trouble comes at the write numbered `limit`.

    What changes a file counts as a write: writing, flushing, cutting, deleting.
    """

    def __init__(self, trouble: Trouble, limit: int | None = None) -> None:
        super().__init__("disk", "", makedefault=True)
        self.writes = 0
        self.limit = limit
        self._trouble = trouble

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.count()
        super().xDelete(filename, syncdir)

    def count(self, write: Callable[[bytes], None] = lambda data: None, data: bytes = b"") -> None:
        """Count a write; at the limit and after it, make trouble."""
        self.writes += 1
        if self.limit is not None and self.writes >= self.limit:
            self._trouble(write, data)


class DiskFile(apsw.VFSFile):
    """One file of the disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        write = super().xWrite
        self._disk.count(lambda part: write(part, offset), data)
        write(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.count()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        self._disk.count()
        super().xTruncate(newsize)

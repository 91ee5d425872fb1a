"""A server waits for the disk and its worker does not: a power cut takes nothing acknowledged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from memorist import Memory
from tests.crash.processes import ROOT

# What a disk has after a power cut: of each file what it held when it was last flushed.
WRITE = """
import os, shutil, sys
import apsw

class File(apsw.VFSFile):
    def __init__(self, name, flags):
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("unix", name, flags)
    def xSync(self, flags):
        super().xSync(flags)
        shutil.copy(self.path, os.path.join(sys.argv[2], os.path.basename(self.path)))

class Disk(apsw.VFS):
    def __init__(self):
        super().__init__("disk", "unix", makedefault=True)
    def xOpen(self, name, flags):
        return File(name, flags)
    def xDelete(self, name, syncdir):
        super().xDelete(name, syncdir)
        if os.path.exists(copy := os.path.join(sys.argv[2], os.path.basename(name))):
            os.remove(copy)

disk = Disk()
from memorist import Memory
from memorist.store.sqlite.store import SqliteStore
server = Memory(SqliteStore(sys.argv[1]), embedder=None, extraction=None)
worker = Memory(SqliteStore(sys.argv[1], durability="normal"), embedder=None, extraction=None)
server.remember("acknowledged first", user="ada")
for number in range(3):
    worker.memories.add(f"of the worker {number}", user="ada")
    server.remember(f"acknowledged {number}", user="ada")
worker.memories.add("not flushed", user="ada")
sys.stdout.flush()
os._exit(0)
"""


def test_a_power_cut_takes_at_most_what_the_worker_did_last(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [sys.executable, "-c", WRITE, str(tmp_path / "memory.db"), str(disk)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    with Memory(disk / "memory.db", embedder=None, extraction=None) as memory:
        said = [message.content for message in memory.history(user="ada")]
        made = [item.text for item in memory.memories.list(user="ada")]
        assert said == ["acknowledged first", *(f"acknowledged {n}" for n in range(3))]
        assert sorted(made) == [f"of the worker {number}" for number in range(3)]
        assert memory.check()["integrity"] == "ok"

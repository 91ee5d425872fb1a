"""What may happen to a SQLite file beside the writing: it is taken away, damaged, read-only."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import apsw
import httpx
import pytest

from memorist import Memory
from memorist.errors import StoreUnavailableError
from memorist.records.message import Message
from memorist.server.auth import Guard
from memorist.server.http.app import build_app
from memorist.store.sqlite import files
from memorist.store.sqlite.store import SqliteStore
from tests.crash.evidence import SCOPE, batch
from tests.crash.processes import ROOT, finish, read_line, start, tell
from tests.support.http_server import serving

READ = """
import sys
from memorist import Memory
from memorist.errors import StoreUnavailableError
with Memory(sys.argv[1], embedder=None, extraction=None) as memory:
    print([message.content for message in memory.history(user="ada")])
    print([hit.text for hit in memory.recall("tea", user="ada", deadline_ms=None).hits])
    print(memory.check()["integrity"])
    try:
        memory.remember("more", user="ada")
    except StoreUnavailableError as error:
        print("read-only" in str(error))
"""


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_was_unlinked_while_open_is_noticed_at_the_next_write(
    tmp_path: Path, replace: bool
) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as store:
        store.append(SCOPE, batch("writer", 0))
        path.unlink()
        if replace:
            SqliteStore(path).close()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="removed or replaced"):
                store.append(SCOPE, batch("writer", 1))
        if not replace:
            assert not path.exists()
    with SqliteStore(path) as store:
        store.append(SCOPE, batch("writer", 1))


def test_over_http_a_file_that_was_unlinked_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with (
        Memory(path, embedder=None, extraction=None) as memory,
        serving(build_app(memory, Guard.local("default", "ada"))) as url,
    ):
        ask = {"agent": "tutor", "new": True}
        assert httpx.post(f"{url}/api/sessions/resolve", json=ask).status_code == 200
        path.unlink()
        assert httpx.post(f"{url}/api/sessions/resolve", json=ask).status_code == 503


def test_a_read_only_mount_can_be_read(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
        memory.remember("I like tea.", user="ada")
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    script = (
        f"mount -t tmpfs none {mounted} && cp {tmp_path}/memory.db {mounted}/ && "
        f'mount -o remount,ro {mounted} && exec "$@" {mounted}/memory.db'
    )
    command = ["unshare", "-rm", "sh", "-c", script, "-", sys.executable, "-c", READ]
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"]).returncode:
        pytest.skip("no mounts can be made here")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["['I like tea.']", "['I like tea.']", "ok", "True"], (
        done.stderr
    )


def test_what_is_left_in_a_log_on_a_read_only_mount_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as store:
        store.append(SCOPE, batch("writer", 0))
        copy = tmp_path / "copy.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    monkeypatch.setattr(files, "is_read_only", lambda path: True)
    with SqliteStore(copy) as store:
        assert len(store.history(SCOPE)) == 1
        assert (store.backlog(), store.spent(), store.unprepared("e")) == (1, (0, 0), store.users())


def test_a_flipped_bit_in_an_index_is_found_by_check(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    mark = b"markmarkmark"
    with SqliteStore(path) as store:
        store.append(SCOPE, [Message("user", "hello", message_id=mark.decode())])
        assert store.check()["integrity"] == "ok"
    content = bytearray(path.read_bytes())
    at = content.rindex(mark)
    content[at] ^= 4
    path.write_bytes(content)
    connection = apsw.Connection(str(path))
    assert connection.pragma("quick_check") == "ok"
    connection.close()
    with SqliteStore(path) as store:
        assert store.check()["integrity"] != "ok"


def test_who_waits_for_the_file_is_next_whoever_asks_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteStore(path) as first, SqliteStore(path) as second:
        first.append(SCOPE, batch("warm", 0))
        other = apsw.Connection(str(path))
        for number in range(5):
            other.execute("BEGIN IMMEDIATE")
            waiting = threading.Thread(target=first.append, args=(SCOPE, batch("first", number)))
            waiting.start()
            until_taken(f"{path}-turn")
            next_one = threading.Thread(target=second.append, args=(SCOPE, batch("second", number)))
            next_one.start()
            other.execute("COMMIT")
            waiting.join()
            next_one.join()
        other.close()
        names = [entry.message.message_id[:5] for entry in first.history(SCOPE)][1:]
    order = [name for place, name in enumerate(names) if names[place - 1 : place] != [name]]
    assert order == ["first", "secon"] * 5


def until_taken(path: str) -> None:
    """Wait until somebody holds the lock of a file."""
    file = os.open(path, os.O_RDWR)
    try:
        for _ in range(5_000):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.002)
        raise AssertionError("nobody took it")
    finally:
        os.close(file)


@pytest.mark.prove
def test_twelve_processes_with_embedders_meet_no_busy_error(tmp_path: Path) -> None:
    children = [start("embedder", tmp_path / "memory.db", f"user{it}", 100) for it in range(12)]
    for child in children:
        assert read_line(child) == "ready"
    for child in children:
        tell(child)
    lines = [line for child in children for line in finish(child, timeout_seconds=600)]
    assert not [line for line in lines if not line.startswith("recall answered")]  # some late


def test_a_file_that_changed_since_the_last_search_is_not_called_damaged(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=None, extraction=None) as memory:
        for number in range(10):
            for place in range(40):
                memory.remember(f"tea {place} and words w{place * 7 + number}", user="ada")
            memory.store.merge()
            assert memory.check()["integrity"] == "ok"
            for _ in range(4):
                memory.recall("tea", user="ada", deadline_ms=None)

"""A store that is open when its process forks works in both, and loses nothing of either."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from memorist.store.sqlite.files import WriteTurn
from tests.crash.evidence import check_store
from tests.crash.processes import finish, start


def test_parent_and_forked_child_both_write(target: str) -> None:
    assert play("both_write", target) == {"parent": 120, "child": 100}


def test_forked_child_loses_nothing_when_the_parent_closes_first(target: str) -> None:
    assert play("parent_closes_first", target) == {"parent": 5, "child": 10}


def test_forks_while_other_threads_write_hang_no_child(target: str) -> None:
    acked = play("threads_write", target)
    assert all(acked[f"child{number}"] == 2 for number in range(12))


def play(scene: str, target: str) -> dict[str, int]:
    """Let a process play a scene; what it and its children were acknowledged must be there."""
    lines = finish(start("forker", scene, target))
    acked = dict(Counter(line.split()[0] for line in lines))
    check_store(target, acked, spare=0, why=scene)
    return acked


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_its_parent_writes_does_not_keep_the_turn(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    told, tell = os.pipe()
    turn = WriteTurn(path)
    turn.take(time.monotonic() + 9)
    if not (child := os.fork()):
        os._exit(len(os.read(told, 1)) - 1)
    turn.give()
    with open(f"{path}-turn") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(tell, b".")
    assert os.waitpid(child, 0)[1] == 0


THREADS_SCENE = """
import os, threading
from memorist.forks import ProcessPart

class Broken(ProcessPart):
    def before_fork(self):
        raise ValueError
    after_fork = before_fork

class Locked(ProcessPart):
    lock = threading.Lock()
    def before_fork(self):
        self.lock.acquire()
    def after_fork(self, *, in_child):
        self.lock.release()

def fork():
    for _ in range(50):
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)

parts = [Broken(), Locked(), Broken()]
for part in parts:
    part.watch_process()
threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(Locked.lock.locked())
"""


def test_threads_that_fork_at_once_and_parts_that_fail_hang_nobody() -> None:
    command = [sys.executable, "-W", "ignore", "-c", THREADS_SCENE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]


POSTGRES_SCENE = """
import os, sys
from memorist import Message, Scope
from memorist.store.postgres.store import PostgresStore

def sockets():
    files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return {os.readlink(file) for file in files if os.path.exists(file)} - {"/dev/null"}

scope = Scope(user="ada", session="s")
with PostgresStore(sys.argv[1]) as store:
    store.append(scope, [Message("user", "before")])
    parents = {name for name in sockets() if name.startswith("socket:")}
    child = os.fork()
    assert parents and (child or not parents & sockets()), "they must end with the parent"
    if not child:  # a child of the child must close none of the files that it opens
        first = os.open("/dev/zero", os.O_RDONLY)
        if not (grandchild := os.fork()):
            os._exit(0 if os.read(first, 1) else 1)
        assert os.waitpid(grandchild, 0)[1] == 0
    for number in range(20):
        store.append(scope, [Message("user", f"{'parent' if child else 'child'} {number}")])
    if child:
        assert os.waitpid(child, 0)[1] == 0
        store.append(scope, [Message("user", "after")])
        print(len(store.history(scope)))
"""


def test_parent_and_forked_child_both_write_to_postgres(postgres_with_tables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", POSTGRES_SCENE, postgres_with_tables],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["42"]
    with psycopg.connect(postgres_with_tables) as connection:
        counted = connection.execute("SELECT number FROM memorist_writes ORDER BY 1").fetchall()
    # The parent's first append finds no session, and is made again with one.
    assert counted == [(20,), (23,)], "each counts its own writes: what was lost is not mistaken"


PATTERNS_SCENE = """
import os, threading
from memorist.language.patterns import Pattern, PatternSet

pattern, together = Pattern("gr[ae]y"), PatternSet([Pattern("gr[ae]y")])
assert pattern.search("a grey day") and together.numbers("a grey day") == [0]
for others in (0, 1):
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(others)]
    for thread in threads:
        thread.start()
    if not (child := os.fork()):
        kept = [one for one in (pattern, together) if "_regex" in vars(one)]
        assert pattern.search("grey") and together.numbers("gray") == [0]
        os._exit(len(kept))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "_regex" in vars(pattern))
    done.set()
"""


def test_a_child_compiles_patterns_anew_if_its_parent_had_threads() -> None:
    """RE2 has locks, which another thread may hold at the fork."""
    command = [sys.executable, "-W", "ignore", "-c", PATTERNS_SCENE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n") == ["2 True", "0 True", ""]

"""Real processes for the tests: started as modules of this folder, heard through a pipe."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]

_started: list[subprocess.Popen[bytes]] = []


def start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Run `tests.crash.<module>`; its stdin and stdout are pipes."""
    command = [sys.executable, "-m", f"tests.crash.{module}", *map(str, arguments)]
    pipe = subprocess.PIPE
    # Unbuffered: `communicate` would not see what `readline` has taken ahead.
    child = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, bufsize=0)
    _started.append(child)
    return child


def end_all() -> None:
    """Kill what a failed test left running."""
    while _started:
        child = _started.pop()
        child.kill()
        child.communicate()


def read_line(child: subprocess.Popen[bytes]) -> str:
    """The next whole line the child writes; it must come."""
    assert child.stdout
    line = child.stdout.readline()
    assert line.endswith(b"\n"), f"the child ended early with {child.wait()}"
    return line.decode().strip()


def tell(child: subprocess.Popen[bytes], line: str = "go") -> None:
    """Write a line to the child, which waits for it."""
    assert child.stdin
    child.stdin.write(f"{line}\n".encode())


def kill(child: subprocess.Popen[bytes], after_seconds: float = 0) -> list[str]:
    """`kill -9` a running child after a while; return the lines it wrote since last read."""
    time.sleep(after_seconds)
    child.kill()
    rest, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL, f"the child ended early with {child.returncode}"
    return rest.decode().split("\n")[:-1]


def finish(child: subprocess.Popen[bytes], *, timeout_seconds: float = 60) -> list[str]:
    """Let the child run to its end, which must be a good one; return the lines it wrote."""
    rest, _ = child.communicate(timeout=timeout_seconds)
    assert child.returncode == 0, f"the child failed with {child.returncode}"
    return rest.decode().split("\n")[:-1]

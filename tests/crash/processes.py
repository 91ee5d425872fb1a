"""Real processes for the tests: started as modules of this folder, heard through a pipe."""

from __future__ import annotations

import signal
import time

from tests.support.forked import ROOT, Forked

__all__ = ["ROOT", "Forked", "end_all", "finish", "kill", "read_line", "start", "tell"]

_started: list[Forked] = []


def start(module: str, *arguments: object) -> Forked:
    """Run `tests.crash.<module>`; its stdin and stdout are pipes."""
    child = Forked(f"tests.crash.{module}", *arguments)
    _started.append(child)
    return child


def end_all() -> None:
    """Kill what a failed test left running."""
    while _started:
        child = _started.pop()
        child.kill()
        child.communicate()


def read_line(child: Forked) -> str:
    """The next whole line the child writes; it must come."""
    line = child.stdout.readline()
    assert line.endswith(b"\n"), f"the child ended early with {child.wait()}"
    return line.decode().strip()


def tell(child: Forked, line: str = "go") -> None:
    """Write a line to the child, which waits for it."""
    child.stdin.write(f"{line}\n".encode())


def kill(child: Forked, after_seconds: float = 0) -> list[str]:
    """`kill -9` a running child after a while; return the lines it wrote since last read."""
    time.sleep(after_seconds)
    child.kill()
    rest, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL, f"the child ended early with {child.returncode}"
    return rest.decode().split("\n")[:-1]


def finish(child: Forked, *, timeout_seconds: float = 300) -> list[str]:
    """Let the child run to its end, which must be a good one; return the lines it wrote."""
    rest, _ = child.communicate(timeout=timeout_seconds)
    assert child.returncode == 0, f"the child failed with {child.returncode}"
    return rest.decode().split("\n")[:-1]

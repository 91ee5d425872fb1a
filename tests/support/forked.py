"""Processes that need not import first: forked from one that has imported what they need.

A new Python imports for half a second of processor time, a server's for two, which is more than
most tests spend on what they are about. `main` is what the one runs from which all are forked. It
has no threads, and imports what is asked for when it is first asked for it.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 1 << 20  # bytes of an order
_turn = threading.Lock()


class Forked:
    """`python -m MODULE ARGUMENTS`, with pipes for stdin and stdout; its words are Popen's.

    `ready` are the modules to have been imported when it begins, instead of the module's own; it
    may have another environment and stderr than ours, and a session of its own.
    """

    def __init__(
        self,
        module: str,
        *arguments: object,
        ready: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        stderr: int = 2,
        session: bool = False,
    ) -> None:
        given, stdin = os.pipe()
        stdout, said = os.pipe()
        self._told, told = os.pipe()
        self.stdin, self.stdout = open(stdin, "wb", 0), open(stdout, "rb", 0)  # noqa: SIM115
        self.returncode: int | None = None
        environment = dict(os.environ if environment is None else environment)
        order = [module, [str(it) for it in arguments], list(ready), environment, session]
        with _turn:
            orders = _parent()
            socket.send_fds(orders, [json.dumps(order).encode()], [given, said, stderr, told])
            self.pid = int(orders.recv(99))
        for number in (given, said, told):
            os.close(number)

    def wait(self, timeout: float | None = None) -> int:
        """How it ended: its exit code, or less than zero by which signal."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = int(os.read(self._told, 99))
            os.close(self._told)
        return self.returncode

    def poll(self) -> int | None:
        """The same, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """`kill -9`, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, None]:
        """What it says until nobody holds its stdout any more, and it has ended."""
        self.stdin.close()
        parts: list[bytes] = []
        while not self.stdout.closed:
            if not select.select([self.stdout], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            if part := os.read(self.stdout.fileno(), MOST):
                parts.append(part)
            else:
                self.stdout.close()
        self.wait(timeout)
        return b"".join(parts), None


@functools.cache
def _parent() -> socket.socket:
    ours, its = socket.socketpair()
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    with its:
        parent = subprocess.Popen(command, cwd=ROOT, stdin=its.fileno())

    def end() -> None:
        ours.close()
        parent.wait()

    atexit.register(end)
    return ours


def main() -> None:
    """Fork a process for each order on the standard input, and tell its id; later, how it ended."""
    orders = socket.socket(fileno=os.dup(0))
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, int] = {}
    while True:
        ready = select.select([orders.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, MOST)
            _tell_of_the_dead(waiting)
        if orders.fileno() in ready:
            order, files, *_ = socket.recv_fds(orders, MOST, 4)
            if not order:
                return
            module, arguments, first, environment, session = json.loads(order)
            for name in first or [module]:
                import_module(name)
            if not (child := os.fork()):
                _begin(files, environment, session)
                for file in (orders.detach(), woken, wake):
                    os.close(file)
                sys.argv[1:] = arguments
                sys.modules.pop(module, None)
                runpy.run_module(module, run_name="__main__", alter_sys=True)
                return
            waiting[child] = files.pop()
            for file in files:
                os.close(file)
            orders.send(str(child).encode())


def _tell_of_the_dead(waiting: dict[int, int]) -> None:
    for child, told in list(waiting.items()):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(waiting.pop(child))


def _begin(files: list[int], environment: dict[str, str], session: bool) -> None:
    """Be like a process that was just started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    if session:
        os.setsid()

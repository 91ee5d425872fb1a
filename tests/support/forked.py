"""Processes that need not import first: forked from one that has imported what they need.

A new Python imports for half a second of processor time, a server's for two, which is more than
most tests spend on what they are about. `main` is what the one runs from which all are forked. It
has no threads, and imports what is asked for when it is first asked for it: a module that runs in
one changes nothing when it is imported, or all later ones have that, too. Where several processes
run tests, `share` lets them have the same one.

`run` is the command `memorist`, in such a process of its own each time. `command_line` is for
programs that start processes themselves: what they start is small, and has one forked.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 1 << 20  # bytes of an order
COMMANDS = ("context", "documents", "memories", "messages", "transfer", "upkeep")
READY = (*(f"memorist.cli.{name}" for name in COMMANDS), "typer._adapters", "pydantic.fields")
# What most processes import later, once they work.
AT_WORK = ("context.builder", "lifecycle.worker", "store.bm25", "store.vectors")
# Look at the environment when they are imported, so each process imports its own.
NOT_SHARED = ("memorist.cli", "typer.rich_utils")
PID_FILE = "FORKED_PID_FILE"  # a variable: where to write the id of a process of `command_line`
SHARED = "FORKED_FROM"  # a variable: the folder of those that are shared
STARTER = f"""
import json, os, signal, socket, sys
told, tell = os.pipe()
with socket.socket(socket.AF_UNIX) as orders:
    orders.connect(sys.argv[1])
    order = [*json.loads(sys.argv[2]), os.getcwd(), dict(os.environ), False]
    socket.send_fds(orders, [json.dumps(order).encode()], [0, 1, 2, tell])
    pid = int(orders.recv(99))
signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
for file in (0, 1, 2, tell):
    os.close(file)
if "{PID_FILE}" in os.environ:
    with open(os.environ["{PID_FILE}"], "w") as file:
        file.write(str(pid))
status = int(os.read(told, 99))
os._exit(status if status >= 0 else 128 - status)
"""
Done = subprocess.CompletedProcess[bytes]
_turn = threading.Lock()


def run(folder: Path, arguments: list[str], said: bytes, environment: dict[str, str]) -> Done:
    """What became of `memorist` with these arguments, in this folder."""
    with tempfile.TemporaryFile() as errors:
        child = Forked(
            "memorist.__main__:main",
            *arguments,
            ready=READY,
            folder=folder,
            environment=environment,
            stderr=errors.fileno(),
        )
        shown, _ = child.communicate(said=said)
        errors.seek(0)
        return Done(arguments, child.wait(), shown, errors.read())


def command_line(module: str, *arguments: str, ready: Sequence[str] = ()) -> list[str]:
    """What to start for `python -m MODULE ARGUMENTS`; the words are those of `Forked`."""
    order = json.dumps([module, arguments, ready])
    return [sys.executable, "-ISc", STARTER, _parent(False), order]


class Forked:
    """`python -m MODULE ARGUMENTS`, with pipes for stdin and stdout; its words are Popen's.

    `package.module:function` is what an installed script of the package's name calls.

    `ready` are the modules to have been imported when it begins, instead of the module's own; it
    may have another folder, environment and stderr than ours, and a session of its own. If it is
    `strict`, a warning is an error, as with `-W error`.
    """

    def __init__(
        self,
        module: str,
        *arguments: object,
        ready: Sequence[str] = (),
        folder: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        stderr: int = 2,
        session: bool = False,
        strict: bool = False,
    ) -> None:
        given, stdin = os.pipe()
        stdout, said = os.pipe()
        self._told, told = os.pipe()
        self.stdin, self.stdout = open(stdin, "wb", 0), open(stdout, "rb", 0)  # noqa: SIM115
        self.returncode: int | None = None
        environment = dict(os.environ if environment is None else environment)
        words = [str(it) for it in arguments]
        order = [module, words, list(ready), str(folder), environment, session]
        with _turn:
            path = _parent(strict)
        with socket.socket(socket.AF_UNIX) as orders:
            orders.connect(path)
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

    def _tell(self, said: bytes) -> None:
        with self.stdin, suppress(BrokenPipeError):
            self.stdin.write(said)

    def communicate(self, timeout: float | None = None, *, said: bytes = b"") -> tuple[bytes, None]:
        """Tell it this; what it says until nobody holds its stdout any more, and it has ended."""
        if said:  # it may be more than a pipe holds
            threading.Thread(target=self._tell, args=(said,)).start()
        else:
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


def share() -> None:
    """Let all processes started from now on fork from the same two, begun when first asked."""
    folder = _folder()
    for strict in (False, True):
        asked = functools.partial(_when_asked, _listen(folder, strict), strict)
        threading.Thread(target=asked, daemon=True).start()
    os.environ[SHARED] = folder


def _when_asked(listening: socket.socket, strict: bool) -> None:
    select.select([listening], [], [])
    _start(listening, strict)


@functools.cache
def _parent(strict: bool) -> str:
    """Where the process to fork from takes orders."""
    if not (folder := os.environ.get(SHARED)):
        _start(_listen(folder := _folder(), strict), strict)
    return _path(folder, strict)


def _folder() -> str:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


def _path(folder: str, strict: bool) -> str:
    return f"{folder}/{'strict' if strict else 'lenient'}"


def _listen(folder: str, strict: bool) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(_path(folder, strict))
    listening.listen()
    return listening


def _start(listening: socket.socket, strict: bool) -> None:
    """Start the process to fork from; it ends with this one."""
    command = [
        sys.executable,
        *(["-W", "error"] if strict else []),
        "-c",
        f"from {__name__} import main; main({listening.fileno()})",
    ]
    with listening:
        files, pipe = [listening.fileno()], subprocess.PIPE
        parent = subprocess.Popen(command, cwd=ROOT, stdin=pipe, pass_fds=files)
    atexit.register(parent.communicate)


def main(listening: int) -> None:
    """Fork a process for each order of who connects; tell its id, and later how it ended. End when
    the standard input does.
    """
    _warm_up()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, int] = {}
    with socket.socket(fileno=listening) as orders:
        while 0 not in (ready := select.select([0, listening, woken], [], [])[0]):
            if woken in ready:
                os.read(woken, MOST)
                _tell_of_the_dead(waiting)
            if listening not in ready:
                continue
            with orders.accept()[0] as asking:
                order, files, *_ = socket.recv_fds(asking, MOST, 4)
                if not order:
                    continue
                module, arguments, first, folder, environment, session = json.loads(order)
                for name in first or [module]:
                    import_module(name)
                gc.freeze()  # or each child would go through all that is imported, at its end
                if not (child := os.fork()):
                    for file in (orders.detach(), asking.detach(), woken, wake):
                        os.close(file)
                    _begin(files, folder, environment, session)
                    _run(module, arguments)
                    return
                waiting[child] = files.pop()
                for file in files:
                    os.close(file)
                with suppress(BrokenPipeError):  # whoever asked is gone
                    asking.send(str(child).encode())


def _run(module: str, arguments: list[str]) -> None:
    sys.argv[1:] = arguments
    for name in [it for it in sys.modules if it == module or it.startswith(NOT_SHARED)]:
        del sys.modules[name]
    name, _, function = module.partition(":")
    if function:
        sys.argv[0] = name.partition(".")[0]
        _call(getattr(import_module(name), function))
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def _call(function: Callable[[], object]) -> None:
    """Call it, and end as Python does, but for taking apart all that was imported before the fork.

    That takes longer than most commands. Where a thread still runs, Python ends it, and all else:
    a command that ends badly then does so here, too.
    """
    status = 0
    try:
        function()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        status = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError):  # which Python reports when it ends
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        if len(sys._current_frames()) == 1:
            os._exit(status)
    sys.exit(status)


def _warm_up() -> None:
    """Import, and read in, what most processes need, and what starts no thread."""
    for name in AT_WORK:
        import_module(f"memorist.{name}")
    from memorist import Message
    from memorist.language.lexicon import category_of
    from memorist.language.text import minilm_folder, synonyms_of
    from memorist.lifecycle.rules import extract
    from memorist.providers.minilm import _open_model
    from memorist.providers.reader import _reader
    from memorist.providers.tokenizer import tokenizer_for
    from memorist.recall.search import _dates

    _dates()
    synonyms_of("so that the children need not read the words again")
    category_of("the same")
    extract(Message("user", "I moved to Berlin last May."))
    _reader()
    for model in ("", "one whose vocabulary we do not hold"):
        tokenizer_for(model).count(["tea"])
    _open_model(minilm_folder(), 1)
    assert threading.active_count() == 1


def _tell_of_the_dead(waiting: dict[int, int]) -> None:
    for child, told in list(waiting.items()):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with suppress(BrokenPipeError):  # whoever waited is gone
                os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(waiting.pop(child))


def _begin(files: list[int], folder: str, environment: dict[str, str], session: bool) -> None:
    """Be like a process that was just started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if session:
        os.setsid()

"""The command `memorist`, in a process of its own each time.

Each is forked from one that has already imported what most commands need, so that it starts at
once; `main` is what that one runs.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[bytes]
COMMANDS = ("context", "documents", "memories", "messages", "transfer", "upkeep")
# Look at the environment when they are imported, so each process imports its own.
NOT_SHARED = ("memorist.cli", "typer.rich_utils")
NEW = os.O_WRONLY | os.O_CREAT


def run(folder: Path, arguments: list[str], said: bytes, environment: dict[str, str]) -> Done:
    """What became of `memorist` with these arguments, in this folder."""
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place, name) for name in ("in", "out", "err")]
        files[0].write_bytes(said)
        order = [str(folder), arguments, environment, [str(file) for file in files]]
        parent = _parent()
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps(order) + "\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        return Done(arguments, code, files[1].read_bytes(), files[2].read_bytes())


@functools.cache
def _parent() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    root, pipe = Path(__file__).parents[2], subprocess.PIPE
    parent = subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)
    atexit.register(parent.communicate)  # it ends with its input
    return parent


def main() -> None:
    """Fork a process for each order on the standard input, and tell its exit code."""
    for name in COMMANDS:
        import_module(f"memorist.cli.{name}")
    for name in [name for name in sys.modules if name.startswith(NOT_SHARED)]:
        del sys.modules[name]
    while line := sys.stdin.readline():
        if (child := os.fork()) == 0:
            _become(*json.loads(line))
            import_module("memorist.cli.main").main()
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(folder: str, arguments: list[str], environment: dict[str, str], files: Any) -> None:
    for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, NEW, NEW), strict=True)):
        os.dup2(os.open(file, flags), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    random.seed()
    sys.argv = ["memorist", *arguments]

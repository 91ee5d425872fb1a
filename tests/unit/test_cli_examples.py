"""Every example in the help of a command works, on one memory, in the order of the list."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from memorist import Memory
from memorist.cli import render
from memorist.cli.main import COMMANDS, PANELS, app
from tests.support.forked import READY, Forked
from tests.support.waiting import until
from tests.unit.test_cli import MEMORIST, clean_environment, start
from tests.unit.test_cli_docs import PAGE, commands

LISTED: dict[str, list[str]] = tomllib.loads(
    files("memorist.cli").joinpath("examples.toml").read_text("utf-8")
)
EXAMPLES = [(name, line) for name, lines in LISTED.items() for line in lines]
SCRATCH = {
    "handbook.md": "# Returns\n\nA lamp may be returned within thirty days.\n",
    "mem0-export.json": json.dumps(
        {"results": [{"memory": "Likes tea"}, {"memory": "Keeps bees"}]}
    ),
}
# test_cli_demo.py has these.
TERMINAL_ONLY = {"memorist demo", "memorist demo --no-page", "memorist chat --session kitchen"}
UNTIL_STOPPED = {"serve", "mcp"}
HEAVY = {"apsw", "httpx", "langchain", "memorist.memory", "numpy", "pydantic", "ssl"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name, text in SCRATCH.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def variables(folder: Path) -> dict[str, str]:
    return clean_environment(folder) | {"MEMORIST_URL": "m.db", "MEMORIST_EMBEDDER": "none"}


def with_ids(line: str, folder: Path) -> str:
    """The example with the ids of a memory and a key that are there."""
    with Memory(folder / "m.db", embedder=None, extraction=None) as memory:
        if "35c92567" in line:
            [item, *_] = memory.memories.list(user="me")
            return line.replace("35c92567", item.id[-8:])
        keys = memory.keys.list("default") if "9cf73f2471729e96" in line else []
        return line.replace("9cf73f2471729e96", keys[-1].id if keys else "")


def test_the_examples_work_one_after_the_other(folder: Path) -> None:
    for name, line in EXAMPLES:
        assert line in help_of(name)
        assert f"$ {line}" in PAGE, f"docs/cli.md needs:\n$ {line}"
        said, _, command = with_ids(line, folder).rpartition(" | ")
        words = shlex.split(command)[1:]
        if name in UNTIL_STOPPED:
            run_until_stopped(words, folder)
        elif line not in TERMINAL_ONLY:
            answer = shlex.split(said)[1] if said else "y\n"
            done = CliRunner().invoke(app, words, input=answer)
            assert (done.exit_code, done.exception) == (0, None), (line, done.output)


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/health").is_success
    return False


def run_until_stopped(words: list[str], folder: Path) -> None:
    """Start it, and end it by Ctrl-C, or by the end of its input."""
    serves = words[0] == "serve"
    port = [] if not serves or "--port" in words else ["--port", "0"]
    with tempfile.TemporaryFile() as errors:
        child = Forked(
            "memorist.__main__:main",
            *(*words, *port),
            ready=(*READY, f"memorist.server.{'http.run' if serves else 'mcp'}"),
            folder=folder,
            environment=variables(folder) | {"BROWSER": "true"},
            stderr=errors.fileno(),
        )
        if serves:
            said = ""
            while "Ctrl-C" not in said:
                assert child.poll() is None
                said += child.stdout.readline().decode()
            [url, *_] = re.findall(r"https?://[^\s/]+", said)
            until(lambda: answers(url))  # before that, Ctrl-C interrupts its start
            os.kill(child.pid, signal.SIGINT)
        child.communicate(timeout=60)
        errors.seek(0)
        problems = errors.read().decode()
    assert child.wait() == (130 if serves else 0), problems
    assert "Traceback" not in problems


def help_of(name: str) -> str:
    result = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    return result.stdout


def test_every_command_has_an_example_and_a_summary_of_one_line() -> None:
    assert {name for name, _ in commands()} - {"hooks", "keys"} == LISTED.keys()
    for entries in PANELS.values():
        for name, (_, summary) in entries.items():
            assert len(name) + len(summary) <= 72, name
    assert len(COMMANDS) == sum(map(len, PANELS.values()))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_imports_nothing_that_it_does_not_need(arguments: list[str], folder: Path) -> None:
    code = (
        "import sys\nfrom memorist.cli.main import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stderr.split())


def test_commands_and_options_are_completed(folder: Path) -> None:
    def completed(line: str) -> list[str]:
        words: Any = {"_MEMORIST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "1"}
        words["COMP_CWORD"] = str(line.count(" "))
        return start(folder, **words).stdout.decode().split()

    assert completed("memorist re") == ["remember", "recall", "rebuild"]
    assert completed("memorist keys ro") == ["rotate"]
    assert "--session" in completed("memorist recall --se")


def test_exit_codes_tell_scripts_what_happened(folder: Path) -> None:
    def code(*arguments: str, **more: Any) -> tuple[int, int]:
        done = start(folder, *arguments, "--create", "--db", "codes.db", **more)
        assert b"Traceback" not in done.stderr
        return done.returncode, len(done.stderr.splitlines())

    assert code("history", "--json") == (0, 0)
    assert code("recall", "anything", "--json") == (0, 0)
    assert code("recall", "anything", "--kind", "nothing") == (1, 1)
    assert code("undo", "nobody") == (3, 1)
    assert code("forget", "--everything", said=b"n\n")[0] == 1
    assert code("recall")[0] == 2
    assert code("recal", "x")[0] == 2
    assert start(folder, "recall", "x", "--db", "http://127.0.0.1:9").returncode == 1


def test_ctrl_c_is_one_line(folder: Path) -> None:
    process = subprocess.Popen(
        [MEMORIST, "remember", "-"],
        cwd=folder,
        env=variables(folder) | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        waits_for = Path(f"/proc/{process.pid}/wchan")
        until(lambda: "pipe" in waits_for.read_text())
        process.send_signal(signal.SIGINT)
        shown, problems = process.communicate(timeout=60)
    assert (process.returncode, shown, problems) == (130, "", "interrupted\n")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_is_printed_fits_the_terminal(
    folder: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", width)
    with Memory(folder / "m.db", embedder=None) as memory:
        said = ["I moved to Berlin in March.", "我上个月搬到了东京，现在住在新宿。" * 4, "x" * 300]
        memory.remember(said, user="me")
        uri = f"file:///{'folder/' * 20}handbook.md"
        memory.library(user="me").add("返品ポリシー", "ランプは返品できます。", uri=uri)
        memory.jobs.catch_up(300)
    printing = ["history", "memories --all", "facts --all", "articles", "audit", "jobs", "doctor"]
    printing += ["recall Berlin", "recall 东京 --explain", "context Berlin", "maintain --dry-run"]
    for words in printing:
        shown = CliRunner().invoke(app, words.split()).stdout
        assert max(map(cell_len, shown.splitlines()), default=0) <= width, shown
    rows = CliRunner().invoke(app, ["history"]).stdout
    assert rows.startswith("I moved") == (width == 40)  # then the rest of a row stands below it

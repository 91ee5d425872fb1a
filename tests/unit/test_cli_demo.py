"""`memorist demo` and `memorist chat`, in a terminal and in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.demo_picture import animated

from memorist import Memory
from memorist.cli.demo import TODAY
from tests.support.model_server import ModelServer
from tests.support.waiting import until
from tests.unit.test_cli import MEMORIST, clean_environment, start, start_afresh, worked

PATIENCE_S = 60
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass
class Terminal:
    """A command in a terminal of 80 columns; `output` is all that it has shown."""

    pid: int
    fd: int
    output: str = ""
    seen: int = 0

    def read(self, awaited: str) -> str:
        """What was shown since the last look, up to the awaited text."""
        patience = time.monotonic() + PATIENCE_S
        while (end := self.output.find(awaited, self.seen)) < 0:
            assert time.monotonic() < patience, self.output
            if select.select([self.fd], [], [], 0.5)[0]:
                self._take()
        begun, self.seen = self.seen, end + len(awaited)
        return self.output[begun : self.seen]

    def _take(self) -> None:
        self.output += CONTROLS.sub("", os.read(self.fd, 65_536).decode(errors="replace"))

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self, key: str = "") -> int:
        """Wait for the end; its exit code. A prompt is shown before it is read from, and a key that
        comes between is lost: so it is pressed until the program has ended.
        """
        patience = time.monotonic() + PATIENCE_S
        while time.monotonic() < patience:
            try:
                self.type(key)
                if select.select([self.fd], [], [], 1.0)[0]:
                    self._take()
            except OSError:  # it has left its terminal
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        raise AssertionError(self.output)


@contextmanager
def terminal(folder: Path, *arguments: str, **environment: str) -> Iterator[Terminal]:
    pid, fd = pty.fork()
    if not pid:
        os.chdir(folder)
        shell = {"TERM": "xterm", "COLUMNS": "80", "LINES": "30"}
        os.execve(
            MEMORIST, ["memorist", *arguments], clean_environment(folder) | shell | environment
        )
    try:
        yield Terminal(pid, fd)
    finally:
        os.close(fd)
        with suppress(ProcessLookupError):  # it has ended, as it should
            os.kill(pid, signal.SIGKILL)


def test_the_demo_shows_everything_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # A key and a model that are set are not used; a database that is set is not touched.
    elsewhere: Any = {"MEMORIST_MODEL": "openai:x", "MEMORIST_MODEL_URL": "http://127.0.0.1:1"}
    shown = worked(start_afresh(tmp_path, "demo", TMPDIR=str(tmp_path), COLUMNS="80", **elsewhere))

    assert "35 messages stored" in shown
    assert re.search(r"Do I live in Munich or Berlin\?.*\n.*I moved to Berlin in June", shown)
    assert re.search(r"I live in Munich.*\n +over, until June 2026", shown)
    assert re.search(r"27 Feb – 1 Jun +user lives in Munich +over", shown)
    assert re.search(r"1 Jun – now +user lives in Berlin +true", shown)
    assert re.search(r"memories \d+ .*articles \d+", shown)
    assert max(map(len, shown.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


@pytest.mark.prove
def test_the_demo_ends_with_the_page_until_it_is_interrupted(tmp_path: Path) -> None:
    with terminal(tmp_path, "demo", TMPDIR=str(tmp_path)) as screen:
        shown = screen.read("removes its memory")
        url = re.findall(r"http://\S+", shown)[0]
        page = urllib.request.urlopen(url).read()
        screen.type("\x03")
        assert b"<html" in page
        assert screen.end() == 130
        assert "Traceback" not in screen.output
    assert list(tmp_path.iterdir()) == []


def test_the_recording_is_the_demo_and_still_where_motion_is_not_wanted() -> None:
    picture = (Path(__file__).parents[2] / "docs" / "images" / "demo.svg").read_text()
    words = " ".join(ElementTree.fromstring(picture).itertext()).replace("\xa0", " ")

    assert "I moved to Berlin in June." in words
    assert "prefers-reduced-motion: no-preference" in picture
    assert "http" not in re.sub(r"http://www.w3.org/\S+|https://www.textualize.io", "", picture)
    assert f"{TODAY.year}" in words
    line = '<text class="a" clip-path="url(#demo-line-1)"/></style>'
    assert 'class="a s s1"' in animated(line, [(0, 0.0), (2, 1.0), (-1, 4.0)])


def is_question(body: dict[str, Any]) -> bool:
    """Whether a request is the agent's, and not one for memories of what was said."""
    return "response_format" not in body


def answer(body: dict[str, Any]) -> Any:
    return "A risotto with mushrooms." if is_question(body) else {"memories": []}


def test_chat_streams_the_answer_below_what_was_recalled(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.remember("I don't eat meat any more.", user="me", agent="cook")
    with ModelServer(answer) as server:
        model = {"MEMORIST_MODEL": "openai:gpt-test", "MEMORIST_MODEL_URL": server.url}
        with terminal(
            tmp_path, "chat", "--create", "--db", "m.db", "--agent", "cook", **model
        ) as screen:
            screen.read("› ")
            screen.type("What can I cook without meat?\n")
            shown = screen.read("mushrooms.")
            assert "  I don't eat meat any more." in shown
            screen.read("› ")
            server.mode = "hang"
            screen.type("And tomorrow?\n")
            screen.read("And tomorrow?\r\n")
            until(lambda: len([r for r in server.requests if is_question(r.body)]) == 2)
            screen.type("\x03")
            assert "stopped" in screen.read("› ")
            server.mode = "500"
            screen.type("Are you there?\n")
            assert "the model failed" in " ".join(screen.read("› ").split())
            assert screen.end("\x04") == 0
    with Memory(tmp_path / "m.db", embedder=None, extraction=None) as memory:
        said = [(m.role, m.text) for m in memory.history(user="me", agent="cook")]
    assert said[1:3] == [
        ("user", "What can I cook without meat?"),
        ("assistant", "A risotto with mushrooms."),
    ]
    assert ("user", "And tomorrow?") in said
    assert ("user", "Are you there?") in said


def test_chat_without_a_model_shows_what_one_would_be_sent(tmp_path: Path) -> None:
    start(tmp_path, "remember", "I don't eat meat any more.", "--session", "kitchen")
    done = start(tmp_path, "chat", "--session", "kitchen", said=b"May I have\x1b[31m meat?\n\n")
    shown = done.stdout.decode()

    assert done.returncode == 0
    assert "set MEMORIST_MODEL" in done.stderr.decode()
    assert re.search(r"user\n  I don't eat meat any more.", shown)
    assert "May I have\\x1b[31m meat?" in shown
    assert re.search(r"question +\d+", shown)
    assert done.stderr.startswith(b"session kitchen of ")


def test_chat_says_that_a_session_is_new(tmp_path: Path) -> None:
    start(tmp_path, "remember", "I don't eat meat any more.", "--session", "kitchen")
    done = start(tmp_path, "chat", "--session", "kitchn")
    assert done.stderr.startswith(b"a new session kitchn of ")

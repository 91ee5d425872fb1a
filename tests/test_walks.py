"""The two walks that ARCHITECTURE.md describes, held to the files that a call passes through."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FILE = r"`((?:\w+/)*\w+\.py)`"
ROOT = Path(__file__).parents[1]
# Values, functions of text and of files, counters: they compute, and call nobody else.
LEAVES = (
    "arguments.py",
    "records/",
    "language/",
    "metrics.py",
    "providers/local_model.py",
    "store/sqlite/files.py",
)
SCRIPT = """
import json, sys, threading
from pathlib import Path

called = set()
watching = False
def watch(frame, event, argument):  # background jobs walk elsewhere
    if watching and threading.current_thread().name in ("MainThread", "memorist-pool"):
        called.add(frame.f_code.co_filename)
threading.setprofile(watch)

import memorist
memory = memorist.Memory(":memory:", extraction=memorist.Extraction())
chat = memory.session(user="ada", agent="tutor")
def remember(text):
    chat.add("user", text)
def recall():
    return memory.recall("Where does Ada live?", user="ada", deadline_ms=None)
remember("I moved to Berlin in March.")
remember("My sister is called Eva, and she lives in Rome.")
memory.jobs.catch_up()
assert recall().hits
walks = {}
for call in (lambda: remember("I like tea."), recall):
    memory.jobs.catch_up()
    called.clear()
    watching = True
    sys.setprofile(watch)
    call()
    sys.setprofile(None)
    watching = False
    room = Path(memorist.__file__).parent
    walks[len(walks)] = sorted(
        str(Path(name).relative_to(room)) for name in called if Path(name).is_relative_to(room)
    )
print(json.dumps(list(walks.values())))
memory.close()
"""


def _named(heading: str) -> tuple[list[str], set[str]]:
    """The files of a walk: those in its table, and those that the paragraph below it names."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    table, leaves = section.split("\n\n")[1:3]
    return re.findall(r"^\| \d+ \| `([\w/.]+)`", table, re.M), set(re.findall(FILE, leaves))


def test_the_files_of_both_walks_are_those_that_a_call_passes_through() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    limits = {"A message's way in": 12, "A recall": 16}
    for (heading, limit), files in zip(limits.items(), json.loads(done.stdout), strict=True):
        path, leaves = _named(heading)
        assert len(path) <= limit
        assert set(path) == {name for name in files if not name.startswith(LEAVES)}
        assert leaves == {name for name in files if name.startswith(LEAVES)}

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
watched = ()
def watch(frame, event, argument):
    if threading.current_thread().name in watched:
        called.add(frame.f_code.co_filename)
threading.setprofile(watch)

import memorist
[_, file] = sys.argv
with memorist.Memory(file, extraction=memorist.Extraction()) as memory:
    chat = memory.session(user="ada", agent="tutor")
    chat.add("user", "I moved to Berlin in March.")
    chat.add("user", "My sister is called Eva, and she lives in Rome.")
    memory.jobs.catch_up()
memory = memorist.Memory(file, extraction=None)  # all is derived: nothing works in the background
chat = memory.session(user="ada", agent="tutor")
def remember():
    chat.add("user", "I like tea.")
def recall():
    return memory.recall("Where does Ada live?", user="ada", deadline_ms=None)
assert recall().hits
walks = {}
for call, threads in ((recall, ("MainThread", "memorist-pool")), (remember, ("MainThread",))):
    called.clear()
    watched = threads
    sys.setprofile(watch)
    call()
    sys.setprofile(None)
    watched = ()
    room = Path(memorist.__file__).parent
    walks[call.__name__] = sorted(
        str(Path(name).relative_to(room)) for name in called if Path(name).is_relative_to(room)
    )
print(json.dumps(walks))
memory.close()
"""


def _named(heading: str) -> tuple[list[str], set[str]]:
    """The files of a walk: those in its table, and those that the paragraph below it names."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    table, leaves = section.split("\n\n")[1:3]
    return re.findall(r"^\| \d+ \| `([\w/.]+)`", table, re.M), set(re.findall(FILE, leaves))


def test_the_files_of_both_walks_are_those_that_a_call_passes_through(tmp_path: Path) -> None:
    script = [sys.executable, "-c", SCRIPT, str(tmp_path / "memory.db")]
    walks = json.loads(subprocess.run(script, capture_output=True, check=True).stdout)
    for call, heading, limit in (
        ("remember", "A message's way in", 12),
        ("recall", "A recall", 19),
    ):
        files = walks[call]
        path, leaves = _named(heading)
        assert len(path) <= limit
        assert set(path) == {name for name in files if not name.startswith(LEAVES)}
        assert leaves == {name for name in files if name.startswith(LEAVES)}

"""`memorist import`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.test_cli import Run, run, squeezed, worked

__all__ = ["run"]

LOG = (
    '{"role": "user", "content": "I moved to Berlin.", "created_at": "2025-05-01T09:00:00Z"}\n'
    "broken\n"
    '{"role": "assistant", "content": "Noted."}\n'
)


@pytest.fixture(autouse=True)
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text(LOG)
    return path


def test_an_export_is_looked_at_and_then_imported_once(run: Run, log: Path) -> None:
    planned = run("import", "log.jsonl", "--dry-run")
    assert b"nothing was written" in planned.stderr
    assert b"1 skipped: not JSON (line 2)" in planned.stderr
    assert not json.loads(worked(run("history", "--json")))
    done = run("import", "log.jsonl")
    shown = squeezed(done.stdout.decode())
    assert "OpenAIchatJSONL1conversation,2025-05-01to2025-05-01" in shown
    assert shown.endswith("foundaddedtherealreadymessages220")
    assert b"memorist worker --once" in done.stderr
    again = json.loads(worked(run("import", "log.jsonl", "--json")))
    assert (again["added"], again["known"]) == ({"messages": 0}, {"messages": 2})
    assert "I moved to Berlin." in worked(run("recall", "Berlin"))


def test_an_archive_is_recognised_and_restored(run: Run) -> None:
    worked(run("remember", "I moved to Berlin."))
    run("export", "me.memorist.gz")
    planned = json.loads(worked(run("import", "me.memorist.gz", "--dry-run", "--json")))
    assert (planned["format"], planned["found"]["message"]) == ("memorist", 1)
    done = json.loads(worked(run("import", "me.memorist.gz", "--user", "bob", "--json")))
    assert done["added"]["message"] == 1
    again = json.loads(worked(run("import", "me.memorist.gz", "--user", "bob", "--json")))
    assert (sum(again["added"].values()), again["known"]["message"]) == (0, 1)
    assert "I moved to Berlin." in worked(run("history", "--user", "bob"))


def test_what_cannot_be_imported_is_one_line_and_exit_code_1(run: Run, log: Path) -> None:
    log.write_text(LOG + '{"role": "us')
    refused = run("import", "log.jsonl", "--user", "bob")
    assert refused.returncode == 1
    assert b"RecordError: line 4: the file is cut off in this line\n" in refused.stderr
    assert b"give one of chatgpt" in run("import", "log.jsonl", "--format", "none").stderr
    log.write_text("hello")
    assert b"log.jsonl is in no format that is known" in run("import", "log.jsonl").stderr
    assert not json.loads(worked(run("history", "--json", "--user", "bob")))


def test_an_archive_that_cannot_be_written_is_one_line_and_exit_code_1(run: Run) -> None:
    worked(run("remember", "I moved to Berlin."))
    refused = run("export", "nowhere/me.memorist.gz")
    assert refused.returncode == 1
    [line] = refused.stderr.decode().splitlines()
    assert line.endswith("No such file or directory")

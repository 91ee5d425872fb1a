"""`memorist audit`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from memorist.cli.main import app
from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.scope import Scope
from memorist.store.sqlite.store import SqliteStore

EXPORT = Path(__file__).parent.parent / "data" / "mem0_export.json"


@pytest.fixture(autouse=True)
def _no_settings_of_whoever_runs_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORIST_URL", "MEMORIST_USER", "MEMORIST_TENANT"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def stored(path: Path, *records: MemoryItem | Fact) -> Path:
    store = SqliteStore(path)
    store.apply(Scope(user="me"), [Add(record) for record in records])
    store.close()
    return path


def test_an_export_is_shown_as_a_table_of_kinds() -> None:
    done = run(EXPORT)

    assert done.exit_code == 0
    rows = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines() if line}
    assert rows["secret"] == ["2", "2.6%"]
    assert rows["duplicate"] == ["8", "10.5%"]
    assert "76 memories, 0 facts" in done.stdout
    assert "█" in done.stdout


def test_what_the_memories_say_is_shown_only_when_asked_for() -> None:
    silent, shown = run(EXPORT).stdout, run(EXPORT, "--show", "50").stdout

    assert "cilantro" not in silent
    assert "cilantro" in shown
    assert "hunter2" not in shown
    assert "(not shown)" in shown


def test_programs_get_json_without_content() -> None:
    done = run(EXPORT, "--json")
    told = json.loads(done.stdout)

    assert told["memories"] == 76
    assert told["kinds"]["secret"]["count"] == 2
    assert {"kind", "ids", "reason", "evidence", "suggestion"} == set(told["findings"][0])
    assert "cilantro" not in done.stdout


def test_json_shows_a_few_texts_when_asked_for_and_no_secret() -> None:
    done = run(EXPORT, "--json", "--show", "50")

    assert "cilantro" in done.stdout
    assert "hunter2" not in done.stdout


def test_a_secret_is_not_shown_as_anything_else_either(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"memory": "router password: tr0ub4dor&3"}] * 2))
    done = run(path, "--show", "9")

    assert "duplicate" in done.stdout
    assert "tr0ub4dor" not in done.stdout


def test_a_share_of_junk_above_the_one_allowed_fails() -> None:
    failed, passed = run(EXPORT, "--fail-over", "0.2"), run(EXPORT, "--fail-over", "0.9")

    assert (failed.exit_code, passed.exit_code) == (1, 0)
    assert "above the 20.0% allowed" in failed.stderr


def test_one_user_of_an_export_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text('{"memory": "hello", "user_id": "ada"}\n{"memory": "hi", "user_id": "bob"}\n')

    assert json.loads(run(path, "--user", "ada", "--json").stdout)["memories"] == 1
    assert json.loads(run(path, "--json").stdout)["memories"] == 2


def test_text_of_a_memory_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": "\x1b[2J", "memory": "As an AI \x1b]0;x\x07 [red]I[/red]"}]))
    done = run(path, "--show", "9")

    assert "\x1b" not in done.stdout
    assert "As an AI \\x1b]0;x\\x07 [red]I[/red]" in done.stdout


def test_the_database_is_audited_facts_and_all(tmp_path: Path) -> None:
    me = Scope(user="me")
    path = stored(
        tmp_path / "m.db",
        MemoryItem(scope=me, text="Hello!"),
        MemoryItem(scope=me, text="Keeps bees on the roof"),
        Fact(scope=me, subject="Me", predicate="lives_in", object="Berlin"),
        Fact(scope=me, subject="Me", predicate="lives_in", object="Munich"),
    )
    told = json.loads(run("--db", path, "--json").stdout)

    assert (told["memories"], told["facts"]) == (2, 2)
    assert told["kinds"]["junk"] == {"count": 1, "share": 0.5}
    assert told["kinds"]["contradictory"] == {"count": 2, "share": 0.5}
    assert told["kinds"]["ungrounded"] == {"count": 4, "share": 1.0}


def test_one_of_a_kind_is_counted_in_the_singular(tmp_path: Path) -> None:
    me = Scope(user="me")
    bees = MemoryItem(scope=me, text="Keeps bees on the roof")
    home = Fact(scope=me, subject="Me", predicate="lives_in", object="Berlin")
    path = stored(tmp_path / "m.db", bees, home)

    assert "1 memory, 1 fact; 0 (0.0%) clean" in run("--db", path).stdout


def test_an_empty_database_has_no_memories_yet(tmp_path: Path) -> None:
    done = run("--create", "--db", tmp_path / "m.db")

    assert (done.exit_code, done.stdout) == (0, "")
    assert "no memories yet" in done.stderr

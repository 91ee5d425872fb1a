"""No statement makes SQLite go through more than it must."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memorist import Add, MemoryItem, Scope, SqliteStore
from memorist.records.query import Term
from memorist.store.runner import Scrubber
from memorist.store.sqlite.db import QUERIES
from memorist.store.sqlite.store import MIGRATIONS, MOST_PARTS, SqliteEngine


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """A connection as the store makes it, to a database that holds nothing."""
    file: Path = tmp_path_factory.mktemp("plans") / "memory.db"
    engine = SqliteEngine(str(file), "normal", 1.0)
    assert engine.check()["schema"] == str(MIGRATIONS[-1][0])
    connection = engine._connect()
    yield connection
    connection.close()
    engine.close()


def test_no_statement_makes_an_index_of_its_own(empty: apsw.Connection) -> None:
    """It would be one of every user's passages, for each question of one of them."""
    for name, statement in QUERIES.items():
        values = dict.fromkeys(re.findall(r":(\w+)", statement))
        plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert [step for step in plan if "AUTOMATIC" in step] == [], name


# Of `newest_sessions` a page is sorted: when each was last active is told by its messages.
LISTS = """sessions sessions_of_agent facts_of_memory summaries oldest_summaries
note_versions articles keys users users_of_tenant revisions session_history following
entries""".split()
LISTS += [
    name for name in QUERIES if re.match(r"(newest_)?(items|facts).*_(current|over|all)$", name)
]


def test_every_list_is_cut_by_an_index_that_has_its_order(empty: apsw.Connection) -> None:
    """No list is gone through from its beginning, or sorted, to give a page of it."""
    for name in LISTS:
        statement = QUERIES[name]
        values = dict.fromkeys(re.findall(r":(\w+)", statement), "[]")
        plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        wrong = [step for step in plan if step.startswith("SCAN") and "json_each" not in step]
        after_few = ["facts_by_end" in step for step in plan]  # facts whose end is to come
        wrong += [
            it for it, few in zip(plan[1:], after_few, strict=False) if "B-TREE" in it and not few
        ]
        assert wrong == [], (name, plan)


def test_the_newest_sessions_are_found_among_few(empty: apsw.Connection) -> None:
    statement = QUERIES["newest_sessions"]
    values = dict.fromkeys(re.findall(r":(\w+)", statement))
    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    [found] = [step for step in plan if "<expr>>? AND <expr><?" in step]
    assert found.startswith("SEARCH s USING INDEX sessions_by_activity (owner=? AND ")
    assert not [step for step in plan if step.startswith("SCAN s")]


@pytest.mark.parametrize("name", ["passages_by_id", "messages_by_seq", "lock_session", "linked"])
def test_a_statement_is_planned_once_whatever_is_asked(empty: apsw.Connection, name: str) -> None:
    """Planned for each value, it takes ten times as long: more than all else a recall reads."""
    planned: list[int] = []

    def note(action: int, *_: str | None) -> int:
        planned.append(action)
        return apsw.SQLITE_OK

    empty.authorizer = note  # asked while a statement is planned, and only then
    names = re.findall(r":(\w+)", QUERIES[name])
    values = {name: 0 if name == "limit" else "[1]" for name in names}
    empty.execute(QUERIES[name], values).fetchall()
    assert planned
    planned.clear()
    empty.execute(QUERIES[name], dict.fromkeys(values, "[2]") | {"limit": 1}).fetchall()
    empty.authorizer = None
    assert planned == []


def test_a_text_index_in_many_parts_is_merged_and_finds_the_same(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "memory.db") as store:
        scope = Scope(user="ada")
        for number in range(12):  # of sixteen it would merge some by itself
            item = MemoryItem(scope=scope, text=f"tea {number} and milk {number % 4}")
            store.apply(scope, [Add(item)])

        def parts() -> int:
            return int(store._engine.read("", lambda db: db.rows("count_word_parts"))[0][0])

        asked: list[Term] = [("tea",), ("3",), ("milk",)]
        found = store.match_text(scope, asked, limit=50)
        assert found
        assert parts() > MOST_PARTS
        scrubber = Scrubber(store)
        while scrubber.step():
            assert not scrubber.stopped
        assert parts() <= MOST_PARTS
        assert store.match_text(scope, asked, limit=50) == found
        assert not scrubber.step()

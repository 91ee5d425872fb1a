"""No statement makes SQLite go through more than it must."""

from __future__ import annotations

import re
from collections.abc import Iterator

import apsw
import pytest

from recollect.store.sqlite.db import QUERIES
from recollect.store.sqlite.engine import MIGRATIONS

ONCE_IN_A_FILES_LIFE = {"views_that_hold"}  # while its index is made anew


@pytest.fixture(scope="module")
def empty() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    for _, migration in MIGRATIONS:
        connection.execute(migration)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - ONCE_IN_A_FILES_LIFE))
def test_a_statement_makes_no_index_of_its_own(empty: apsw.Connection, name: str) -> None:
    """It would be one of every user's passages, for each question of one of them."""
    values = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]))
    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", values)]
    assert [step for step in plan if "AUTOMATIC" in step] == []

"""Stores of earlier schemas, as programs of that time filled them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memorist.store.postgres import db as postgres_db
from memorist.store.postgres import schema as postgres_engine
from memorist.store.sqlite import db as sqlite_db
from memorist.store.sqlite import store as sqlite_engine


@contextmanager
def earlier_schema(number: int) -> Iterator[pytest.MonkeyPatch]:
    """Stores that are opened meanwhile have this schema; sessions note nothing before the 17th."""
    with pytest.MonkeyPatch.context() as patch:
        for engine in (sqlite_engine, postgres_engine):
            patch.setattr(engine, "MIGRATIONS", engine.MIGRATIONS[:number])
        patch.setitem(sqlite_db.QUERIES, "note_activity", "SELECT :at, :owner, :session")
        queries = postgres_db.QUERIES
        patch.setitem(queries, "note_activity", "SELECT 1")
        for name in ("append_messages", "append_short_message"):
            older = re.sub(r", CASE WHEN abs.*? END", "", queries[name], flags=re.DOTALL)
            patch.setitem(queries, name, older)
        yield patch

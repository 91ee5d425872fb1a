"""One suite, three databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.store.base import Store
from recollect.store.postgres.store import PostgresStore
from recollect.store.sqlite.store import SqliteStore
from recollect.testing import StoreConformance
from tests.support.postgres import Server


class TestSqlite(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
        with SqliteStore(tmp_path_factory.mktemp("sqlite") / "memory.db") as store:
            yield store


class TestSqliteInMemory(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls) -> Iterator[Store]:
        with SqliteStore(":memory:") as store:
            yield store


class TestPostgresWithPgvector(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, vector_server: Server) -> Iterator[Store]:
        with PostgresStore(vector_server.create_database("conformance")) as store:
            assert store.check()["vectors"] == "pgvector"
            yield store


class TestPlainPostgres(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, plain_server: Server) -> Iterator[Store]:
        with PostgresStore(plain_server.create_database("conformance")) as store:
            assert store.check()["vectors"] == "exact: pgvector is not installed"
            yield store


def test_a_file_is_made_where_there_was_no_folder(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "not" / "yet" / "there.db") as store:
        assert store.check()["integrity"] == "ok"

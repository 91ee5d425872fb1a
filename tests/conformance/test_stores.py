"""One suite, three databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorist.errors import ConfigError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from memorist.store.engine import open_indexes
from memorist.store.postgres.connection import WatchedConnection
from memorist.store.postgres.db import QUERIES, PostgresDb
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite import db
from memorist.store.sqlite.store import SqliteEngine, SqliteStore
from tests.conformance.conformance import SearchConformance, StoreConformance
from tests.conformance.life_conformance import LifeConformance
from tests.conformance.log_conformance import LogConformance
from tests.conformance.queue_conformance import ForgetConformance, QueueConformance
from tests.conformance.session_conformance import SessionConformance
from tests.support.pgbouncer import pooled
from tests.support.postgres import Server


class TestSqlite(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
        with SqliteStore(tmp_path_factory.mktemp("sqlite") / "memory.db") as store:
            yield store


class TestSqliteInMemory(
    LogConformance, SessionConformance, QueueConformance, ForgetConformance, LifeConformance
):
    """The same statements by one connection: what is written, and by several at once."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls) -> Iterator[Store]:
        with SqliteStore(":memory:") as store:
            yield store


@pytest.mark.prove
class TestAllOfSqliteInMemory(TestSqliteInMemory, StoreConformance):
    pass


class TestPostgresWithPgvector(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, vector_server: Server) -> Iterator[Store]:
        with PostgresStore(vector_server.create_database("conformance")) as store:
            assert store.check()["vectors"] == "pgvector"
            yield store


class TestPlainPostgres(SearchConformance):
    """Without pgvector the same statements run, but vectors are compared here."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, plain_server: Server) -> Iterator[Store]:
        with PostgresStore(plain_server.create_database("conformance")) as store:
            assert store.check()["vectors"].startswith("exact: pgvector is not installed")
            yield store


@pytest.mark.prove
class TestAllOfPlainPostgres(TestPlainPostgres, StoreConformance):
    pass


@pytest.mark.prove
class TestPooledPostgres(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, vector_server: Server) -> Iterator[Store]:
        with (
            pooled(vector_server.create_database("conformance")) as url,
            PostgresStore(url) as store,
        ):
            yield store


def test_a_file_is_made_where_there_was_no_folder(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "not" / "yet" / "there.db") as store:
        assert store.check()["integrity"] == "ok"


def test_of_many_common_words_only_so_many_counts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MAX_POSTINGS", 0), ("WORTH_KEEPING", 0), ("MAX_COUNTS", 3)):
        monkeypatch.setattr(db, name, most)
    scope = Scope(user="ada", session="s")
    words = ["sail", "boat", "wind", "tide", "rope", "mast"]
    engine = SqliteEngine(":memory:", "full", 1)
    with Store(engine) as store:
        store.append(scope, [Message("user", " ".join(words))])
        assert store.match_text(scope, [(word,) for word in words], limit=9)
        kept = engine.read(scope.owner, lambda one: len(vars(one)["_counts"]))
    assert 0 < kept <= 3


def test_rows_beyond_a_page_are_not_read(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT n, 1 / (50 - n) FROM generate_series(1, 99) AS n"  # the 50th cannot be read
    monkeypatch.setitem(QUERIES, "fifty", query)
    with WatchedConnection.connect(postgres_url, autocommit=True) as connection:
        page = PostgresDb("", connection, False, open_indexes, "").page
        assert [row[0] for row in page("fifty", 12)] == [1, 2]
        assert page("fifty", 0) == []
        assert len(page("fifty", 9 * len("(1, 0)") + 21 * len("(10, 0)"))) == 30


@pytest.mark.parametrize("url", ["postgresql://ada:s%zzcret@h/db", "postgresql://ada:s%zzcret@[h"])
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="not a PostgreSQL URL") as refused:
        PostgresStore(url)
    assert "cret" not in str(refused.value)

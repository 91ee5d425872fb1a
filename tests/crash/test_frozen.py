"""A database host that freezes or vanishes: given up after seconds, and the other one found."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from memorist import Memory
from memorist.errors import StoreBusyError, StoreUnavailableError
from memorist.server.auth import Guard
from memorist.server.http.app import build_app
from memorist.store.postgres import connection as bounds
from memorist.store.postgres.store import PostgresStore
from tests.crash.evidence import SCOPE, batch, check_store, open_store
from tests.crash.proxy import Proxy
from tests.support.http_server import serving

MANY = 10.0  # times what is waited for, in which everything must be over


@pytest.fixture
def frozen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for seconds before a silent server is asked."""
    monkeypatch.setattr(bounds, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(bounds, "PROBE_SECONDS", 0.3)


@pytest.fixture
def line(postgres_with_tables: str, frozen_soon: None) -> Iterator[Proxy]:
    with Proxy(postgres_with_tables) as proxy:
        yield proxy


def two_hosts(proxy: Proxy, url: str) -> str:
    """The URL of both, the one behind the proxy first."""
    own, other = (
        psycopg.conninfo.conninfo_to_dict(proxy.url),
        psycopg.conninfo.conninfo_to_dict(url),
    )
    hosts = ",".join(f"{one['host']}:{one['port']}" for one in (own, other))
    login = f"{own['user']}:{own['password']}"
    return f"postgresql://{login}@{hosts}/{own['dbname']}?connect_timeout=2&sslmode=disable"


def test_a_frozen_server_is_given_up_when_the_patience_is_over(line: Proxy) -> None:
    with open_store(line.url, patience_seconds=1) as store:
        store.append(SCOPE, batch("writer", 0))
        line.freeze()
        for call in (lambda: store.append(SCOPE, batch("writer", 1)), lambda: store.history(SCOPE)):
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                call()
            assert time.monotonic() - began < MANY
        line.thaw()
        store.append(SCOPE, batch("writer", 1))
        assert len(store.history(SCOPE)) == 2


def test_over_http_a_frozen_database_is_an_answer_to_try_again(line: Proxy) -> None:
    with (
        open_store(line.url, patience_seconds=1) as store,
        Memory(store, embedder=None, extraction=None) as memory,
        serving(build_app(memory, Guard.local("default", "ada"))) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        ask = {"agent": "tutor", "new": True}
        assert client.post("/api/sessions/resolve", json=ask).status_code == 200
        line.freeze()
        answer = client.post("/api/sessions/resolve", json=ask)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        line.thaw()
        assert client.post("/api/sessions/resolve", json=ask).status_code == 200


def test_a_server_that_thaws_in_time_costs_nothing_and_doubles_nothing(
    line: Proxy, postgres_with_tables: str
) -> None:
    with open_store(line.url, patience_seconds=30) as store:
        store.append(SCOPE, batch("writer", 0))
        line.freeze()
        timer = threading.Timer(1.0, line.thaw)
        timer.start()
        store.append(SCOPE, batch("writer", 1))
        timer.join()
    check_store(postgres_with_tables, {"writer": 2}, spare=0, why="frozen for a second")


def test_the_other_host_is_found_when_one_freezes_with_all_its_connections(
    line: Proxy, postgres_with_tables: str
) -> None:
    with open_store(two_hosts(line, postgres_with_tables)) as store:
        threads = [
            threading.Thread(target=store.append, args=(SCOPE, batch(f"writer{number}", 0)))
            for number in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        line.freeze()  # with several idle connections, each of which is dead
        began = time.monotonic()
        for number in range(1, 8):
            store.append(SCOPE, batch("writer0", number))
        assert time.monotonic() - began < 25  # one wait for all; each would make it minutes
    acked = {"writer0": 8, **{f"writer{number}": 1 for number in range(1, 6)}}
    check_store(postgres_with_tables, acked, spare=0, why="one host of two froze")


def test_an_open_memory_is_opened_at_the_host_that_answers(
    line: Proxy, postgres_with_tables: str
) -> None:
    line.freeze()
    with Memory(two_hosts(line, postgres_with_tables), embedder=None, extraction=None) as memory:
        memory.remember("hello", user="ada")
        assert len(memory.history(user="ada")) == 1


def test_a_slow_statement_on_a_server_that_answers_is_left_alone(
    line: Proxy, postgres_with_tables: str
) -> None:
    with (
        open_store(line.url, patience_seconds=20) as store,
        psycopg.connect(postgres_with_tables) as other,
    ):
        store.append(SCOPE, batch("writer", 0))
        other.execute("LOCK TABLE chat_message_history")
        timer = threading.Timer(1.5, other.commit)
        timer.start()
        store.append(SCOPE, batch("writer", 1))  # asked for several times meanwhile
        timer.join()
        assert len(store.history(SCOPE)) == 2


def test_what_others_keep_locked_is_waited_for_no_longer_than_the_patience(
    postgres_with_tables: str,
) -> None:
    with (
        open_store(postgres_with_tables, patience_seconds=1) as store,
        psycopg.connect(postgres_with_tables) as other,
    ):
        store.append(SCOPE, batch("writer", 0))
        other.execute("LOCK TABLE chat_message_history")
        for call in (
            lambda: store.append(SCOPE, batch("writer", 1)),
            lambda: store.history(SCOPE),
            lambda: store.forget(SCOPE),
        ):
            began = time.monotonic()
            with pytest.raises(StoreBusyError):
                call()
            assert time.monotonic() - began < MANY
        other.rollback()
        assert len(store.history(SCOPE)) == 1


def test_a_url_keeps_its_own_parameters_and_gets_the_rest() -> None:
    given = bounds.defaults("postgresql://db/agents?connect_timeout=60&keepalives_idle=99")
    assert "connect_timeout" not in given
    assert "keepalives_idle" not in given
    assert given["tcp_user_timeout"] == 8_000
    assert "target_session_attrs" not in given
    assert bounds.defaults("postgresql://a,b/x")["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in bounds.defaults(
        "postgresql://a,b/x?target_session_attrs=any"
    )


def test_rows_of_processes_that_are_gone_are_pruned(
    postgres_with_tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clients() -> int:
        with psycopg.connect(postgres_with_tables) as connection:
            row = connection.execute("SELECT count(*) FROM memorist_writes").fetchone()
            assert row is not None
            return int(row[0])

    for number in range(3):
        with open_store(postgres_with_tables) as store:
            store.append(SCOPE, batch("writer", number))
    assert clients() == 3
    with psycopg.connect(postgres_with_tables) as connection:
        connection.execute("UPDATE memorist_writes SET used_at = used_at - interval '31 days'")
    with open_store(postgres_with_tables) as store:
        store.append(SCOPE, batch("writer", 3))
        assert clients() == 1
        with psycopg.connect(
            postgres_with_tables
        ) as connection:  # a process that slept for a month
            connection.execute("UPDATE memorist_writes SET used_at = used_at - interval '31 days'")
        monkeypatch.setattr("memorist.store.postgres.store._COUNTER_SECONDS", -1.0)
        store.append(SCOPE, batch("writer", 4))
        assert clients() == 1
    check_store(postgres_with_tables, {"writer": 5}, spare=0, why="counters pruned")


def test_a_transaction_that_stands_still_is_ended_by_the_server(postgres_with_tables: str) -> None:
    with PostgresStore(postgres_with_tables) as store:
        limit = store._engine.read(
            SCOPE.owner,
            lambda db: (
                db.rows("agents", owner=SCOPE.owner),  # it begins with its first statement
                vars(db)["_connection"]
                .execute("SHOW idle_in_transaction_session_timeout")
                .fetchone(),
            )[1],
        )
    assert limit == ("1min",)

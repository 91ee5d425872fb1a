"""A PostgreSQL that was never reached is given up soon, with the reason and without a password."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from memorist import Memory
from memorist.errors import StoreUnavailableError
from memorist.store.postgres import store as postgres_engine
from memorist.store.postgres.store import PostgresEngine, PostgresStore

FOREVER = 10**6  # seconds: if an opening had all of this patience, it would not end


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each attempt to connect at an opening went."""
    reach, outcomes = PostgresEngine._reach, list[str]()

    def note(engine: PostgresEngine) -> psycopg.OperationalError | None:
        outcomes.append(str(error := reach(engine)))
        return error

    monkeypatch.setattr(PostgresEngine, "_reach", note)
    monkeypatch.setattr(postgres_engine, "_OPENING_SECONDS", 0.5)
    return outcomes


def refused(url: str) -> str:
    """What is said of a URL that leads nowhere."""
    with pytest.raises(StoreUnavailableError) as error:
        PostgresStore(url, patience_seconds=FOREVER)
    assert str(urlsplit(url).password) not in str(error.value)
    return str(error.value)


def test_what_waiting_cannot_mend_is_refused_at_the_first_attempt(
    postgres_url: str, attempts: list[str]
) -> None:
    parts = urlsplit(postgres_url)
    place = f"{parts.hostname}:{parts.port}{parts.path}"
    for url, why in (
        (f"postgresql://{parts.username}:misspelt-secret@{place}", "password"),
        (parts._replace(path="/no_such_database").geturl(), "no_such_database"),
    ):
        attempts.clear()
        assert why in refused(url)
        assert len(attempts) == 1


def test_a_closed_port_or_an_unknown_host_is_tried_a_few_times_and_named(
    attempts: list[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    for place, why in ((f"127.0.0.1:{port}", str(port)), ("nowhere.invalid", "nowhere.invalid")):
        attempts.clear()
        assert why in refused(f"postgresql://ada:secret@{place}/agents")
        assert len(attempts) > 1


def test_a_memory_says_which_database_it_is_in_and_no_password(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    place = f"{parts.hostname}:{parts.port}{parts.path}"
    url = f"postgresql://{place}?user={parts.username}&password={parts.password}"
    with Memory(url, embedder=None, tenant="acme") as memory:
        assert repr(memory) == f"Memory('postgresql://{parts.username}@{place}', tenant='acme')"


@pytest.mark.parametrize("url", ["~/m.db", "sqlite:///~/m.db"])
def test_a_path_in_the_home_folder_is_there_also_where_no_shell_reads_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORIST_URL", url)
    with Memory(embedder=None, extraction=None) as memory:
        memory.remember("Hi", user="ada")
    assert (tmp_path / "home" / "m.db").is_file()
    assert [it.name for it in tmp_path.iterdir()] == ["home"]

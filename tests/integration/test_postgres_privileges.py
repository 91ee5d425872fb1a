"""What another login of the same database can make of us: nothing."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from typer.testing import CliRunner

from memorist.cli.main import app
from memorist.errors import StoreError
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.postgres.schema import ROLE
from memorist.store.postgres.store import PostgresStore

ALICE = Scope(user="alice", session="s")
DEFINERS = "SELECT oid::regprocedure::text FROM pg_proc WHERE prosecdef"
# Called with the rights of whoever can be made to call it.
RISE = """
    CREATE FUNCTION {name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS $$
    BEGIN
      BEGIN
        ALTER ROLE mallory SUPERUSER;
      EXCEPTION WHEN insufficient_privilege THEN
        NULL;
      END;
      {returning};
    END $$
"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_url) as store:
        store.append(ALICE, [Message("user", "secret")])
        yield store


@pytest.fixture
def mallory(store: PostgresStore, postgres_url: str) -> Iterator[psycopg.Connection]:
    """A login that was granted nothing, on a database whose schema is open as before release 15."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE mallory LOGIN PASSWORD 'm'")
        admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        url = psycopg.conninfo.make_conninfo(postgres_url, user="mallory", password="m")
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
        admin.execute("DROP OWNED BY mallory CASCADE")
        admin.execute("DROP ROLE mallory")


def is_superuser(connection: psycopg.Connection) -> bool:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'").fetchone()
    assert row is not None
    return bool(row[0])


def rise(connection: psycopg.Connection, name: str, arguments: str, result: str, body: str) -> None:
    connection.execute(
        RISE.format(name=name, arguments=arguments, result=result, returning=body).encode()
    )


def test_a_temporary_table_in_place_of_ours_is_not_written_with_our_rights(
    mallory: psycopg.Connection,
) -> None:
    mallory.execute("CREATE TEMP TABLE session_uuids (key uuid PRIMARY KEY, owner uuid)")
    rise(mallory, "public.sprung", "", "trigger", "RETURN NEW")
    mallory.execute(
        "CREATE TRIGGER spring BEFORE INSERT ON session_uuids"
        " FOR EACH ROW EXECUTE FUNCTION public.sprung()"
    )
    mallory.execute("GRANT ALL ON session_uuids TO PUBLIC")
    for call in (
        "claim_session_uuid(gen_random_uuid(), 'x')",
        "claim_session_uuid(gen_random_uuid(), 'x', false)",
        f"claim_session_uuid(gen_random_uuid(), '{uuid.uuid4()}', true)",
        "owner_of_session(gen_random_uuid())",
    ):
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege, psycopg.ProgrammingError):
            mallory.execute(f"SELECT public.{call}".encode())
        assert not is_superuser(mallory)


def test_functions_and_operators_like_postgres_own_are_not_called_with_our_rights(
    mallory: psycopg.Connection, store: PostgresStore
) -> None:
    rise(mallory, "public.convert_to", "text, text", "bytea", "RETURN ''::bytea")
    rise(mallory, "public.joined", "uuid, text", "text", "RETURN ''::text")
    mallory.execute("CREATE OPERATOR public.|| (LEFTARG=uuid, RIGHTARG=text, FUNCTION=joined)")
    rise(mallory, "public.hashtextextended", "text, integer", "bigint", "RETURN 1")
    rise(mallory, "public.hashtextextended", "uuid, integer", "bigint", "RETURN 1")
    for id_ in ("named", str(uuid.uuid4())):
        store.append(Scope(user="bob", session=id_), [Message("user", "hello")])
        store.open_session(Scope(user="carl", session=str(uuid.uuid4())), adopt=True)
    store.forget(Scope(user="bob"))
    assert not is_superuser(mallory)


def test_functions_with_our_rights_are_pinned_and_ours_to_call_alone(
    mallory: psycopg.Connection,
) -> None:
    functions = [name for (name,) in mallory.execute(DEFINERS + " AND pronamespace <> 11")]
    assert sorted(name.partition("(")[0] for name in functions) == [
        "claim_session_uuid",
        "owner_of_session",
        "release_session_uuid",
    ]
    for function in functions:
        row = mallory.execute(
            "SELECT proconfig, has_function_privilege('mallory', oid, 'EXECUTE') FROM pg_proc"
            " WHERE oid = %s::regprocedure",
            (function,),
        ).fetchone()
        assert row == (["search_path=pg_catalog, pg_temp"], False)
    loose = mallory.execute(
        "SELECT proname FROM pg_proc, unnest(proconfig) AS setting"
        " WHERE pronamespace = 'public'::regnamespace"
        " AND setting LIKE 'search_path=%' AND setting NOT LIKE '%, pg_temp'"
    ).fetchall()
    assert loose == []


def test_a_schema_that_everyone_may_add_to_is_reported(
    mallory: psycopg.Connection, store: PostgresStore, postgres_url: str
) -> None:
    assert "REVOKE CREATE ON SCHEMA public FROM PUBLIC" in store.check()["privileges"]
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    assert store.check()["privileges"] == "ok"


@pytest.mark.parametrize("attribute", ["SUPERUSER", "BYPASSRLS"])
def test_a_working_role_above_row_level_security_is_refused_and_reported(
    store: PostgresStore, postgres_url: str, attribute: str
) -> None:
    assert store.check()["row-level security"] == f"as role {ROLE}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"ALTER ROLE {ROLE} {attribute}".encode())
        try:
            with pytest.raises(StoreError, match="NOBYPASSRLS"):
                PostgresStore(postgres_url)
            assert store.check()["row-level security"].startswith(f"off: {ROLE} sees")
        finally:
            admin.execute(f"ALTER ROLE {ROLE} NO{attribute}".encode())
    assert store.check()["row-level security"] == f"as role {ROLE}"


def test_a_table_whose_security_was_turned_off_is_reported(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("ALTER TABLE facts DISABLE ROW LEVEL SECURITY")
    assert store.check()["row-level security"].endswith("all of facts")
    monkeypatch.setenv("MEMORIST_EMBEDDER", "none")
    result = CliRunner().invoke(app, ["doctor", "--db", postgres_url])
    assert result.exit_code == 1
    assert "all of facts" in " ".join(result.output.split())

"""A database of an earlier schema is opened, brought up to date, and has lost nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from memorist.errors import ConflictError
from memorist.records.api_key import ApiKey
from memorist.records.article import Article, Chunk
from memorist.records.change import Expire, Restore
from memorist.records.entry import Get, Put
from memorist.records.ids import new_id, to_micros
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.summary import Summary
from memorist.records.text import dump_json, fold
from memorist.store.base import Store
from memorist.store.engine import load_migrations
from memorist.store.postgres.langchain import to_langchain
from memorist.store.postgres.store import PostgresStore
from memorist.store.sessions import session_hash
from memorist.store.sqlite import engine as sqlite_engine
from memorist.store.sqlite.engine import APPLICATION_ID
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.worlds import near, worded

ADA = Scope(user="ada", agent="tutor", session="7b0a3a94-0c51-4c7e-9d5c-0f2e3b1a4d5e")
BOB = Scope(user="bob", agent="tutor", session="bobs")
SAID_AT = datetime(2023, 5, 8, 12, tzinfo=UTC)
MESSAGES = [
    Message("user", "I moved to Berlin", "m1", name="Ada", created_at=SAID_AT),
    Message("assistant", "Как вам новая столица? 我三月搬到了柏林", "m2", created_at=SAID_AT),
    Message("user", "A long tale of ships. " * 1_500, "m3", created_at=SAID_AT),
]
FROM_LANGCHAIN = {"type": "human", "data": {"content": "Umbrellas, please", "name": "Ada"}}
PIECES, OLD_SIZE = 1_048_576, 20_000
AT = to_micros(SAID_AT)
Insert = Callable[[str, Mapping[str, Any]], object]


def views_of(scope: Scope) -> list[tuple[str, dict[str, Any], tuple[str, str, str]]]:
    """Derived records as the first schema holds them, and the passage each had."""
    owner = {"owner": scope.owner, "agent_name": "tutor"}
    item = {
        **owner,
        "id": "i1",
        "text": "Likes pelicans",
        "kind": "fact",
        "category": "knowledge",
        "importance": 0.5,
        "tags": "[]",
        "tier": "short",
        "source": "user",
        "created_at": AT,
        "uses": 0,
    }
    fact = {
        **owner,
        "id": "f1",
        "topic": "",
        "subject": "Ada",
        "predicate": "works at",
        "object": "the lighthouse",
        "known_from": AT,
        "confidence": 1.0,
        "source": "user",
    }
    note = {"version": 1, "notes": "Prefers tea", "created_at": AT}
    kept = {**owner, **note, "user_id": scope.user, "id": "n1", "updated_at": AT}
    return [
        ("memory_items", item, ("memory", "i1", "Likes pelicans")),
        ("facts", fact, ("fact", "f1", "Ada works at the lighthouse")),
        ("agent_long_term_memory", kept, ("note", "n1", "Prefers tea")),
        ("note_versions", {**owner, **note}, ("", "", "")),
    ]


def fill(scope: Scope, key: Any, insert: Insert, message: Insert, passage: Insert) -> None:
    """Write what the first release wrote: messages, views, their passages, jobs."""
    owner = {"owner": scope.owner}
    insert("owners", {**owner, "tenant": scope.tenant, "user_id": scope.user, "created_at": AT})
    insert(
        "sessions",
        {
            **owner,
            "key": key,
            "session_hash": session_hash(scope.session),
            "session_id": scope.session,
            "agent_name": "tutor",
            "created_at": AT,
        },
    )
    first = 1 if scope is ADA else 11
    shared = {**owner, "agent_name": "tutor", "session_id": key, "created_at": AT}
    for seq, said in enumerate(MESSAGES, start=first):
        message("", {**owner, "id": seq, "session_id": key, "said": said})
        for piece, start in enumerate(range(0, len(said.text), OLD_SIZE)):
            stop = min(start + OLD_SIZE, len(said.text))
            span = {"id": seq * PIECES + piece, "start_at": start, "stop_at": stop}
            passage(said.text[start:stop], {**shared, **span, "kind": "message"})
    for number, (table, row, (kind, id_, text)) in enumerate(views_of(scope), start=first):
        insert(table, row)
        if kind:
            whole = {"id": -number, "view_id": id_, "start_at": 0, "stop_at": len(text)}
            passage(text, {**shared, **whole, "kind": kind})
    insert("view_sources", {**owner, "view": "f1", "message_id": "m1"})
    insert(
        "jobs",
        {
            **owner,
            "kind": "derive",
            "session_id": key,
            "first_seq": first,
            "last_seq": first + 2,
            "attempts": 0,
            "run_at": AT,
            "dead": 0,
        },
    )


def check(store: Store, scope: Scope, messages: int = len(MESSAGES)) -> None:
    """Everything is there, and found by its words."""
    said = [entry.message for entry in store.history(scope)]
    assert said[: len(MESSAGES)] == MESSAGES
    assert len(said) == messages
    whole = scope.whole_user()
    for word, kind in {
        "moving": "message",
        "столицу": "message",
        "ship": "message",
        "pelican": "memory",
        "lighthouses": "fact",
        "tea": "note",
    }.items():
        [first, *_] = worded(store, whole, [(word,)], limit=5)
        assert first.kind == kind, word
    assert [hit.id for hit in worded(store, whole, [("柏", "林")], limit=5)] == ["m2"]
    [hit] = worded(store, whole, [("berlin",)], limit=5)
    assert (hit.text, hit.role, hit.speaker) == ("I moved to Berlin", "user", "Ada")
    dated = worded(store, whole, [("may",), ("2023",)], limit=9)
    assert {"m1", "m2", "m3"} <= {hit.id for hit in dated}
    assert store.speakers(whole) == ["Ada"]
    assert [item.text for item in store.items(whole)] == ["Likes pelicans"]
    assert [fact.sources for fact in store.facts(whole)] == [("m1",)]
    note = store.note(scope)
    assert note is not None
    assert (note.text, note.version) == ("Prefers tea", 1)
    embed = [job for job in store.jobs(whole) if job.kind == "embed"]
    assert (embed[0].first_seq + 2, len(embed)) == (embed[0].last_seq, messages - 2)
    assert embed[0].scope == scope


def check_goes_on(store: Store, scope: Scope) -> None:
    """What comes after takes new places, and everything can still be forgotten."""
    store.append(scope, [Message("user", "And then to Kiel", "m9")])
    [hit] = worded(store, scope, [("kiel",)], limit=5)
    assert hit.id == "m9"
    store.write_note(scope, "Prefers coffee", base_version=1)
    assert worded(store, scope.whole_user(), [("tea",)], limit=5) == []
    assert store.forget(scope.whole_user()).counts["notes"] == 1
    assert worded(store, scope.whole_user(), [("berlin",), ("coffee",)], limit=5) == []


def check_life(store: Store, scope: Scope) -> None:
    """What the third schema brought works on what was there before."""
    whole = scope.whole_user()
    assert store.version(whole) == 0
    assert store.spent() == (0, 0)
    assert whole in store.users()
    [fact] = store.facts(whole)
    assert (fact.ended_at, fact.memory) == (None, None)
    store.apply(whole, [Expire(id="f1"), Expire(id="i1")], base_version=0)
    with pytest.raises(ConflictError):
        store.apply(whole, [Restore(id="f1")], base_version=0)
    [ended] = store.facts(whole)
    assert ended.ended_at is not None
    assert worded(store, whole, [("lighthouses",), ("pelican",)], limit=5) == []
    store.apply(whole, [Restore(id="f1"), Restore(id="i1")], base_version=1)
    assert len(worded(store, whole, [("lighthouses",), ("pelican",)], limit=5)) == 2
    assert store.spend(calls=1, tokens=5, max_calls=1)
    assert not store.spend(calls=1, tokens=5, max_calls=1)
    assert store.spend(calls=-1, tokens=-5)


def check_context(store: Store, scope: Scope) -> None:
    """What the fourth schema brought works on what was there before."""
    whole = scope.whole_user()
    assert store.summaries(scope) == []
    assert store.articles(whole) == []
    said = store.history(scope)
    brief = Summary(
        scope=scope,
        text="They met",
        last_seq=said[1].seq,
        messages=2,
        made_by="extractive",
        tokens_before=9,
        tokens=2,
    )
    store.write_summary(scope, brief, of=said[:2])
    assert store.summary(scope) == brief
    article = Article(scope=whole, title="Gulls", text="Gulls eat chips", uri="gulls.md")
    store.put_article(article, [Chunk(0, len(article.text))])
    [hit] = worded(store, whole, [("chip",)], limit=5)
    assert (hit.kind, hit.id) == ("article", article.id)
    store.forget(whole, record_id=article.id)


def check_entries(store: Store, scope: Scope) -> None:
    """What the fifth schema brought works on what was there before."""
    whole = scope.whole_user()
    put = Put(namespace=("birds",), key="k", value={"n": 1}, texts=("Ravens eat plums",))
    store.exchange(whole, [], [put])
    [[found]] = store.exchange(whole, [Get(namespace=("birds",), key="k")])
    [hit] = worded(store, whole, [("plum",)], limit=5)
    assert hit.id == put.id == getattr(found, "id", None)
    store.forget(whole, record_id=put.id)


def check_keys(store: Store, scope: Scope) -> None:
    """What the sixth schema brought works on what was there before."""
    key = ApiKey(id=new_id(), tenant=scope.tenant, user=scope.user, digest="0" * 64)
    store.put_key(key)
    assert store.key(key.id) == key
    assert key in store.keys(scope.tenant)
    store.revoke_key(scope.tenant, key.id)


def _build_sqlite(path: Path) -> None:
    """A file of the first schema, filled for two users."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(load_migrations("sqlite")[0][1])

        def insert(table: str, row: Mapping[str, Any]) -> None:
            columns, places = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(
                f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(row.values())
            )

        def message(_: str, row: Mapping[str, Any]) -> None:
            said = row["said"]
            extras = json.dumps({"name": said.name}) if said.name else None
            insert(
                "chat_message_history",
                {
                    **{name: row[name] for name in ("id", "owner", "session_id")},
                    "message_id": said.message_id,
                    "role": said.role,
                    "source": said.role,
                    "created_at": AT,
                    "content": said.content,
                    "extras": extras,
                },
            )

        def passage(text: str, row: Mapping[str, Any]) -> None:
            insert("passages", row)
            words = {"rowid": row["id"], "owner": row["owner"], "words": fold(text)}
            insert("passage_words", words)

        fill(ADA, 1, insert, message, passage)
        fill(BOB, 2, insert, message, passage)
        connection.pragma("user_version", 1)
        connection.pragma("application_id", APPLICATION_ID)


@pytest.mark.parametrize("schema", [1, 2, 3, 4, 5])
def test_a_sqlite_file_of_an_earlier_schema_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: int
) -> None:
    path = tmp_path / "memory.db"
    _build_sqlite(path)
    if schema > 1:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_engine, "MIGRATIONS", sqlite_engine.MIGRATIONS[:schema])
            with SqliteStore(path) as store:
                assert store.check()["schema"] == str(schema)
    with SqliteStore(path) as store:
        assert store.check()["schema"] == "6"
        for scope in (ADA, BOB):
            check(store, scope)
            check_life(store, scope)
            check_context(store, scope)
            check_entries(store, scope)
            check_keys(store, scope)
        check_goes_on(store, ADA)
    with SqliteStore(path) as store:
        check(store, BOB)


def _build_postgres(url: str) -> None:
    """A database of the first schema, filled for two users, with a row from LangChain."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute("CREATE TABLE memorist_meta (key text PRIMARY KEY, value text NOT NULL)")
        connection.execute(load_migrations("postgres")[0][1].encode())
        connection.execute("INSERT INTO memorist_meta VALUES ('schema', '1')")

        def insert(table: str, row: Mapping[str, Any], last: str = "") -> None:
            columns = ", ".join(row)
            places = ", ".join(f"%({name})s" for name in row)
            if last:
                columns, places = f"{columns}, words", f"{places}, {last}"
            connection.execute(
                f"INSERT INTO {table} ({columns}) VALUES ({places})".encode(), dict(row)
            )

        def message(_: str, row: Mapping[str, Any]) -> None:
            said = row["said"]
            insert(
                "chat_message_history",
                {
                    **{name: row[name] for name in ("id", "owner", "session_id")},
                    "message_id": said.message_id,
                    "role": said.role,
                    "source": said.role,
                    "created_at": SAID_AT,
                    "message": dump_json(to_langchain(said)),
                },
            )

        def passage(text: str, row: Mapping[str, Any]) -> None:
            words = psycopg.sql.Literal(fold(text)).as_string(connection).replace("%", "%%")
            insert("passages", row, f"to_tsvector('memorist', {words})")

        for scope in (ADA, BOB):
            connection.execute("SELECT set_config('memorist.owner', %s, true)", (scope.owner,))
            found = connection.execute(
                "SELECT claim_session_uuid(%s, %s)", (scope.owner, scope.session)
            ).fetchone()
            assert found is not None
            fill(scope, found[0], insert, message, passage)
            passage_id = (1 if scope is ADA else 11) * PIECES
            values = {"owner": scope.owner, "embedder": "e"}
            insert("embedders", {**values, "dimensions": 2})
            insert("vectors", {**values, "passage": passage_id, "embedding": [1.0, 0.0]})
        connection.execute("SELECT setval('message_seq', 100), setval('view_passage_seq', -100)")
        connection.execute("SELECT set_config('memorist.owner', %s, true)", (ADA.owner,))
        connection.execute(
            "INSERT INTO chat_message_history (session_id, message) VALUES (%s, %s)",
            (ADA.session, dump_json(FROM_LANGCHAIN)),
        )


@pytest.mark.parametrize("schema", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bound", [False, True], ids=["superuser", "bound by security"])
def test_a_postgres_database_of_an_earlier_schema_is_brought_up_to_date(
    postgres_url: str, bound: bool, schema: int
) -> None:
    url = postgres_url
    if bound:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE early_user_{schema} LOGIN PASSWORD 'early'".encode())
            connection.execute(
                f"GRANT CREATE, USAGE ON SCHEMA public TO early_user_{schema}".encode()
            )
        url = psycopg.conninfo.make_conninfo(url, user=f"early_user_{schema}", password="early")
    _build_postgres(url)
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        for version, script in load_migrations("postgres")[1:schema]:
            connection.execute(script.encode())
            connection.execute("UPDATE memorist_meta SET value = %s", (str(version),))
    with PostgresStore(url) as store:
        assert store.check()["schema"] == "6"
        check(store, ADA, len(MESSAGES) + 1)
        check(store, BOB)
        for scope in (ADA, BOB):  # the old vectors are still found, and the rest will be made
            assert [hit.id for hit in near(store, scope, "e", [1.0, 0.0], limit=5)] == ["m1"]
            assert scope.whole_user() in store.unprepared("e")
        [hit] = worded(store, ADA, [("umbrella",)], limit=5)
        assert hit.text == "Umbrellas, please"
        [passage] = store.passages(ADA, [hit.passage])
        assert passage.stop == len(hit.text)
        [linked, *_] = store.match_links(ADA.whole_user(), ["the lighthouse"], limit=5)
        assert store.read(ADA.whole_user(), [linked.passage])[0].id == "f1"
        for scope in (ADA, BOB):
            check_life(store, scope)
            check_context(store, scope)
            check_entries(store, scope)
            check_keys(store, scope)
        check_goes_on(store, ADA)
        check(store, BOB)

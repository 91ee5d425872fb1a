"""PostgreSQL is asked in few round trips, and told to stop what nobody waits for any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from memorist import Memory, Message, Scope
from memorist.errors import ConflictError, StoreError
from memorist.records.log import Batch
from memorist.records.values import PASSAGES_PER_MESSAGE
from memorist.store.engine import Db, LateError
from memorist.store.postgres.db import QUERIES, PostgresDb
from memorist.store.postgres.store import PostgresStore
from tests.support.models import WordEmbedder

SCOPE = Scope(user="ada", session="s")
SLEEP = "SELECT pg_sleep(60)::text"


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The statements of each round trip."""
    send, sent = PostgresDb._send, list[list[str]]()

    def note(db: PostgresDb) -> None:
        sent.append([it.sql for it in (*db._opening, *db._waiting)])
        send(db)

    monkeypatch.setattr(PostgresDb, "_send", note)
    return sent


@pytest.fixture
def store(postgres_with_tables: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_with_tables) as opened:
        opened.append(SCOPE, [Message("user", "I moved to Berlin", message_id="m0")])
        yield opened


def test_an_append_takes_one_round_trip(store: PostgresStore, trips: list[list[str]]) -> None:
    said = [Message("user", f"message {number}", name="Caroline") for number in range(250)]
    appended = store.append(SCOPE, said)
    assert len(trips) == 1
    assert len(trips[0]) == 2  # what is sent at once is one transaction
    entries = store.history(SCOPE, last=250)
    assert [entry.message for entry in entries] == said
    assert [entry.seq for entry in entries] == list(appended.seqs)
    jobs = [(job.first_seq, job.last_seq) for job in store.jobs(SCOPE)][1:]
    seqs = appended.seqs
    assert jobs == [(seqs[0], seqs[99]), (seqs[100], seqs[199]), (seqs[200], seqs[249])]
    assert store.speakers(SCOPE) == ["Caroline"]


def test_an_append_to_the_active_session_looks_for_it_first(
    store: PostgresStore, trips: list[list[str]]
) -> None:
    store.open_session(SCOPE)
    trips.clear()
    assert store.append(SCOPE.whole_user(), [Message("user", "I like jam")]).session_id == "s"
    assert len(trips) == 2


def test_messages_of_many_users_take_few_round_trips(
    store: PostgresStore, trips: list[list[str]]
) -> None:
    def say(text: str) -> list[int]:
        batches = [
            Batch(Scope(user=f"u{number}", session="s"), [Message("user", text)])
            for number in range(5)
        ]
        return [one.added for one in store.append_each(batches)]

    assert say("I moved to Rome") == [1] * 5
    assert len(trips) == 3  # to look for the sessions, to make them, and to write
    trips.clear()
    assert say("I moved to Bonn") == [1] * 5
    assert len(trips) == 2


def test_messages_of_a_batch_have_the_words_that_each_has_alone(
    store: PostgresStore, postgres_with_tables: str
) -> None:
    texts = ["", "I moved to Rome", f"{'I like Rome. ' * 200}The end", "", "And Bonn"]
    first = store.append(SCOPE, [Message("user", text) for text in texts]).seqs[0]
    for text in texts:
        store.append(SCOPE, [Message("user", text)])
    with psycopg.connect(postgres_with_tables) as connection:
        read = "SELECT words FROM passage_words WHERE id >= %s ORDER BY id"
        words = connection.execute(read, [first * PASSAGES_PER_MESSAGE]).fetchall()
    batch, alone = words[: len(words) // 2], words[len(words) // 2 :]
    assert batch == alone
    assert len(batch) > len(texts)  # the long one has several passages


def test_what_the_commit_refuses_is_an_error_of_the_store_and_not_stored(
    store: PostgresStore, postgres_with_tables: str
) -> None:
    with psycopg.connect(postgres_with_tables, autocommit=True) as admin:
        admin.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not today'; END $$"
        )
        admin.execute(
            "CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON chat_message_history"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(StoreError):
        store.append(SCOPE, [Message("user", "I moved to Rome")])
    assert [entry.message.text for entry in store.history(SCOPE)] == ["I moved to Berlin"]


def test_what_is_stored_already_is_seen_by_the_commit(store: PostgresStore) -> None:
    again, new = Message("user", "I moved to Berlin", message_id="m0"), Message("user", "new")
    appended = store.append(SCOPE, [again, new])
    assert appended.added == 1
    assert len(appended.seqs) == 2
    assert [entry.message for entry in store.history(SCOPE)][1:] == [new]
    with pytest.raises(ConflictError):
        store.append(SCOPE, [Message("user", "other words", message_id="m0")])
    for number in range(12):  # as often as it takes for a statement to be prepared
        store.append(SCOPE, [again, Message("user", f"one more {number}")])


def test_a_look_at_a_queue_without_work_is_one_round_trip_and_writes_nothing(
    store: PostgresStore, trips: list[list[str]]
) -> None:
    assert len(store.claim(limit=9)) == 1
    trips.clear()
    assert not store.any_due(("embed", "derive"))
    assert len(trips) == 1
    assert "memorist_writes" not in "".join(trips[0])


def test_a_recall_takes_few_round_trips(postgres_with_tables: str, trips: list[list[str]]) -> None:
    store = PostgresStore(postgres_with_tables)
    with Memory(store, embedder=WordEmbedder(), extraction=None) as memory:
        memory.remember("I moved to Berlin", user="ada", session="s")
        memory.jobs.catch_up(300)
        memory.recall("Berlin?", user="ada", deadline_ms=None)
        trips.clear()
        assert memory.recall("where is Berlin?", user="ada", deadline_ms=None).hits
        reads = [
            trip
            for trip in trips
            if not any("jobs" in sql or "memorist_writes" in sql for sql in trip)
        ]
    assert sum(trip[0].startswith("BEGIN") for trip in reads) == 2
    assert len(reads) <= 10


def test_what_is_foreseen_is_asked_once(store: PostgresStore, trips: list[list[str]]) -> None:
    user = SCOPE.whole_user()
    with store.reading(user, lambda: None):
        store.foresee(user, limit=10)
        newest = store.newest(user, limit=10)
        assert store.speakers(user) == []
        assert len(trips) == 1
        assert store.newest(user, limit=10) == newest  # again, and with another limit
        assert store.newest(user, limit=1) == newest[:1]
    assert len(trips) == 4  # with the commit


def test_of_foreseen_words_those_that_were_not_are_asked_for(
    store: PostgresStore, trips: list[list[str]]
) -> None:
    owner, asked = SCOPE.owner, ["berlin", "move", "rome"]
    said = [Message("user", text) for text in ("Berlin", "I move to Rome", "Rome and Berlin")]
    store.append(SCOPE, said)

    def alone(db: Db) -> list[list[int]]:
        return [ids.tolist() for ids in db.rare_postings(asked, 9).values()]

    def foreseen(db: Db, stems: list[str]) -> list[list[int]]:
        db.foresee_rare(stems, 9)
        db.postings([("and",)])
        trips.clear()
        return alone(db)

    expected = store._engine.read(owner, alone)
    assert sorted(map(len, expected)) == [2, 2, 3]
    for stems, more in ((asked, 0), (["move", "paris"], 1)):
        assert store._engine.read(owner, partial(foreseen, stems=stems)) == expected
        assert len(trips) == more


def test_a_read_takes_one_round_trip(store: PostgresStore, trips: list[list[str]]) -> None:
    assert len(store.history(SCOPE, last=5)) == 1
    assert len(trips) == 1  # what is sent at once is one transaction
    trips.clear()
    assert len(store.history(SCOPE, last=5, max_bytes=9)) == 1  # by a cursor, in a transaction
    assert [trip[0] for trip in trips] == ["BEGIN", "COMMIT"]
    trips.clear()
    assert store.events(SCOPE).place.endswith(".0")
    assert len(trips) == 1


def test_a_late_read_is_stopped_and_the_next_one_works(
    store: PostgresStore, postgres_with_tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [0.05, None]
    monkeypatch.setitem(QUERIES, "agents", SLEEP)
    with store.reading(SCOPE, lambda: left.pop(0)):
        with pytest.raises(LateError):
            store.agents(SCOPE)
        assert len(store.history(SCOPE)) == 1
    with psycopg.connect(postgres_with_tables) as connection:
        running = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = %s"
        assert connection.execute(running, [SLEEP]).fetchall() == []


def test_a_channel_that_is_stopped_is_late_and_has_not_failed(
    postgres_with_tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(PostgresStore(postgres_with_tables), embedder=None, extraction=None) as memory:
        memory.remember("I moved to Berlin", user="ada")
        memory.recall("Berlin?", user="ada", deadline_ms=None)
        monkeypatch.setitem(QUERIES, "postings", SLEEP)
        found = memory.recall("Berlin?", user="ada", deadline_ms=2_000)
    assert "words" in found.late
    assert not found.failed

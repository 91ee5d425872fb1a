"""Events on PostgreSQL: what commits late is not passed over, and every server tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import psycopg

from memorist import Memory
from memorist.records.memories import Add, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.server.auth import Guard
from memorist.server.http.app import build_app
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from tests.server.test_routes_activity import following
from tests.support.http_server import serving

ADA = Scope(user="ada", session="s")
JSON = {"Accept": "application/json"}


def test_nothing_is_told_while_a_write_may_come_before_it(postgres_with_tables: str) -> None:
    with (
        PostgresStore(postgres_with_tables) as store,
        psycopg.connect(postgres_with_tables) as slow,
    ):
        place = store.events(ADA).place
        # As a write of ours begins: it has its number, and commits later.
        lock = f"SELECT pg_advisory_xact_lock_shared(hashtextextended('{ADA.owner}', 1))"
        slow.execute(lock.encode())
        store.append(ADA, [Message("user", "fast", "m")])
        store.apply(ADA, [Add(MemoryItem(scope=ADA, text="Ada sails.", id="i"))])
        assert store._events(ADA, after=place, limit=9) is None
        waited = store.events(ADA, after=place)  # not for ever
        assert [event.id for event in waited.items] == ["m", "i"]
        slow.commit()
        told = store._events(ADA, after=place, limit=9)
        assert told == waited


def test_another_owners_write_is_not_waited_for(postgres_with_tables: str) -> None:
    with (
        PostgresStore(postgres_with_tables) as store,
        psycopg.connect(postgres_with_tables) as slow,
    ):
        eve = Scope(user="eve").owner
        slow.execute(f"SELECT pg_advisory_xact_lock_shared(hashtextextended('{eve}', 1))".encode())
        assert store._events(ADA, limit=9) is not None


def test_each_of_two_servers_tells_what_the_other_did(postgres_with_tables: str) -> None:
    with (
        Memory(postgres_with_tables, embedder=None, extraction=None) as one,
        Memory(postgres_with_tables, embedder=None, extraction=None) as two,
        serving(build_app(one, Guard.local("default", "ada"))) as here,
        serving(build_app(two, Guard.local("default", "ada"))) as there,
        httpx.Client(base_url=here, timeout=60) as ada,
        httpx.Client(base_url=there, timeout=60) as elsewhere,
        following(ada) as follower,
    ):
        assert elsewhere.get("/api/me").json()["store"] == "postgres"
        told: dict[str, Any] = elsewhere.post(
            "/api/chat", json={"message": "Where is my bike?"}, headers=JSON
        ).json()
        memory = two.memories.add("Ada sails.", user="ada")
        two.memories.add("Eve sails.", user="eve")
        assert follower.read(2) == [
            ("message", "stored", told["asked_id"]),
            ("memory", "add", memory),
        ]
        [kept] = one.receipts(user="ada")
        assert (kept.asked_id, kept.receipt["used"]) == (told["asked_id"], told["receipt"]["used"])
        assert one.counts(user="ada") == two.counts(user="ada")


def test_what_others_write_is_passed_over(tmp_path: Path) -> None:
    eve = Scope(user="eve", session="s")
    with SqliteStore(tmp_path / "m.db") as store:
        place = store.events(ADA).place
        store.append(ADA, [Message("user", "hi", "first")])
        store.append(eve, [Message("user", "ho") for _ in range(100)])
        store.append(ADA, [Message("user", "hi", "last")])
        told = store.events(ADA, after=place)
        assert [event.id for event in told.items] == ["first", "last"]
        assert told.place == store.events(ADA).place == store.events(eve).place

"""Archives: everything of a user goes out and comes back, within and across databases."""

from __future__ import annotations

import gzip
import itertools
import threading
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from memorist import Memory, Message
from memorist.archive import checksum, contents, promote, restore
from memorist.archive import export as export_users
from memorist.context.window import Window
from memorist.lifecycle.settings import Extraction
from memorist.records.activity import RecalledId, TurnReceipt
from memorist.records.entry import Put, Search
from memorist.records.scope import ApiKey, Scope, shared_scope
from memorist.records.values import new_id
from memorist.runtime import open_store
from memorist.store.base import Store
from memorist.store.postgres.store import PostgresStore
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.machine import StoreMachine
from tests.conformance.worlds import ODD_TEXTS, rich_messages
from tests.stories.stories import STORIES
from tests.support.lives import Clock
from tests.support.models import WordEmbedder
from tests.support.postgres import Server

QUESTIONS = (
    *(question.ask for story in STORIES[:6] for question in story.questions),
    "what about boats?",
    "Berlin",
)
START = datetime(2025, 1, 1, tzinfo=UTC)


def opened(url: str, clock: Clock, **parts: Any) -> Memory:
    """A memory in which nothing is derived, unless it is asked for."""
    settings: dict[str, Any] = {"embedder": WordEmbedder(), "extraction": None, **parts}
    return Memory(url, clock=clock, **settings)


def live(memory: Memory, clock: Clock) -> None:
    """A life in which everything happens that can be stored."""
    for story in STORIES[:6]:
        story.tell(memory)
    clock.moment = max(story.end for story in STORIES[:6])
    scope = memory.scope(user="ada")
    chat = memory.session(user="ada", agent="tutor")
    for number in range(30):
        chat.add(
            "user" if number % 2 else "assistant", f"Line {number} of a long talk about boats."
        )
    memory.rename_session(chat.id, "Boats", user="ada")
    memory.compress(user="ada", session=chat.id, window=Window(keep_last=5))
    memory.remember(rich_messages(), user="ada", agent="tools", session="rich")
    odd = [Message("user", text, message_id=name) for name, text in ODD_TEXTS.items()]
    memory.remember(odd, user="ada", session="odd", source="web")
    memory.messages.revise(scope, Message("user", "I like sailing.", message_id="sql"))
    memory.messages.revise(scope, Message("user", "I love sailing.", message_id="sql"))
    memory.remember(
        Message("assistant", "not yet do", message_id="cut", unfinished=True),
        user="ada",
        session="odd",
    )
    memory.jobs.catch_up(300)
    kept = memory.memories.add("The boat is called Ada.", user="ada", tags=["boat"])
    gone = memory.memories.add("Nobody may know this.", user="ada")
    memory.forget(user="ada", memory=gone)
    wrong = memory.memories.add("The boat is green.", user="ada")
    memory.memories.retract(wrong, user="ada")
    memory.memories.undo(wrong, user="ada")
    fact = memory.facts.add("boat", "colour", "blue", user="ada")
    memory.facts.change(fact, user="ada", object="red")
    for version, text in enumerate(("# One", "# One\n\nsailing", "# Two\n\nrowing")):
        memory.note_versions.write(scope.within(agent="tutor"), text, base_version=version)
    memory.note_versions.write(scope, "", base_version=0)
    memory.library(user="ada").add("Boats", "# Boats\n\nA keel.\n\n## Sails\n\nA jib.", "b.md")
    memory.library("shelf").add("Shared", "# Shared\n\nFor all.")
    puts = [
        Put(namespace=("a", "b"), key="k\ud800", value={"x": "\x00", "n": 1.0}, texts=["one\ntwo"]),
        Put(namespace=(), key="", value={}, ttl=timedelta(days=9)),
        Put(namespace=("old",), key="over", value={"a": 1}, ttl=timedelta(0)),
    ]
    memory.entries.batch(scope, [], puts)
    memory.entries.batch(shared_scope(memory.tenant_name, "store", "s"), [], puts[:1])
    recalled = (RecalledId("memory", kept, 0.5),)
    receipt = TurnReceipt(
        session_id="odd", asked_id="sql", receipt={"parts": []}, recalled=recalled
    )
    memory.add_receipt(receipt, user="ada")
    memory.recall("boats", user="ada", deadline_ms=None)
    memory.jobs.catch_up(300)


def left_waiting(memory: Memory) -> None:
    """What no worker has come to yet, and what one gave up."""
    memory.remember(
        ["I live in Oslo.", "I work as a baker."], user="ada", agent="later", session="later"
    )
    memory.remember("This one fails.", user="ada", session="fails")
    for job in memory.store.claim(kinds=("embed",), limit=2):
        if job.scope.session == "fails":
            memory.store.fail(job, "it was too hard", final=True)
        else:
            memory.store.release(job)


def readable(memory: Memory) -> dict[str, Any]:
    """All that can be read of ada, less what numbers of this database are in it."""
    ada: dict[str, Any] = {"user": "ada"}
    scope = memory.scope(**ada)
    sessions = [session.id for session in memory.sessions(**ada)]
    store = memory.store
    return {
        "sessions": memory.session_summaries(**ada),
        "active": [memory.active_session(**ada, agent=it) for it in ("", "tutor", "tools")],
        "log": [entry[1:] for entry in store.history(scope)],
        "revisions": store.revisions(scope.within(session="odd"), "sql"),
        "memories": memory.memories.list(**ada, current=False),
        "facts": [store.facts(scope, known_at=at) for at in (None, memory.clock())],
        "entities": store.entities(scope),
        "speakers": store.speakers(scope),
        "notes": [store.note_versions(scope.within(agent=it)) for it in ("tutor",)],
        "note": [memory.note_versions.get(it) for it in (scope, scope.within(agent="tutor"))],
        "articles": [memory.articles.get(scope, [it.id]) for it in memory.articles.list(scope)],
        "entries": store.batch(scope, [Search(limit=None)]),
        "receipts": memory.receipts(**ada),
        "summaries": [
            (it.id, it.text, it.messages, it.previous, it.created_at)
            for session in sessions
            for it in memory.summaries(**ada, session=session)
        ],
        "jobs": [
            (job.kind.removesuffix(" later"), job.scope, job.error, job.dead)
            for job in store.jobs(scope)
            if not job.kind.startswith("vectors")
        ],
        "kept": store.kept_by_hand(scope, [it.id for it in memory.memories.list(**ada)]),
    }


def recalled(memory: Memory) -> list[Any]:
    """What questions find, when even what was given up and what is unfinished has vectors."""
    assert memory.jobs.catch_up(300) <= 1
    scope, embedder = memory.scope(user="ada"), WordEmbedder()
    texts = memory.store.unembedded(scope, embedder.name, limit=100)
    vectors = dict(zip(texts, embedder.embed(list(texts.values())), strict=True))
    memory.store.put_vectors(scope, embedder.name, vectors)
    return [
        [(hit.kind, hit.id, hit.text, pytest.approx(hit.score, abs=0.02)) for hit in found.hits]
        for found in (memory.recall(it, user="ada", deadline_ms=None) for it in QUESTIONS)
    ]


BACK = pytest.param("postgres", marks=pytest.mark.prove)


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> str:
    return postgres_url if request.param == "postgres" else str(tmp_path / "a.db")


@pytest.mark.parametrize("source", ["sqlite", BACK], indirect=True)
def test_what_is_exported_and_restored_is_the_same_in_the_other_database(
    source: str, tmp_path: Path, plain_server: Server
) -> None:
    """From either into its own kind, random lives go."""
    clock = Clock(START)
    into_sqlite = source.startswith("postgres")
    target = str(tmp_path / "b.db") if into_sqlite else plain_server.create_database("archive")
    with opened(source, clock, extraction=Extraction(maintain_every=0)) as memory:
        live(memory, clock)
    with opened(source, clock, embedder=None) as memory:
        left_waiting(memory)
        archive, plain = (b"".join(memory.export("ada", vectors=it)) for it in (True, False))
        whole = b"".join(memory.export())
        before = readable(memory)
    with opened(source, clock) as memory:
        found = recalled(memory)
    with opened(target, clock, embedder=None) as other:
        report = other.restore([archive])
        assert report.users == 1
        assert not report.there
        assert not report.differing
        for name, value in readable(other).items():
            assert value == before[name], name
        assert b"".join(other.export("ada")) == plain
        again = other.restore([archive])
        assert not again.differing
        assert not again.added.keys() - {"vectors"}
        other.restore([whole])
        assert b"".join(other.export()) == whole
    with opened(target, clock) as other:
        assert recalled(other) == found


class RandomLives(StoreMachine):
    """At its end, each life goes through an archive from each store into each other one."""

    def teardown(self) -> None:
        for one in self.stores:
            for other in self.stores:
                for user in self.people:
                    scope, copy = self.scope(user), Scope(tenant=new_id(), user="copy")
                    archive = export_users(one, [scope], scope.tenant)
                    restore(other, archive, partial(_always, copy))
                    assert checksum(other, copy) == checksum(one, scope)
                    assert lines(other, copy) == lines(one, scope)


def _always(scope: Scope, _: object) -> Scope:
    return scope


def lines(store: Store, scope: Scope) -> list[bytes]:
    """A user's records as an archive holds them, in their order, and their checksum."""
    archive = b"".join(export_users(store, [scope], scope.tenant))
    return gzip.decompress(archive).splitlines()[2:-1]


@pytest.mark.prove
def test_random_lives_come_through_archives(tmp_path: Path, plain_server: Server) -> None:
    with (
        SqliteStore(tmp_path / "memory.db") as sqlite,
        PostgresStore(plain_server.create_database("lives")) as postgres,
    ):
        machine = type("Machine", (RandomLives,), {"stores": [sqlite, postgres]})
        few = settings(
            max_examples=8,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine, settings=few)


def test_an_archive_that_is_made_under_load_holds_a_beginning_of_each_session(
    source: str, tmp_path: Path
) -> None:
    said, is_over = defaultdict[str, list[str]](list), threading.Event()
    with Memory(source, embedder=None, extraction=None) as memory:

        def write() -> None:
            for number in itertools.count():
                if is_over.is_set():
                    return
                session, texts = f"s{number % 3}", [f"{number} a", f"{number} b"]
                said[session] += texts  # before it is stored: none may be there that was not said
                memory.remember(texts, user="ada", session=session)

        writer = threading.Thread(target=write)
        writer.start()
        archives = [b"".join(memory.export("ada")) for _ in range(5)]
        is_over.set()
        writer.join()
    for number, archive in enumerate(archives):
        with Memory(tmp_path / f"copy{number}.db", embedder=None, extraction=None) as copy:
            copy.restore([archive])
            for session in copy.sessions(user="ada"):
                texts = [it.text for it in copy.history(user="ada", session=session.id)]
                assert texts == said[session.id][: len(texts)]
                assert len(texts) % 2 == 0  # what was stored together is there together


def live_briefly(memory: Memory) -> None:
    """A user, a shared library, and vectors of both."""
    memory.remember(["I moved to Berlin.", "I like tea."], user="ada", session="talk")
    memory.memories.add("Ada likes tea.", user="ada")
    memory.library().add("Tea", "# Tea\n\nGreen or black.")
    assert memory.jobs.catch_up(300) == 0


def test_a_database_is_promoted_and_brought_back(tmp_path: Path, postgres_url: str) -> None:
    here, there, back = str(tmp_path / "here.db"), postgres_url, str(tmp_path / "back.db")
    clock = Clock(START)
    key = ApiKey(id="k", tenant="other", user="ada", digest="0" * 64)
    with opened(here, clock) as memory:
        live_briefly(memory)
        live_briefly(memory.tenant("other"))
        memory.keys.put(key)
    for source, target in ((here, there), (there, back)):
        assert promoted(source, target) == {"same": 0, "copied": 4, "differs": 0}
        assert promoted(source, target) == {"same": 4, "copied": 0, "differs": 0}
    with opened(here, clock) as memory, opened(back, clock) as copy:
        for tenant in ("default", "other"):
            one, other = memory.tenant(tenant), copy.tenant(tenant)
            assert b"".join(one.export()) == b"".join(other.export())
        vectors = [contents(BytesIO(b"".join(it.export(vectors=True)))) for it in (memory, copy)]
        assert vectors[0] == vectors[1]
        assert vectors[0][1]["vectors"] > 2
        assert copy.keys.get("k") == key
        memory.keys.revoke("other", "k")
        memory.remember("Something new.", user="ada", session="later")
        memory.forget(user="ada", session="talk")
    assert promoted(here, there) == {"same": 3, "copied": 0, "differs": 1}
    assert promoted(here, there, replace=True) == {"same": 3, "copied": 1, "differs": 0}
    with opened(there, clock) as copy:
        assert [it.text for it in copy.history(user="ada")] == ["Something new."]
        ended = copy.keys.get("k")
        assert ended is not None
        assert ended.revoked_at is not None


def promoted(source: str, target: str, *, replace: bool = False) -> dict[str, int]:
    """How many users became what."""
    with open_store(source) as one, open_store(target) as other:
        counts = Counter(outcome for _, outcome in promote(one, other, replace=replace))
    return {it: counts[it] for it in ("same", "copied", "differs")}

"""The network to PostgreSQL breaks around a COMMIT: was it done, or not? We ask again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from memorist.records.memories import Add, MemoryItem, Reinforce
from memorist.store.base import Store
from tests.crash.evidence import SCOPE, batch, check_store, open_store
from tests.crash.proxy import Proxy

APPENDS = 40

Line = tuple[Proxy, Store]


@pytest.fixture
def line(postgres_with_tables: str) -> Iterator[Line]:
    """A store with two messages, and the network to it."""
    with Proxy(postgres_with_tables) as proxy, open_store(proxy.url) as store:
        for number in range(2):
            store.append(SCOPE, batch("writer", number))
        yield proxy, store
        assert proxy.lost_answers == 1


def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_done_twice(
    postgres_with_tables: str,
) -> None:
    names = [f"writer{number}" for number in range(4)]

    def write(name: str) -> None:
        for number in range(APPENDS):
            added = store.append(SCOPE, batch(name, number))
            found = store.find(SCOPE, [message.message_id for message in batch(name, number)])
            assert [entry.seq for entry in found] == list(added.seqs)

    with (
        Proxy(postgres_with_tables, cut_every=9) as proxy,
        open_store(proxy.url) as store,
        ThreadPoolExecutor(len(names)) as threads,
    ):
        list(threads.map(write, names))
    assert proxy.lost_answers > 20
    check_store(
        postgres_with_tables,
        dict.fromkeys(names, APPENDS),
        spare=0,
        why=f"{proxy.lost_answers} answers lost",
    )


def test_a_note_whose_answer_is_lost_is_written_once(postgres_with_tables: str) -> None:
    with Proxy(postgres_with_tables, cut_every=4) as proxy, open_store(proxy.url) as store:
        for version in range(18):
            note = store.write_note(SCOPE, f"note {version}", base_version=version)
            assert note.version == version + 1
        texts = [note.text for note in store.note_versions(SCOPE)]
    assert texts == [f"note {version}" for version in reversed(range(18))]
    assert proxy.lost_answers > 3


def test_a_job_whose_answer_is_lost_counts_as_done(line: Line) -> None:
    proxy, store = line
    (job,) = store.claim()
    proxy.lose_next_answer()
    store.apply(SCOPE, [Add(MemoryItem(scope=SCOPE, text="tea"))], done=job)
    assert [item.text for item in store.items(SCOPE)] == ["tea"]
    assert job.id not in [left.id for left in store.jobs(SCOPE)]


def test_a_failure_whose_answer_is_lost_counts_as_reported(line: Line) -> None:
    proxy, store = line
    (job,) = store.claim()
    proxy.lose_next_answer()
    store.fail(job, "no model")
    assert [left.error for left in store.jobs(SCOPE) if left.id == job.id] == ["no model"]


def test_a_use_whose_answer_is_lost_is_counted_once(line: Line) -> None:
    proxy, store = line
    item = MemoryItem(scope=SCOPE, text="tea")
    store.apply(SCOPE, [Add(item)])
    proxy.lose_next_answer()
    store.apply(SCOPE, [Reinforce(id=item.id)])
    assert [item.uses for item in store.items(SCOPE)] == [1]


def test_a_use_is_counted_once_also_where_a_failover_dropped_the_row_that_counts(
    line: Line, postgres_with_tables: str
) -> None:
    proxy, store = line
    item = MemoryItem(scope=SCOPE, text="tea")
    store.apply(SCOPE, [Add(item)])
    with psycopg.connect(postgres_with_tables) as connection:
        connection.execute("DELETE FROM memorist_writes")
    proxy.lose_next_answer()
    store.apply(SCOPE, [Reinforce(id=item.id)])
    assert [item.uses for item in store.items(SCOPE)] == [1]


def test_a_revision_whose_answer_is_lost_is_kept_once(line: Line) -> None:
    proxy, store = line
    (first,) = batch("writer", 0)
    proxy.lose_next_answer()
    store.revise(SCOPE, first.changed(content="other words"))
    assert [old.content for old in store.revisions(SCOPE, first.message_id)] == [first.content]


def test_a_forgetting_whose_answer_is_lost_is_no_error(line: Line) -> None:
    proxy, store = line
    proxy.lose_next_answer()
    store.forget(SCOPE, message_id="writern0p0")
    assert not store.find(SCOPE, ["writern0p0"])

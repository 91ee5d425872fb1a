"""Conformance of summaries: views of a session that go with the words they stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memorist.errors import ConflictError
from memorist.records.documents import Summary
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope


def told(store: Store, scope: Scope, count: int = 6) -> list[LogEntry]:
    store.append(scope, [Message("user", f"word {number}") for number in range(count)])
    return store.following(scope, after=0, limit=1_000)


def summary_of(
    scope: Scope, entries: list[LogEntry], previous: Summary | None = None, by: str = "extractive"
) -> Summary:
    before = previous.messages if previous else 0
    return Summary(
        scope=scope,
        text=f"{len(entries)} words",
        last_seq=entries[-1].seq,
        made_by=by,
        messages=before + len(entries),
        tokens_before=100,
        tokens=3,
        previous=previous.id if previous else None,
    )


class SummaryConformance:
    """Needs a fixture `store`."""

    def test_messages_follow_a_place_in_their_order(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        assert store.following(scope, after=entries[1].seq, limit=2) == entries[2:4]
        assert store.history(scope, after=entries[1].seq, last=3) == entries[3:]
        assert store.history(scope, after=entries[1].seq, before=entries[4].seq) == entries[2:4]
        assert store.following(fresh_scope(), after=0, limit=9) == []

    def test_a_summary_comes_back_and_another_extends_it(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        assert store.summary(scope) is None
        first = summary_of(scope, entries[:3])
        store.write_summary(scope, first, of=entries[:3])
        second = summary_of(scope, entries[3:5], first)
        store.write_summary(scope, second, of=entries[3:5])
        assert store.summary(scope) == second
        assert store.summaries(scope) == [second, first]
        assert store.summaries(fresh_scope()) == []

    def test_the_least_summary_stands_for_what_it_must(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        first = summary_of(scope, entries[:3])
        second = replace(summary_of(scope, entries[3:5], first), tokens_before=200)
        store.write_summary(scope, first, of=entries[:3])
        store.write_summary(scope, second, of=entries[3:5])
        assert store.summary(scope, least=100) == first
        assert store.summary(scope, least=101) == second
        assert store.summary(scope, least=201) is None

    def test_a_summary_may_be_made_anew(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        store.write_summary(scope, summary_of(scope, entries[:3]), of=entries[:3])
        better = summary_of(scope, entries[:3], by="a model")
        store.write_summary(scope, better, of=entries[:3])
        assert store.summaries(scope) == [better]

    def test_what_changed_meanwhile_is_not_summarised(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        made = summary_of(scope, entries[:3])
        revised = entries[1].message.changed(content="another word")
        store.revise(scope, revised)
        with pytest.raises(ConflictError):
            store.write_summary(scope, made, of=entries[:3])
        store.forget(scope, message_id=revised.message_id)
        with pytest.raises(ConflictError):
            store.write_summary(scope, made, of=entries[:3])
        lost = summary_of(scope, entries[3:4], made)
        with pytest.raises(ConflictError):
            store.write_summary(scope, lost, of=entries[3:4])
        assert store.summary(scope) is None

    def test_summaries_go_with_the_words_they_stand_for(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        first = summary_of(scope, entries[:2])
        store.write_summary(scope, first, of=entries[:2])
        second = summary_of(scope, entries[2:4], first)
        store.write_summary(scope, second, of=entries[2:4])
        store.forget(scope, message_id=entries[5].message.message_id)
        assert store.summary(scope) == second
        gone = store.forget(scope, message_id=entries[2].message.message_id)
        assert gone.counts["summaries"] == 1
        assert store.summaries(scope) == [first]
        store.revise(scope, entries[0].message.changed(content="something else"))
        assert store.summaries(scope) == []

    def test_a_session_takes_its_summaries_along(self, store: Store) -> None:
        scope, other = fresh_scope(), fresh_scope()
        for one in (scope, other):
            entries = told(store, one)
            store.write_summary(one, summary_of(one, entries[:2]), of=entries[:2])
        assert store.forget(scope).counts["summaries"] == 1
        assert store.summary(scope) is None
        assert store.summary(other) is not None

    def test_a_summary_is_asked_for_once(self, store: Store) -> None:
        scope = fresh_scope()
        entries = told(store, scope)
        for _ in range(2):
            store.queue_summary(scope, entries[3].seq)
        [job] = [job for job in store.jobs(scope) if job.kind == "summarize"]
        assert (job.scope.session, job.last_seq) == (scope.session, entries[3].seq)
        store.queue_summary(scope, entries[4].seq)
        assert sum(job.kind == "summarize" for job in store.jobs(scope)) == 2
        store.queue_summary(fresh_scope(), 1)  # of nothing: nothing happens

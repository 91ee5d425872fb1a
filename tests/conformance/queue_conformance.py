"""Conformance of the queue and of forgetting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta

import pytest

from memorist.errors import LeaseLostError, NotFoundError
from memorist.records.log import MAX_ATTEMPTS, Job
from memorist.records.memories import Add, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import now
from memorist.store.base import Store
from memorist.store.jobs import DIED, MAX_DEATHS
from tests.conformance.worlds import claim_all, fresh_scope, near, texts, worded


class QueueConformance:
    """Needs a fixture `store`. Other tests' jobs may wait in the same queue."""

    def test_each_append_queues_one_job_for_its_new_messages(self, store: Store) -> None:
        scope = fresh_scope()
        first, second = Message("user", "a"), Message("user", "b")
        one = store.append(scope, [first, second])
        store.append(scope, [first])
        two = store.append(scope, [second, Message("user", "c")])
        jobs = store.jobs(scope)
        assert [(job.first_seq, job.last_seq) for job in jobs] == [one.seqs, (two.seqs[1],) * 2]
        assert jobs[0].scope == scope.within(agent="")
        assert (jobs[0].kind, jobs[0].attempts, jobs[0].dead) == ("embed", 0, False)

    def test_a_claimed_job_is_nobody_elses_until_its_lease_ends(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        job = take(store, scope, lease_seconds=600)
        assert (job.attempts, job.scope.user) == (0, "alice")
        assert find_due(store, scope) is None

    def test_a_job_comes_back_when_its_lease_ends(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        lost = take(store, scope, lease_seconds=0)
        again = take(store, scope, lease_seconds=600)
        assert (again.id, again.attempts) == (lost.id, 0), "a death is not an attempt"
        with pytest.raises(LeaseLostError):
            store.apply(scope, [Add(MemoryItem(scope=scope, text="late"))], done=lost)
        with pytest.raises(LeaseLostError):
            store.fail(lost, "late")
        assert store.items(scope) == []
        store.apply(scope, [Add(MemoryItem(scope=scope, text="in time"))], done=again)
        assert [item.text for item in store.items(scope)] == ["in time"]
        assert store.jobs(scope) == []

    def test_a_finished_job_cannot_be_finished_twice(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        job = take(store, scope, lease_seconds=600)
        store.apply(scope, [], done=job)
        with pytest.raises(LeaseLostError):
            store.apply(scope, [Add(MemoryItem(scope=scope, text="twice"))], done=job)
        assert store.items(scope) == []

    def test_a_failed_job_waits_before_it_is_tried_again(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        job = take(store, scope, lease_seconds=600)
        store.fail(job, "the model was away")
        [waiting] = store.jobs(scope, dead=False)
        assert waiting.error == "the model was away"
        assert waiting.lease is None
        assert waiting.run_at > now()
        assert find_due(store, scope) is None

    def test_a_job_that_keeps_failing_dies_visibly_and_can_be_revived(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        for attempt in range(MAX_ATTEMPTS):
            [job] = store.jobs(scope)
            assert (job.attempts, job.dead) == (attempt, False)
            job = take(store, scope, lease_seconds=600, minutes=attempt)
            store.fail(job, "hopeless")
        [dead] = store.jobs(scope, dead=True)
        assert (dead.error, dead.attempts) == ("hopeless", MAX_ATTEMPTS)
        assert store.jobs(scope, dead=False) == []
        assert find_due(store, scope) is None
        with pytest.raises(NotFoundError):
            store.retry(fresh_scope(), dead.id)
        store.retry(scope, dead.id)
        assert take(store, scope, lease_seconds=600).attempts == 0
        with pytest.raises(NotFoundError):
            store.retry(scope, dead.id)

    def test_a_job_whose_failure_is_final_is_set_aside_at_once(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        store.fail(take(store, scope, lease_seconds=600), "it took too long", final=True)
        [dead] = store.jobs(scope, dead=True)
        assert (dead.error, dead.attempts) == ("it took too long", 1)

    def test_a_job_that_takes_long_counts_its_failures_all_the_same(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        take(store, scope, lease_seconds=0)
        job = take(store, scope, lease_seconds=600)
        store.renew(job, lease_seconds=600)
        store.release(job)
        assert store.jobs(scope)[0].attempts == 0, "as if it had not been taken"
        for attempt in (1, 2):
            job = take(store, scope, lease_seconds=600, minutes=attempt)
            store.renew(job, lease_seconds=600, progressed=True)
            store.fail(job, "nonsense")
            assert store.jobs(scope)[0].attempts == attempt

    def test_a_job_that_kills_its_workers_dies_too(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a")])
        for _ in range(MAX_DEATHS):
            assert take(store, scope, lease_seconds=0).attempts == 0
        assert find_due(store, scope) is None
        [dead] = store.jobs(scope, dead=True)
        assert dead.error == DIED
        store.retry(scope, dead.id)
        for _ in range(MAX_DEATHS - 1):
            take(store, scope, lease_seconds=0)
        assert find_due(store, scope) is None, "it is still a suspect"

    def test_jobs_that_were_taken_together_when_a_process_died_are_taken_alone(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        for _ in range(3):
            store.append(scope, [Message("user", "a")])
        ids = [job.id for job in store.jobs(scope)]
        assert len(claim_all(store, scope, lease_seconds=0)) == 3
        store.append(scope, [Message("user", "b")])
        [fresh] = claim_all(store, scope)
        assert fresh.id not in ids, "those that nobody died of go first"
        taken = [take(store, scope, lease_seconds=600) for _ in range(3)]
        assert [job.id for job in taken] == ids
        assert find_due(store, scope) is None

    def test_suspects_take_turns_and_progress_clears_them(self, store: Store) -> None:
        scope = fresh_scope()
        for _ in range(2):
            store.append(scope, [Message("user", "a")])
        one, two = (job.id for job in store.jobs(scope))
        claim_all(store, scope, lease_seconds=0)
        turns = [take(store, scope, lease_seconds=0).id for _ in range(4)]
        assert turns == [one, two, one, two]
        for _ in range(3 * MAX_DEATHS):
            job = take(store, scope, lease_seconds=600)
            store.renew(job, lease_seconds=0, progressed=True)
        assert store.jobs(scope, dead=True) == []

    def test_a_clock_that_was_ahead_delays_no_job(self, store: Store) -> None:
        scope = fresh_scope()
        with later(store, minutes=60):
            store.append(scope, [Message("user", "queued")])
        job = take(store, scope, lease_seconds=600)
        store.release(job)
        with later(store, minutes=60):
            taken = take(store, scope, lease_seconds=600)
        assert take(store, scope, lease_seconds=600).id == taken.id
        with later(store, minutes=5):
            store.append(scope, [Message("user", "a little ahead")])
        assert find_due(store, scope) is not None


class ForgetConformance:
    """Needs a fixture `store`."""

    def test_a_forgotten_message_is_gone_with_all_that_came_from_it(self, store: Store) -> None:
        scope = fresh_scope()
        gone, kept = Message("user", "the canary"), Message("user", "the sparrow")
        store.append(scope, [gone])
        store.append(scope, [kept])
        store.revise(scope, gone.changed(content="the golden canary"))
        derived = [
            Add(MemoryItem(scope=scope, text="canary item", sources=(gone.message_id,))),
            Add(MemoryItem(scope=scope, text="both", sources=(gone.message_id, kept.message_id))),
            Add(MemoryItem(scope=scope, text="sparrow item", sources=(kept.message_id,))),
            Add(
                Fact(
                    scope=scope,
                    subject="a",
                    predicate="is",
                    object="canary",
                    sources=(gone.message_id,),
                )
            ),
        ]
        store.apply(scope, derived)
        vectors = {id_: [1.0, 2.0] for id_ in store.unembedded(scope.whole_user(), "m", limit=99)}
        store.put_vectors(scope, "m", vectors)
        report = store.forget(scope, message_id=gone.message_id)
        assert report.counts == {
            "messages": 1,
            "revisions": 1,
            "passages": 4,
            "vectors": 4,
            "memories": 2,
            "facts": 1,
            "jobs": 2,
        }
        assert texts(store.history(scope)) == ["the sparrow"]
        assert worded(store, scope.whole_user(), [("canary",)], limit=9) == []
        assert [item.text for item in store.items(scope)] == ["sparrow item"]
        assert store.facts(scope) == []
        left = near(store, scope.whole_user(), "m", [1.0, 2.0], limit=99)
        assert {match.text for match in left} == {"the sparrow", "sparrow item"}
        with pytest.raises(NotFoundError):
            store.forget(scope, message_id=gone.message_id)

    def test_a_worker_that_has_read_it_cannot_bring_a_forgotten_message_back(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        secret = Message("user", "the canary")
        store.append(scope, [secret, Message("user", "fine")])
        job = take(store, scope, lease_seconds=600)
        store.forget(scope, message_id=secret.message_id)
        item = MemoryItem(scope=scope, text="the canary", sources=(secret.message_id,))
        with pytest.raises(LeaseLostError):
            store.apply(scope, [Add(item)], done=job)
        assert worded(store, scope, [("canary",)], limit=9) == []
        assert take(store, scope, lease_seconds=600).id == job.id

    def test_a_forgotten_session_leaves_the_others(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        gone, kept = user.within(session="gone"), user.within(session="kept")
        store.append(gone, [Message("user", "canary"), Message("user", "canary two")])
        store.append(kept, [Message("user", "sparrow")])
        store.apply(user, [Add(MemoryItem(scope=gone, text="canary item"))])
        store.write_note(user, "a note", base_version=0)
        report = store.forget(gone)
        assert report.counts == {
            "messages": 2,
            "passages": 3,
            "memories": 1,
            "jobs": 1,
            "sessions": 1,
        }
        assert [session.id for session in store.sessions(user)] == ["kept"]
        assert texts(store.history(user)) == ["sparrow"]
        assert worded(store, user, [("canary",)], limit=9) == []
        assert store.note(user) is not None
        store.append(gone, [Message("user", "again")])
        assert texts(store.history(gone)) == ["again"]

    def test_a_forgotten_agent_leaves_the_others(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        tutor, coach = user.within(agent="tutor"), user.within(agent="coach")
        for scope in (tutor, coach):
            store.append(scope.within(session=f"with {scope.agent}"), [Message("user", "hello")])
            store.apply(scope, [Add(MemoryItem(scope=scope, text="item"))])
            store.write_note(scope, "note", base_version=0)
        report = store.forget(tutor)
        assert report.counts["messages"] == report.counts["memories"] == 1
        assert report.counts["notes"] == report.counts["sessions"] == 1
        assert store.note(tutor) is None
        assert store.note(coach) is not None
        assert [entry.session_id for entry in store.history(user)] == ["with coach"]
        assert len(store.items(user)) == 1

    def test_a_forgotten_user_leaves_nothing(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "canary")])
        store.open_session(scope.whole_user().within(agent="tutor"))
        store.apply(scope, [Add(MemoryItem(scope=scope, text="canary"))])
        store.write_note(scope, "canary", base_version=0)
        store.write_note(scope, "canary two", base_version=1)
        [passage, *_] = store.unembedded(scope.whole_user(), "m", limit=9)
        store.put_vectors(scope, "m", {passage: [1.0]})
        whole = scope.whole_user()
        report = store.forget(whole)
        assert report.counts == {
            "messages": 1,
            "passages": 3,
            "vectors": 1,
            "memories": 1,
            "notes": 1,
            "jobs": 4,
            "sessions": 2,
            "users": 1,
        }
        assert store.history(whole) == []
        assert store.sessions(whole) == []
        assert store.items(whole) == []
        assert store.note(whole) is None
        assert store.note_versions(whole) == []
        assert store.jobs(whole) == []
        assert near(store, whole, "m", [1.0], limit=9) == []
        assert store.forget(whole).total == 0

    def test_a_place_in_the_log_is_never_given_out_twice(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "a")
        [place] = store.append(scope, [message]).seqs
        store.forget(scope, message_id=message.message_id)
        [next_place] = store.append(scope, [Message("user", "b")]).seqs
        assert next_place > place


@contextlib.contextmanager
def later(store: Store, *, minutes: float) -> Iterator[None]:
    """The store's clock is ahead for a while."""
    clock = store._clock
    store._clock = lambda: clock() + timedelta(minutes=minutes)
    try:
        yield
    finally:
        store._clock = clock


def find_due(store: Store, scope: Scope, lease_seconds: float = 600) -> Job | None:
    """The first of the scope's jobs that are due, or None."""
    return next(iter(claim_all(store, scope, lease_seconds)), None)


def take(store: Store, scope: Scope, lease_seconds: float, *, minutes: float = 0) -> Job:
    """The scope's job, which must be due, or be so in some minutes."""
    with later(store, minutes=minutes):
        job = find_due(store, scope, lease_seconds)
    assert job is not None
    return job

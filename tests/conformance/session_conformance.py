"""Conformance of sessions and of the walls between users."""

from __future__ import annotations

import pytest

from memorist.errors import NotFoundError, ScopeError
from memorist.records.memories import Add, Expire, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.queue_conformance import later
from tests.conformance.worlds import HOSTILE_USERS, fresh_scope, near, texts, worded


class SessionConformance:
    """Needs a fixture `store`."""

    def test_the_same_user_and_agent_come_back_to_the_same_session(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        first = store.open_session(user.within(agent="tutor"))
        again = store.open_session(user.within(agent="tutor"))
        assert first == again
        assert first.id

    def test_a_first_batch_with_a_message_twice_leaves_its_session_active(
        self, store: Store
    ) -> None:
        user, message = fresh_scope().whole_user(), Message("user", "tea")
        appended = store.append(user, [message, message])
        assert appended.added == len(set(appended.seqs)) == 1
        assert store.open_session(user).id == appended.session_id

    def test_that_a_session_is_active_is_written_once_a_minute(self, store: Store) -> None:
        agent = fresh_scope().whole_user().within(agent="tutor")

        def noted_at() -> int:
            named = {"owner": agent.owner, "agent": "tutor"}
            rows = store._engine.read(agent.owner, lambda db: db.rows("active_session", **named))
            return int(rows[0][1])

        first = store.open_session(agent)
        began = noted_at()
        assert store.open_session(agent) == store.open_session(agent, claimed=first.id) == first
        assert noted_at() == began
        with later(store, minutes=2):
            assert store.open_session(agent) == first
            assert noted_at() > began
            other = store.open_session(agent.within(session="other"))
            assert store.open_session(agent) == other

    def test_another_agent_has_another_session(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        tutor = store.open_session(user.within(agent="tutor"))
        coach = store.open_session(user.within(agent="coach"))
        assert tutor.id != coach.id
        assert store.sessions(user) == [tutor, coach]
        assert store.sessions(user.within(agent="coach")) == [coach]

    def test_a_claimed_session_is_confirmed_if_it_is_theirs(self, store: Store) -> None:
        agent = fresh_scope().whole_user().within(agent="tutor")
        old = store.open_session(agent)
        new = store.open_session(agent.within(session="a new talk"))
        assert store.open_session(agent).id == new.id
        assert store.open_session(agent, claimed=old.id).id == old.id

    def test_a_claimed_session_of_someone_else_is_as_good_as_none(self, store: Store) -> None:
        theirs = store.open_session(fresh_scope().whole_user().within(agent="tutor"))
        agent = fresh_scope().whole_user().within(agent="tutor")
        mine = store.open_session(agent, claimed=theirs.id)
        assert mine.id != theirs.id
        other_agent = store.open_session(agent.whole_user(), claimed=mine.id)
        assert other_agent.id != mine.id

    def test_a_claim_that_is_no_text_is_as_good_as_none(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        mine = store.open_session(user)
        for claimed in ("\ud800", "\x00", "x" * 70_000):
            assert store.open_session(user, claimed=claimed) == mine

    def test_a_named_session_becomes_the_active_one(self, store: Store) -> None:
        agent = fresh_scope().whole_user().within(agent="tutor")
        store.open_session(agent)
        named = store.open_session(agent.within(session="chosen"))
        assert named.id == "chosen"
        assert store.open_session(agent) == named

    def test_a_session_belongs_to_one_agent(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        store.append(user.within(agent="tutor", session="s"), [Message("user", "a")])
        with pytest.raises(ScopeError):
            store.append(user.within(agent="coach", session="s"), [Message("user", "b")])
        store.append(user.within(session="s"), [Message("user", "c")])
        assert texts(store.history(user.within(session="s"))) == ["a", "c"]

    def test_the_same_session_id_of_two_users_is_two_sessions(self, store: Store) -> None:
        ids = [
            "shared",
            "0190a0a0-0000-7000-8000-000000000001",
            "0190A0A0-0000-7000-8000-000000000001",
        ]
        one, two = fresh_scope().whole_user(), fresh_scope().whole_user()
        for session in ids:
            store.append(one.within(session=session), [Message("user", f"one {session}")])
            store.append(two.within(session=session), [Message("user", f"two {session}")])
        for session in ids:
            assert texts(store.history(one.within(session=session))) == [f"one {session}"]
            assert texts(store.history(two.within(session=session))) == [f"two {session}"]

    def test_no_user_sees_or_touches_another_however_the_ids_look(self, store: Store) -> None:
        tenant = fresh_scope().tenant
        scopes = [Scope(tenant=tenant, user=user, session="s") for user in HOSTILE_USERS]
        messages = {}
        for place, scope in enumerate(scopes):
            message = Message("user", f"secret number{place}", message_id="same-id")
            messages[scope] = message
            store.append(scope, [message])
            _derive(store, scope, place)
        for place, scope in enumerate(scopes):
            whole = scope.whole_user()
            assert texts(store.history(whole)) == [f"secret number{place}"]
            assert {m.text for m in worded(store, whole, [("secret",)], limit=99)} == {
                f"secret number{place}"
            }
            assert len(store.find(whole, ["same-id"])) == 1
            assert [item.text for item in store.items(whole)] == [f"item {place}"]
            assert [fact.object for fact in store.facts(whole)] == [f"object {place}"]
            assert len(store.sessions(whole)) == 1
            assert len(store.jobs(whole)) == 4  # the message's, and one for each view's vector
            note = store.note(whole)
            assert note is not None
            assert note.text == f"note {place}"
            nearest = near(store, whole, "e", [1.0, 0.0], limit=99)
            assert [match.id for match in nearest] == ["same-id"]
        changed = scopes[3]
        store.revise(changed, messages[changed].changed(content="revised"))
        with pytest.raises(NotFoundError):
            store.apply(scopes[4], [Expire(id=store.items(scopes[5].whole_user())[0].id)])
        gone = store.forget(scopes[0].whole_user())
        assert gone.counts["messages"] == gone.counts["memories"] == gone.counts["facts"] == 1
        assert store.history(scopes[0].whole_user()) == []
        for place, scope in list(enumerate(scopes))[1:]:
            expected = "revised" if scope is changed else f"secret number{place}"
            assert texts(store.history(scope.whole_user())) == [expected]
            assert len(store.items(scope.whole_user())) == 1

    def test_tenants_are_worlds_of_their_own(self, store: Store) -> None:
        one, two = fresh_scope(), fresh_scope()
        assert one.user == two.user
        store.append(one, [Message("user", "ours")])
        assert store.history(two.whole_user()) == []
        assert store.forget(two.whole_user()).total == 0
        assert texts(store.history(one)) == ["ours"]


def _derive(store: Store, scope: Scope, place: int) -> None:
    whole = scope.whole_user()
    store.apply(
        whole,
        [
            Add(MemoryItem(scope=whole, text=f"item {place}")),
            Add(Fact(scope=whole, subject="s", predicate="p", object=f"object {place}")),
        ],
    )
    store.write_note(whole, f"note {place}", base_version=0)
    [passage, *_] = [
        id_ for id_, text in store.unembedded(scope, "e", limit=99).items() if "secret" in text
    ]
    store.put_vectors(whole, "e", {passage: [1.0, 0.0]})

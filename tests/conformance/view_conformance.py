"""Conformance of what is derived: memories, facts, notes, words and vectors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memorist.errors import ConflictError, DimensionError, NotFoundError, RecordError
from memorist.records.memories import (
    Add,
    Expire,
    Fact,
    MemoryItem,
    Promote,
    Reinforce,
    Retract,
    Supersede,
)
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope, near, worded

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


class ViewConformance:
    """Needs a fixture `store`."""

    def test_a_memory_comes_back_as_it_was(self, store: Store) -> None:
        scope = fresh_scope()
        item = MemoryItem(
            scope=scope,
            text="Ada prefers tea",
            kind="concept",
            category="user_preferences",
            importance=0.6,
            tags=("drink", "tea"),
            tier="long",
            source="web",
            uses=3,
            sources=("m1", "m2"),
            used_at=MARCH,
            expires_at=datetime(2999, 1, 1, tzinfo=UTC),
        )
        store.apply(scope, [Add(item)])
        store.apply(scope, [Add(item)])  # twice is once
        assert store.items(scope.whole_user()) == [item]
        [match] = worded(store, scope.whole_user(), [("tea",)], limit=9)
        assert (match.kind, match.id, match.text) == ("memory", item.id, item.text)

    def test_a_reinforced_memory_counts_its_uses_and_sources(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        item = MemoryItem(scope=scope, text="x", sources=("m1",))
        change = Reinforce(id=item.id, sources=("m2", "m1"), importance=0.9, at=JUNE)
        store.apply(scope, [Add(item), change])
        [kept] = store.items(scope)
        assert (kept.uses, kept.importance, kept.used_at) == (1, 0.9, JUNE)
        assert kept.sources == ("m1", "m2")

    def test_promoted_expired_and_retracted_memories(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        kept, old, wrong = (MemoryItem(scope=scope, text=text) for text in "abc")
        store.apply(scope, [Add(kept), Add(old), Add(wrong)])
        store.apply(
            scope,
            [
                Promote(id=kept.id),
                Expire(id=old.id, at=MARCH, reason="stale"),
                Retract(id=wrong.id, at=JUNE, reason="wrong"),
            ],
        )
        assert [(item.text, item.tier) for item in store.items(scope)] == [("a", "long")]
        past = {item.text: item for item in store.items(scope, current=False)}
        assert (past["b"].ended_at, past["b"].reason) == (MARCH, "stale")
        assert (past["c"].ended_at, past["c"].reason) == (JUNE, "wrong")

    def test_an_expired_memory_is_not_current(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        soon = datetime.now(UTC) - timedelta(seconds=1)
        store.apply(scope, [Add(MemoryItem(scope=scope, text="brief", expires_at=soon))])
        assert store.items(scope) == []
        assert len(store.items(scope, current=False)) == 1

    def test_similar_memories_share_words_and_the_rare_ones_count_most(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        often = [f"likes tea number{number}" for number in range(20)]
        told = [*often, "likes oolong", "the oolong tea shop", "a boat"]
        store.apply(scope, [Add(MemoryItem(scope=scope, text=text)) for text in told])
        store.append(scope.within(session="talk"), [Message("user", "oolong tea likes")] * 3)
        store.apply(scope, [Add(_lives(scope, "oolong tea", MARCH))])

        def similar(stems: list[str], limit: int) -> list[str]:
            return sorted(item.text for item in store.similar(scope, stems, limit=limit, at=JUNE))

        assert similar(["oolong", "tea"], 1) == ["the oolong tea shop"]
        assert similar(["oolong", "like"], 2) == ["likes oolong", "the oolong tea shop"]
        assert similar(["tea"], 2) == ["likes tea number19", "the oolong tea shop"]  # the newest
        assert similar(["coffee"], 9) == similar([], 9) == []
        assert len(similar(["tea", "boat"], 99)) == 22
        other = Scope(tenant=scope.tenant, user="bob")
        assert store.similar(other, ["oolong"], limit=9, at=JUNE) == []

    def test_similar_memories_are_current_and_seen_by_the_agent(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        own, others, shared, over, brief = (
            MemoryItem(scope=user.within(agent=agent), text=f"green tea {name}", expires_at=until)
            for name, agent, until in (
                ("own", "tutor", None),
                ("others", "coach", None),
                ("shared", "", None),
                ("over", "tutor", None),
                ("brief", "tutor", JUNE),
            )
        )
        store.apply(user, [Add(one) for one in (own, others, shared, over, brief)])
        store.apply(user, [Retract(id=over.id, at=JUNE, reason="wrong")])
        tutor = user.within(agent="tutor")

        def similar(at: datetime) -> set[str]:
            found = store.similar(tutor, ["green", "tea"], limit=9, at=at)
            return {item.text.split()[-1] for item in found}

        assert similar(MARCH) == {"own", "shared", "brief"}
        assert similar(JUNE) == {"own", "shared"}

    def test_a_fact_comes_back_as_it_was(self, store: Store) -> None:
        scope = fresh_scope()
        fact = Fact(
            scope=scope,
            subject="Ada",
            predicate="lives in",
            object="Berlin",
            valid_from=MARCH,
            known_from=JUNE,
            confidence=0.8,
            source="tool",
            sources=("m1",),
            reason="said so",
        )
        store.apply(scope, [Add(fact)])
        assert store.facts(scope.whole_user()) == [fact]
        [match] = worded(store, scope.whole_user(), [("berlin",)], limit=9)
        assert (match.kind, match.text) == ("fact", "Ada lives in Berlin")

    def test_a_superseded_fact_stays_visible_in_the_past(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        munich = _lives(scope, "Munich", datetime(2020, 1, 1, tzinfo=UTC))
        berlin = _lives(scope, "Berlin", MARCH)
        store.apply(scope, [Add(munich)])
        store.apply(scope, [Supersede(old_id=munich.id, record=berlin, at=MARCH, reason="moved")])

        def home(at: datetime) -> list[str]:
            found = store.facts(
                scope, subject=munich.subject, predicate=munich.predicate, valid_at=at
            )
            return [fact.object for fact in found]

        assert home(JUNE) == ["Berlin"]
        assert home(MARCH) == ["Berlin"]
        assert home(MARCH - timedelta(days=1)) == ["Munich"]
        assert home(datetime(2019, 1, 1, tzinfo=UTC)) == []
        old = next(fact for fact in store.facts(scope) if fact.object == "Munich")
        assert (old.superseded_by, old.reason) == (berlin.id, "moved")

    def test_a_fact_ended_before_it_began_never_held(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        fact = _lives(scope, "Berlin", JUNE)
        store.apply(scope, [Add(fact), Expire(id=fact.id, at=MARCH)])
        assert store.facts(scope, valid_at=JUNE) == []
        assert [ended.valid_to for ended in store.facts(scope)] == [JUNE]

    def test_what_no_longer_holds_is_not_found_by_search(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        past = datetime.now(UTC) - timedelta(days=1)
        over = MemoryItem(scope=scope, text="canary over", expires_at=past)
        ended = MemoryItem(scope=scope, text="canary ended")
        fact = Fact(scope=scope, subject="canary", predicate="is", object="wrong")
        kept = MemoryItem(scope=scope, text="canary kept")
        store.apply(scope, [Add(over), Add(ended), Add(fact), Add(kept)])
        store.apply(scope, [Expire(id=ended.id), Retract(id=fact.id)])
        found = worded(store, scope, [("canary",)], limit=9)
        assert [match.text for match in found] == ["canary kept"]

    def test_what_was_derived_in_a_session_is_found_in_it(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "hello")])
        store.apply(scope, [Add(MemoryItem(scope=scope, text="a canary sings"))])
        assert len(worded(store, scope, [("canary",)], limit=9)) == 1
        assert len(store.unembedded(scope, "m", limit=9)) == 2
        assert worded(store, scope.within(session="other"), [("canary",)], limit=9) == []

    def test_a_vector_of_old_words_does_not_fit_new_ones(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "tea")
        store.append(scope, [message])
        store.write_note(scope, "tea", base_version=0)
        stale = {id_: [1.0, 0.0] for id_ in store.unembedded(scope.whole_user(), "m", limit=9)}
        store.revise(scope, message.changed(content="coffee"))
        store.write_note(scope, "coffee", base_version=1)
        store.put_vectors(scope, "m", stale)
        waiting = store.unembedded(scope.whole_user(), "m", limit=9)
        assert list(waiting.values()) == ["coffee", "coffee"]
        assert near(store, scope.whole_user(), "m", [1.0, 0.0], limit=9) == []

    def test_a_retracted_fact_stays_visible_as_once_believed(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        fact = _lives(scope, "Paris", MARCH, known_from=MARCH)
        store.apply(scope, [Add(fact), Retract(id=fact.id, at=JUNE, reason="a joke")])
        assert store.facts(scope) == []
        believed = store.facts(scope, known_at=JUNE - timedelta(days=1))
        assert [fact.object for fact in believed] == ["Paris"]
        assert store.facts(scope, known_at=JUNE) == []

    def test_changes_are_made_all_or_none(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        with pytest.raises(NotFoundError):
            store.apply(scope, [Add(MemoryItem(scope=scope, text="x")), Promote(id="unknown")])
        assert store.items(scope, current=False) == []
        assert worded(store, scope, [("x",)], limit=9) == []
        for change in (Reinforce(id="?"), Expire(id="?"), Retract(id="?")):
            with pytest.raises(NotFoundError):
                store.apply(scope, [change])

    def test_a_change_cannot_add_to_another_user(self, store: Store) -> None:
        stranger = fresh_scope()
        with pytest.raises(RecordError):
            store.apply(fresh_scope(), [Add(MemoryItem(scope=stranger, text="planted"))])
        assert store.items(stranger) == []

    def test_every_version_of_a_note_is_kept(self, store: Store) -> None:
        scope = fresh_scope().whole_user().within(agent="tutor")
        assert store.note(scope) is None
        assert store.note_versions(scope) == []
        first = store.write_note(scope, "likes tea", base_version=0)
        second = store.write_note(scope, "likes coffee", base_version=1)
        assert (first.version, second.version) == (1, 2)
        assert store.note(scope) == second
        assert store.note(scope, version=1) == first
        assert store.note(scope, version=9) is None
        assert store.note(scope, version=2**63 - 1) is None
        assert store.note_versions(scope) == [second, first]
        assert worded(store, scope, [("tea",)], limit=9) == []
        [match] = worded(store, scope, [("coffee",)], limit=9)
        assert (match.kind, match.text) == ("note", "likes coffee")
        assert store.note(scope.whole_user().within(agent="coach")) is None

    def test_a_note_changed_by_someone_else_is_not_overwritten(self, store: Store) -> None:
        scope = fresh_scope().whole_user()
        store.write_note(scope, "mine", base_version=0)
        for base in (0, 2, 7):
            with pytest.raises(ConflictError):
                store.write_note(scope, "theirs", base_version=base)
        note = store.note(scope)
        assert note is not None
        assert (note.text, note.version) == ("mine", 1)

    def test_words_match_by_stem_and_without_accents_or_case(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(
            scope,
            [
                Message("user", "We were MOVING to the café in Zürich-West, Straße 5."),
                Message("user", "我三月搬到了柏林"),
                Message("user", "Я переехал в Берлин"),
                Message("user", "nothing of the kind"),
            ],
        )

        def found(*terms: tuple[str, ...]) -> list[str]:
            return [match.text[:2] for match in worded(store, scope, terms, limit=9)]

        assert found(("move",)) == ["We"]
        assert found(("cafe",)) == found(("zurich",)) == found(("west",)) == ["We"]
        assert found(("strasse",)) == ["We"]
        assert found(("柏", "林")) == ["我三"]
        assert found(("林", "柏")) == []
        assert found(("берлин",)) == ["Я "]
        assert found(("absent",)) == found() == []
        assert sorted(found(("move",), ("kind",))) == ["We", "no"]

    def test_a_search_is_narrowed_by_agent_and_session(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        for agent, session in (("tutor", "a"), ("tutor", "b"), ("coach", "c")):
            scope = user.within(agent=agent, session=session)
            store.append(scope, [Message("user", f"apple {session}")])

        def found(scope: Scope) -> set[str]:
            return {match.text for match in worded(store, scope, [("apple",)], limit=9)}

        assert found(user) == {"apple a", "apple b", "apple c"}
        assert found(user.within(agent="tutor")) == {"apple a", "apple b"}
        assert found(user.within(session="b")) == {"apple b"}
        assert found(user.within(agent="coach", session="b")) == set()
        assert len(worded(store, user, [("apple",)], limit=2)) == 2
        assert worded(store, user, [("apple",)], limit=0) == []

    def test_hostile_words_are_words(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "plain text")])
        hostile = ["'", '"', "a'b", "*", "NEAR(", ")", ":", "\\", "a & b", "!", "AND", "|", "", " "]
        for word in hostile:
            assert worded(store, scope, [(word,)], limit=5) == []
            assert len(worded(store, scope, [(word,), ("plain",)], limit=5)) == 1

    def test_vectors_find_by_meaning_and_narrow_by_scope(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", text) for text in ("north", "east", "zero")])
        waiting = {text: id_ for id_, text in store.unembedded(scope, "m1", limit=9).items()}
        assert set(waiting) == {"north", "east", "zero"}
        store.put_vectors(
            scope,
            "m1",
            {waiting["north"]: [0, 2], waiting["east"]: [3, 0], waiting["zero"]: [0, 0]},
        )
        assert store.unembedded(scope, "m1", limit=9) == {}
        assert len(store.unembedded(scope, "m2", limit=9)) == 3
        nearest = near(store, scope, "m1", [1, 7], limit=2)
        assert [match.text for match in nearest] == ["north", "east"]
        found = store.match_vector(scope, "m1", [1, 7], limit=2)
        assert found[0].score == pytest.approx(0.98995, abs=1e-3)
        assert near(store, scope.within(session="other"), "m1", [1, 7], limit=2) == []
        assert near(store, scope, "m2", [1, 7], limit=2) == []
        assert len(near(store, scope, "m1", [0, 0], limit=9)) == 3

    def test_vectors_of_another_length_are_refused(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a"), Message("user", "b")])
        one, two = store.unembedded(scope, "m", limit=9)
        store.put_vectors(scope, "m", {one: [1.0, 2.0]})
        with pytest.raises(DimensionError):
            store.put_vectors(scope, "m", {two: [1.0, 2.0, 3.0]})
        with pytest.raises(DimensionError):
            near(store, scope, "m", [1.0], limit=1)
        with pytest.raises(RecordError):
            store.put_vectors(scope, "m", {one: [1.0, 2.0], two: [1.0]})
        assert len(near(store, scope, "m", [1.0, 2.0], limit=9)) == 1


def _lives(scope: Scope, city: str, since: datetime, known_from: datetime = MARCH) -> Fact:
    return Fact(
        scope=scope,
        subject="Ada",
        predicate="lives in",
        object=city,
        valid_from=since,
        known_from=known_from,
    )

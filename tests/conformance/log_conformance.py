"""Conformance of the log: what goes in comes out, once, in order, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from memorist.errors import ConflictError, InvalidError, MemoristError, NotFoundError, TooLargeError
from memorist.records.log import Batch
from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.store.base import Store
from tests.conformance.worlds import ODD_TEXTS, fresh_scope, rich_messages, texts, worded


class LogConformance:
    """Needs a fixture `store`."""

    def test_an_appended_message_comes_back_as_it_was(self, store: Store) -> None:
        scope = fresh_scope()
        messages = rich_messages()
        done = store.append(scope, messages)
        assert done.added == len(messages)
        assert done.session_id == scope.session
        assert [entry.message for entry in store.history(scope)] == messages

    @pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
    def test_odd_text_comes_back_byte_for_byte(self, store: Store, text: str) -> None:
        scope = fresh_scope()
        message = Message("user", text, structured_data={"inside": [text, {"key": text}]})
        store.append(scope, [message])
        [entry] = store.history(scope)
        assert entry.message == message
        assert worded(store, scope, [("nowhere",)], limit=1) == []

    def test_key_order_and_numbers_inside_a_dict_are_kept(self, store: Store) -> None:
        scope = fresh_scope()
        content = {"z": 1, "a": [1.0, 1e300, 10**40, True, None], "": {"b": "x", "a": "y"}}
        store.append(scope, [Message("assistant", content)])
        [entry] = store.history(scope)
        assert repr(entry.message.content) == repr(content)

    def test_a_message_of_a_mebibyte_is_kept_and_a_longer_one_refused(self, store: Store) -> None:
        scope = fresh_scope()
        words = " ".join(f"word{number}" for number in range(90_000))
        pairs, odd = divmod(1_048_576 - len(words), 2)
        text = words + " " * odd + "é" * pairs  # two bytes each
        message = Message("user", text)
        store.append(scope, [message])
        [entry] = store.history(scope)
        assert entry.message.content == text
        [match] = worded(store, scope, [("word89999",)], limit=3)
        assert "word89999" in match.text
        assert len(match.text) <= 20_000
        begun = Message("assistant", "a", unfinished=True)
        store.append(scope, [begun])
        for refused in (
            lambda: store.append(scope, [Message("user", "short"), Message("user", text + "b")]),
            lambda: store.append(scope, [Message("user", {"a": text + "b"})]),
            lambda: store.revise(scope, message.changed(content=text + "b")),
            lambda: store.append_text(
                scope, begun.changed(content=text.replace("w", "a", 1) + "b")
            ),
        ):
            with pytest.raises(TooLargeError, match=r"1,048,577 .* MEMORIST_MAX_MESSAGE_BYTES"):
                refused()
        assert [entry.message for entry in store.history(scope)] == [message, begun]

    def test_the_same_message_twice_is_one_message(self, store: Store) -> None:
        scope = fresh_scope()
        first, second = Message("user", "one"), Message("user", "two")
        place = store.append(scope, [first]).seqs
        again = store.append(scope, [first, second, second])
        assert again.added == 1
        assert again.seqs == (place[0], again.seqs[1], again.seqs[1])
        assert texts(store.history(scope)) == ["one", "two"]
        assert len(worded(store, scope, [("one",)], limit=9)) == 1

    def test_the_same_id_with_other_words_is_a_conflict_and_changes_nothing(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        first = Message("user", "one")
        store.append(scope, [first])
        with pytest.raises(ConflictError):
            store.append(scope, [Message("user", "new"), first.changed(content="other")])
        assert texts(store.history(scope)) == ["one"]

    def test_a_message_appended_again_after_a_revision_is_still_the_same(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        message = Message("user", "one")
        store.append(scope, [message])
        store.revise(scope, message.changed(content="two"))
        assert store.append(scope, [message]).added == 0
        assert texts(store.history(scope)) == ["two"]

    def test_messages_of_several_users_are_stored_together_and_once(self, store: Store) -> None:
        scopes = [fresh_scope(), fresh_scope()]
        active = Scope(tenant=fresh_scope().tenant, user="grace", agent="tutor")
        batches = [
            Batch(scope, [Message("user", "I like tea", message_id="t")]) for scope in scopes
        ]
        batches.append(Batch(active, [Message("user", "I like rain", message_id="r")], "Weather"))
        again = batches[0]._replace(messages=[*batches[0].messages, Message("user", "and cake")])
        assert [one.added for one in store.append_each(batches)] == [1, 1, 1]
        done = store.append_each([*batches, again, again])
        assert [one.added for one in done] == [0, 0, 0, 1, 0]
        assert done[3].message_ids == again.message_ids
        assert [one.session_id for one in done[:2]] == [scope.session for scope in scopes]
        assert texts(store.history(scopes[0])) == ["I like tea", "and cake"]
        assert texts(store.history(scopes[1])) == ["I like tea"]
        [session] = store.session_summaries(active)
        assert (session.id, session.title) == (done[2].session_id, "Weather")
        assert len(worded(store, scopes[1], [("tea",)], limit=5)) == 1

    def test_of_several_users_messages_none_is_stored_where_one_is_refused(
        self, store: Store
    ) -> None:
        scope, other = fresh_scope(), fresh_scope()
        store.append(other, [Message("user", "I like tea", message_id="t")])
        new = Batch(scope, [Message("user", "kept back")])
        stranger = other.within(agent="stranger")
        for refused in (
            Batch(stranger, [Message("user", "x")]),
            Batch(other, [Message("user", "secret", message_id="t")]),
            Batch(other, [Message("user", "x" * 1_048_577)]),
        ):
            with pytest.raises(MemoristError, match=r"^item 1: ") as raised:
                store.append_each([new, refused])
            assert "secret" not in str(raised.value)
            assert store.history(scope) == []
            assert store.sessions(scope.whole_user()) == []
        assert len(store.history(other)) == 1

    def test_two_sessions_may_hold_the_same_message(self, store: Store) -> None:
        scope = fresh_scope()
        fork = scope.whole_user().within(session="fork")
        message = Message("user", "carried over")
        store.append(scope, [message])
        store.append(fork, [message])
        assert texts(store.history(scope)) == texts(store.history(fork)) == ["carried over"]
        assert len(store.find(scope.whole_user(), [message.message_id])) == 2

    def test_order_is_by_sequence_and_not_by_clock(self, store: Store) -> None:
        scope = fresh_scope()
        late = Message("user", "first", created_at=datetime(2099, 1, 1, tzinfo=UTC))
        early = Message("user", "second", created_at=datetime(1969, 12, 31, 23, 59, tzinfo=UTC))
        seqs = store.append(scope, [late]).seqs + store.append(scope, [early]).seqs
        assert seqs[0] < seqs[1]
        assert texts(store.history(scope)) == ["first", "second"]

    @pytest.mark.parametrize(
        "moment",
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(2026, 3, 29, 1, 30, 0, 123_457, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
        ids=lambda moment: str(moment.year),
    )
    def test_a_moment_is_kept_to_the_microsecond(self, store: Store, moment: datetime) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "when", created_at=moment)])
        assert store.history(scope)[0].message.created_at == moment

    def test_history_can_be_paged_from_the_end(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", str(number)) for number in range(7)])
        newest = store.history(scope, last=3)
        assert texts(newest) == ["4", "5", "6"]
        older = store.history(scope, last=3, before=newest[0].seq)
        assert texts(older) == ["1", "2", "3"]
        assert texts(store.history(scope, last=0)) == []
        assert texts(store.history(scope, last=100, before=older[0].seq)) == ["0"]

    def test_bounds_beyond_any_log_are_its_ends(self, store: Store) -> None:
        scope, far = fresh_scope(), 2**70
        store.append(scope, [Message("user", "one"), Message("user", "two")])
        for asked in (scope, scope.whole_user()):
            assert texts(store.history(asked, last=far, before=far)) == ["one", "two"]
            assert store.history(asked, after=far) == []

    def test_history_spans_sessions_and_narrows_by_agent_and_role(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        store.append(user.within(agent="tutor", session="a"), [Message("user", "1")])
        store.append(user.within(agent="coach", session="b"), [Message("assistant", "2")])
        store.append(user.within(agent="tutor", session="c"), [Message("assistant", "3")])
        assert texts(store.history(user)) == ["1", "2", "3"]
        assert texts(store.history(user.within(agent="tutor"))) == ["1", "3"]
        assert texts(store.history(user, role="assistant")) == ["2", "3"]
        assert [e.session_id for e in store.history(user, last=2)] == ["b", "c"]
        first, second, third = store.history(user)
        assert store.history(user, after=first.seq) == [second, third]
        assert store.history(user, after=second.seq, role="assistant") == [third]

    def test_nothing_appended_is_nothing_stored(self, store: Store) -> None:
        scope = fresh_scope()
        done = store.append(scope, [])
        assert (done.added, done.seqs) == (0, ())
        assert store.history(scope) == []
        assert store.jobs(scope) == []

    def test_without_a_session_messages_go_to_the_active_one(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        first = store.append(user, [Message("user", "a")])
        assert store.append(user, [Message("user", "b")]).session_id == first.session_id
        named = store.open_session(user.within(session="chosen"))
        assert store.append(user, [Message("user", "c")]).session_id == named.id
        other = store.append(user.within(agent="coach"), [Message("user", "d")])
        assert other.session_id not in (first.session_id, named.id)
        assert [session.scope.agent for session in store.sessions(user)] == ["", "", "coach"]

    def test_messages_are_found_by_id_within_the_scope_only(self, store: Store) -> None:
        scope = fresh_scope()
        messages = [Message("user", "a"), Message("user", "b")]
        store.append(scope, messages)
        ids = [message.message_id for message in reversed(messages)]
        assert texts(store.find(scope, [*ids, "unknown"])) == ["a", "b"]
        assert store.find(scope.within(session="other"), ids) == []
        assert store.find(fresh_scope().whole_user(), ids) == []
        assert store.find(scope, []) == []

    @pytest.mark.parametrize("odd", ["a\x00b", "a\ud800b"], ids=["NUL", "half a character"])
    def test_what_cannot_be_kept_is_not_looked_for_either(self, store: Store, odd: str) -> None:
        scope = fresh_scope()
        looks: list[Callable[[], object]] = [
            lambda: store.history(scope, role=odd),
            lambda: store.find(scope, [odd]),
            lambda: store.revisions(scope, odd),
            lambda: store.records(scope, [odd]),
            lambda: store.superseded_by(scope, odd),
            lambda: store.read_articles(scope, [odd]),
            lambda: store.forget(scope, message_id=odd),
            lambda: store.forget(scope, record_id=odd),
            lambda: store.forget(scope, source=odd),
        ]
        for look in looks:
            with pytest.raises(InvalidError):
                look()

    def test_a_revised_message_changes_in_place_and_its_past_is_kept(self, store: Store) -> None:
        scope = fresh_scope()
        first, second = Message("user", "I live in Munich"), Message("user", "second")
        store.append(scope, [first, second])
        store.revise(scope, first.changed(content="I live in Berlin"))
        store.revise(scope, first.changed(content="I live in Hamburg", role="assistant"))
        assert texts(store.history(scope)) == ["I live in Hamburg", "second"]
        assert store.history(scope)[0].message.role == "assistant"
        past = store.revisions(scope, first.message_id)
        assert [message.content for message in past] == ["I live in Munich", "I live in Berlin"]
        assert past[0] == first
        assert worded(store, scope, [("munich",), ("berlin",)], limit=9) == []
        assert len(worded(store, scope, [("hamburg",)], limit=9)) == 1

    def test_a_message_has_no_past_in_another_session_that_knows_its_id(self, store: Store) -> None:
        user = fresh_scope().whole_user()
        here, there = user.within(agent="a", session="1"), user.within(agent="b", session="2")
        message = Message("user", "I live in Munich")
        for scope in (here, there):
            store.append(scope, [message])
        store.revise(here, message.changed(content="I live in Berlin"))
        assert [old.content for old in store.revisions(here, message.message_id)] == [
            message.content
        ]
        assert store.revisions(there, message.message_id) == []

    def test_a_message_of_another_user_cannot_be_revised(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "mine")
        store.append(scope, [message])
        stranger = fresh_scope()
        with pytest.raises(NotFoundError):
            store.revise(stranger, message.changed(content="theirs"))
        with pytest.raises(NotFoundError):
            store.revisions(stranger, message.message_id)
        assert texts(store.history(scope)) == ["mine"]

    def test_an_unfinished_message_grows_in_place_until_it_is_finished(self, store: Store) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "", name="Tutor", unfinished=True)
        place = store.append(scope, [Message("user", "Where?"), reply]).seqs[1]
        store.append(scope, [Message("user", "Hurry")])
        for text in ("You live", "You live in Ber", "You live in Berlin"):
            store.append_text(scope, reply.changed(content=text))
            [entry] = store.find(scope, [reply.message_id])
            assert (entry.seq, entry.message) == (place, reply.changed(content=text))
        last = reply.changed(content="You live in Berlin.", unfinished=False)
        store.append_text(scope, last)
        assert texts(store.history(scope)) == ["Where?", "You live in Berlin.", "Hurry"]
        assert store.find(scope, [reply.message_id])[0].message == last
        assert store.revisions(scope, reply.message_id) == []

    def test_words_find_what_has_arrived_of_a_message(self, store: Store) -> None:
        scope = fresh_scope()
        reply = Message("assistant", None, unfinished=True)
        store.append(scope, [reply])
        text = "a tram " * 200 + "goes to Ber"
        store.append_text(scope, reply.changed(content=text))
        assert len(worded(store, scope, [("ber",)], limit=9)) == 1
        store.append_text(scope, reply.changed(content=f"{text}lin at nine"))
        assert worded(store, scope, [("ber",)], limit=9) == []
        [match] = worded(store, scope, [("berlin",)], limit=9)
        assert match.text.endswith("goes to Berlin at nine")

    def test_a_growing_message_is_queued_once_when_it_is_whole(self, store: Store) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "", unfinished=True)
        [place] = store.append(scope, [reply]).seqs
        store.append_text(scope, reply.changed(content="so far"))
        assert store.jobs(scope) == []
        last = reply.changed(content="so far, so good", unfinished=False)
        store.append_text(scope, last)
        store.append_text(scope, last)  # said again, as after a lost answer, it is done once
        [job] = store.jobs(scope)
        assert (job.kind, job.first_seq, job.last_seq) == ("embed", place, place)

    def test_a_vector_made_of_an_unfinished_text_is_not_kept(self, store: Store) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "so", unfinished=True)
        store.append(scope, [Message("user", "well"), reply])
        early = store.unembedded(scope, "test", limit=9)
        store.put_vectors(scope, "test", {id_: [1.0, 0.0] for id_ in early})
        for text in ("so far", "so far,"):
            store.append_text(scope, reply.changed(content=text))
            late = store.unembedded(scope, "test", limit=9)
            assert list(late.values()) == [text]
            assert not late.keys() & early.keys()

    def test_what_is_finished_or_unknown_cannot_grow(self, store: Store) -> None:
        scope = fresh_scope()
        said = Message("assistant", "done")
        store.append(scope, [said])
        for unfinished in (True, False):
            with pytest.raises(ConflictError):
                store.append_text(
                    scope, said.changed(content="done, or not", unfinished=unfinished)
                )
        for elsewhere in (fresh_scope(), scope.within(session="other"), scope.within(agent="x")):
            with pytest.raises(NotFoundError):
                store.append_text(elsewhere, said)
        with pytest.raises(NotFoundError):
            store.append_text(scope, Message("assistant", "never begun", unfinished=True))
        assert texts(store.history(scope.whole_user())) == ["done"]
        assert [session.id for session in store.sessions(scope.whole_user())] == [scope.session]

    @pytest.mark.parametrize(
        "changes",
        [
            {"content": "so"},
            {"content": "so long", "unfinished": False},
            {"content": None},
            {"content": {"so": "far"}, "unfinished": False},
            {"content": "so far, so good", "role": "user"},
        ],
        ids=["shorter", "other words", "nothing", "a dict", "another role"],
    )
    def test_a_growing_message_takes_nothing_back(
        self, store: Store, changes: dict[str, Any]
    ) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "so far", unfinished=True)
        store.append(scope, [reply])
        with pytest.raises(ConflictError) as caught:
            store.append_text(scope, reply.changed(**changes))
        assert "so far" not in str(caught.value)
        assert [entry.message for entry in store.history(scope)] == [reply]

    def test_a_finished_message_stays_so_whoever_else_was_growing_it(self, store: Store) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "", unfinished=True)
        store.append(scope, [reply])
        whole = "so far so good"

        def grow(length: int) -> bool:
            part = reply.changed(content=whole[:length], unfinished=length < len(whole))
            try:
                store.append_text(scope, part)
            except ConflictError:
                return False
            return True

        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(grow, [3, 9, len(whole), 5, 7, 9, 11, 13, len(whole)]))
        assert done[2] is done[-1] is True
        [entry] = store.history(scope)
        assert entry.message == reply.changed(content=whole, unfinished=False)
        assert len(store.jobs(scope)) == 1
        assert len(worded(store, scope, [("so",)], limit=9)) == 1

    def test_a_message_grows_without_naming_its_session_if_only_one_holds_it(
        self, store: Store
    ) -> None:
        scope = fresh_scope()
        reply = Message("assistant", "so", unfinished=True)
        store.append(scope, [reply])
        store.append_text(scope.whole_user(), reply.changed(content="so far"))
        assert texts(store.history(scope)) == ["so far"]
        store.append(scope.within(session="other"), [reply])
        with pytest.raises(ConflictError):
            store.append_text(scope.whole_user(), reply.changed(content="so far so"))

    def test_the_source_is_the_role_unless_the_door_says_otherwise(self, store: Store) -> None:
        scope = fresh_scope()
        store.append(scope, [Message("user", "a"), Message("tool", "b")])
        store.append(scope, [Message("user", "c")], source="web")
        assert [entry.source for entry in store.history(scope)] == ["user", "tool", "web"]

    def test_no_error_carries_what_was_said(self, store: Store) -> None:
        scope = fresh_scope()
        message = Message("user", "my secret canary")
        store.append(scope, [message])
        for attempt in (
            lambda: store.append(scope, [message.changed(content="another canary")]),
            lambda: store.revise(fresh_scope(), message),
            lambda: store.append(Scope(user="canary", session="x" * 70_000), [message]),
        ):
            with pytest.raises(MemoristError) as caught:
                attempt()
            assert "canary" not in str(caught.value)

"""Conformance of updates: what a new message may update, and what it is linked to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from memorist.records.message import Message
from memorist.records.scope import Scope
from memorist.records.values import PASSAGES_PER_MESSAGE
from memorist.store.base import Store
from tests.conformance.worlds import fresh_scope

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


class UpdateConformance:
    """Needs a fixture `store`."""

    def test_a_passage_is_overtaken_by_the_newest_that_updates_it(self, store: Store) -> None:
        scope, stranger = fresh_scope(), fresh_scope()
        store.append(scope, [Message("user", text, text) for text in ("old", "new", "newest")])
        store.append(stranger, [Message("user", "other")])
        old, new, newest = store.unembedded(scope, "m", limit=9)
        [other] = store.unembedded(stranger, "m", limit=9)

        def by() -> dict[int, int]:
            return {it.id: it.overtaken_by for it in store.passages(scope, [old, new, newest])}

        assert by() == {old: 0, new: 0, newest: 0}
        gone = newest + 5 * PASSAGES_PER_MESSAGE
        store.put_vectors(scope, "m", {new: [1.0], old: [1.0]}, overtaken={old: new, gone: new})
        store.put_vectors(stranger, "m", {other: [1.0]}, overtaken={new: other})
        assert by() == {old: new, new: 0, newest: 0}
        store.put_vectors(scope, "m", {newest: [1.0]}, overtaken={old: newest, new: newest})
        store.put_vectors(scope, "m", {newest: [1.0]}, overtaken={old: new})
        assert by() == {old: newest, new: newest, newest: 0}
        store.revise(scope, Message("user", "older", "old"))
        [again] = store.unembedded(scope, "m", limit=9)
        assert [it.overtaken_by for it in store.passages(scope, [again])] == [0]

    def test_what_a_statement_may_update_the_user_told_an_assistant_before(
        self, store: Store
    ) -> None:
        here = fresh_scope()
        there, user = here.within(session="there"), here.whole_user()

        def say(text: str, hours: float, scope: Scope = here, **more: Any) -> None:
            source = more.pop("source", None)
            at = MARCH + timedelta(hours=hours)
            said = Message(more.pop("role", "user"), text, created_at=at, **more)
            store.append(scope, [said], source=source)

        say("before", 0)
        say("elsewhere", 9.9, there)
        say("just before", 9.5)
        say("after", 11, there)
        say("from the web", 1, source="web")
        say("answered", 1, role="assistant")
        say("by another", 1, name="Bob")
        say("long " * 200, 1)
        say("new", 10)
        store.append(fresh_scope(), [Message("user", "a stranger's")])
        ids = store.unembedded(user, "m", limit=99)
        texts = {
            id_: text.split(" ")[0] if text[:4] == "long" else text for id_, text in ids.items()
        }
        vectors = {id_: np.array([1.0, place / 99], np.float32) for place, id_ in enumerate(ids)}
        last = {id_: vectors[id_] for id_, text in texts.items() if text == "new"}
        rest = {id_: vectors[id_] for id_ in vectors if id_ not in last}
        together = store.earlier_statements(user, "m", vectors)
        store.put_vectors(user, "m", {id_: row.tolist() for id_, row in rest.items()})
        for found in (together, store.earlier_statements(user, "m", last)):
            [before] = [found[id_] for id_ in last]
            assert {texts[id_] for id_ in before} == {"before", "elsewhere"}
            for id_, vector in before.items():
                unit = vectors[id_] / np.linalg.norm(vectors[id_])
                assert vector / np.linalg.norm(vector) == pytest.approx(unit, abs=1e-3)
        assert store.earlier_statements(user, "another", last) == {}
        longer = {id_: np.ones(3, np.float32) for id_ in last}
        assert store.earlier_statements(user, "m", longer) == {}

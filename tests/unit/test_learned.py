"""The net that adds to the ranking: what it sees, and where it is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memorist import Memory
from memorist.providers.minilm import MiniLM
from memorist.recall import learned
from memorist.recall.fusion import Ranking, fuse
from memorist.recall.learned import Net
from memorist.records.query import Found, Passage
from memorist.records.values import to_micros
from tests.support.models import WordEmbedder
from tests.unit.test_fusion import NOBODY

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOLD = ("I live in Graz.", "Where is the tram?", "I like tea.", "Graz is cold in winter.")


def passage(record: int, **more: Any) -> Passage:
    given = {"said_at": to_micros(NOW), "session": 1, "role": "user", "stop": 80, **more}
    return Passage(id=record * 8, kind="message", record=record, start=0, **given)


def parts(passages: list[Passage], finds: dict[str, list[Found]], **how: Any) -> list[float]:
    """What the net adds to each record, in the order of the passages."""
    known = {it.id: it for it in passages}
    asked: dict[str, Any] = {"focus": NOBODY, "now": NOW, "embedder": MiniLM.name, **how}
    ranked = fuse(finds, known, asked.pop("ranking", Ranking()), **asked)
    added = {it.passage.record: it.parts.get("learned", 0.0) for it in ranked}
    return [added[it.record] for it in passages]


def test_the_net_sees_as_many_signals_as_it_was_trained_with(monkeypatch: Any) -> None:
    seen: list[learned.Signals] = []

    def listen(_: Net, signals: learned.Signals) -> learned.Signals:
        seen.append(signals)
        return signals[:, 0]

    monkeypatch.setattr(Net, "add", listen)
    one, two = passage(1), passage(2, previous=1, session=None, role=None, speaker="Ann")
    parts([one, two], {"meaning": [Found(8, 0.5), Found(16, 0.2)], "words": [Found(16, 3.0)]})
    net = learned.net_of(MiniLM.name)
    assert net is not None
    assert seen[0].shape == (2, net.skip.shape[0])
    assert np.isfinite(seen[0]).all()


def test_a_record_alone_and_hundreds_are_judged() -> None:
    [alone] = parts([passage(1)], {"meaning": [Found(8, 0.5)]})
    assert alone != 0
    many = [passage(number, session=number % 7 or None) for number in range(1, 301)]
    finds = [Found(it.id, 8 / it.id) for it in many]
    assert len(set(parts(many, {"meaning": finds}))) > 250


def test_rows_are_added_to_alike_in_small_parts_and_large_ones(monkeypatch: Any) -> None:
    net = learned.net_of(MiniLM.name)
    assert net is not None
    rows = np.random.default_rng(1).random((300, net.skip.shape[0]), np.float32)
    at_once = net.add(rows)
    monkeypatch.setattr(learned, "AT_ONCE", 7)
    assert np.allclose(net.add(rows), at_once, atol=1e-4)


@pytest.mark.parametrize(
    "how", [{"ranking": Ranking(learned=0)}, {"embedder": "another"}, {"embedder": None}]
)
def test_nothing_is_added_where_it_is_turned_off_or_was_trained_with_another_embedder(
    how: dict[str, Any],
) -> None:
    assert parts([passage(1)], {"meaning": [Found(8, 0.5)]}, **how) == [0]


def test_nothing_is_added_where_meaning_found_nothing_or_nobody_said_it() -> None:
    assert parts([passage(1)], {"words": [Found(8, 2.0)]}) == [0]
    article = passage(1)._replace(kind="article")
    assert parts([article], {"meaning": [Found(8, 0.5)]}) == [0]


def test_the_best_and_the_mean_of_three_are_told_of_each_session() -> None:
    values, codes = np.array([0.5, 1.0, 0.2, 0.4, 0.9]), np.array([1, 1, 1, 1, 0])
    best, mean = learned._of_session(values, codes)
    assert best.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert np.allclose(mean, [1.9 / 3] * 4 + [0.0])


def test_what_stands_beside_the_best_is_seen() -> None:
    before, after = np.array([5, 0, 1, 2, 3]), np.array([1, 2, 3, 4, 5])  # of five; 5 is none
    assert learned._around(2, before, after).tolist() == [1, 1, 0, 1, 1]
    assert learned._around(0, before, after).tolist() == [0, 1, 1, 0, 0]


def test_what_it_adds_is_a_part_of_the_ranking_that_a_hit_explains() -> None:
    for embedder, is_judged in ((None, False), (WordEmbedder(), False), (MiniLM(), True)):
        with Memory(":memory:", embedder=embedder, clock=lambda: NOW) as memory:
            memory.remember(list(TOLD), user="ada")
            memory.jobs.catch_up()
            hits = memory.recall("where do I live?", user="ada", deadline_ms=None).hits
            assert hits[0].text == TOLD[0]
            assert ("learned" in hits[0].why.parts) is is_judged

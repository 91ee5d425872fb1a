"""The benchmarks' metrics and loaders, on data small enough to be worked out by hand."""

from __future__ import annotations

import json
import lzma
from datetime import UTC, datetime
from math import log2
from pathlib import Path
from typing import Any

import pytest
from benchmarks.asking import Answer, Retrieved
from benchmarks.dataset import NoDataError, Question
from benchmarks.locomo import Locomo, repaired
from benchmarks.longmemeval import LongMemEval, session_of
from benchmarks.metrics import (
    all_at,
    any_at,
    interval,
    ndcg_at,
    official,
    percentiles,
    recall_at,
    reciprocal_rank,
)
from benchmarks.scoring import SCHEMES, rows_of, score_full, score_official, score_turns

RANKED = ["a", "b", "c", "d", "e"]


def test_recall_is_the_share_of_the_evidence_among_the_first() -> None:
    assert recall_at(2, RANKED, {"b", "d", "z"}) == pytest.approx(1 / 3)
    assert recall_at(5, RANKED, {"b", "d", "z"}) == pytest.approx(2 / 3)
    assert recall_at(1, RANKED, {"b"}) == 0


def test_any_wants_one_and_all_wants_every_piece_of_evidence() -> None:
    assert [any_at(k, RANKED, {"b", "d"}) for k in (1, 2, 4)] == [0, 1, 1]
    assert [all_at(k, RANKED, {"b", "d"}) for k in (1, 2, 4)] == [0, 0, 1]


def test_the_reciprocal_rank_is_that_of_the_first_evidence() -> None:
    assert reciprocal_rank(RANKED, {"c", "e"}) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKED, {"z"}) == 0


def test_standard_gain_is_discounted_by_the_logarithm_of_the_next_rank() -> None:
    ideal = 1 + 1 / log2(3)
    assert ndcg_at(10, RANKED, {"b", "d"}) == pytest.approx((1 / log2(3) + 1 / log2(5)) / ideal)
    assert ndcg_at(3, RANKED, {"b", "d"}) == pytest.approx((1 / log2(3)) / ideal)
    assert ndcg_at(10, RANKED, {"a"}) == 1


def test_more_evidence_than_ranks_can_still_be_perfect() -> None:
    assert ndcg_at(2, RANKED, {"a", "b", "c"}) == pytest.approx(1)


def test_official_gain_leaves_the_first_two_ranks_whole() -> None:
    assert [official(rank) for rank in (1, 2, 4)] == [1, 1, 2]
    assert ndcg_at(10, RANKED, {"b"}, official) == 1
    assert ndcg_at(10, RANKED, {"b", "d"}, official) == pytest.approx((1 + 1 / 2) / 2)


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = [0.0, 1.0] * 50
    low, high = interval(values)
    assert 0.38 < low < 0.45 < 0.55 < high < 0.62
    assert interval(values) == (low, high)
    assert interval([0.25] * 8) == (0.25, 0.25)


def test_percentiles_are_the_middle_and_the_tail() -> None:
    assert percentiles(list(range(101))) == {"p50": 50, "p95": 95, "p99": 99, "max": 100}


TALK = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Hi"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Look", "blip_caption": "a red bike"},
        ],
        "session_2_date_time": "12:05 am on 9 May, 2023",
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "Bye"}],
        "session_3_date_time": "1:00 pm on 1 June, 2023",
    },
    "qa": [
        {"question": "Who?", "category": 1, "evidence": ["D1:2; D2:1"]},
        {"question": "What?", "category": 5, "evidence": ["D:1:01", "D9:9", "D"]},
        {"question": "Nothing?", "category": 3, "evidence": []},
        {"question": "Nowhere?", "category": 4, "evidence": ["D7:1"]},
    ],
}


def test_malformed_evidence_is_repaired_by_its_pattern() -> None:
    assert repaired(["D8:6; D9:17", "D:11:26", "D30:05", "D"]) == [
        "D8:6",
        "D9:17",
        "D11:26",
        "D30:5",
    ]


def test_a_locomo_talk_becomes_sessions_of_named_turns() -> None:
    (first, said), (second, _) = Locomo([TALK]).history("conv-1")
    assert (first, second) == ("session_1", "session_2")
    assert [message.message_id for message in said] == ["D1:1", "D1:2"]
    assert said[1].content == "Look [image: a red bike]"
    assert (said[1].role, said[1].name) == ("user", "Bob")
    assert said[1].created_at == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)


def test_locomo_questions_keep_only_evidence_that_names_a_turn() -> None:
    locomo = Locomo([TALK])
    first, second = locomo.questions
    assert (first.id, first.kind) == ("conv-1:0", "1 multi-hop")
    assert first.turns == {"D1:2", "D2:1"}
    assert first.sessions == {"session_1", "session_2"}
    assert second.turns == {"D1:1"}
    assert second.kind == "5 adversarial"
    assert locomo.left_out == 2
    assert first.asked_at > datetime(2023, 5, 9, 0, 5, tzinfo=UTC)


SESSIONS: dict[str, list[dict[str, Any]]] = {
    "k1": [
        {"role": "user", "content": "I bought a kayak", "has_answer": True},
        {"role": "assistant", "content": "Nice"},
    ],
    "k2": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "A blue one", "has_answer": True},
    ],
    "k3": [{"role": "user", "content": "Rain"}],
}
ASKED: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "What did I buy?",
    "question_date": "2023/05/30 (Tue) 23:52",
    "answer_session_ids": ["answer_1", "answer_2"],
    "haystack": [
        ["answer_2", "k2", "2023/05/21 (Sun) 10:00"],
        ["answer_1", "k1", "2023/05/20 (Sat) 02:21"],
        ["talk", "k3", "2023/05/22 (Mon) 10:00"],
        ["talk", "k3", "2023/05/31 (Wed) 10:00"],
    ],
}
ABSTAINED = {**ASKED, "question_id": "q2_abs"}


def longmemeval() -> LongMemEval:
    return LongMemEval([ASKED, ABSTAINED], SESSIONS)


def test_a_haystack_becomes_sessions_by_date_and_a_copy_has_its_own_name() -> None:
    sessions = list(longmemeval().history("q1"))
    assert [name for name, _ in sessions] == ["answer_1", "answer_2", "talk", "talk#2"]
    ids = [message.message_id for _, messages in sessions for message in messages]
    assert len(set(ids)) == len(ids) == 6
    assert sessions[0][1][1].message_id == "answer_1:1"
    assert sessions[0][1][1].created_at == datetime(2023, 5, 20, 2, 21, 1, tzinfo=UTC)
    assert session_of("talk#2:0") == "talk"


def test_longmemeval_knows_whose_turns_the_evidence_is_and_drops_abstentions() -> None:
    data = longmemeval()
    [question] = data.questions
    assert question.turns == {"answer_1:0", "answer_2:1"}
    assert question.user_turns == {"answer_1:0"}
    assert question.sessions == {"answer_1", "answer_2"}
    assert question.asked_at == datetime(2023, 5, 31, 10, 0, 1, tzinfo=UTC)
    assert data.left_out == 1


def test_both_forms_of_a_longmemeval_file_are_the_same_data(tmp_path: Path) -> None:
    own = {key: value for key, value in ASKED.items() if key != "haystack"}
    names, keys, dates = zip(*ASKED["haystack"], strict=True)
    own["haystack_session_ids"], own["haystack_dates"] = list(names), list(dates)
    own["haystack_sessions"] = [SESSIONS[key] for key in keys]
    (tmp_path / "longmemeval_s.json").write_text(json.dumps([own]))
    plain = LongMemEval.load(tmp_path)
    packed = json.dumps({"questions": [ASKED], "sessions": SESSIONS}).encode()
    (tmp_path / "longmemeval_s_dev.json.xz").write_bytes(lzma.compress(packed))
    assert LongMemEval.load(tmp_path).questions == plain.questions
    assert list(LongMemEval.load(tmp_path).history("q1")) == list(plain.history("q1"))


def test_missing_data_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"snap-research/LoCoMo.*--data"):
        Locomo.load(tmp_path)


def found(*turns: tuple[str, str]) -> list[Retrieved]:
    return [Retrieved(id_, id_.split(":")[0], role, "") for id_, role in turns]


def test_full_scores_count_both_roles_and_order_sessions_by_their_best_turn() -> None:
    [question] = longmemeval().questions
    hits = found(
        ("talk:0", "user"), ("talk#2:0", "user"), ("answer_2:0", "user"), ("answer_1:0", "user")
    )
    scores = score_full(question, hits)
    assert scores is not None
    assert scores["any@5"] == 1
    assert scores["all@10"] == 0
    assert scores["R@10"] == 0.5
    assert scores["MRR"] == 0.25
    assert scores["nDCG@10"] == pytest.approx((1 / log2(5)) / (1 + 1 / log2(3)))
    assert scores["s-all@5"] == 1  # talk, answer_2, answer_1: the copy is no session of its own


def test_official_scores_see_only_what_users_said() -> None:
    [question] = longmemeval().questions
    hits = found(("answer_2:1", "assistant"), ("talk:0", "user"), ("answer_1:0", "user"))
    scores = score_official(question, hits)
    assert scores == {"any@5": 1, "all@10": 1, "nDCG@10": 1, "s-all@5": 1, "s-all@10": 1}


def answer(question: Question, hits: list[Retrieved]) -> Answer:
    return Answer(question, tuple(hits), 1.0, {}, (), ())


def test_locomo_rows_pool_four_categories_and_keep_the_adversarial_apart() -> None:
    first, second = Locomo([TALK]).questions
    hits = [Retrieved("D1:2", "session_1", "user", "")]
    assert score_turns(first, hits)["sR@5"] == 0.5
    rows = rows_of(SCHEMES["locomo"][0], [answer(first, hits), answer(second, hits)])
    assert [(row.label, row.count) for row in rows] == [
        ("categories 1–4", 1),
        ("1 multi-hop", 1),
        ("5 adversarial", 1),
    ]
    assert [row.means["R@10"] for row in rows] == [0.5, 0.5, 0]
    assert rows[0].intervals["MRR"] == (1, 1)

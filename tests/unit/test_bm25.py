"""BM25 over places: worked by hand, and the properties it is chosen for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from memorist.records.values import PASSAGES_PER_MESSAGE as PIECES
from memorist.store import bm25
from memorist.store.bm25 import Near, rank, records_of

Lengths = Callable[[list[int]], Sequence[int]]


def at(*records: int) -> NDArray[np.int64]:
    """The first passages of messages, once for each time a word stands in them."""
    return np.array([record * PIECES if record > 0 else record for record in records], np.int64)


def all_of(length: int) -> Lengths:
    return lambda records: [length] * len(records)


def test_a_small_example_comes_out_as_worked_by_hand() -> None:
    # Four messages of 100, 100, 200 and 100 characters. "tea" stands twice in the first and
    # once in the third; "oolong" once in the third.
    lengths = {1: 100, 2: 100, 3: 200, 4: 100}
    found = rank([at(1, 1, 3), at(3)], 4, lambda ids: [lengths[id_] for id_ in ids], 9)
    idf_tea, idf_oolong = math.log(1 + 2.5 / 2.5), math.log(1 + 3.5 / 1.5)
    # Lengths of those found: mean 150, deviation 50, so that a share of 1.2 / 3 counts.
    share = 1.2 * 50 / 150
    short, long = 1 - share + share * 100 / 150, 1 - share + share * 200 / 150
    expected = {
        3: idf_tea * 1 / (1 + long) + idf_oolong * 1 / (1 + long),
        1: idf_tea * 2 / (2 + short),
    }
    assert [find.passage // PIECES for find in found] == [3, 1]
    for find in found:
        assert find.score == pytest.approx(expected[find.passage // PIECES], rel=1e-5)


def test_an_empty_message_found_by_its_date_is_a_number_too() -> None:
    lengths = {1: 0, 2: 5_000, 3: 100, 4: 9_000}
    found = rank([at(1, 2, 3), at(4)], 9, lambda ids: [lengths[id_] for id_ in ids], 9)
    assert len(found) == 4
    assert all(0 < find.score < 9 for find in found)


def test_of_two_messages_that_say_it_once_the_shorter_stands_first() -> None:
    lengths = {1: 2_000, 2: 60, 3: 500}
    found = rank([at(1, 2, 3)], 9, lambda ids: [lengths[id_] for id_ in ids], 9)
    assert [find.passage // PIECES for find in found] == [2, 3, 1]


def test_among_messages_of_one_length_the_length_does_not_count() -> None:
    [first, second] = rank([at(1, 2)], 9, all_of(100), 9)
    assert first.score == pytest.approx(second.score)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common, rare = at(*range(1, 90)), at(95)
    found = rank([common, rare], 100, all_of(100), 3)
    assert found[0].passage // PIECES == 95
    assert found[0].score > 5 * found[1].score


def test_saying_it_again_helps_ever_less() -> None:
    places = at(*[1] * 1, *[2] * 2, *[3] * 4, *[4] * 400)
    scores = {find.passage // PIECES: find.score for find in rank([places], 9, all_of(9), 9)}
    assert scores[1] < scores[2] < scores[3] < scores[4] < 2 * scores[1]


def test_a_message_with_several_passages_is_one_record() -> None:
    first, second = 5 * PIECES, 5 * PIECES + 1
    places = np.array([first, second, second], np.int64)
    assert list(records_of(places)) == [5, 5, 5]
    [only] = rank([places], 9, all_of(100), 9)
    [alone] = rank([at(5, 5, 5)], 9, all_of(100), 9)
    assert only == alone


def test_the_passage_with_the_rarest_word_stands_for_its_message() -> None:
    common = np.array([5 * PIECES, 5 * PIECES + 1, 6 * PIECES, 7 * PIECES], np.int64)
    rare = np.array([5 * PIECES + 2], np.int64)
    found = rank([common, rare], 9, all_of(100), 9)
    assert found[0].passage == 5 * PIECES + 2


def test_derived_records_stand_for_themselves_beside_messages() -> None:
    places = np.array([-2, -1, 3 * PIECES], np.int64)
    assert list(records_of(places)) == [-2, -1, 3]
    found = rank([places], 2, all_of(100), 9)  # more records than messages counted
    assert {find.passage for find in found} == {-2, -1, 3 * PIECES}
    assert all(find.score > 0 for find in found)


def test_of_equals_the_newest_stand_first_and_the_limit_holds() -> None:
    found = rank([at(*range(1, 500))], 500, all_of(100), 3)
    assert [find.passage // PIECES for find in found] == [499, 498, 497]
    assert len(rank([at(*range(1, 500))], 500, all_of(100), 900)) == 499
    few = rank([at(1, 2, 3)], 9, all_of(100), 9)
    assert [find.passage // PIECES for find in few] == [3, 2, 1]


def test_lengths_are_asked_only_of_the_best_by_words() -> None:
    asked: list[int] = []

    def lengths_of(records: list[int]) -> list[int]:
        asked.extend(records)
        return [50] * len(records)

    rank([at(*range(1, 5_000)), at(7)], 9_999, lengths_of, 10)
    assert len(asked) == bm25.POOL
    assert 7 in asked


def test_no_word_no_place_and_no_limit_find_nothing() -> None:
    nothing = np.array([], np.int64)
    assert rank([], 9, all_of(1), 9) == []
    assert rank([nothing, nothing], 9, all_of(1), 9) == []
    assert rank([at(1)], 9, all_of(1), 0) == []
    assert len(rank([nothing, at(1)], 0, all_of(0), 9)) == 1


def scores_of(*places: NDArray[np.int64], near: tuple[Near, ...] = ()) -> dict[int, float]:
    found = rank(places, 100, all_of(50), 99, near)
    return {find.passage // PIECES: find.score for find in found}


def test_a_near_word_counts_less_than_the_one_asked_for() -> None:
    scores = scores_of(at(1, 2), near=(Near(at(3, 4), 0, 0.6),))
    assert scores[3] == pytest.approx(0.6 * scores[1], rel=1e-5)


def test_a_near_word_counts_instead_of_its_term_and_not_beside_it() -> None:
    near = (Near(at(1, 3), 0, 0.6), Near(at(1, 3), 0, 0.5))
    alone, scores = scores_of(at(1, 2)), scores_of(at(1, 2), near=near)
    assert scores[1] == pytest.approx(scores[2]) == pytest.approx(alone[1])
    assert scores[3] == pytest.approx(0.6 * scores[1], rel=1e-5)


def test_near_words_of_two_terms_both_count() -> None:
    near = (Near(at(5), 0, 0.5), Near(at(5, 6), 1, 0.5))
    scores = scores_of(at(1), at(2), near=near)
    assert scores[5] > 1.5 * scores[6]


def test_a_near_word_tells_no_more_than_its_term_however_rare_it_is() -> None:
    scores = scores_of(at(*range(1, 60)), near=(Near(at(70), 0, 1.0),))
    assert scores[70] == pytest.approx(scores[1], rel=1e-5)


def test_of_a_term_that_nobody_said_its_near_word_is_found_alone() -> None:
    scores = scores_of(at(), near=(Near(at(7), 0, 0.5),))
    assert scores.keys() == {7}
    assert scores[7] == pytest.approx(0.5 * scores_of(at(7))[7], rel=1e-5)


def test_near_words_in_any_order_give_the_same_scores() -> None:
    near = (Near(at(1, 2, 3), 1, 0.4), Near(at(4, 4, 9), 0, 0.7), Near(at(2, 9), 1, 0.65))
    places = at(1, 5, 6), at(2, 8)
    assert scores_of(*places, near=near) == pytest.approx(scores_of(*places, near=near[::-1]))


def test_near_words_take_no_room_from_what_holds_the_very_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bm25, "CANDIDATES", 50)
    monkeypatch.setattr(bm25, "POOL", 20)
    term, other = at(*range(1, 41)), at(*range(31, 71))
    near = tuple(Near(at(*range(100, 140)), of, 0.7) for of in (0, 1) for _ in range(3))
    found = rank([term, other], 200, all_of(50), 20, near)
    assert {find.passage // PIECES for find in found[:10]} == set(range(31, 41))


def test_the_word_asked_for_decides_which_passage_stands_for_a_message() -> None:
    common, rare = at(*range(1, 9)), np.array([9 * PIECES], np.int64)
    term = np.append(common, 9 * PIECES + 1)
    [found] = [it for it in rank([term], 20, all_of(50), 99, [Near(rare, 0, 0.7)])
               if it.passage // PIECES == 9]  # fmt: skip
    assert found.passage == 9 * PIECES + 1


def test_a_find_by_kin_tells_what_the_word_itself_would_score() -> None:
    [found] = rank([at()], 100, all_of(50), 9, [Near(at(3), 0, 0.5)])
    assert found.full == pytest.approx(2 * found.score)
    [plain] = rank([at(3)], 100, all_of(50), 9)
    assert plain.full == pytest.approx(plain.score)


def test_a_find_tells_the_share_of_the_words_that_it_holds() -> None:
    both, common = at(3), at(*range(1, 9))
    best, *rest = rank([both, common], 100, all_of(50), 9)
    assert best.share == pytest.approx(1.0)
    assert all(0.1 < find.share < 0.5 for find in rest)  # the commoner of two words
    best, *_ = rank([both, common], 100, all_of(50), 9, absent=1)
    assert 0.4 < best.share < 0.7  # a word that nobody said is the rarest of all
    [near] = rank([at()], 100, all_of(50), 9, [Near(at(3), 0, 0.5)], absent=1)
    assert 0.4 < near.share < 0.5

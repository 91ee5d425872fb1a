"""Fusion: what several channels found becomes one ranking that explains itself."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorist.recall.fusion import (
    DEFAULT_RANKING,
    QuestionFocus,
    RankedRecord,
    Ranking,
    fuse,
    shares,
)
from memorist.records.query import Found, Passage
from memorist.records.values import to_micros
from tests.support.examples import examples

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOBODY = QuestionFocus(frozenset(), "nobody")
QUIET = replace(
    Ranking(**{part.name: 0 for part in fields(Ranking) if part.name != "reranker"}),  # type: ignore[arg-type]
    words=1.0,
    meaning=1.0,
    links=1.0,
    short_chars=300,
    half_life_days=30.0,
)
Finds = dict[str, list[Found]]


def passage(
    id_: int,
    *,
    record: int | str | None = None,
    session: str | None = None,
    previous: int | None = None,
    stop: int = 100,
    speaker: str | None = None,
) -> Passage:
    return Passage(
        id=id_,
        kind="message",
        record=id_ if record is None else record,
        start=0,
        stop=stop,
        said_at=to_micros(NOW),
        session=session,
        previous=previous,
        role="assistant",
        speaker=speaker,
    )


def ranked(
    found: Finds, *passages: Passage, ranking: Ranking = QUIET, focus: QuestionFocus = NOBODY
) -> dict[int | str, RankedRecord]:
    known = {it.id: it for it in passages}
    fused = fuse(found, known, ranking, focus=focus, now=NOW)
    return {it.passage.record: it for it in fused}


def finds(*pairs: tuple[int, float]) -> list[Found]:
    return [Found(*pair, share=1.0) for pair in pairs]


def test_shares_lie_between_the_lowest_and_the_best() -> None:
    assert shares([], 0.0, 0.0) == []
    assert shares([4.0, 2.0, 3.0], 2.0, 4.0) == [1.0, 0.0, 0.5]
    assert shares([4.0, 2.0, 3.0], 0.0, 4.0) == [1.0, 0.5, 0.75]
    assert shares([-0.5, -1.5], -1.5, -0.5) == [1.0, 0.0]
    assert shares([2.0, 2.0], 2.0, 2.0) == [1.0, 1.0]


def test_what_is_less_than_half_as_near_as_the_nearest_counts_nothing() -> None:
    near = ranked(
        {"meaning": finds((1, 0.6), (2, 0.45), (3, 0.3), (4, 0.1))}, *map(passage, range(1, 5))
    )
    assert [near[id_].parts["meaning"] for id_ in (1, 2, 3, 4)] == pytest.approx([1, 0.5, 0, 0])


def test_where_no_record_has_many_of_the_words_words_count_less() -> None:
    few, many = ([Found(1, 5.0, share=share), Found(2, 2.5, share=0.1)] for share in (0.3, 0.6))
    for found, worth in ((few, 0.5), (many, 1.0)):
        by_words = ranked({"words": found}, passage(1), passage(2))
        assert by_words[1].parts["words"] == pytest.approx(worth)
        assert by_words[2].parts["words"] == pytest.approx(worth / 2)


def test_one_find_alone_is_worth_all_of_its_channel() -> None:
    fused = ranked({"words": finds((1, 0.003))}, passage(1), ranking=replace(QUIET, words=0.4))
    assert fused[1].parts["words"] == fused[1].score == 0.4
    assert (fused[1].ranks, fused[1].scores) == ({"words": 1}, {"words": 0.003})


def test_what_two_channels_find_stands_before_what_one_finds() -> None:
    found = {
        "words": finds((1, 9.0), (2, 8.0), (3, 1.0)),
        "meaning": finds((2, 0.9), (3, 0.8), (1, 0.1)),
    }
    fused = ranked(found, passage(1), passage(2), passage(3))
    assert list(fused) == [2, 1, 3]
    assert fused[2].parts["words"] == pytest.approx(8 / 9)
    assert fused[2].ranks == {"words": 2, "meaning": 1}
    assert fused[2].score == pytest.approx(1 + 8 / 9)


def test_when_no_channel_found_anything_there_is_nothing() -> None:
    assert ranked({}) == {}
    assert ranked({"words": [], "meaning": [], "links": [], "recency": []}, passage(1)) == {}


def test_a_passage_that_is_gone_meanwhile_is_passed_over() -> None:
    fused = ranked({"words": finds((1, 9.0), (2, 5.0), (3, 1.0))}, passage(2), passage(3))
    assert list(fused) == [2, 3]
    assert fused[2].parts["words"] == 1.0
    assert fused[2].ranks == {"words": 1}


def test_several_passages_of_one_record_count_once_and_ranks_count_records() -> None:
    pieces = [passage(id_, record="long") for id_ in (10, 11, 12)]
    found = {"words": finds((11, 9.0), (10, 8.0), (12, 7.0), (20, 5.0))}
    fused = ranked(found, *pieces, passage(20))
    assert fused["long"].scores == {"words": 9.0}
    assert fused["long"].parts["words"] == 1.0
    assert fused["long"].passage.id == 11
    assert fused[20].ranks == {"words": 2}


def test_the_span_shown_is_the_one_that_the_best_judge_of_it_found() -> None:
    pieces = [passage(id_, record="long") for id_ in (10, 11, 12)]
    found = {"recency": finds((12, 1.0)), "words": finds((10, 9.0)), "meaning": finds((11, 0.4))}
    assert ranked(found, *pieces)["long"].passage.id == 11
    del found["meaning"]
    assert ranked(found, *pieces)["long"].passage.id == 10
    del found["words"]
    assert ranked(found, *pieces)["long"].passage.id == 12


def test_short_messages_that_follow_each_other_lend_to_each_other() -> None:
    ranking = replace(QUIET, neighbours=0.5)
    found = {"words": finds((1, 8.0), (2, 4.0), (3, 0.0))}
    talk = [passage(1), passage(2, previous=1), passage(3, previous=2)]
    fused = ranked(found, *talk, ranking=ranking)
    assert fused[1].parts["neighbours"] == pytest.approx(0.5 * 0.5)
    assert fused[2].parts["neighbours"] == pytest.approx(0.5 * (1.0 + 0.0))
    assert fused[3].parts["neighbours"] == pytest.approx(0.5 * 0.5)


def test_nothing_is_lent_by_what_was_not_found_or_does_not_stand_beside() -> None:
    ranking = replace(QUIET, neighbours=0.5)
    apart = [passage(1), passage(2), passage(3, previous=99)]
    fused = ranked({"words": finds((1, 9.0), (2, 5.0), (3, 1.0))}, *apart, ranking=ranking)
    assert not any("neighbours" in candidate.parts for candidate in fused.values())


def test_long_messages_speak_for_themselves() -> None:
    ranking = replace(QUIET, neighbours=1.0)
    essays = [passage(1, stop=30_000), passage(2, previous=1, stop=30_000)]
    fused = ranked({"words": finds((1, 9.0), (2, 1.0))}, *essays, ranking=ranking)
    assert fused[2].parts["neighbours"] == pytest.approx(0.0001)
    turns = [passage(1, stop=30_000), passage(2, previous=1, stop=20)]
    fused = ranked({"words": finds((1, 9.0), (2, 1.0))}, *turns, ranking=ranking)
    assert fused[2].parts["neighbours"] == pytest.approx(0.01)


def test_the_words_of_whoever_is_asked_about_are_lifted() -> None:
    ranking = replace(QUIET, speaker=0.3)
    found = {"words": finds((1, 9.0), (2, 8.9), (3, 1.0))}
    talk = [passage(1, speaker="Ben"), passage(2, speaker="Ada Byron"), passage(3)]
    focus = QuestionFocus(frozenset({"Ada Byron"}), "nobody")
    fused = ranked(found, *talk, ranking=ranking, focus=focus)
    assert list(fused) == [2, 1, 3]
    assert fused[2].parts["speaker"] == 0.3
    assert "speaker" not in fused[1].parts
    assert "speaker" not in fused[3].parts


def test_the_role_asked_about_importance_and_youth_lift_and_nothing_keeps_out() -> None:
    ranking = replace(QUIET, role=0.3, importance=0.1, recency=0.02)
    old = NOW - timedelta(days=30)
    many = [
        passage(1)._replace(role="user"),
        passage(2)._replace(importance=0.8),
        passage(3)._replace(said_at=to_micros(old)),
        passage(4)._replace(said_at=to_micros(NOW + timedelta(days=9))),
    ]
    found = {"words": finds((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0))}
    fused = ranked(found, *many, ranking=ranking, focus=QuestionFocus(frozenset(), "user"))
    assert fused[1].parts["role"] == 0.3
    assert "role" not in fused[2].parts
    assert fused[2].parts["importance"] == pytest.approx(0.08)
    assert fused[3].parts["recency"] == pytest.approx(0.01)
    assert fused[4].parts["recency"] == 0.02
    assert len(fused) == 4


def test_what_opens_a_session_is_lifted_if_its_role_is_asked_about() -> None:
    ranking = replace(QUIET, role=0.3, opening=0.15)
    talk = [
        passage(1)._replace(role="user"),
        passage(2, previous=1),
        passage(3, previous=2)._replace(role="user"),
        passage(4),
        passage(5, record="memory")._replace(role=None),
    ]
    found = {"words": finds(*((id_, 1.0) for id_ in (1, 2, 3, 4, 5)))}
    fused = ranked(found, *talk, ranking=ranking, focus=QuestionFocus(frozenset(), "user"))
    assert list(fused)[:2] == [1, 3]
    assert fused[1].parts["opening"] == 0.15
    assert [record for record, it in fused.items() if "opening" in it.parts] == [1]


def test_being_the_users_counts_less_for_what_is_long_unless_a_role_is_asked_for() -> None:
    ranking = replace(QUIET, role=0.3, opening=0.15, self_reference=0.35)
    short, long = passage(1), passage(2, stop=1_200)
    found = {"words": finds((1, 1.0), (2, 1.0))}
    told = [it._replace(role="user", self_reference=1.0) for it in (short, long)]
    fused = ranked(found, *told, ranking=ranking, focus=QuestionFocus(role="user"))
    for part in ("role", "opening", "self_reference"):
        assert fused[1].parts[part] == getattr(ranking, part)
        assert fused[2].parts[part] == pytest.approx(getattr(ranking, part) / 4)
    asked = ranked(found, short, long, ranking=ranking, focus=QuestionFocus(role="assistant"))
    assert asked[2].parts["role"] == 0.3


def test_what_tells_is_lifted_and_what_asks_or_is_yet_to_be_done_is_lowered() -> None:
    ranking = replace(QUIET, self_reference=0.35, question=-0.05)
    many = [
        passage(1)._replace(self_reference=4 / 7),
        passage(2)._replace(is_question=True),
        passage(3)._replace(self_reference=-2 / 7),
        passage(4),
    ]
    found = {"words": finds((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0))}
    fused = ranked(found, *many, ranking=ranking)
    assert list(fused) == [1, 4, 2, 3]
    assert fused[1].parts["self_reference"] == pytest.approx(0.2)
    assert fused[2].parts["question"] == -0.05
    assert fused[3].parts["self_reference"] == pytest.approx(-0.1)
    assert fused[4].parts.keys() & {"own", "asks"} == set()


def test_equals_stand_newest_first_in_whatever_order_they_were_found() -> None:
    ids = list(range(1, 20))
    for seed in range(5):
        random.Random(seed).shuffle(ids)
        fused = ranked({"words": finds(*((id_, 1.0) for id_ in ids))}, *map(passage, ids))
        assert list(fused) == sorted(ids, reverse=True)


IDS = st.integers(1, 30)
SCORES = st.floats(-1, 20, allow_nan=False)
FOUND = st.dictionaries(
    st.sampled_from(["words", "meaning", "links", "recency"]),
    st.lists(st.builds(Found, IDS, SCORES, share=st.floats(0, 1)), max_size=15),
)


@st.composite
def worlds(draw: st.DrawFn) -> list[Passage]:
    return [
        Passage(
            id=id_,
            kind=draw(st.sampled_from(["message", "memory"])),
            record=id_ // 2,
            start=0,
            stop=draw(st.integers(0, 5_000)),
            said_at=to_micros(NOW - timedelta(days=id_)),
            session=draw(st.sampled_from([None, "a", "b"])),
            role=draw(st.sampled_from([None, "user"])),
            previous=draw(st.sampled_from([None, id_ // 2 - 1])),
            speaker=draw(st.sampled_from([None, "Ada"])),
            importance=draw(st.sampled_from([None, 0.0, 1.0])),
        )
        for id_ in draw(st.sets(IDS))
    ]


@settings(max_examples=examples(100), deadline=None)
@given(FOUND, worlds())
def test_every_record_found_is_ranked_once_with_parts_that_make_its_score(
    found: Finds, world: list[Passage]
) -> None:
    for each in found.values():
        each.sort(key=lambda find: -find.score)
    known = {it.id: it for it in world}
    focus = QuestionFocus(frozenset({"Ada"}), "user")
    fused = fuse(found, known, DEFAULT_RANKING, focus=focus, now=NOW)
    expected = {
        known[find.passage].record
        for each in found.values()
        for find in each
        if find.passage in known
    }
    assert sorted(str(it.passage.record) for it in fused) == sorted(map(str, expected))
    for candidate in fused:
        assert candidate.score == pytest.approx(sum(candidate.parts.values()))
        assert candidate.ranks.keys() == candidate.scores.keys()
        assert candidate.ranks.keys() <= candidate.parts.keys()
        assert set(candidate.ranks.values()) <= set(range(1, 16))
    order = [candidate.score for candidate in fused]
    assert order == sorted(order, reverse=True)


def derived(id_: int, source: int | None) -> Passage:
    return Passage(
        id=id_,
        kind="memory",
        record=f"m{id_}",
        start=0,
        stop=20,
        said_at=to_micros(NOW),
        source=source,
    )


def test_what_was_derived_from_one_message_stands_for_it() -> None:
    said, other, memory = passage(1), passage(2), derived(-1, source=1)
    found = {"meaning": finds((-1, 0.9), (2, 0.6), (1, 0.3))}
    order = list(ranked(found, said, other, memory))
    assert order == [1, 2]


def test_what_was_derived_stands_for_itself_where_its_message_was_not_found() -> None:
    found = {"meaning": finds((-1, 0.9), (2, 0.6))}
    assert list(ranked(found, passage(2), derived(-1, source=1))) == ["m-1", 2]
    assert list(ranked(found, passage(2), derived(-1, source=None))) == ["m-1", 2]


def test_a_message_counts_by_its_own_words_before_those_derived_from_it() -> None:
    said, other, memory = passage(1), passage(2), derived(-1, source=1)
    ranking = replace(QUIET, words=1.0)
    found = {"words": finds((-1, 9.0), (2, 4.0), (1, 3.0))}
    fused = ranked(found, said, other, memory, ranking=ranking)
    assert list(fused) == [2, 1]
    assert fused[1].scores == {"words": 3.0}


def test_what_was_overtaken_ranks_lower() -> None:
    old, new = passage(1)._replace(outdated=True), passage(2)
    ranking = replace(QUIET, words=1.0, outdated=-0.2)
    fused = ranked({"words": finds((1, 3.0), (2, 2.9))}, old, new, ranking=ranking)
    assert list(fused) == [2, 1]
    assert fused[1].parts["outdated"] == -0.2


LIFTING = replace(QUIET, update=0.001)


def told(id_: int, day: int, by: int = 0) -> Passage:
    """Said on a day, and updated by what another passage says."""
    at = to_micros(NOW + timedelta(days=day))
    return passage(id_)._replace(said_at=at, overtaken_by=by)


def test_what_updates_a_message_stands_just_above_it_and_shows_why() -> None:
    found = {"words": finds((1, 9.0), (3, 8.0), (2, 6.0))}
    passages = told(1, 0, by=2), told(2, 1), told(3, 2)
    fused = ranked(found, *passages, ranking=LIFTING)
    assert list(fused) == [2, 1, 3]
    assert fused[2].score == pytest.approx(1.001)
    assert fused[2].parts["update"] == pytest.approx(1.001 - fused[2].parts["words"])
    assert (fused[1].score, "update" in fused[1].parts) == (1.0, False)
    assert list(ranked(found, *passages)) == [1, 3, 2]  # by default of these tests it is off


def test_what_stands_above_already_stays_as_it_is() -> None:
    found = {"words": finds((2, 9.0), (1, 5.0))}
    fused = ranked(found, told(1, 0, by=2), told(2, 1), ranking=LIFTING)
    assert list(fused) == [2, 1]
    assert "update" not in fused[2].parts


def test_what_does_not_fit_the_question_itself_is_not_lifted() -> None:
    for score, order in ((5.5, [1, 2]), (5.7, [2, 1])):
        found = {"words": finds((1, 9.0), (2, score))}
        assert list(ranked(found, told(1, 0, by=2), told(2, 1), ranking=LIFTING)) == order
    meaning = replace(LIFTING, meaning=1.0)
    for cosine, order in ((0.45, [1, 2]), (0.55, [2, 1])):  # however well its words fit
        found = {"words": finds((1, 9.0), (2, 9.0)), "meaning": finds((1, 0.8), (2, cosine))}
        assert list(ranked(found, told(1, 0, by=2), told(2, 1), ranking=meaning)) == order
    found = {"words": finds((1, 9.0))}
    assert list(ranked(found, told(1, 0, by=2), told(2, 1), ranking=LIFTING)) == [1]


def test_the_newest_of_several_updates_stands_above_all_of_them() -> None:
    found = {"words": finds((5, 9.0), (4, 7.0), (7, 6.0))}
    chain = told(5, 0, by=4), told(4, 1, by=7), told(7, 2)  # in whatever order they are numbered
    assert list(ranked(found, *chain, ranking=LIFTING)) == [7, 4, 5]


def test_a_question_about_the_past_lifts_nothing() -> None:
    found, past = {"words": finds((1, 9.0), (2, 1.0))}, NOBODY._replace(about_past=True)
    passages = told(1, 0, by=2), told(2, 1)
    assert list(ranked(found, *passages, ranking=LIFTING, focus=past)) == [1, 2]
    assert list(ranked(found, passages[0], ranking=LIFTING, focus=past)) == [1]


def test_an_update_that_is_gone_or_filtered_out_lifts_nothing() -> None:
    fused = ranked({"words": finds((1, 9.0))}, told(1, 0, by=2), ranking=LIFTING)
    assert list(fused) == [1]
    assert ranked({"words": []}, told(1, 0, by=2), told(2, 1), ranking=LIFTING) == {}

"""The figures of extraction, on labels few enough to be counted by hand; and the set's shape."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from benchmarks.extraction import (
    CATEGORIES,
    SPLITS,
    Figures,
    Guess,
    Labelled,
    Statement,
    Tally,
    is_right,
    measure,
    read_labels,
    same_object,
    wilson,
)

from memorist.records.memories import Candidate, Claim

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HOME = Statement("lives in", "Graz")


def label(id_: str, category: str | None, *claims: Statement) -> Labelled:
    return Labelled(
        id=id_,
        lang=id_[:2],
        role="user",
        said_at=NOON,
        text=f"what {id_} says",
        keep=category is not None,
        category=category,
        what="identity" if category else "greeting",
        claims=claims,
    )


LABELS = [
    label("en-1", "knowledge", HOME, Statement("name", "Ada")),
    label("en-2", "knowledge"),
    label("en-3", None),
    label("de-1", "user_preferences", Statement("works at", "Nord", ends=True)),
    label("de-2", None),
    label("de-3", None),
]
GUESSES = [
    Guess("knowledge", (Statement("lives in", "graz"),)),
    Guess(),
    Guess("solutions"),
    Guess("knowledge", (Statement("works at", "Nord"),)),
    Guess(),
    Guess(),
]


@pytest.fixture
def figures() -> Figures:
    return measure(LABELS, GUESSES)


def test_messages_are_counted_as_kept_junk_missed_or_left(figures: Figures) -> None:
    assert figures.overall == Tally(kept=2, junk=1, missed=1, left=2)
    assert figures.languages == {
        "en": Tally(kept=1, junk=1, missed=1, left=0),
        "de": Tally(kept=1, junk=0, missed=0, left=2),
    }


def test_precision_recall_and_f1_follow_from_the_counts(figures: Figures) -> None:
    assert figures.overall.precision == pytest.approx(2 / 3)
    assert figures.overall.recall == pytest.approx(2 / 3)
    assert Tally(kept=6, junk=2, missed=4).f1 == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))


def test_the_interval_is_wilsons() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1), abs=1e-4)


def test_the_interval_of_f1_holds_it() -> None:
    one = Tally(kept=60, junk=5, missed=30)
    low, high = one.intervals["f1"]
    assert low < one.f1 < high
    assert high - low < 0.2


def test_confusion_counts_the_labelled_category_beside_the_guess(figures: Figures) -> None:
    assert figures.confusion == {
        ("knowledge", "knowledge"): 1,
        ("knowledge", "none"): 1,
        ("none", "solutions"): 1,
        ("user_preferences", "knowledge"): 1,
        ("none", "none"): 2,
    }


def test_a_claim_is_found_if_predicate_object_and_ending_agree(figures: Figures) -> None:
    assert (figures.claims_found, figures.claims_labelled) == (1, 3)


def test_a_claim_is_wrong_if_nothing_was_to_keep_or_another_object_is_labelled() -> None:
    kept, left = LABELS[0], LABELS[2]
    assert is_right(HOME, kept)
    assert is_right(Statement("lives in", "Linz"), kept) is False
    assert is_right(HOME, left) is False
    assert is_right(Statement("likes", "tea"), kept) is None


def test_plans_agree_if_their_words_do_by_half() -> None:
    wedding = Statement("event", "Callum's wedding in Porto, 3 May")
    assert wedding.agrees(Statement("plans", "my brother Callum's wedding is 3 may in Porto"))
    assert not wedding.agrees(Statement("plans", "a reading at the library in Porto"))


def test_objects_agree_in_other_forms_and_differ_as_other_things() -> None:
    assert same_object("Казань", "Казани")
    assert same_object("Harbour Museum", "the Harbour Museum")
    assert same_object("普洱", "喝普洱")
    assert not same_object("Leo", "Lea")
    assert not same_object("Graz", "Graz but my heart is in Vienna")
    assert not same_object("Berlin", "Hamburg")


def test_the_most_important_candidate_speaks_for_the_message() -> None:
    claim = Claim(subject="user", predicate="lives in", object="Graz")
    minor = Candidate(text="a", sources=("m",), said_at=NOON, importance=0.5, claims=(claim,))
    major = Candidate(
        text="b", sources=("m",), said_at=NOON, importance=0.8, category="error_patterns"
    )
    assert Guess.from_candidates([minor, major]) == Guess("error_patterns", (HOME,))
    assert Guess.from_candidates([]) == Guess()


@pytest.mark.parametrize("split", ["dev", "test"])
def test_half_of_the_labelled_set_must_not_become_memories(split: str) -> None:
    labels = read_labels(split)
    kept = Counter(one.lang for one in labels if one.keep)
    left = Counter(one.lang for one in labels if not one.keep)
    assert set(kept) == {"en", "ru", "zh", "es", "de"}
    assert kept == left
    assert len(labels) >= 210


def test_four_in_ten_messages_of_the_chat_set_must_not_become_memories() -> None:
    labels = read_labels("chat-dev")
    assert set(Counter(one.lang for one in labels).values()) == {50}
    assert {one.lang for one in labels} == {"en", "ru", "zh", "es", "de", "fr"}
    assert 0.35 < sum(not one.keep for one in labels) / len(labels) < 0.45


def test_labels_are_whole_and_no_message_is_in_both_halves() -> None:
    split_labels = {split: read_labels(split) for split in SPLITS}
    labels = [one for each in split_labels.values() for one in each]
    ids = {(split.rpartition("-")[0], one.id) for split in SPLITS for one in split_labels[split]}
    assert len(ids) == len({one.text for one in labels}) == len(labels)
    for one in labels:
        assert one.keep == (one.category in CATEGORIES)
        assert one.keep or not one.claims
        assert one.said_at.tzinfo is not None

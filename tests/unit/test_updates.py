"""Of two hits that speak of the same matter, the newer one comes first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memorist.language.questions import asks_about_past
from memorist.recall.fusion import LOOKED_AT, newer_first
from memorist.records.query import Hit, Update, Why

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def hit(text: str, day: float, *, role: str = "user", speaker: str | None = None) -> Hit:
    return Hit(
        kind="message",
        id=f"{text}{day}",
        text=text,
        score=1.0,
        created_at=MAY + timedelta(days=day),
        role=role,
        speaker=speaker,
        why=Why(ranks={}, scores={}, parts={}, age=timedelta()),
    )


OLD = hit("By the way, my longest run so far is 12 km.", 0)
NEW = hit("Can you plan a rest day? My longest run is 15 km now.", 20)
OTHER = hit("I bought new running shoes last week, the blue ones.", 10)
QUESTION = "How long is my longest run?"


def test_the_newer_statement_of_a_matter_leads_and_says_why() -> None:
    hits = newer_first(QUESTION, [replace(OLD, score=2.0), OTHER, NEW], ())
    assert [hit.text for hit in hits] == [NEW.text, OLD.text, OTHER.text]
    assert [hit.score for hit in hits] == [2.0, 2.0, 1.0]
    assert "update #1" in str(hits[0].why)


def test_what_is_in_order_stays_so() -> None:
    assert newer_first(QUESTION, [NEW, OTHER, OLD], ()) == [NEW, OTHER, OLD]
    assert newer_first(QUESTION, [], ()) == []


@pytest.mark.parametrize(
    "question",
    [
        "What was my longest run before?",
        "How long was my longest run originally?",
        "Wie lang war mein längster Lauf früher?",
        "我以前 longest run 是多少？",
    ],
)
def test_a_question_about_the_past_turns_it_round(question: str) -> None:
    about_past = asks_about_past(question)
    hits = newer_first(question, [NEW, OTHER, OLD], (), about_past=about_past)
    assert hits == [OLD, NEW, OTHER]


def test_a_question_that_asks_for_both_asks_for_now() -> None:
    assert not asks_about_past("Do I run further now than I did before?")
    assert not asks_about_past("How long is my longest run?")


def test_only_a_users_own_statements_are_compared() -> None:
    answer = hit("Your longest run is 15 km now.", 20, role="assistant")
    question = hit("Is my longest run 15 km now?", 20)
    other = hit("My longest run is 15 km now.", 20, speaker="Ben")
    for later in (answer, question, other):
        assert newer_first(QUESTION, [OLD, later], ()) == [OLD, later]


def test_what_follows_at_once_counts_if_it_gives_another_figure() -> None:
    corrected = hit("My longest run so far is 13 km.", 0.01)
    repeated = hit("My longest run so far, along the river.", 0.01)
    assert newer_first(QUESTION, [OLD, corrected], ()) == [corrected, OLD]
    assert newer_first(QUESTION, [OLD, repeated], ()) == [OLD, repeated]


def test_what_answers_is_not_overtaken_by_what_only_resembles_it() -> None:
    right, other = hit("order 42 is for the blue lamps", 0), hit("order 43 is for the red lamps", 9)
    assert newer_first("What about the blue ones?", [right, other], ()) == [right, other]


def test_only_the_best_hits_change_places() -> None:
    others = [hit(f"Note number {number} on something else entirely", 1) for number in range(30)]
    hits = [OLD, *others[: LOOKED_AT - 1], NEW]
    assert newer_first(QUESTION, hits, ()) == hits


HOME = hit("I live in Munich, and peanuts make me ill.", 0)
MOVED = hit("we're in Graz now, got the keys on Monday", 30)
OVER = replace(HOME, over="until May 2026")
LIVED = Update(HOME.id, "lives in", "Munich", False, MOVED.id)
ILL = Update(HOME.id, "allergic to", "peanuts", True, None)


def test_what_a_fact_took_the_place_of_comes_after_it_and_is_marked() -> None:
    hits = newer_first("Where do I live?", [OVER, MOVED], [LIVED, ILL])
    assert [(hit.text, hit.over) for hit in hits] == [(MOVED.text, ""), (OVER.text, OVER.over)]
    asked = "Where did I live before?"
    past = newer_first(asked, [MOVED, OVER], [LIVED, ILL], about_past=True)
    assert [hit.text for hit in past] == [OVER.text, MOVED.text]


def test_of_a_message_that_says_several_things_only_what_is_asked_about_is_over() -> None:
    for question in ("Which peanuts make me ill?", "What should I cook?"):
        hits = newer_first(question, [OVER, MOVED], [LIVED, ILL])
        assert [(hit.text, hit.over) for hit in hits] == [(OVER.text, ""), (MOVED.text, "")]
        assert [hit.partly_over for hit in hits] == [OVER.over, ""]


def test_a_message_of_which_everything_is_over_stays_marked() -> None:
    [marked] = newer_first("What should I cook?", [OVER], [LIVED._replace(by=None)])
    assert marked.over == OVER.over

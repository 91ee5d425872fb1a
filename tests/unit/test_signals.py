"""Signals: how much a message tells, by its words alone."""

from __future__ import annotations

import pytest

from memorist import Memory
from memorist.language.signals import Signals, asks_back, signals_of

OWN = 1 / 7
DEFINITE = 2 / 7


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("", 0.0),
        ("The capital of Peru is Lima.", 0.0),
        ("I like my bike.", OWN),
        ("I bought my bike.", 2 * OWN),
        ("I’ve cleaned my bike, and we took our tent.", 3 * OWN),
        ("My son, my dog, my cat, my house, my boat and my horse.", 3 * OWN),
    ],
)
def test_words_of_oneself_count_until_they_are_enough(text: str, own: float) -> None:
    assert signals_of(text).self_reference == pytest.approx(own)


@pytest.mark.parametrize(
    "text",
    [
        "It cost $40.",
        "Back on 2/15, or so.",
        "Done yesterday.",
        "It went well today!",
        "Three weeks ago!",
        "That was last week, wasn't it",
        "Das war letzte Woche.",
        "Это было недавно.",
    ],
)
def test_a_figure_or_a_time_that_is_past_makes_it_definite(text: str) -> None:
    assert signals_of(text).self_reference == pytest.approx(DEFINITE)


def test_each_is_counted_once_and_all_of_them_make_1() -> None:
    assert signals_of("12 of 40, on 3 May").self_reference == pytest.approx(DEFINITE)
    assert signals_of("last year, and already long ago").self_reference == pytest.approx(DEFINITE)
    assert signals_of("I got my 3 bikes recently, for our trip.").self_reference == 1.0


def test_what_is_only_meant_to_be_done_counts_against_it() -> None:
    assert signals_of("I'll definitely try that.").self_reference == pytest.approx(-DEFINITE)
    assert signals_of("I’ll take my bike. We'll see!").self_reference == pytest.approx(
        OWN - DEFINITE
    )
    assert signals_of("I'll take the 9 o'clock train.").self_reference == pytest.approx(0.0)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert signals_of("and " * 1_000 + "I'll sell my 3 bikes, right?") == Signals()


def test_a_question_is_known_by_its_mark() -> None:
    assert signals_of("Where is it?").is_question
    assert signals_of("在哪里？").is_question
    assert not signals_of("Here it is.").is_question


def test_an_answer_that_asks_back_is_a_short_one_that_ends_with_a_question() -> None:
    assert asks_back("Nice! Which cities would you like to see?")
    assert asks_back("你想去哪儿？ ")
    assert not asks_back("Which city? Oslo.")
    assert not asks_back("Take the train to Oslo. " * 10 + "Shall I book it?")


def test_what_an_assistant_asks_stands_below_what_the_user_says(memory: Memory) -> None:
    memory.remember(
        [
            {"role": "assistant", "content": "Which city would you like to live in?"},
            {"role": "assistant", "content": "The city you would like to live in is Oslo."},
        ],
        user="ada",
        session="s",
    )
    asked = memory.recall("Which city would I live in?", user="ada", deadline_ms=None, min_score=0)
    parts = {hit.text[:5]: hit.why.parts.get("question", 0.0) for hit in asked.hits}
    assert parts["Which"] < parts["The c"] == 0.0

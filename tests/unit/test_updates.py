"""Of two hits that speak of the same matter, the newer one comes first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memorist.language.questions import asks_about_past, facts_asked_about
from memorist.recall.fusion import ANSWERS, LOOKED_AT, answer_first, newer_first
from memorist.records.memories import Fact
from memorist.records.query import Hit, Update, Why
from memorist.records.scope import Scope

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
        "What was our old longest run?",
        "How long a longest run did I use to have?",
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
    assert not asks_about_past("What do I use to edit videos?")


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


def test_what_says_that_a_plan_is_off_comes_before_the_plan_that_is_asked_about() -> None:
    plan = hit("We're flying to Lisbon at Easter, a plan for four days please.", 0)
    off = hit("Lisbon's off, we have no money.", 20)
    ended = Update(plan.id, "plans", "flying to Lisbon at Easter", False, None, off.created_at)
    assert newer_first("Are we going to Lisbon?", [plan, off], [ended]) == [off, plan]
    assert newer_first("What did I drink?", [plan, off], [ended]) == [plan, off]


def test_what_says_that_a_fact_is_over_comes_before_it_where_just_that_is_asked() -> None:
    tom = hit("my boyfriend Tom turned 34, I made him a cake", 0)
    over = hit("Tom and I broke up last week, how do I squash commits?", 20)
    until = MAY + timedelta(days=13)
    ended = Update(tom.id, "has partner", "Tom", False, None, until, ended_by=over.id)
    assert newer_first("Do I have a boyfriend?", [tom, over], [ended]) == [over, tom]
    assert newer_first("What did I bake?", [tom, over], [ended]) == [tom, over]


def fact(text: str, *sources: Hit, since: float, until: float | None = None) -> Fact:
    return Fact(
        scope=Scope(user="ada"),
        subject="user",
        predicate="lives in",
        object=text,
        sources=tuple(it.id for it in sources),
        valid_from=MAY + timedelta(days=since),
        valid_to=None if until is None else MAY + timedelta(days=until),
    )


NOW = MAY + timedelta(days=40)
CHAT = hit("Where can I buy a good desk for my flat?", 5)
PLANNED = hit("We're moving to Lyon in July!", 35)
SINCE = hit("The new place is quiet, I love it.", 38)
HOMES = [
    fact("Munich", HOME, since=0, until=30),
    fact("Graz", MOVED, since=30, until=90),
    fact("Lyon", PLANNED, since=90),
]


def test_what_holds_leads_what_is_over_what_is_planned_and_what_is_older() -> None:
    hits = answer_first([SINCE, PLANNED, HOME, CHAT, MOVED], HOMES, NOW)
    assert hits[:2] == [SINCE, MOVED]
    assert "fact #2" in str(hits[1].why)
    assert hits[2:] == [PLANNED, HOME, CHAT]


def test_what_was_leads_what_holds_and_what_is_newer_if_the_past_is_asked_for() -> None:
    hits = answer_first([PLANNED, SINCE, MOVED, HOME], HOMES, NOW, about_past=True)
    assert hits == [HOME, PLANNED, SINCE, MOVED]


def test_what_is_planned_leads_from_its_day_on() -> None:
    assert answer_first([MOVED, PLANNED], HOMES, MAY + timedelta(days=90))[0] == PLANNED


def test_what_answers_passes_the_floor_and_never_scores_above_what_stands_before_it() -> None:
    poor = [replace(it, score=0.001) for it in (CHAT, MOVED)]
    assert [it.score for it in answer_first(poor, HOMES, NOW)] == [ANSWERS, 0.001]
    newer = [replace(it, score=0.2) for it in (SINCE, MOVED)]
    assert [it.score for it in answer_first(newer, HOMES, NOW)] == [0.2, 0.2]


COUPLE = ["has partner", "married to"]


@pytest.mark.parametrize(
    ("question", "predicates"),
    [
        ("Where do I live?", ["lives in"]),
        ("which city are we living in now?", ["lives in"]),
        ("Where did I live before Graz?", ["lives in"]),
        ("Who do I work for?", ["works at"]),
        ("Who is my manager?", ["has boss"]),
        ("Am I still vegan?", ["diet"]),
        ("Wo wohnen wir?", ["lives in"]),
        ("Wo habe ich früher gearbeitet?", ["works at"]),
        ("¿Dónde vivo?", ["lives in"]),
        ("¿Dónde trabajaba antes?", ["works at"]),
        ("Où est-ce que j'habite ?", ["lives in"]),
        ("Где я сейчас работаю?", ["works at"]),
        ("我现在住在哪里？", ["lives in"]),
        ("Do I have a boyfriend?", COUPLE),
        ("who am I seeing now", COUPLE),
        ("Habe ich eine Freundin?", COUPLE),
        ("¿Tengo novia?", COUPLE),
        ("Est-ce que j'ai un copain ?", COUPLE),
        ("Как зовут мою девушку?", COUPLE),
        ("我有女朋友吗？", COUPLE),
        ("Habe ich einen Freund in Köln?", ()),
        ("What should I give my girlfriend?", ()),
        ("Where did I live in 2020?", ()),
        ("Where does my mother live?", ()),
        ("Where am I moving to?", ()),
        ("What's my email address?", ()),
        ("What hours do I work?", ()),
    ],
)
def test_some_questions_ask_for_one_fact_of_the_user(question: str, predicates: object) -> None:
    assert facts_asked_about(question) == predicates

"""A hit's score is a probability, and what is below the floor is left out, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import Any

import pytest

from memorist import InvalidError, Memory, Message
from memorist.context.quote import QUOTED_SHARE
from memorist.context.window import Window
from memorist.recall.fusion import RankedRecord, Ranking
from memorist.recall.relevance import CURVES, UNJUDGED, WORDS_ALONE, relevance
from memorist.records.query import MIN_SCORE, Found, Passage
from memorist.records.values import to_micros
from tests.support.models import WordEmbedder

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LONG_AGO = to_micros(NOW - timedelta(days=90))
MINILM = "memorist-minilm-3/int8"
SMALL_TALK = (
    "The harbour was closed because of the fog.",
    "We painted the shed green over the weekend.",
    "Trains to the coast were late again.",
    "The new keyboard clicks too loudly.",
    "They changed the opening hours of the library.",
    "My sister's car needs new tyres.",
)


def record(score: float, at: int = LONG_AGO, stop: int = 80, **scores: float) -> RankedRecord:
    return RankedRecord(Passage(1, "message", 1, 0, stop, at), score, scores=scores)


def judge(score: float, *, cosine: float | None = None, share: float | None = None) -> float:
    found = {
        name: [Found(1, value, 0.0, value)]
        for name, value in (("meaning", cosine), ("words", share))
        if value is not None
    }
    [chance] = relevance(found, [record(score, meaning=1.0)], 100, MINILM, NOW)
    return chance


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:") as opened:
        yield opened


def chat(memory: Memory, *texts: str) -> None:
    start = NOW - timedelta(days=1)
    memory.remember(
        [
            Message("user", text, created_at=start + timedelta(seconds=place))
            for place, text in enumerate(texts)
        ],
        user="ada",
    )
    assert memory.jobs.catch_up(300) == 0


def test_each_signal_makes_it_likelier() -> None:
    assert 0 < judge(1.0, cosine=0.4, share=0.2) < judge(1.0, cosine=0.7, share=0.2) < 1
    assert judge(1.0, cosine=0.4, share=0.2) < judge(1.0, cosine=0.4, share=0.9)
    assert judge(0.8, cosine=0.6, share=0.5) < judge(1.9, cosine=0.6, share=0.5)


def test_other_embedders_are_judged_by_words_alone_and_a_late_channel_is_no_evidence() -> None:
    found = {"meaning": [Found(1, 0.9)], "words": [Found(1, 3.0, 3.0, 0.4)]}
    ranked = [record(1.5, meaning=0.9)]
    words = {"words": found["words"]}
    by_other = relevance(found, ranked, 50, "somebody/else", NOW)
    assert by_other == relevance(words, ranked, 50, None, NOW)
    late = relevance({"recency": [Found(1, 1.0)]}, ranked, 50, MINILM, NOW)
    assert late[0] >= by_other[0]
    assert WORDS_ALONE in CURVES


def test_what_was_just_said_has_no_vector_yet_and_stays() -> None:
    found = {"meaning": [Found(2, 0.1)], "words": []}
    new, old = record(0.0, to_micros(NOW)), record(0.0)
    assert relevance(found, [new], 1, MINILM, NOW) == [UNJUDGED]
    assert relevance(found, [old], 1, MINILM, NOW)[0] < MIN_SCORE < UNJUDGED


def test_a_question_that_nothing_bears_on_gives_nothing_and_says_so(memory: Memory) -> None:
    chat(memory, *SMALL_TALK)
    question = "Which mortgage rate did the notary quote for the Lisbon flat?"
    found = memory.recall(question, user="ada", deadline_ms=None)
    assert found.hits == ()
    assert "nothing bears on the question" in found.reason
    assert found.reason.endswith(f"below min_score {MIN_SCORE:g}; a lower one shows it")
    whole = memory.recall(question, user="ada", deadline_ms=None, min_score=0)
    assert len(whole.hits) == len(SMALL_TALK)
    assert whole.reason == ""
    assert memory.recall("anything", user="bob", deadline_ms=None).reason.startswith("nothing is")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What am I allergic to?", "I'm allergic to peanuts."),
        ("What is my job?", "I work as a nurse at the children's hospital."),
        ("which food must be avoided?", "Peanuts make me very ill, so keep them away from me."),
        ("Wo wohne ich?", "Ich wohne seit März in Graz."),
        ("¿Dónde vivo?", "Vivo en Sevilla desde marzo."),
        ("Как зовут мою собаку?", "Мою собаку зовут Шарик."),
        ("我住在哪里？", "我住在北京。"),
        ("peanuts", "I'm allergic to peanuts."),
    ],
)
@pytest.mark.parametrize("more", [0, 3])
def test_a_small_memory_gives_what_bears_on_the_question(
    memory: Memory, question: str, told: str, more: int
) -> None:
    chat(memory, *SMALL_TALK[:more], told)
    found = memory.recall(question, user="ada", deadline_ms=None)
    assert found.hits[0].text == told, found.reason
    assert 0 < found.hits[0].score <= 1


def test_one_message_among_many_is_quoted_alone(memory: Memory) -> None:
    texts = [f"{text} ({number})" for number, text in enumerate(islice(cycle(SMALL_TALK), 120))]
    chat(memory, *texts, "I'm allergic to peanuts.")
    made = memory.context("What am I allergic to?", user="ada", max_tokens=8_000, deadline_ms=None)
    assert len(made.receipt.part("memories").ids) <= 3
    assert "peanuts" in str(made.messages)
    window = Window(max_tokens=8_000, min_score=0)
    made = memory.context("What am I allergic to?", user="ada", window=window, deadline_ms=None)
    assert len(made.receipt.part("memories").ids) > 50


def test_a_window_leaves_out_what_ranks_far_behind_the_best(memory: Memory) -> None:
    chat(memory, *SMALL_TALK, "I'm allergic to peanuts.")
    found = memory.recall("What am I allergic to?", user="ada", deadline_ms=None, min_score=0)
    parts = {hit.id: dict(hit.why.parts) for hit in found.hits}
    for each in parts.values():
        each.pop("learned", None)  # what comes first, not how much may be of use
    ranks = {id_: sum(each.values()) for id_, each in parts.items()}
    near = {id_ for id_, rank in ranks.items() if rank >= QUOTED_SHARE * max(ranks.values())}
    assert 0 < len(near) < len(ranks) == len(SMALL_TALK) + 1
    for min_score, quoted in ((1e-9, near), (0, ranks.keys())):
        window = Window(max_tokens=8_000, min_score=min_score)
        made = memory.context("What am I allergic to?", user="ada", window=window, deadline_ms=None)
        assert set(made.receipt.part("memories").ids) == quoted


def test_a_window_is_filled_whatever_signals_weigh() -> None:
    with Memory(":memory:", embedder=None, ranking=Ranking(words=1e6)) as memory:
        chat(memory, "I'm allergic to peanuts.")
        made = memory.context("What am I allergic to?", user="ada", deadline_ms=None)
        assert "peanuts" in str(made.messages)


def test_without_a_floor_nothing_is_left_out_whatever_embeds() -> None:
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        chat(memory, *SMALL_TALK)
        found = memory.recall("zebra", user="ada", deadline_ms=None, min_score=0)
        assert len(found.hits) == len(SMALL_TALK)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "high", None])
def test_a_floor_is_a_share(memory: Memory, wrong: float) -> None:
    with pytest.raises(InvalidError, match="min_score"):
        memory.recall("tea", user="ada", min_score=wrong)


def test_an_eighth_of_a_window_is_free_for_the_answer() -> None:
    assert Window(max_tokens=4_000).reserved == 500
    assert Window(max_tokens=100_000).reserved == 1_000
    assert Window(max_tokens=4_000, answer_tokens=0).budget == 4_000


def test_a_floor_leaves_out_those_whose_score_is_below_it_and_no_other() -> None:
    places = islice(cycle(("Berlin", "Munich", "Graz", "Oslo", "Rome")), 60)
    told = islice(cycle(("I live in {}.", "Where is {}?", "The meeting in {} is on {}.")), 60)
    with Memory(":memory:", clock=lambda: NOW) as memory:
        chat(memory, *(text.format(place, place) for text, place in zip(told, places, strict=True)))
        memory.jobs.catch_up()
        for question in ("When is the meeting?", "who lives in Rome?"):
            ask: dict[str, Any] = {"user": "ada", "limit": 99, "deadline_ms": None}
            every = [hit.score for hit in memory.recall(question, min_score=0.0, **ask).hits]
            assert len({*every}) >= 3
            for floor in (0.005, 0.05, 0.2, 0.4):
                hits = memory.recall(question, min_score=floor, **ask).hits
                assert [hit.score for hit in hits] == [it for it in every if it >= floor]

"""Recall in random worlds and at random questions: never another's, never an error."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from memorist import Memory, Message, Recall
from memorist.providers.daemon_pool import DaemonPool
from memorist.recall.indexer import Indexer
from memorist.recall.search import Searcher
from memorist.records.query import Filters, Query
from memorist.records.values import new_id, now
from memorist.store.sqlite.store import SqliteStore
from tests.conformance.recall_worlds import Lookup, World, searches, worlds
from tests.conformance.worlds import ODD_TEXTS
from tests.support.models import WordEmbedder

LONG = bool(os.environ.get("MEMORIST_PROVE"))
QUESTIONS = 1_986 if LONG else 200
STRINGS = 10_000 if LONG else 600
POOL = DaemonPool(4)


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    with SqliteStore(":memory:") as opened:
        yield opened


@settings(
    max_examples=1_000 if LONG else 25, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(worlds(), searches())
def test_every_hit_is_the_users_own_and_passes_and_every_word_is_found(
    store: SqliteStore, world: World, asked: Lookup
) -> None:
    embedder = WordEmbedder()
    world.build(store, new_id())
    indexer = Indexer(store, embedder)
    while indexer.step():
        pass
    searcher = Searcher(store=store, embedder=embedder, store_pool=POOL, model_pool=POOL)
    query = Query(
        scope=world.scope(asked),
        question="an apple for Ada?",
        now=now(),
        limit=1_000,
        deadline_ms=None,
        filters=Filters.of(**asked.only),
    )
    found = searcher.search(query)
    allowed = world.allowed(asked)
    assert (found.late, found.failed) == ((), {})
    assert len({hit.id for hit in found.hits}) == len(found.hits)
    assert {hit.id for hit in found.hits} == {record.id for record in allowed}
    worded = {hit.id for hit in found.hits if "words" in hit.why.ranks}
    assert worded >= {record.id for record in allowed if "apple" in record.words.lower()}
    world.remove(store)


@pytest.fixture(scope="module")
def told() -> Iterator[Memory]:
    """A memory of two friends' talk and of odd texts."""
    with Memory(SqliteStore(":memory:"), embedder=WordEmbedder()) as memory:
        talk = [Message("user", line, name=name) for name, line in lines(random.Random(1), 200)]
        memory.remember([*talk, *ODD_TEXTS.values()], user="ada")
        assert memory.jobs.catch_up(300) == 0
        yield memory


NAMES = ("Caroline", "Melanie", "Mary Jane", "O'Brien", "Łukasz")
THINGS = ("pottery", "hiking", "the adoption agency", "a violin", "their dog's vet", "Café Zoë")
TIMES = ("in May 2023", "last week", "on 7 March", "before the summer", "yesterday")
SHAPES = (
    "When did {name} talk about {thing}?",
    "What does {name}'s friend think of {thing} {time}?",
    "How many times has {name} mentioned {thing}?",
    "would {name} still like {thing} if it rained {time}",
    "Which of {name} and {other} went for {thing} {time}?",
    "{name}’s {thing}?",
    "What did you recommend to {name} {time}?",
)


def filled(chance: random.Random, shape: str) -> str:
    name, other = chance.sample(NAMES, 2)
    thing, time = chance.choice(THINGS), chance.choice(TIMES)
    return shape.format(name=name, other=other, thing=thing, time=time)


def lines(chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    for _ in range(count):
        yield chance.choice(NAMES), filled(chance, "I saw {other} and {thing} {time}.")


def check(found: Recall) -> None:
    assert (found.late, found.failed) == ((), {})
    assert found.hits
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_questions_like_those_of_locomo_are_answered_without_an_error(told: Memory) -> None:
    chance = random.Random(2)
    for number in range(QUESTIONS):
        question = filled(chance, SHAPES[number % len(SHAPES)])
        check(told.recall(question, user="ada", deadline_ms=None, limit=3))


ALPHABETS = (
    "".join(map(chr, range(128))),
    "aA1 '\"*():-^~&|!%_\\/{}[]<>?.,;+=#@$`",
    "äöüßéñçøåİıſﬁǅΣς",
    "日本語柏林搬到了ไทยဗမာアイウ한국어",
    "שלוםمرحباЯпереехал",
    "\u200b\u200d\u202e\ufeff\u0301\u0308\ufffe\U0010ffff😀👩‍👧🏳️‍🌈",
    "\x00\ud800\udfff",
)
SYNTAX = (
    "NEAR(a b, 5)",
    "a AND NOT b*",
    "'; DROP TABLE passages; --",
    '"unclosed',
    "a:b",
    "^x",
    "",
)


def fuzz(chance: random.Random) -> str:
    """A string of one to three alphabets, sometimes long, sometimes with a word that is there."""
    pool = "".join(chance.sample(ALPHABETS, chance.randint(1, 3)))
    length = chance.choice((0, 1, 2, 5, 20, 80))
    text = "".join(chance.choices(pool, k=length))
    if chance.random() < 0.01:
        text *= 200
    if chance.random() < 0.3:
        text += chance.choice((*SYNTAX, *NAMES, *THINGS))
    return text


def test_any_string_may_be_asked(told: Memory) -> None:
    chance = random.Random(3)
    asked = [*ODD_TEXTS.values(), *SYNTAX, *(fuzz(chance) for _ in range(STRINGS))]
    for question in asked:
        check(told.recall(question, user="ada", deadline_ms=None, limit=3, min_score=0))

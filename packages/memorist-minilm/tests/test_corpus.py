"""The corpus that the embedder is trained on: whole, labelled, and free of the benchmarks."""

from __future__ import annotations

import json
import sys
from collections import Counter

from benchmarks.overlap import TRAINING, corpus_texts, fingerprint, names, read_fingerprints, runs

sys.path.insert(0, str(TRAINING))
from memorist_training.claims import CLAIMS, LABELLED, TOLD, VALUES
from memorist_training.corpus import (
    CATEGORIES,
    CHANGES,
    HELD_OUT,
    HELD_OUT_TALKS,
    RELATIONS,
    TALKS,
    read_corpus,
    read_stories,
    read_told,
    split,
)


def test_there_are_six_thousand_examples_by_many_writers() -> None:
    examples = read_corpus()
    assert len(examples) >= 6_000
    assert len({example.writer for example in examples}) >= 40
    assert len({example.text for example in examples}) == len(examples)
    kept, held_out = split(examples)
    assert {example.writer for example in held_out} == set(HELD_OUT)
    assert len(kept) > 4 * len(held_out)


def test_every_example_is_whole_and_its_statement_is_part_of_it() -> None:
    relations: Counter[str] = Counter()
    for example in read_corpus():
        assert example.statement in example.text
        assert example.role in ("user", "assistant")
        assert example.questions
        assert example.negatives
        assert example.category in (None, *CATEGORIES)
        relations.update(relation for relation, _ in example.pairs)
    assert set(relations) == set(RELATIONS)
    assert min(relations.values()) > 0.2 * relations.total()


def test_the_stories_are_whole_and_others_than_those_that_measure() -> None:
    stories, measured = read_stories(), read_stories(CHANGES)
    assert len(stories) == 570
    for story in stories:
        assert len(story.messages) >= 24
        assert len(story.questions) >= 15
        assert all(question.answers for question in story.questions)
        assert len(story.updates) >= 10
        assert all(older < newer for older, newer in story.updates)
    told = {text for story in stories for text in story.messages}
    assert told.isdisjoint(text for story in measured for text in story.messages)


def test_the_talks_are_whole_and_others_than_those_that_measure() -> None:
    talks, measured = read_stories(TALKS), read_stories(HELD_OUT_TALKS)
    assert len(talks) >= 80
    assert len(measured) >= 12
    for talk in (*talks, *measured):
        assert len(talk.messages) >= 50
        assert len(talk.questions) >= 25
        assert all(question.answers and not question.older for question in talk.questions)
        assert talk.speakers
    told = {text for talk in talks for text in talk.messages}
    # People greet each other in the same words.
    both = told & {text for talk in measured for text in talk.messages}
    assert max(map(len, both), default=0) < 40


def test_the_embedder_learns_from_all_talks_and_from_the_first_stories() -> None:
    told = read_told()
    assert len([it for it in told if it.speakers]) == len(read_stories(TALKS))
    assert len([it for it in told if not it.speakers]) == 120


def test_nothing_in_it_is_from_the_benchmarks() -> None:
    prints = read_fingerprints()
    assert len(prints) > 50_000
    for writer, text in corpus_texts():
        found = [run for run in runs(text) | names(text) if fingerprint(run) in prints]
        assert not found, f"{writer}: {found}"


def test_what_is_from_the_benchmarks_is_noticed() -> None:
    prints = read_fingerprints()
    for said, divide in (("When did Melanie paint a sunrise?", runs), ("Melanie", names)):
        assert any(fingerprint(run) in prints for run in divide(said))


def test_the_texts_that_stay_where_they_are_are_long() -> None:
    texts = json.loads((TRAINING / "anchors.json").read_text(encoding="utf-8"))
    assert len(texts) == len(set(texts)) == 400
    assert min(map(len, texts)) >= 700


def test_the_reader_learns_from_whole_messages_that_are_nobody_elses() -> None:
    rows = [
        (path.name, json.loads(line))
        for path in sorted(CLAIMS.rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    texts = [row["text"] for _, row in rows]
    assert len(set(texts)) == len(texts) > 20_000
    for name, row in rows:
        claims = row["claims"]
        assert row["keep"] or not claims, name
        assert all(claim["object"] in row["text"] for claim in claims), name
        predicates = {claim["predicate"] for claim in claims}
        predicates = {"favourite" if it.startswith("favourite ") else it for it in predicates}
        assert predicates <= {*VALUES, *TOLD}, name
    labelled = {
        json.loads(line)["text"]
        for path in LABELLED.glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    assert labelled.isdisjoint(texts)
    prints = read_fingerprints()
    assert not [run for text in texts for run in runs(text) if fingerprint(run) in prints]

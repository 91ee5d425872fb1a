"""Figures of a model: what it finds among what a writer's people said."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import torch

from memorist_training.corpus import CHANGES, HELD_OUT_TALKS, Example, Story, read_stories
from memorist_training.fit import Pieces
from memorist_training.model import AdaptedMiniLM


def measure(
    model: AdaptedMiniLM, examples: Sequence[Example], pieces: Pieces
) -> dict[str, dict[str, float]]:
    """All the figures: on examples of writers that are held out, on stories, on talks."""
    return {
        "messages": _retrieval(model, examples, pieces),
        "statements": _retrieval(model, examples, pieces, statements=True),
        "stories": _stories_found(model, read_stories(CHANGES), pieces),
        "talks": _stories_found(model, read_stories(HELD_OUT_TALKS), pieces),
    }


def _retrieval(
    model: AdaptedMiniLM, examples: Sequence[Example], pieces: Pieces, *, statements: bool = False
) -> dict[str, float]:
    """R@1, R@10 and nDCG@10 over each writer's messages, or statements, and negatives."""
    recalls: dict[str, list[float]] = defaultdict(list)
    by_writer: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_writer[example.writer].append(example)
    for own in by_writer.values():
        said = [it.statement if statements else it.text for it in own]
        held = said + [text for it in own for text in it.negatives]
        questions = sorted({question for it in own for question in it.questions})
        with torch.no_grad():
            asked = model([pieces[it] for it in questions])
            order = (asked @ model([pieces[it] for it in held]).T).argsort(dim=1, descending=True)
        for question, best in zip(questions, order[:, :10].tolist(), strict=True):
            right = {place for place, it in enumerate(own) if question in it.questions}
            hits = [place in right for place in best]
            ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(right), 10)))
            gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits))
            recalls["R@1"].append(hits[0])
            recalls["R@10"].append(sum(hits) / len(right))
            recalls["nDCG@10"].append(gain / ideal)
    return {name: sum(values) / len(values) for name, values in recalls.items()}


def _stories_found(
    model: AdaptedMiniLM, stories: Sequence[Story], pieces: Pieces
) -> dict[str, float]:
    """How often an answer is the first of a person's messages, among the first three or ten."""
    found: dict[str, list[float]] = defaultdict(list)
    for story in stories:
        with torch.no_grad():
            said = model([pieces[text] for text in story.messages])
            asked = model([pieces[question.text] for question in story.questions])
        order = (asked @ said.T).argsort(dim=1, descending=True).tolist()
        for question, places in zip(story.questions, order, strict=True):
            kind = "changed" if question.older else "unchanged"
            first = min(places.index(answer) for answer in question.answers)
            found[f"{kind} first"].append(first < 1)
            found[f"{kind} in 3"].append(first < 3)
            found[f"{kind} in 10"].append(first < 10)
    return {name: sum(values) / len(values) for name, values in found.items()}

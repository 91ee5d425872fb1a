"""The corpus: what people said, questions that ask for it, and what only resembles it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
HELD_OUT = ("en-16", "en-26", "en-36", "en-40", "es-02")  # writers that training never sees
RELATIONS = ("same", "updates", "unrelated")
CATEGORIES = (
    "user_preferences",
    "knowledge",
    "error_patterns",
    "solutions",
    "code_context",
    "task_history",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Something said, the part of it that matters, and what belongs to it.

    `pairs` are later statements of the same person, each with how it relates to this one.
    """

    writer: str
    person: str
    when: str
    role: str
    text: str
    statement: str
    questions: tuple[str, ...]
    negatives: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    lasting: bool
    category: str | None


def read_corpus(folder: Path = CORPUS) -> list[Example]:
    """All examples, in the order of files and lines."""
    return [
        _example(path.stem, json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _example(writer: str, row: dict[str, object]) -> Example:
    lists = {
        name: tuple(tuple(it) if isinstance(it, list) else it for it in value)
        for name, value in row.items()
        if isinstance(value, list)
    }
    person = f"{writer}/{row['person']}"
    return Example(writer=writer, **{**row, **lists, "person": person})  # type: ignore[arg-type]


def split(examples: list[Example]) -> tuple[list[Example], list[Example]]:
    """Those to train on, and those of the writers that are held out."""
    kept = [it for it in examples if it.writer not in HELD_OUT]
    return kept, [it for it in examples if it.writer in HELD_OUT]


def texts_of(example: Example) -> list[str]:
    """All the texts of an example."""
    others = [text for _, text in example.pairs]
    return [example.text, example.statement, *example.questions, *example.negatives, *others]

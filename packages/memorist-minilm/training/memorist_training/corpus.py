"""The corpus: what people said, questions that ask for it, what resembles it; stories, talks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
STORIES = Path(__file__).parents[1] / "stories"
TALKS = Path(__file__).parents[1] / "talks"
CHANGES = Path(__file__).parents[4] / "benchmarks/changes"  # stories to measure on
LAST_STORIES = "l"  # what the names of the last ones begin with that the embedder learns from
HELD_OUT_TALKS = Path(__file__).parents[4] / "benchmarks/talks"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryQuestion:
    """A question, the messages that answer it, and those that did so before something changed."""

    text: str
    answers: tuple[int, ...]
    older: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What one person says over some months, or two to each other, and questions about it.

    Of two, the `speakers` are known by name, and the questions name them.
    """

    messages: tuple[str, ...]
    questions: tuple[StoryQuestion, ...]
    speakers: frozenset[str] = frozenset()

    @property
    def updates(self) -> frozenset[tuple[int, int]]:
        """The places of an older and a newer message, for all that changed."""
        return frozenset(
            (older, newer) for it in self.questions for older in it.older for newer in it.answers
        )

    @property
    def unknown(self) -> frozenset[tuple[int, int]]:
        """Pairs of one matter that no question tells apart: one updates the other, or repeats it.

        What changed twice is such a pair: the first two messages are both older than the last.
        """
        matters = [side for it in self.questions if it.older for side in (it.older, it.answers)]
        pairs = (pair for matter in matters for pair in combinations(sorted(matter), 2))
        return frozenset(pairs) - self.updates


def read_stories(folder: Path = STORIES) -> list[Story]:
    """The stories of a folder, in the order of their files."""
    return [_story(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.jsonl"))]


def read_told() -> list[Story]:
    """What the embedder learns from beside the corpus: talks, and the first stories of change.

    With more of those it finds what changed no better, and other things less well.
    """
    first = [path for path in sorted(STORIES.glob("*.jsonl")) if path.name[0] <= LAST_STORIES]
    return [*(_story(path.read_text(encoding="utf-8")) for path in first), *read_stories(TALKS)]


def _story(lines: str) -> Story:
    rows = [json.loads(line) for line in lines.splitlines()]
    said = [row for row in rows if "text" in row and row.get("role", "user") == "user"]
    places = {row["id"]: place for place, row in enumerate(said)}

    def placed(ids: list[str]) -> tuple[int, ...]:
        return tuple(places[id_] for id_ in ids)

    return Story(
        messages=tuple(row["text"] for row in said),
        speakers=frozenset(row["speaker"] for row in said if "speaker" in row) - {"assistant"},
        questions=tuple(
            StoryQuestion(
                text=row["question"],
                answers=placed(row["newer"] if "newer" in row else row["answer"]),
                older=placed(row.get("older", [])),
            )
            for row in rows
            if "question" in row
        ),
    )


def texts_of_story(story: Story) -> list[str]:
    """All the texts of a story."""
    return [*story.messages, *(question.text for question in story.questions)]

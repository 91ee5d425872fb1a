"""Our own stories of change, told to an assistant, and talks of two people.

In a story somebody tells things, and later tells them otherwise. Beside those that measure there
are some from which recall's ranking learns: the embedder has not seen them.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.dataset import Conversation, Question, by_day, day_of

HERE = Path(__file__).parent
TRAINING = HERE.parent / "packages/memorist-minilm/training"
EVERY = 9  # of the stories that the embedder has not seen


class Stories:
    """Messages and questions of several users, each with one session a day."""

    left_out = 0

    def __init__(self, name: str, stories: Mapping[str, list[dict[str, Any]]]) -> None:
        self.name = name
        self._messages = {
            name: [_by_role(row) for row in rows if "text" in row] for name, rows in stories.items()
        }
        self.questions = [
            _question(name, number, row, self._messages[name])
            for name, rows in stories.items()
            for number, row in enumerate(row for row in rows if "question" in row)
        ]

    @classmethod
    def changes(cls, _: Path) -> Stories:
        """The stories of change."""
        return cls("changes", read_stories((HERE / "changes").glob("*.jsonl")))

    @classmethod
    def talks(cls, _: Path) -> Stories:
        """The talks of two."""
        return cls("talks", read_stories((HERE / "talks").glob("*.jsonl")))

    @classmethod
    def more_changes(cls, _: Path) -> Stories:
        """Some of the stories that the reader has learnt from, and not the embedder."""
        files = sorted((TRAINING / "stories").glob("*.jsonl"))
        unseen = [it for it in files if it.stem[0] > corpus().LAST_STORIES]
        return cls("more changes", read_stories(unseen[::EVERY]))

    @classmethod
    def held_out(cls, _: Path) -> Stories:
        """What writers of the embedder's corpus said whom it has not learnt from."""
        stories = defaultdict[str, list[dict[str, Any]]](list)
        for number, it in enumerate(corpus().split(corpus().read_corpus())[1]):
            row = {"id": f"m{number}", "date": it.when, "text": it.text, "role": it.role}
            asked = [{"question": one, "answer": [row["id"]]} for one in it.questions]
            stories[f"{it.writer} {it.person}"] += [row, *asked]
        return cls("held out", stories)

    def history(self, user: str) -> Iterator[Conversation]:
        """The days of a story, oldest first."""
        return by_day(self._messages[user], day="date", apart=timedelta(minutes=1))


def read_stories(files: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """The lines of each file."""
    return {it.stem: [*map(json.loads, it.read_text("utf-8").splitlines())] for it in sorted(files)}


def corpus() -> ModuleType:
    """The module that reads what the embedder is trained on."""
    sys.path.insert(0, str(TRAINING))
    from memorist_training import corpus

    sys.path.remove(str(TRAINING))
    return corpus


def _question(
    name: str, number: int, row: dict[str, Any], messages: list[dict[str, Any]]
) -> Question:
    """A question; its evidence is what holds, and what was said before that."""
    newest = frozenset(row.get("newer", row.get("answer", ())))
    turns = newest | frozenset(row.get("older", ()))
    days = {message["id"]: message["date"] for message in messages}
    return Question(
        id=f"{name}:{number}",
        user=name,
        text=row["question"],
        kind=_kind(row, messages),
        turns=turns,
        user_turns=turns,
        newest_turns=newest,
        sessions=frozenset(days[turn] for turn in turns),
        asked_at=day_of(max(days.values())) + timedelta(days=7),
    )


def _by_role(row: dict[str, Any]) -> dict[str, Any]:
    """A message of a talk as a user's, known by name, or as the assistant's."""
    if row.get("speaker") != "assistant":
        return row
    return {**row, "role": "assistant", "speaker": None}


def _kind(row: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    if "speaker" in messages[0]:
        return "of one message" if len(row["answer"]) == 1 else "of several"
    return "changed" if "newer" in row else "unchanged"

"""Our own stories of change: a person tells an assistant things, and later tells them otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.dataset import Conversation, Question, by_day, day_of

FOLDER = Path(__file__).parent / "changes"


class Changes:
    """Every story in the folder, each its own user with one session a day."""

    name = "changes"
    left_out = 0

    def __init__(self, stories: dict[str, list[dict[str, Any]]]) -> None:
        self._messages = {
            name: [row for row in rows if "text" in row] for name, rows in stories.items()
        }
        self.questions = [
            _question(name, number, row, self._messages[name])
            for name, rows in stories.items()
            for number, row in enumerate(row for row in rows if "question" in row)
        ]

    @classmethod
    def load(cls, _: Path) -> Changes:
        """They lie beside this module, whatever folder holds the other sets."""
        files = sorted(FOLDER.glob("*.jsonl"))
        return cls(
            {it.stem: [*map(json.loads, it.read_text("utf-8").splitlines())] for it in files}
        )

    def history(self, user: str) -> Iterator[Conversation]:
        """The days of a story, oldest first."""
        return by_day(self._messages[user], day="date", apart=timedelta(minutes=1))


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
        kind="changed" if "newer" in row else "unchanged",
        turns=turns,
        user_turns=turns,
        newest_turns=newest,
        sessions=frozenset(days[turn] for turn in turns),
        asked_at=day_of(max(days.values())) + timedelta(days=7),
    )
